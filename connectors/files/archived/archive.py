"""Delivered content kept by its hash: decompressed once, named by the hash, never changed.

The path of a content is `archive/<first two digits>/<sha256>.csv`. It is first written under
`archive/incoming` and gets its final name only when it is complete and on disk.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from connectors.errors import ExtractRefused, ReconError
from connectors.files.disk.atomic import (
    close_flushed,
    file_alone,
    locked_file,
    private_folder,
    sweep_files,
    sync_folder,
)
from connectors.files.disk.system_errors import most_open, too_many_open
from connectors.files.incoming.delivery import Source
from connectors.files.incoming.source_text import DeliveredBytes, text_of
from connectors.files.text.content import refused
from connectors.files.text.evidence import MISSING, Evidence, PieceHashes, difference
from connectors.recovery import reach
from connectors.settings import MIB, Limits

LOCK, INCOMING = ".lock", "incoming"
HOLD_SECONDS = 60
MOST_TOGETHER, BYTES_TOGETHER = 100, 4 * MIB
"""Limits of a group of contents named together: their number, as far as all may be open at once,
and their bytes."""
SYNCS, FEW = 16, 4
"""Threads that wait for the disk, and the number of files up to which none are used."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of one source in the archive."""

    name: str
    sha256: str
    """Hash of the decompressed bytes: the identity of the content."""
    bytes: int
    path: Path
    delivered_sha256: str
    """Hash of the file or zip member as delivered, still compressed if it was."""
    delivered_bytes: int
    location: str
    known: bool
    """Whether the archive already held this content, intact in every byte."""
    pieces: str
    """Hashes of the pieces, in the form of `Evidence`."""
    replaced: str | None = None
    """How the archive's earlier copy differed; the delivered bytes have replaced it."""

    @property
    def evidence(self) -> Evidence:
        """The evidence that later reads are checked against."""
        remedy = "Run the command again."
        return Evidence(self.path, self.sha256, self.bytes, self.pieces, self.name, remedy)


def store(source: Source, archive: Path, limits: Limits, *, lasting: bool = True) -> Stored:
    """Read the source once and keep its decompressed bytes in the archive.

    `lasting`: they survive a loss of power, and other processes add and remove there too. A folder
    of this process alone, which it removes again, needs neither.

    Raises ExtractRefused (empty_file, corrupt_archive, unsupported_format, too_large,
    incomplete_file) for the file, DeliveryError if it cannot be read, ReconError if the archive
    cannot be written. Whatever is raised, nothing is left behind.
    """
    ((_, stored),) = store_all([source], archive, limits, lasting=lasting)
    if isinstance(stored, ExtractRefused):
        raise stored
    return stored


def store_all(
    sources: Iterable[Source], archive: Path, limits: Limits, *, lasting: bool = True
) -> Iterator[tuple[Source, Stored | ExtractRefused]]:
    """Store several sources in order; a refused one does not affect the others.

    Groups of them share the cost of `lasting`, which is only certain once the iteration has ended.
    """
    left, folders = iter(sources), {archive}
    more = True
    while more:
        group: list[tuple[Source, _Draft | ExtractRefused]] = []
        held, more, most = 0, False, most_open(MOST_TOGETHER)
        with ExitStack() as open_drafts:
            for source in left:
                with _archiving(archive, source.name):
                    if not group:
                        sweep_files(private_folder(archive / INCOMING))
                    group.append((source, _written(source, archive, limits, open_drafts)))
                _, one = group[-1]
                held += one.bytes if isinstance(one, _Draft) else 0
                if more := len(group) >= most or held >= BYTES_TOGETHER:
                    break
            drafts = [one for _, one in group if isinstance(one, _Draft)]
            found = iter(_keep(drafts, archive, lasting=lasting))
        folders.update(one.path.parent for one in drafts)
        for source, one in group:
            yield source, one.stored(next(found)) if isinstance(one, _Draft) else one
    if lasting:
        _sync_folders(archive, folders)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A content that is written out but has no final name yet."""

    source: Source
    file: BinaryIO
    place: Path
    path: Path
    sha256: str
    bytes: int
    pieces: str
    delivered: DeliveredBytes

    def stored(self, found: str | None) -> Stored:
        """The kept content; `found` is how the earlier copy differed, or `MISSING`, or None."""
        return Stored(
            name=self.source.name,
            sha256=self.sha256,
            bytes=self.bytes,
            path=self.path,
            delivered_sha256=self.delivered.digest.hexdigest(),
            delivered_bytes=self.delivered.bytes,
            location=self.source.location,
            known=found is None,
            pieces=self.pieces,
            replaced=None if found in (None, MISSING) else found,
        )


def _written(
    source: Source, archive: Path, limits: Limits, drafts: ExitStack
) -> _Draft | ExtractRefused:
    if source.fault:
        return refused(source.fault.code, source.name, detail=source.fault.detail)
    delivered, digest, size = DeliveredBytes(), hashlib.sha256(), 0
    pieces = PieceHashes()
    file, place = drafts.enter_context(_draft(archive))
    try:
        for block in text_of(source, delivered, limits):
            if delivered.packed:
                digest.update(block)
            pieces.update(block)
            size += len(block)
            file.write(block)
    except ExtractRefused as refusal:
        return refusal
    file.flush()
    sha256 = (digest if delivered.packed else delivered.digest).hexdigest()
    path = kept_path(archive, sha256)
    return _Draft(source, file, place, path, sha256, size, pieces.hexdigests(), delivered)


@contextmanager
def _archiving(archive: Path, name: str) -> Iterator[None]:
    """Turn errors of the archive's disk into ReconError."""
    try:
        yield
    except OSError as error:
        todo = too_many_open(error) or (
            "Make room, or set RECON_HOME to a folder that can be written; run again."
        )
        raise ReconError(
            f"{archive}: {name} cannot be archived: {error.strerror or error}. Nothing of "
            f"it was kept. {todo}"
        ) from error


@contextmanager
def _draft(archive: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file to write a content into; removed afterwards unless it got its final name."""
    path, file = locked_file(archive / INCOMING)
    try:
        yield file, path
    finally:
        close_flushed(file)
        path.unlink(missing_ok=True)


def kept_path(archive: Path, sha256: str) -> Path:
    return archive / sha256[:2] / f"{sha256}.csv"


@contextmanager
def hold_archive(archive: Path) -> Iterator[None]:
    """Keep a content from being removed while it is delivered again, and vice versa.

    The lock is held only for a moment. Whoever removes a content checks under it once more when the
    content was last delivered. Raises TurnNotGiven if another process does not let go.
    """
    private_folder(archive)
    with file_alone(archive / LOCK, HOLD_SECONDS, "Keeping or removing what was delivered"):
        yield


def _keep(drafts: Sequence[_Draft], archive: Path, *, lasting: bool) -> list[str | None]:
    """Give drafts their final names unless the same contents are there already.

    Returns for each how the earlier copy differed, or `MISSING`; None if it did not differ.
    """
    hold: Callable[[], AbstractContextManager[None]] = (
        partial(hold_archive, archive) if lasting else nullcontext
    )
    if not drafts:
        return []
    # Touched before they are examined: housekeeping spares recently delivered contents.
    with _archiving(archive, drafts[0].source.name), hold():
        for one in drafts:
            with suppress(FileNotFoundError):
                os.utime(one.path, follow_symlinks=False)
    seen: set[str] = set()
    new: list[_Draft] = []
    differences: list[str | None] = []
    for one in drafts:
        # Of several drafts with one content, only the first provides it.
        why = None
        if one.sha256 not in seen:
            seen.add(one.sha256)
            why = difference(one.path, one.sha256, one.bytes)
            if why is not None:
                new.append(one)
        differences.append(why)
    if lasting:
        _sync(archive, new)
    for _ in new:
        reach("hashed")
    if new:
        with _archiving(archive, new[0].source.name), hold():
            for one in new:
                with _archiving(archive, one.source.name):
                    private_folder(one.path.parent)
                    _make_way(one.path)
                    one.place.replace(one.path)
    for _ in new:
        reach("archived")
    return differences


def _sync(archive: Path, drafts: Collection[_Draft]) -> None:
    """Flush the bytes of drafts to disk."""

    def sync(one: _Draft) -> None:
        with _archiving(archive, one.source.name):
            os.fsync(one.file.fileno())

    _side_by_side(sync, drafts)


def _sync_folders(archive: Path, folders: Collection[Path]) -> None:
    """Flush the names in folders to disk."""

    def sync(folder: Path) -> None:
        with _archiving(archive, "what was delivered"), suppress(FileNotFoundError):
            sync_folder(folder)

    _side_by_side(sync, folders)


def _side_by_side(sync: Callable[[T], None], of: Collection[T]) -> None:
    """Sync several at once, so that they share the cost of the file system's journal."""
    if len(of) <= FEW:
        for one in of:
            sync(one)
        return
    with ThreadPoolExecutor(SYNCS) as pool:
        for _ in pool.map(sync, of):
            pass


def _make_way(path: Path) -> None:
    """Put aside a folder with the name of a content; anything else is replaced by the rename."""
    if path.is_dir() and not path.is_symlink():
        path.rename(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}-"))
