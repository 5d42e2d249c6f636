"""An inbox: deliveries are moved out of a folder in such a way that a kill loses nothing.

Below the inbox itself:

archive/<ab>/<key>/       deliveries taken in, by content; -<number> is added if the names differ
quarantine/<name>/        what could not be read, with a <name>.why.txt
.recon/taking/<token>/    a delivery between the inbox and one of these two; <token>.why.txt
                          beside it holds the name of the .why.txt that was put with it
.recon/waiting/<key>      an archived delivery that may not have a batch yet

Everything is on one file system, so a move is a rename: it has happened or it has not.
Moving back into the inbox uses links where possible, because others put files there at any time.
"""

import filecmp
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from connectors.addresses import real_path
from connectors.errors import DeliveryError, InboxHeldElsewhere, ReconError, TurnNotGiven
from connectors.files.disk.atomic import GOING, file_alone, named, private_folder, write_file
from connectors.files.incoming.arrivals import (
    Arrival,
    Arrivals,
    Wait,
    accompanies,
    late_marks,
    look_at,
    seen_at,
)
from connectors.files.incoming.file_names import WHY
from connectors.printable import shown

log = logging.getLogger("recon.inbox")


@dataclass(frozen=True, slots=True)
class Waiting:
    """An archived delivery that may not have a batch yet."""

    key: str
    folder: Path
    names: tuple[str, ...]
    files: tuple[str, ...] = ()
    """SHA-256 of each file as it was taken, refused or not."""
    run: int = 0
    """Number of the run of this key that is to import it; 0: perhaps none was started."""
    failed: int = 0
    """How many earlier runs failed or crashed since it was delivered."""

    @property
    def files_hash(self) -> str | None:
        """The hash of what the import has to find; None for notes of an earlier version."""
        return hash_of(self.files) if self.files else None

    @property
    def content_id(self) -> str:
        """The content's id when it was taken; the key adds how many batches had it before."""
        return self.key.partition("-")[0]

    @property
    def batches_before(self) -> int:
        """How many batches had the content when the inbox took it; none of them had all of it."""
        return int(self.key.partition("-")[2] or 0)

    @property
    def paths(self) -> list[str]:
        """The extracts as paths for an import."""
        return paths_of(self.folder, self.names)


@dataclass(frozen=True, slots=True)
class Displaced:
    """A delivery that was taken and could not be put back into the inbox."""

    name: str
    place: Path
    """Where it is instead: in quarantine, or where the next look tries again."""
    why: str
    trouble: OSError | ReconError | None = None
    """What stood in the way; None if it was put aside."""


def paths_of(folder: Path, names: Iterable[str]) -> list[str]:
    """The extracts of a delivery; manifests beside them are found by name."""
    extracts = [str(folder / name) for name in names if not accompanies(name)]
    return extracts or [str(folder)]


def hash_of(files: Iterable[str]) -> str:
    """One hash over the SHA-256 of all files of a delivery, regardless of their names."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()


class Inbox:
    """One folder that files are delivered to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.quarantine = folder / "quarantine"
        self.taking = folder / ".recon" / "taking"
        self.waiting = folder / ".recon" / "waiting"
        self._displaced: list[Displaced] = []

    @classmethod
    def of(cls, home: Path, named: Path | None) -> "Inbox":
        """The inbox at a path, or the home's own, which is created if it is missing.

        Raises DeliveryError for the home itself: what recon keeps there is no delivery.
        """
        if named is None:
            named = home / "inbox"
            with suppress(FileExistsError):  # Anything else with that name is reported by `alone`.
                private_folder(named)
        folder = real_path(named)
        if folder == real_path(home):
            raise DeliveryError(
                f"{shown(str(named))} is RECON_HOME itself, and what recon keeps there is no "
                "delivery. Name the folder that files are delivered to."
            )
        return cls(folder)

    def refuse_missing(self) -> None:
        """Raise DeliveryError if the folder does not exist."""
        if not self.folder.is_dir():
            name = shown(str(self.folder))
            raise DeliveryError(f"{name}: there is no such inbox. Create the folder.")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other watchers out; raises InboxHeldElsewhere. The lock dies with the process."""
        self.refuse_missing()
        for place in (self.archive, self.quarantine, self.taking, self.waiting):
            private_folder(place)
        lock, what = self.folder / ".recon" / "lock", f"Looking into {shown(str(self.folder))}"
        with ExitStack() as held:
            try:
                held.enter_context(file_alone(lock, 0, what))
            except TurnNotGiven as busy:
                raise InboxHeldElsewhere(str(busy), lock.stat().st_mtime) from None
            yield

    def look(self, settle_seconds: float, wait: Wait) -> Arrivals:
        return look_at(self.folder, settle_seconds, wait)

    def take(self, arrival: Arrival) -> Path | None:
        """Move a delivery out of the inbox; None if it was put back.

        It is put back if it changed meanwhile, or if a mark or manifest that may concern it
        arrived: importing the deliveries found before it in the same look takes time.
        """
        folder = self.taking / uuid4().hex
        private_folder(folder)
        # Companions go last and come back first: an extract is never there without them.
        for name in sorted(arrival.names, key=accompanies):
            with suppress(FileNotFoundError):
                (self.folder / name).rename(folder / name)
        as_seen = tuple(seen_at(folder / name) for name in arrival.names) == arrival.seen
        if as_seen and not late_marks(self.folder, arrival):
            return folder
        self.put_back(folder)
        return None

    def put_back(self, folder: Path) -> None:
        """Undo a move; if a name is in use again meanwhile, put the whole delivery aside instead.

        A part would be taken in without the rest, such as the manifest that describes it.
        """
        reason = self._reason_of(folder)
        with suppress(FileNotFoundError):  # Left by an unfinished move to quarantine.
            (folder / os.fsdecode(reason.read_bytes())).unlink()
        delivered = sorted(
            folder.iterdir(), key=lambda path: (not accompanies(path.name), path.name)
        )
        given: dict[str, int] = {}
        for path in delivered:
            inode = path.lstat().st_ino
            if not _give(path, self.folder / path.name):
                for name, ours in reversed(given.items()):
                    self._withdraw(name, ours, folder)
                names = sorted((one.name for one in delivered), key=accompanies)
                why = "Another file of this name arrived while this one was being taken in"
                why = f"{why}: {path.name}."
                aside = self.put_aside(folder, names, why)
                log.warning("%s: put aside, %s", aside, why)
                self._displaced.append(Displaced(names[0], aside, why))
                return
            given[path.name] = inode
        for path in delivered:
            path.unlink(missing_ok=True)
        folder.rmdir()
        reason.unlink(missing_ok=True)

    def displaced(self) -> list[Displaced]:
        """Deliveries that could not be put back since the last call; nothing else reports them."""
        found, self._displaced = self._displaced, []
        return found

    def _withdraw(self, name: str, inode: int, folder: Path) -> None:
        """Take a file back out of the inbox; a newer file that has its name by now is put back."""
        aside = self.taking / uuid4().hex
        private_folder(aside)
        with suppress(FileNotFoundError):
            (self.folder / name).rename(aside / name)
            if (aside / name).lstat().st_ino == inode:
                (aside / name).replace(folder / name)
                # Renaming between two names of one file leaves both.
                (aside / name).unlink(missing_ok=True)
            else:
                self.put_back(aside)
                return
        aside.rmdir()

    def put_aside(self, folder: Path, names: Sequence[str], why: str) -> Path:
        """Move a delivery that cannot be read to quarantine, with the reason beside it."""
        text = (why.rstrip() + "\n").encode(errors="backslashreplace")
        reason, number = named(names[0], WHY), 1
        while os.path.lexists(folder / reason):  # A delivered file has this name.
            number += 1
            reason = named(names[0], f"-{number}{WHY}")
        write_file(self._reason_of(folder), os.fsencode(reason))
        write_file(folder / reason, text)
        target, number = self.quarantine / names[0], 1
        while os.path.lexists(target):
            number += 1
            target = self.quarantine / named(names[0], f"-{number}")
        folder.rename(target)
        self._reason_of(folder).unlink(missing_ok=True)
        return target

    def _reason_of(self, folder: Path) -> Path:
        """The file that records which file in a folder holds our reason and was not delivered."""
        return self.taking / f"{folder.name}{WHY}"

    def place_of(self, key: str, names: Iterable[str] | None = None) -> Path:
        """Where a delivery of this key is or will be archived; without names, the first place.

        A run may be about to read the first one by its names, with the manifest it came with, so
        the same content under other names gets a folder of its own.
        """
        place, number = self.archive / key[:2] / key, 1
        while names is not None and _extracts_in(place) - {*names}:
            number += 1
            place = place.with_name(f"{key}{'' if '-' in key else '-0'}-{number}")
        return place

    def mark(self, waiting: Waiting) -> None:
        """Note that an import is due, before its delivery leaves the inbox for good."""
        note = {
            "names": waiting.names,
            "folder": waiting.folder.name,
            "files": waiting.files,
            "run": waiting.run,
            "failed": waiting.failed,
        }
        write_file(self.waiting / waiting.key, json.dumps(note).encode())

    def unmark(self, key: str) -> None:
        """Remove the note: a batch has the delivery, or somebody took it back."""
        (self.waiting / key).unlink(missing_ok=True)

    def keep(self, folder: Path, key: str, *, by_name: bool = True) -> Path:
        """Archive a delivery under its key; equal extracts that are there already stay.

        `by_name`: their names have to be equal too, because they will be read by name.
        """
        names = sorted(path.name for path in folder.iterdir())
        first, place = self.place_of(key), self.place_of(key, names)
        if not by_name and not any(map(accompanies, names)) and _has_all_of(first, folder):
            shutil.rmtree(folder)
            return first
        if _has_all_of(place, folder, by_name=True):
            for name in filter(accompanies, names):
                (folder / name).replace(place / name)  # The latest companion of a file counts.
            shutil.rmtree(folder)
            return place
        private_folder(place.parent)
        if os.path.lexists(place):
            # Same key, but not what was delivered: the intact bytes replace it.
            place.rename(Path(tempfile.mkdtemp(dir=place.parent, prefix=GOING)) / place.name)
        folder.rename(place)
        return place

    def recover(self) -> list[Waiting]:
        """Tidy up after a killed run; returns the deliveries that may not have a batch yet."""
        for folder in sorted(path for path in self.taking.iterdir() if path.is_dir()):
            try:
                self.put_back(folder)
            except (OSError, ReconError) as trouble:
                why = "It was taken and not put back; it stays there until a later look can do it."
                name = next(iter(_names_in(folder)), folder.name)
                self._displaced.append(Displaced(name, folder, why, trouble))
        for path in sorted(self.taking.iterdir()):
            if not (self.taking / path.name.removesuffix(WHY)).is_dir():
                path.unlink()  # Its folder went to quarantine.
        found = []
        for path in sorted(self.waiting.iterdir()):
            if path.name.startswith("."):
                path.unlink()  # An unfinished note.
                continue
            try:
                waiting = self._noted(path)
            except (
                OSError,
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
            ) as why:
                todo = f"Put the files in {self.place_of(path.name)} into the inbox again"
                remedy = DeliveryError(f"{todo}, and remove the note.")
                met = why if isinstance(why, OSError) else remedy
                unread = "This note of a delivery that waits for its import cannot be read."
                self._displaced.append(Displaced(path.name, path, unread, met))
                continue
            if waiting.folder.is_dir():
                found.append(waiting)
            else:
                path.unlink()
        return found

    def _noted(self, path: Path) -> Waiting:
        """The delivery that a note is about; raises what reading it raises."""
        note = json.loads(path.read_bytes())
        folder = self.place_of(path.name).with_name(note.get("folder", path.name))
        files, names = tuple(note.get("files", ())), tuple(note["names"])
        return Waiting(path.name, folder, names, files, note.get("run", 0), note.get("failed", 0))


def _give(path: Path, target: Path) -> bool:
    """Give a file a name in the inbox, by a link if possible; False if the name is in use."""
    try:
        # Unlike a rename, a link cannot replace a file that has just arrived.
        os.link(path, target, follow_symlinks=False)
    except FileExistsError:
        # Perhaps it is the same file, given this name by a run that was killed.
        return path.lstat().st_ino == target.lstat().st_ino
    except OSError:  # A folder, another user's file, or a file system without links.
        if os.path.lexists(target):
            return False
        path.rename(target)
    return True


def _names_in(folder: Path) -> list[str]:
    """The names of a taken delivery, the one that names it first; empty if unreadable."""
    try:
        return sorted(
            (path.name for path in folder.iterdir()), key=lambda one: (accompanies(one), one)
        )
    except OSError:
        return []


def _extracts_in(folder: Path) -> set[str]:
    """The names of the extracts in an archive folder; empty if there is no such folder."""
    try:
        return {path.name for path in folder.iterdir() if not accompanies(path.name)}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _has_all_of(home: Path, folder: Path, *, by_name: bool = False) -> bool:
    """Whether another folder has every extract of this one, compared byte by byte."""
    try:
        kept = [path for path in home.iterdir() if seen_at(path) is not None]
        return all(
            any(
                filecmp.cmp(one, path, shallow=False)
                for path in kept
                if path.name == one.name or not by_name
            )
            for one in folder.iterdir()
            if not accompanies(one.name)
        )
    except OSError:
        return False
