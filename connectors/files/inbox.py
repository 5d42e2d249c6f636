"""An inbox: which files of a folder are complete, and moving them so that a kill loses nothing.

Below the inbox itself:

archive/<ab>/<key>/       what was taken, by its content
quarantine/<name>/        what could not be read, with a <name>.why.txt
.recon/taking/<token>/    a delivery between the inbox and one of these two
.recon/waiting/<key>      an archived delivery whose import was not yet started for certain

Everything is on one file system, so a move is a rename: it has happened or it has not.
"""

import fcntl
import filecmp
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from connectors.errors import DeliveryError, InboxHeldElsewhere, ReconError
from connectors.files.atomic import GOING, named, open_private, private_folder, write_file
from connectors.files.content import shown
from connectors.files.delivery import BESIDE_SUFFIXES, CONTROL_NAME, UNFINISHED, Source
from connectors.files.manifest import files_of

log = logging.getLogger("recon.inbox")

SIDECAR = ".manifest.json"
WHY = ".why.txt"
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


@dataclass(frozen=True, slots=True)
class Waiting:
    """An archived delivery whose import has to be started."""

    key: str
    folder: Path
    names: tuple[str, ...]

    @property
    def content_id(self) -> str:
        """What the inbox took; the key says besides how often it was taken back."""
        return self.key.partition("-")[0]

    @property
    def paths(self) -> list[str]:
        """The extracts, as an import takes them."""
        return paths_of(self.folder, self.names)


def paths_of(folder: Path, names: Iterable[str]) -> list[str]:
    """The extracts of a delivery; manifests beside them are found by their names."""
    extracts = [str(folder / name) for name in names if not _is_beside(name)]
    return extracts or [str(folder)]


class Inbox:
    """One folder that files are delivered to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.quarantine = folder / "quarantine"
        self.taking = folder / ".recon" / "taking"
        self.waiting = folder / ".recon" / "waiting"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other watchers out; raises InboxHeldElsewhere. The lock dies with the process."""
        if not self.folder.is_dir():
            raise DeliveryError(f"{self.folder}: there is no such inbox. Create the folder.")
        for place in (self.archive, self.quarantine, self.taking, self.waiting):
            private_folder(place)
        with open_private(self.folder / ".recon" / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InboxHeldElsewhere(
                    f"{self.folder} is being looked at by another run; nothing was changed."
                ) from None
            yield

    def look(self, settle_seconds: float, wait: Wait) -> Arrivals:
        """The deliveries that are complete.

        A manifest that states the bytes of its files proves them complete at once. Any other file
        is complete when it did not change while we waited. What a manifest may name that cannot be
        read, or is not there yet, is not taken in without it.
        """
        first = seen = self._files()
        told = _manifests(self.folder, seen)
        groups = list(_groups(seen, told))
        unfinished = {}
        if any(not _proven(group, seen, told) for group in groups):
            wait(settle_seconds)
            later = self._files()
            unfinished = {name: "has just arrived" for name in later if name not in seen}
            seen = {name: one for name, one in seen.items() if later.get(name) == one}
        unfinished |= self._unfinished()
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
        left_alone = tuple(sorted(self._others(known)))
        return Arrivals(tuple(complete), unfinished, unreadable, left_alone)

    def take(self, arrival: Arrival) -> Path | None:
        """Move a delivery out of the inbox; None: it changed meanwhile and was put back."""
        folder = self.taking / uuid4().hex
        private_folder(folder)
        # What speaks of a file goes last and comes back first: the file is never there without it.
        for name in sorted(arrival.names, key=_is_beside):
            with suppress(FileNotFoundError):
                (self.folder / name).rename(folder / name)
        if tuple(_seen(folder / name) for name in arrival.names) == arrival.seen:
            return folder
        self.put_back(folder)
        return None

    def put_back(self, folder: Path) -> None:
        """Undo a move; where a name is in use again meanwhile, all of it is put aside instead.

        A part would be taken in without the others, such as the manifest that speaks of it.
        """
        delivered = sorted(
            folder.iterdir(), key=lambda path: (not _is_beside(path.name), path.name)
        )
        reasons = {named(path.name, WHY) for path in delivered}
        for path in [path for path in delivered if path.name in reasons]:
            path.unlink()  # Of a move to quarantine that did not come to its end.
            delivered.remove(path)
        used = [path.name for path in delivered if os.path.lexists(self.folder / path.name)]
        if used:
            names = sorted((path.name for path in delivered), key=_is_beside)
            why = f"Another file of this name arrived while this one was being taken in: {used[0]}."
            log.warning("%s: put aside, %s", self.put_aside(folder, names, why), why)
            return
        for path in delivered:
            path.rename(self.folder / path.name)
        folder.rmdir()

    def put_aside(self, folder: Path, names: Sequence[str], why: str) -> Path:
        """Move what cannot be read to quarantine, with the reason beside it."""
        text = (why.rstrip() + "\n").encode(errors="backslashreplace")
        write_file(folder / named(names[0], WHY), text)
        target, number = self.quarantine / names[0], 1
        while os.path.lexists(target):
            number += 1
            target = self.quarantine / named(names[0], f"-{number}")
        folder.rename(target)
        return target

    def home_of(self, key: str) -> Path:
        """Where the delivery of this key is kept."""
        return self.archive / key[:2] / key

    def mark(self, waiting: Waiting) -> None:
        """Note that an import has to be started, before its delivery leaves the inbox for good."""
        note = {"names": list(waiting.names)}
        write_file(self.waiting / waiting.key, json.dumps(note).encode())

    def unmark(self, key: str) -> None:
        """The import was started."""
        (self.waiting / key).unlink(missing_ok=True)

    def keep(self, folder: Path, key: str, *, by_name: bool = True) -> Path:
        """Archive a delivery under its key; the same extracts that are there already stay there.

        `by_name`: under the same names too, for somebody will read them by their names.
        """
        home = self.home_of(key)
        if _has_all_of(home, folder, by_name=False):
            # A run may be about to read what is there by its names: others are put beside them.
            for one in list(folder.iterdir()):
                if _is_beside(one.name):
                    one.replace(home / one.name)  # What was told last of a file holds.
                elif by_name:
                    with suppress(OSError):  # The name is in use, or no file has two names here.
                        os.link(one, home / one.name)
        if _has_all_of(home, folder, by_name=by_name):
            shutil.rmtree(folder)
            return home
        private_folder(home.parent)
        if os.path.lexists(home):
            # Under the same key, but not what was delivered: the good bytes take its place.
            home.rename(Path(tempfile.mkdtemp(dir=home.parent, prefix=GOING)) / home.name)
        folder.rename(home)
        return home

    def recover(self) -> list[Waiting]:
        """Tidy up after a run that was killed; gives the imports it may not have started."""
        for folder in sorted(self.taking.iterdir()):
            # It stays where it is, and the next look tries again.
            with suppress(OSError, ReconError):
                self.put_back(folder)
        found = []
        for path in sorted(self.waiting.iterdir()):
            if path.name.startswith("."):
                path.unlink()  # A note that was being written.
                continue
            note = json.loads(path.read_bytes())
            home = self.home_of(path.name)
            if home.is_dir():
                found.append(Waiting(path.name, home, tuple(note["names"])))
            else:
                path.unlink()
        return found

    def _files(self) -> dict[str, Seen]:
        names = (path.name for path in sorted(self.folder.iterdir()))
        wanted = (name for name in names if not name.startswith(".") and not _is_unfinished(name))
        found = ((name, _seen(self.folder / name)) for name in wanted)
        return {name: seen for name, seen in found if seen is not None}

    def _unfinished(self) -> Iterator[tuple[str, str]]:
        for path in self.folder.iterdir():
            if _is_unfinished(path.name) and not path.name.startswith("."):
                yield path.name, "is being written"

    def _others(self, known: set[str]) -> Iterator[str]:
        for path in self.folder.iterdir():
            name = path.name
            if not name.startswith(".") and name not in known and name not in OURS:
                yield name + ("/" if path.is_dir() else "")


def _has_all_of(home: Path, folder: Path, *, by_name: bool) -> bool:
    """Whether every extract of a folder is in another one, every byte compared."""
    try:
        kept = [path for path in home.iterdir() if _seen(path) is not None]
        return all(
            any(
                filecmp.cmp(one, path, shallow=False)
                for path in kept
                if path.name == one.name or not by_name
            )
            for one in folder.iterdir()
            if not _is_beside(one.name)
        )
    except OSError:
        return False


def _seen(path: Path) -> Seen | None:
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
    for name in [name for name in left if not _is_beside(name)]:
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
        if _is_beside(_final(file)):
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
    extracts = [name for name in group.names if not _is_beside(name)]
    return bool(extracts) and all(
        name in seen
        and isinstance(entry := stated.get(name), dict)
        and entry.get("bytes") == seen[name].bytes
        for name in extracts
    )


def _is_common(name: str) -> bool:
    return name.lower() == CONTROL_NAME


def _is_beside(name: str) -> bool:
    return name.lower().endswith(BESIDE_SUFFIXES)


def _final(name: str) -> str:
    """What a file will be called that is still being written."""
    ending = next((one for one in UNFINISHED if name.lower().endswith(one)), "")
    return name[: len(name) - len(ending)]


def _is_unfinished(name: str) -> bool:
    return name.lower().endswith(UNFINISHED)
