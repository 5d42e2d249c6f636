"""Delivered content kept by its hash: decompressed once, named by what it is, never changed.

A content is `archive/<first two digits>/<sha256>.csv`. It is written under `archive/incoming`
first and takes its final name only when it is complete and on disk.
"""

import fcntl
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from connectors.errors import ReconError
from connectors.files import unpack
from connectors.files.atomic import file_alone, private_folder
from connectors.files.content import (
    HEAD_BYTES,
    WORKBOOKS,
    ZIP,
    byte_order_mark,
    foreign_format,
    is_blank,
    refused,
    shown,
)
from connectors.files.delivery import Source, is_broken_zip, open_source
from connectors.files.evidence import MISSING, Evidence, PieceHashes, difference
from connectors.files.stores import store_errors, unreadable
from connectors.files.unpack import PACKED, READ_BYTES, packing_of
from connectors.recovery import reach
from connectors.settings import Limits
from schemas.counting import quantity

LOCK = ".lock"
HOLD_SECONDS = 60
BROKEN = (*unpack.BROKEN, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of one source in the archive."""

    name: str
    sha256: str
    """Of the decompressed bytes: the identity of the content."""
    bytes: int
    path: Path
    delivered_sha256: str
    """Of the file or zip member as it was named, still compressed if it was."""
    delivered_bytes: int
    location: str
    known: bool
    """Whether the archive held this content before, every byte of it."""
    pieces: str
    """Hashes of the pieces, as `Evidence` has them."""
    replaced: str | None = None
    """In what the copy that was there differed; the delivered bytes are in its place now."""

    @property
    def evidence(self) -> Evidence:
        """What later reads are held against."""
        remedy = "Run the command again."
        return Evidence(self.path, self.sha256, self.bytes, self.pieces, self.name, remedy)


def store(source: Source, archive: Path, limits: Limits, *, lasting: bool = True) -> Stored:
    """Read the source once and keep its decompressed bytes in the archive.

    `lasting`: they survive a loss of power, and other processes keep and remove there too. A folder
    of this process alone, which it removes again, is nothing of that.

    Raises ExtractRefused (empty_file, corrupt_archive, unsupported_format, too_large,
    incomplete_file) for the file, DeliveryError if it cannot be read, ReconError if the archive
    cannot be written. Whatever is raised, nothing is left behind.
    """
    if source.fault:
        raise refused(source.fault.code, source.name, detail=source.fault.detail)
    delivered, digest, size = _Delivered(), hashlib.sha256(), 0
    pieces = PieceHashes()
    try:
        with _draft(archive) as (file, draft):
            for block in _text(source, delivered, limits):
                if delivered.packed:
                    digest.update(block)
                pieces.update(block)
                size += len(block)
                file.write(block)
            sha256 = (digest if delivered.packed else delivered.digest).hexdigest()
            path, found = _keep(file, draft, archive, sha256, size, lasting=lasting)
    except OSError as error:
        raise ReconError(
            f"{archive}: {source.name} cannot be archived: {error.strerror or error}. Nothing of "
            "it was kept. Make room, or set RECON_HOME to a folder that can be written; run again."
        ) from error
    return Stored(
        name=source.name,
        sha256=sha256,
        bytes=size,
        path=path,
        delivered_sha256=delivered.digest.hexdigest(),
        delivered_bytes=delivered.bytes,
        location=source.location,
        known=found is None,
        pieces=pieces.hexdigests(),
        replaced=None if found in (None, MISSING) else found,
    )


def unpacked_text(path: Path, limits: Limits) -> Iterator[bytes]:
    """The decompressed blocks of a file that is not archived; refused as `store` refuses it."""
    source = Source(path.name, str(path), str(path.parent), path.name)
    return _text(source, _Delivered(), limits)


@dataclass(slots=True)
class _Delivered:
    """What has been read of a source so far, before decompression."""

    bytes: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    packed: bool = False
    """Whether it turned out to be compressed."""


def _text(source: Source, delivered: _Delivered, limits: Limits) -> Iterator[bytes]:
    """The decompressed blocks, checked for size, format and emptiness on their way."""
    head, waiting, blank, size = b"", True, True, 0
    for block in _unpacked(source, delivered):
        size += len(block)
        _check_size(source, size, delivered, limits)
        if waiting:
            head += block
            if len(head) < HEAD_BYTES:
                continue
            waiting, block = False, head  # noqa: PLW2901 (the head is the first block)
            _check_format(source, head)
            blank = is_blank(block[len(byte_order_mark(block)[0]) :])
        elif blank:
            blank = is_blank(block)
        yield block
    if waiting:
        blank = is_blank(head[len(byte_order_mark(head)[0]) :])
    if blank:
        raise refused("empty_file", source.name)
    if waiting:
        _check_format(source, head)
        yield head


def _unpacked(source: Source, delivered: _Delivered) -> Iterator[bytes]:
    """The blocks of the content; what it is compressed with is told by its first bytes."""
    pieces = _pieces(source, delivered)
    try:
        first = next(pieces, b"")
        if packing := packing_of(first):
            delivered.packed = True
            yield from packing.unpack(first, pieces)
        elif first and (suffix := Path(source.key.lower()).suffix) in PACKED:
            raise refused("corrupt_archive", source.name, detail=f"no {suffix} inside")
        else:
            if first:
                yield first
            yield from pieces
    except BROKEN as error:
        if "too much memory" in str(error) or "Memory usage limit" in str(error):
            raise refused(
                "too_large", source.name, detail="unpacked over 128 MiB at once"
            ) from error
        raise refused("corrupt_archive", source.name, detail=shown(str(error))) from error
    except (NotImplementedError, RuntimeError) as error:
        # The zip reader's words for a compression it does not know and for an encrypted member.
        raise refused("unsupported_format", source.name, detail=shown(str(error))) from error


def _pieces(source: Source, delivered: _Delivered) -> Iterator[bytes]:
    """The bytes as delivered; a file that changes while it is read is still being written."""
    with open_source(source) as file:
        before = _state(source, file)
        try:
            while piece := _read(source, file):
                delivered.bytes += len(piece)
                delivered.digest.update(piece)
                yield piece
            after = _state(source, file)
        except OSError as error:
            if source.member is not None and is_broken_zip(error):
                raise zipfile.BadZipFile(str(error)) from error
            raise unreadable(source.location, error) from error
    if before != after:
        detail = f"it changed while it was read ({quantity(before[0], 'byte')}, then {after[0]})"
        raise refused("incomplete_file", source.name, detail=detail)


def _read(source: Source, file: BinaryIO) -> bytes:
    if not source.remote:
        return file.read(READ_BYTES)
    with store_errors():
        return file.read(READ_BYTES)


def _state(source: Source, file: BinaryIO) -> tuple[int, int]:
    if source.remote or source.member is not None:
        return 0, 0
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _check_size(source: Source, size: int, delivered: _Delivered, limits: Limits) -> None:
    if size > limits.file_bytes:
        detail = f"more than {quantity(limits.file_bytes, 'byte')}"
        raise refused("too_large", source.name, detail=detail)
    packed = delivered.bytes
    if source.packed_bytes is not None:
        packed = min(packed, max(1, source.packed_bytes))
    # What fits one block cannot do harm, and short texts of one letter compress far.
    if size > limits.block_bytes and size > limits.compression_ratio * packed:
        detail = f"it unpacks to more than {quantity(limits.compression_ratio, 'time')} its size"
        raise refused("too_large", source.name, detail=detail)


def _check_format(source: Source, head: bytes) -> None:
    if source.key.lower().endswith(WORKBOOKS):
        if not head.startswith(ZIP):
            raise refused("unsupported_format", source.name, detail="no workbook inside")
        return
    if title := foreign_format(head):
        raise refused("unsupported_format", source.name, detail=title)


@contextmanager
def _draft(archive: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file to write a content into; gone afterwards unless it was given its final name."""
    folder = archive / "incoming"
    private_folder(folder)
    _sweep(folder)
    file, path = _locked_file(folder)
    try:
        with file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def _locked_file(folder: Path) -> tuple[BinaryIO, Path]:
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder)
        file = os.fdopen(descriptor, "wb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if Path(name).exists():
            return file, Path(name)
        # Another run swept it before it was locked.
        file.close()


def _sweep(folder: Path) -> None:
    """Remove drafts of runs that were killed: nobody holds their lock."""
    for path in folder.iterdir():
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)


def kept_path(archive: Path, sha256: str) -> Path:
    """Where the content of this hash is kept."""
    return archive / sha256[:2] / f"{sha256}.csv"


@contextmanager
def hold_archive(archive: Path) -> Iterator[None]:
    """Keep a content from being removed while it is delivered again, and the other way round.

    It is held for a moment only. Whoever removes looks once more, under it, at when the content was
    delivered last. Raises TurnNotGiven where another process does not let go.
    """
    private_folder(archive)
    with file_alone(archive / LOCK, HOLD_SECONDS, "Keeping or removing what was delivered"):
        yield


def _keep(
    file: BinaryIO, draft: Path, archive: Path, sha256: str, size: int, *, lasting: bool
) -> tuple[Path, str | None]:
    """Give the draft its final name unless that very content is there.

    Says in what the copy that was there differed, or `MISSING`; None: in nothing.
    """
    path = kept_path(archive, sha256)
    hold: Callable[[], AbstractContextManager[None]] = (
        partial(hold_archive, archive) if lasting else nullcontext
    )
    # Housekeeping spares what was delivered lately, from before it is looked at.
    with hold(), suppress(FileNotFoundError):
        os.utime(path, follow_symlinks=False)
    found = difference(path, sha256, size)
    if found is None:
        return path, None
    file.flush()
    if lasting:
        os.fsync(file.fileno())
    reach("hashed")
    private_folder(path.parent)
    with hold():
        _make_way(path)
        draft.replace(path)
    reach("archived")
    for folder in (path.parent, archive) if lasting else ():
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return path, found


def _make_way(path: Path) -> None:
    """Put a folder that has the name of a content aside; anything else is simply replaced."""
    if path.is_dir() and not path.is_symlink():
        path.rename(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}-"))
