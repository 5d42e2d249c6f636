"""A user's paths as extracts: folders, files, patterns and zip members, on disk or in a store.

Names found in a delivery are data: shown and compared, never used as a path.
"""

import io
import lzma
import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import BinaryIO, cast

from connectors.errors import DeliveryError
from connectors.files.incoming.file_names import (
    CONTROL_NAME,
    DeliveryFault,
    about_file,
    is_companion,
    is_control,
    is_extract_like,
    name_fault,
    states_ending,
)
from connectors.files.incoming.stores import (
    FileState,
    FileStore,
    Sort,
    location_of,
    place_of,
    unreadable,
)
from connectors.files.incoming.unpack import WINDOW_BYTES, is_broken_zip
from connectors.printable import shown
from connectors.settings import Limits
from schemas.counting import agree, first_of, quantity

NAMED = 10
"""Most extracts that an error names."""
NO_MEMBERS = b"PK\5\6".ljust(22, b"\0")
"""An empty zip archive."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file within a zip, from the zip's directory, which is read once."""

    number: int
    """Index in the directory; two members may have the same name."""
    info: zipfile.ZipInfo = field(compare=False)
    archive: FileState = field(compare=False)
    """The zip's state when its directory was read."""


@dataclass(frozen=True, slots=True)
class Source:
    """One extract that was named, readable or not."""

    name: str
    """As shown; unique in its delivery: `payments.csv`, `archive.zip/payments.csv`."""
    location: str
    """Path or URL of the file that holds it."""
    folder: str
    key: str
    """Its name inside `folder`, as a control manifest writes it."""
    member: Member | None = None
    fault: DeliveryFault | None = None

    @property
    def remote(self) -> bool:
        """Whether it is in an object store."""
        return "://" in self.location

    def state(self, file: BinaryIO) -> FileState:
        """The state of the opened file that holds it; raises OSError."""
        return place_of(self.location).state(self.location, file)


@dataclass(frozen=True, slots=True)
class Control:
    """A control manifest found with the delivery, not read yet."""

    source: Source
    prefix: str = ""
    """Prefix of its sources' keys before the names it lists (inside a zip: its folder)."""
    of_file: str | None = None
    """Name of the one file it is about; None if it is about its folder."""
    whole: bool = True
    """Whether everything in its folder was named, so that an absent file is a loss."""
    patterns: tuple[str, ...] = ()
    """Otherwise, patterns of the names that were named."""

    def is_named(self, name: str) -> bool:
        """Whether the user's paths include a file of this name in the manifest's folder."""
        file_name = name.partition("/")[0]
        fits = any(fnmatchcase(file_name, one) for one in self.patterns)
        return self.whole or (fits and not file_name.startswith("."))


@dataclass(frozen=True, slots=True)
class OpenedDelivery:
    """Everything found: the extracts, the files left alone, and the control manifests."""

    sources: tuple[Source, ...]
    left_alone: tuple[str, ...] = ()
    """Names of files that are no extracts."""
    controls: tuple[Control, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on files that may be extracts after all, and on folders."""
        names = [name for name in self.left_alone if not is_companion(_last(name).lower())]
        if not names:
            return ()
        which = first_of(names, NAMED)
        are = agree(len(names), "name is not that of an extract", "names are not those of extracts")
        them = agree(len(names), "it", "any of them")
        return (
            f"Left alone: {which}, whose {are}. If {them} holds records, name it, or give it the "
            "ending .csv.",
        )


def find_extracts(paths: Sequence[str], limits: Limits) -> OpenedDelivery:
    """Find the delivery that `paths` name, with extracts in the order of their names.

    Raises DeliveryError for a path that does not exist and for a delivery without any extract.
    """
    found = _Found(limits)
    for path in paths:
        _look(path, found)
    if not found.sources:
        also = f" Left alone: {', '.join(sorted(found.left_alone))}." if found.left_alone else ""
        raise DeliveryError(
            f"{', '.join(shown(path) for path in paths) or 'No path'}: no extract found.{also} "
            "Name .csv or .tsv files, packed ones (.gz, .zst, .xz, .bz2, .zip), or a folder that "
            "holds some."
        )
    sources = sorted(found.sources.values(), key=lambda source: (source.key, source.location))
    return OpenedDelivery(
        tuple(sorted(_with_own_names(sources), key=lambda source: source.name)),
        tuple(sorted(found.left_alone)),
        tuple(sorted(found.controls.values(), key=lambda control: control.source.location)),
    )


def find_extract(path: str, limits: Limits) -> Source:
    """The one extract a path names; raises DeliveryError if it names several or none."""
    sources = find_extracts([path], limits).sources
    if len(sources) != 1:
        names = ", ".join(one.name for one in sources[:NAMED])
        # A member of a zip has no path of its own.
        packed = any(one.member for one in sources)
        then = "Unpack the zip and name one of its files." if packed else "Name one of them."
        raise DeliveryError(f"{path} is several extracts: {names}. {then}")
    return sources[0]


@contextmanager
def open_source(source: Source) -> Iterator[BinaryIO]:
    """The bytes of the source as delivered; compressed ones stay compressed.

    Raises DeliveryError if it cannot be opened, zipfile.BadZipFile if its zip is broken.
    """
    with open_held(source) as (file, _):
        yield file


@contextmanager
def open_held(source: Source) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The opened source and the file that holds it: a zip member's zip, or the source itself."""
    try:
        file = place_of(source.location).open(source.location)
        now = source.member and source.state(file)
    except (OSError, ImportError) as error:
        raise unreadable(source.location, error) from error
    with file:
        if source.member is None:
            yield file, file
            return
        if now != source.member.archive:
            raise zipfile.BadZipFile("it was replaced or written to while it was read")
        try:
            opened = _open_member(file, source.member.info)
        except OSError as error:
            raise unreadable(source.location, error) from error
        with opened as member:
            yield member, file


def _open_member(file: BinaryIO, member: zipfile.ZipInfo) -> BinaryIO:
    try:
        if member.compress_type == zipfile.ZIP_LZMA:
            _check_window(file, member)
        # Reading the directory takes long with many members, so it is not read for each of them.
        members = zipfile.ZipFile(io.BytesIO(NO_MEMBERS))
        members.fp = file
        return cast("BinaryIO", members.open(member))
    except (OSError, ValueError, struct.error) as error:
        if is_broken_zip(error):
            raise zipfile.BadZipFile(str(error)) from error
        raise


def _check_window(file: BinaryIO, member: zipfile.ZipInfo) -> None:
    """Raise LZMAError for a member that asks for more memory than a packed file may."""
    file.seek(member.header_offset + 26)
    file.seek(sum(struct.unpack("<HH", file.read(4))), io.SEEK_CUR)
    *_, window = struct.unpack("<4sBI", file.read(9))
    if window > WINDOW_BYTES:
        raise lzma.LZMAError(f"Memory usage limit: it asks for {window} bytes")


@dataclass(slots=True)
class _Found:
    limits: Limits
    sources: dict[tuple[str, Member | None], Source] = field(default_factory=dict)
    left_alone: set[str] = field(default_factory=set)
    controls: dict[tuple[str, Member | None], Control] = field(default_factory=dict)

    def add_source(self, source: Source) -> None:
        self.sources.setdefault((source.location, source.member), source)

    def add_control(self, control: Control) -> None:
        place = (control.source.location, control.source.member)
        before = self.controls.get(place, control)
        if control.whole or not before.whole:
            patterns = (*before.patterns, *control.patterns)
            self.controls[place] = replace(control, patterns=tuple(dict.fromkeys(patterns)))


def _look(path: str, found: _Found) -> None:
    location = location_of(path)
    try:
        place = place_of(location)
        sort = place.sort(location)
        if sort == "folder":
            for entry, entry_sort in place.entries(location):
                _take(entry, entry_sort, found, named=False)
        elif sort is not None:
            _take(location, sort, found, named=True)
        elif matches := place.matching(location):
            named = states_ending(path.lower())
            for entry in matches:
                is_other = is_companion(entry.rpartition("/")[2].lower())
                sort_of = place.sort(entry) or "other"
                _take(entry, sort_of, found, named=named and not is_other)
                _take_neighbour(entry, place, found, (location.rpartition("/")[2],))
        else:
            raise DeliveryError(
                f"{shown(path)}: no such file or folder. "
                "Check the spelling; a pattern must match at least one file."
            )
        if sort == "file":
            _take_neighbour(location, place, found)
    except (OSError, ImportError) as error:
        raise unreadable(location, error) from error


def _take(location: str, sort: Sort, found: _Found, *, named: bool) -> None:
    """Sort one file into the findings; a folder inside a folder is not entered."""
    folder, _, file_name = location.rpartition("/")
    source = Source(shown(file_name), location, folder, file_name)
    lower = file_name.lower()
    if sort == "folder":
        found.left_alone.add(f"{source.name}/")
    elif is_control(lower):
        found.add_control(Control(source, of_file=about_file(file_name)))
        found.left_alone.add(source.name)
    elif not named and (is_companion(lower) or not is_extract_like(lower)):
        found.left_alone.add(source.name)
    elif sort == "other":
        found.add_source(
            replace(source, fault=DeliveryFault("unsupported_format", "not a regular file"))
        )
    elif lower.endswith(".zip"):
        _take_members(source, found)
    else:
        found.add_source(replace(source, fault=name_fault(lower, named=named)))


def _take_neighbour(
    location: str, place: FileStore, found: _Found, patterns: tuple[str, ...] = ()
) -> None:
    """Add the manifest beside a named file, which then answers for this file only.

    If a pattern names the file, the manifest answers for all files that fit it.
    """
    folder, _, file_name = location.rpartition("/")
    sidecar = f"{location}.manifest.json"
    if place.sort(sidecar) == "file":
        name = sidecar.rpartition("/")[2]
        found.add_control(Control(Source(shown(name), sidecar, folder, name), of_file=file_name))
    manifest = f"{folder}/{CONTROL_NAME}"
    if place.sort(manifest) == "file":
        control = Source(CONTROL_NAME, manifest, folder, CONTROL_NAME)
        found.add_control(Control(control, whole=False, patterns=patterns))


def _take_members(archive: Source, found: _Found) -> None:
    try:
        with open_source(archive) as file:
            state = archive.state(file)
            with zipfile.ZipFile(file) as directory:
                members = directory.infolist()
            if sum(one.compress_size for one in members) > file.seek(0, io.SEEK_END):
                raise zipfile.BadZipFile("its members overlap")
    except Exception as error:
        # If the disk fails at the end of the file, the zip reader reports that it is no zip.
        cause = error.__context__
        if isinstance(cause, OSError) and not is_broken_zip(cause):
            raise cause from None
        unknown = isinstance(error, NotImplementedError)
        if not unknown and not is_broken_zip(error):
            raise
        code = "unsupported_format" if unknown else "corrupt_archive"
        fault = DeliveryFault(code, shown(str(error)) or "no zip directory")
        found.add_source(replace(archive, fault=fault))
        return
    if len(members) > found.limits.archive_members:
        most = found.limits.archive_members
        detail = f"{quantity(len(members), 'member')}; RECON_LIMIT_ARCHIVE_MEMBERS is {most}"
        found.add_source(replace(archive, fault=DeliveryFault("too_large", detail)))
        return
    held = [Member(number, member, state) for number, member in enumerate(members)]
    if sum(_take_member(archive, member, found) for member in held) == 0:
        others = [one for one in held if _may_be_text(one.info)]
        if len(others) == 1:  # The zip can only be meant to deliver this one.
            _take_member(archive, others[0], found, named=True)
            return
        detail = "a zip archive without any .csv member, or one file alone"
        fault = DeliveryFault("unsupported_format", detail)
        found.add_source(replace(archive, fault=fault))


def _may_be_text(member: zipfile.ZipInfo) -> bool:
    lower = member.filename.rpartition("/")[2].lower()
    return bool(lower) and not is_companion(lower)


def _take_member(archive: Source, held: Member, found: _Found, *, named: bool = False) -> bool:
    member = held.info
    if member.filename.endswith("/"):
        return False
    key = f"{archive.key}/{member.filename}"
    source = replace(archive, name=shown(key), key=key, member=held)
    lower = member.filename.rpartition("/")[2].lower()
    if is_control(lower):
        folder, _, name = key.rpartition("/")
        found.add_control(Control(source, prefix=f"{folder}/", of_file=about_file(name)))
        found.left_alone.add(source.name)
        return False
    if not named and (is_companion(lower) or not is_extract_like(lower)):
        found.left_alone.add(source.name)
        return False
    found.left_alone.discard(source.name)
    fault = name_fault(lower, named=named)
    if stat.S_ISLNK(member.external_attr >> 16):
        fault = DeliveryFault("unsupported_format", "a symbolic link, which holds no data")
    elif member.flag_bits & 0x1:
        fault = DeliveryFault("unsupported_format", "encrypted")
    found.add_source(replace(source, fault=fault))
    return True


def _last(name: str) -> str:
    """The last part of a name, even if it is a folder's."""
    return name.rstrip("/").rpartition("/")[2]


def _with_own_names(sources: Iterable[Source]) -> list[Source]:
    """Make names unique: same names get more of their path, identical members a number."""
    spellings: tuple[Callable[[Source], str], ...] = (
        lambda source: source.key,
        lambda source: f"{source.folder.rpartition('/')[2]}/{source.key}",
        lambda source: f"{source.folder}/{source.key}",
    )
    remaining, done, used = list(sources), list[Source](), set[str]()
    for spelling in spellings:
        counts = Counter(shown(spelling(source)) for source in remaining)
        for source in list(remaining):
            name = shown(spelling(source))
            if counts[name] == 1 and name not in used:
                used.add(name)
                done.append(replace(source, name=name))
                remaining.remove(source)
    numbers = Counter[str]()
    for source in remaining:
        numbers[source.key] += 1
        done.append(replace(source, name=f"{shown(source.key)}#{numbers[source.key]}"))
    return done
