"""What one look at an inbox finds: which files are complete, and which are one delivery."""

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from connectors.errors import DeliveryError
from connectors.files.content import shown
from connectors.files.delivery import BESIDE_SUFFIXES, CONTROL_NAME, UNFINISHED, Source
from connectors.files.manifest import files_of

SIDECAR = ".manifest.json"
OURS = frozenset({"archive", "quarantine"})

Wait = Callable[[float], None]
Told = Mapping[str, object] | str
"""What a manifest says of each file that it names; a text: why that cannot be told."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was at one look; a file that is still written to differs at the next."""

    inode: int
    bytes: int
    modified: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """Files that belong together: one extract, or those a manifest names, with what is beside."""

    names: tuple[str, ...]
    """The first one names the delivery."""
    seen: tuple[Seen | None, ...] = ()
    """As they were when they were found complete, in the order of the names."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What one look at an inbox found."""

    complete: tuple[Arrival, ...]
    unfinished: Mapping[str, str]
    """Name -> what it waits for."""
    unreadable: Mapping[str, str]
    """A manifest that holds back the others, for it may name any of them -> why."""
    left_alone: tuple[str, ...]
    """Folders, links, and marks that stand beside nothing."""


def look_at(folder: Path, settle_seconds: float, wait: Wait) -> Arrivals:
    """The deliveries that are complete.

    A manifest that states the bytes of its files proves them complete at once. Any other file
    is complete when it did not change while we waited. What a manifest may name that cannot be
    read, or is not there yet, is not taken in without it.
    """
    first = seen = _files(folder)
    told = _manifests(folder, seen)
    groups = list(_groups(seen, told))
    unfinished = {}
    if any(not _proven(group, seen, told) for group in groups):
        wait(settle_seconds)
        later = _files(folder)
        unfinished = {name: "has just arrived" for name in later if name not in seen}
        seen = {name: one for name, one in seen.items() if later.get(name) == one}
    unfinished |= _unfinished(folder)
    complete = []
    expected = _marks(unfinished)
    for group in groups:
        absent = [name for name in group.names if name not in seen]
        absent += [mark for name in group.names for mark in expected.get(name, ())]
        if absent:
            unfinished[group.names[0]] = f"not there yet, or changing: {', '.join(absent)}"
        else:
            complete.append(replace(group, seen=tuple(seen[name] for name in group.names)))
    broken = {name: why for name, why in told.items() if isinstance(why, str)}
    unfinished |= {name: "is changing" for name in broken if name in first and name not in seen}
    unreadable = {name: why for name, why in broken.items() if name not in unfinished}
    # A manifest that is read waits for its own files and holds back nothing else.
    awaited = [_final(name) for name in unfinished if name in broken or name not in told]
    if held_by := [*filter(_is_common, awaited), *unreadable]:
        # The manifest may name what would be taken for a delivery of its own now.
        held_back = [one for one in complete if not any(map(_is_common, one.names))]
        unfinished |= {one.names[0]: f"waits for {held_by[0]}" for one in held_back}
        complete = [one for one in complete if any(map(_is_common, one.names))]
    known = {*unfinished, *unreadable, *(name for group in groups for name in group.names)}
    left_alone = tuple(sorted(_others(folder, known)))
    return Arrivals(tuple(complete), unfinished, unreadable, left_alone)


def _files(folder: Path) -> dict[str, Seen]:
    names = (path.name for path in sorted(folder.iterdir()))
    wanted = (name for name in names if not name.startswith(".") and not _is_unfinished(name))
    found = ((name, seen_at(folder / name)) for name in wanted)
    return {name: seen for name, seen in found if seen is not None}


def _unfinished(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.iterdir():
        if _is_unfinished(path.name) and not path.name.startswith("."):
            yield path.name, "is being written"


def _others(folder: Path, known: set[str]) -> Iterator[str]:
    for path in folder.iterdir():
        name = path.name
        if not name.startswith(".") and name not in known and name not in OURS:
            yield name + ("/" if path.is_dir() else "")


def seen_at(path: Path) -> Seen | None:
    """The file now; None: there is none, or it is no regular file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Seen(found.st_ino, found.st_size, found.st_mtime_ns)


def _manifests(folder: Path, seen: Mapping[str, Seen]) -> dict[str, Told]:
    """What each manifest says, by its name; that of one file may stand beside no such file."""
    told: dict[str, Told] = {}
    for name in sorted(path.name for path in folder.iterdir()):
        common = _is_common(name)
        if not common and not name.lower().endswith(SIDECAR):
            continue
        if not name.endswith(CONTROL_NAME):
            told[name] = f"{shown(name)}: a manifest is read by a name in small letters. Rename it."
        elif name in seen:
            try:
                told[name] = files_of(Source(shown(name), str(folder / name), str(folder), name))
            except (DeliveryError, OSError) as error:
                # Of one file: both are put aside together when they are opened.
                told[name] = str(error) if common else {}
        elif common:
            told[name] = f"{name}: is no regular file. Put the manifest itself there."
    return told


def _groups(seen: Mapping[str, Seen], told: Mapping[str, Told]) -> Iterator[Arrival]:
    """The files by delivery; a file that a manifest names and that is absent is in it as well."""
    left = dict.fromkeys(name for name in seen if not isinstance(told.get(name), str))
    marks = _marks(left)
    for manifest, stated in told.items():
        if _is_common(manifest) and not isinstance(stated, str):
            # A member of a zip comes with the zip.
            files = [name if name in seen else name.partition("/")[0] for name in stated]
            names = [manifest, *files, *(mark for name in files for mark in marks.get(name, ()))]
            yield Arrival(tuple(dict.fromkeys(names)))
            for name in names:
                left.pop(name, None)
    for name in [name for name in left if not is_beside(name)]:
        own = [mark for mark in marks.get(name, ()) if mark in left]
        yield Arrival((name, *own))
        for mark in own:
            del left[mark]


def _marks(files: Iterable[str]) -> dict[str, list[str]]:
    """Name -> the marks and manifests that carry it and more behind it, whether it is there or not.

    By name, for an inbox may hold very many files.
    """
    found: dict[str, list[str]] = {}
    for file in files:
        if is_beside(_final(file)):
            for place in (at for at, sign in enumerate(file) if sign == "."):
                found.setdefault(file[:place], []).append(file)
    return found


def _proven(group: Arrival, seen: Mapping[str, Seen], told: Mapping[str, Told]) -> bool:
    """Whether manifests state the bytes of every extract, and every one has just as many."""
    stated: dict[str, object] = {}
    for manifest in group.names:
        files = told.get(manifest) or {}
        assert not isinstance(files, str), "no delivery has a manifest that cannot be read"
        stated |= files
    extracts = [name for name in group.names if not is_beside(name)]
    return bool(extracts) and all(
        name in seen
        and isinstance(entry := stated.get(name), dict)
        and entry.get("bytes") == seen[name].bytes
        for name in extracts
    )


def _is_common(name: str) -> bool:
    return name.lower() == CONTROL_NAME


def is_beside(name: str) -> bool:
    return name.lower().endswith(BESIDE_SUFFIXES)


def _final(name: str) -> str:
    """What a file will be called that is still being written."""
    ending = next((one for one in UNFINISHED if name.lower().endswith(one)), "")
    return name[: len(name) - len(ending)]


def _is_unfinished(name: str) -> bool:
    return name.lower().endswith(UNFINISHED)
