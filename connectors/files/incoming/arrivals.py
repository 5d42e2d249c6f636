"""One look at an inbox: which files are complete, and which belong to one delivery."""

import os
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from connectors.errors import ReconError
from connectors.files.incoming.delivery import Source
from connectors.files.incoming.file_names import (
    COMPANION_SUFFIXES,
    CONTROL_NAME,
    UNFINISHED,
    WHY,
    is_extract_like,
)
from connectors.files.incoming.manifest_entries import files_of
from connectors.files.incoming.unpack import PACKED
from connectors.printable import shown

SIDECAR = ".manifest.json"
ZIP = ".zip"
OF_A_MAC = "._"
"""Prefix of the companion file that a Mac writes beside each file it copies."""
OURS = frozenset({"archive", "quarantine"})

Wait = Callable[[float], None]
ManifestContent = Mapping[str, object] | str
"""What a manifest states about each file it names; a text is the reason why it is unusable."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as seen in one look; a file still being written differs in the next."""

    inode: int
    bytes: int
    modified: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """Files of one delivery: one extract or those a manifest names, with their companions."""

    names: tuple[str, ...]
    """The first name is that of the delivery."""
    seen: tuple[Seen | None, ...] = ()
    """The files as they were found complete, in the order of the names."""
    marks: Mapping[str, Seen | None] = field(default_factory=dict)
    """All marks and manifests in the inbox at that moment."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The findings of one look at an inbox."""

    complete: tuple[Arrival, ...]
    unfinished: Mapping[str, str]
    """Name -> what it waits for."""
    unreadable: Mapping[str, str]
    """Manifest -> why it cannot be read; it may name any file, so it holds back the others."""
    unusable: Mapping[str, str]
    """Link or folder that is named like an extract -> what to do about it."""
    left_alone: tuple[str, ...]
    """Other folders and links, marks that belong to nothing, and reasons for files put aside."""


def look_at(folder: Path, settle_seconds: float, wait: Wait) -> Arrivals:
    """Find the deliveries that are complete.

    A manifest that states the bytes and the hash of its files proves them complete at once. Any
    other file is complete if it does not change while we wait. Files that an unreadable or missing
    manifest may name are not taken in without it.
    """
    there = _entries(folder)
    first = seen = _files(there)
    manifests = _manifests(folder, there)
    named = _named(there, manifests)
    groups = list(_groups(seen, manifests, _bearers(there, named)))
    unfinished = {}
    if any(not _proven(group, seen, manifests) for group in groups):
        wait(settle_seconds)
        there = _entries(folder)
        later = _files(there)
        unfinished = {name: "has just arrived" for name in later if name not in first}
        seen = {name: one for name, one in first.items() if later.get(name) == one}
    unfinished |= {name: "is being written" for name in there if _is_unfinished(name)}
    broken = {name: why for name, why in manifests.items() if isinstance(why, str)}
    awaited_marks = _marks([*unfinished, *broken], _bearers(there, named))
    otherwise = _named_otherwise(folder, first, named)
    marks = {name: one for name, one in there.items() if accompanies(_final(name))}
    complete = []
    for group in groups:
        absent = [name for name in group.names if name not in seen]
        absent += [mark for name in group.names for mark in awaited_marks.get(name, ())]
        if absent:
            unfinished[group.names[0]] = f"not there yet, or changing: {', '.join(absent)}"
        elif meant := otherwise.get(group.names[0]):
            unfinished[group.names[0]] = f"may be {shown(meant)}, which {named[meant]} names"
        else:
            as_seen = tuple(seen[name] for name in group.names)
            complete.append(replace(group, seen=as_seen, marks=marks))
    changing = [name for name in manifests if name in first and name not in seen]
    unfinished |= {name: "is changing" for name in changing if name in broken}
    unreadable = {name: why for name, why in broken.items() if name not in unfinished}
    # A readable, stable manifest waits for its own files only and holds no others back.
    awaited = [_final(name) for name in unfinished if name in broken or name not in manifests]
    if held_by := [*filter(_is_common, [*awaited, *changing]), *unreadable]:
        # The manifest may name files that now look like deliveries of their own.
        held_back = [one for one in complete if not any(map(_is_common, one.names))]
        unfinished |= {one.names[0]: f"waits for {held_by[0]}" for one in held_back}
        complete = [one for one in complete if any(map(_is_common, one.names))]
    known = {*unfinished, *unreadable, *(name for group in groups for name in group.names)}
    others = {name: seen for name, seen in there.items() if name not in known}
    unfinished |= {
        name: f"{shown(name[: -len(SIDECAR)])}, which it is about, is not there"
        for name, seen in others.items()
        if seen is not None and name.endswith(SIDECAR)
    }
    unfinished |= dict.fromkeys(_hidden(folder), "is hidden: rename it")
    unusable = {
        _with_slash(folder, name): _not_a_file(folder / name)
        for name, seen in others.items()
        if seen is None and is_extract_like(name.lower())
    }
    left = [_with_slash(folder, name) for name in others if name not in unfinished]
    left_alone = tuple(name for name in left if name not in unusable)
    return Arrivals(tuple(complete), unfinished, unreadable, unusable, left_alone)


def late_marks(folder: Path, arrival: Arrival) -> list[str]:
    """Marks or manifests that may concern a moved delivery and arrived or changed after the look.

    A file with a name of the delivery itself belongs to the next delivery.
    """
    has_manifest = any(map(_is_common, arrival.names))
    carried = tuple(f"{name}." for name in arrival.names)
    with os.scandir(folder) as entries:  # The folder may be huge, and every delivery scans it.
        names = [entry.name for entry in entries]
    found = []
    for name in names:
        if not name.startswith(carried) and not name.lower().startswith(CONTROL_NAME):
            continue
        final = _final(name)
        if not accompanies(final) or final in arrival.names or (has_manifest and _is_common(final)):
            continue
        if name not in arrival.marks or arrival.marks[name] != seen_at(folder / name):
            found.append(name)
    return found


def _entries(folder: Path) -> dict[str, Seen | None]:
    """What others put into an inbox, by name; None for anything but a regular file."""
    paths = [path for path in sorted(folder.iterdir()) if path.name not in OURS]
    found = {path: seen_at(path) for path in paths if not path.name.startswith(".")}
    return {
        path.name: one for path, one in found.items() if one is not None or os.path.lexists(path)
    }


def _hidden(folder: Path) -> list[str]:
    """Hidden files that would be taken for extracts but for the first dot."""
    names = [name for name in sorted(os.listdir(folder)) if name.startswith(".")]  # noqa: PTH208
    called_so = [
        name for name in names if is_extract_like(name.lower()) and not name.startswith(OF_A_MAC)
    ]
    return [name for name in called_so if seen_at(folder / name)]


def _with_slash(folder: Path, name: str) -> str:
    return name + ("/" if (folder / name).is_dir() else "")


def _not_a_file(path: Path) -> str:
    if path.is_symlink():
        return "is a link, and nothing is read through it: put the file itself there"
    if path.is_dir():
        return "is a folder: put its files into the inbox itself"
    return "is no regular file: put the file itself there"


def _files(there: Mapping[str, Seen | None]) -> dict[str, Seen]:
    return {
        name: one for name, one in there.items() if one is not None and not _is_unfinished(name)
    }


def seen_at(path: Path) -> Seen | None:
    """The file as it is now; None if there is none or it is no regular file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Seen(found.st_ino, found.st_size, found.st_mtime_ns)


def arrived_at(path: Path) -> float | None:
    """Since when the file has been there unchanged, in seconds since 1970; None if it is missing.

    A copy may keep its original's time; the system also records when it got that time, or its name.
    """
    try:
        return path.lstat().st_ctime
    except OSError:
        return None


def _manifests(folder: Path, there: Mapping[str, Seen | None]) -> dict[str, ManifestContent]:
    """Each manifest's content, by its name; the manifest of one file may come without that file."""
    manifests: dict[str, ManifestContent] = {}
    for name, seen in there.items():
        common = _is_common(name)
        if not common and not name.lower().endswith(SIDECAR):
            continue
        if not name.endswith(CONTROL_NAME):
            manifests[name] = (
                f"{shown(name)}: a manifest is read by a name in small letters. Rename it."
            )
        elif seen is None:
            manifests[name] = f"{shown(name)}: is no regular file. Put the manifest itself there."
        else:
            try:
                manifests[name] = files_of(
                    Source(shown(name), str(folder / name), str(folder), name)
                )
            except (ReconError, OSError) as error:
                # Sidecar and file are put aside together when they are opened.
                manifests[name] = str(error) if common else {}
    for name, stated in manifests.items():
        strange = [key for key in stated if not _file_of(key, there)] if _is_common(name) else []
        if strange and not isinstance(stated, str):
            manifests[name] = (
                f"{name}: it names {shown(strange[0])}, and no file of an inbox is called so. "
                "Write the name alone (payments.csv), or that of a zip and its member "
                "(march.zip/payments.csv)."
            )
    return manifests


def _file_of(key: str, there: Collection[str]) -> str:
    """The file of an inbox that a manifest's key means; empty if it cannot mean any."""
    if key in there:
        return key
    file, has_member, member = key.partition("/")
    if file in {".", ".."} or "\\" in file:
        return ""
    # A member of a zip arrives with its zip.
    return file if not has_member or (member and file.lower().endswith(ZIP)) else ""


def _named(there: Collection[str], manifests: Mapping[str, ManifestContent]) -> dict[str, str]:
    """Each file that a manifest is about, present or not -> that manifest."""
    named: dict[str, str] = {}
    for manifest, stated in manifests.items():
        if _is_common(manifest) and not isinstance(stated, str):
            named |= {_file_of(key, there): manifest for key in stated}
    for name in there:
        if _final(name).lower().endswith(SIDECAR):
            named.setdefault(_final(name)[: -len(SIDECAR)], name)
    return named


def _named_otherwise(
    folder: Path, files: Collection[str], named: Mapping[str, str]
) -> dict[str, str]:
    """Unnamed files -> the absent name in a manifest that each may stand for."""
    absent = {_spelling(name): name for name in named if name not in files}
    unnamed = [name for name in files if name not in named] if absent else []
    found = {
        name: next((absent[one] for one in _spellings(folder / name) if one in absent), None)
        for name in unnamed
    }
    return {name: meant for name, meant in found.items() if meant is not None}


def _spellings(file: Path) -> Iterator[str]:
    """The reduced names of a file and, if it is a zip, of its members."""
    yield _spelling(file.name)
    if file.name.lower().endswith(ZIP):
        # An unreadable zip is reported when it is opened.
        with suppress(OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error):
            with zipfile.ZipFile(file) as directory:
                members = directory.namelist()
            yield from (_spelling(member.rpartition("/")[2]) for member in members)


def _spelling(name: str) -> str:
    """A name without what senders vary: case, Unicode form, and endings of packing or writing."""
    plain = unicodedata.normalize("NFC", _final(name.strip())).casefold()
    while plain.endswith((*PACKED, ZIP)):
        plain = plain.rpartition(".")[0]
    return plain


def _groups(
    seen: Mapping[str, Seen], manifests: Mapping[str, ManifestContent], bearers: Collection[str]
) -> Iterator[Arrival]:
    """The files by delivery, including absent files that a manifest names."""
    left = dict.fromkeys(name for name in seen if not isinstance(manifests.get(name), str))
    marks = _marks(left, bearers)
    for manifest, stated in manifests.items():
        if _is_common(manifest) and not isinstance(stated, str):
            files = [manifest, *(_file_of(key, seen) for key in stated)]
            names = [*files, *(mark for name in files for mark in marks.get(name, ()))]
            yield Arrival(tuple(dict.fromkeys(names)))
            for name in names:
                left.pop(name, None)
    for name in [name for name in left if not accompanies(name) and not name.endswith(WHY)]:
        own = [mark for mark in marks.get(name, ()) if mark in left]
        yield Arrival((name, *own))
        for mark in own:
            del left[mark]


def _bearers(there: Iterable[str], named: Iterable[str]) -> set[str]:
    """Names that a mark may belong to: files that are there, being written, or in a manifest."""
    names = {*map(_final, there), *named}
    return {name for name in names if not accompanies(name) or _is_common(name)}


def _marks(files: Iterable[str], bearers: Collection[str]) -> dict[str, list[str]]:
    """Name -> the marks and manifests that belong to it.

    Looked up by name, because an inbox may hold very many files.
    """
    found: dict[str, list[str]] = {}
    for file in files:
        final = _final(file)
        if accompanies(final) and not _is_common(final) and (name := _bearer(final, bearers)):
            found.setdefault(name, []).append(file)
    return found


def _bearer(mark: str, names: Collection[str]) -> str:
    """The longest known name that the mark extends; empty if there is none."""
    name = mark
    while name := name.rpartition(".")[0]:
        if name in names:
            return name
    return ""


def _proven(
    group: Arrival, seen: Mapping[str, Seen], manifests: Mapping[str, ManifestContent]
) -> bool:
    """Whether manifests state bytes and hash of every extract, and each has exactly that size.

    The size alone proves nothing: programs that reserve room for a file give it all of its size
    before its bytes. The hash is compared when the file is opened.
    """
    stated: dict[str, object] = {}
    for manifest in group.names:
        files = manifests.get(manifest, {})
        if not isinstance(files, str):
            stated |= files
    extracts = [name for name in group.names if not accompanies(name)]
    return bool(extracts) and all(
        name in seen
        and isinstance(entry := stated.get(name), dict)
        and entry.get("bytes") == seen[name].bytes
        and entry.get("sha256")
        for name in extracts
    )


def _is_common(name: str) -> bool:
    return name.lower() == CONTROL_NAME


def accompanies(name: str) -> bool:
    """Whether a name is that of a mark or manifest, which accompany extracts."""
    return name.lower().endswith(COMPANION_SUFFIXES)


def _final(name: str) -> str:
    """The final name of a file that is still being written."""
    ending = next((one for one in UNFINISHED if name.lower().endswith(one)), "")
    return name[: len(name) - len(ending)]


def _is_unfinished(name: str) -> bool:
    return name.lower().endswith(UNFINISHED)
