"""Files that appear under their name only when they are whole and on disk, and for nobody else.

What the product writes may hold personal data: folders are made with mode 0700 and files with 0600
from their first moment, whatever the umask. What is there already keeps the mode somebody gave it.
A lock on a file lets one process at a time do what it is for.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from io import BufferedRandom
from pathlib import Path
from typing import IO, BinaryIO

from connectors.errors import ReconError, TurnNotGiven
from connectors.files.disk.system_errors import NO_SPACE, cure
from connectors.process import holding
from connectors.recovery import reach
from schemas.counting import grouped, quantity

GOING = ".removing-"
"""Begins the name of what is about to be removed: it is nobody's any more."""
DRAFT = ".writing-"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
PAUSE_SECONDS = 0.02
NAME_LENGTH = 200
OTHERS = 0o077
"""The rights of everybody but the owner."""
NAME_BYTES = 255
"""Of a file's name, at most, on every file system in use."""


def keep_private() -> None:
    """Let what this process and its children write through foreign code be private as well."""
    os.umask(OTHERS)


def private_folder(path: Path) -> Path:
    """The folder, made with those above it that are missing; one that is there stays as it is."""
    if not path.is_dir():
        if path.parent != path:
            private_folder(path.parent)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return path


def open_private(path: Path, *, append: bool = False, follow: bool = True) -> BinaryIO:
    """A file of our own to write, emptied unless it is appended to.

    One that an earlier version left readable for others is closed to them before it is written;
    with `follow` off, a link in its place is an error.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)
    flags |= 0 if follow else os.O_NOFOLLOW
    descriptor = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        there = os.fstat(descriptor)
        if there.st_mode & OTHERS and there.st_uid == os.geteuid():
            os.fchmod(descriptor, PRIVATE_FILE)
        if not append:
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, "ab" if append else "wb")
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def file_alone(path: Path, wait_seconds: float, what: str) -> Iterator[None]:
    """Keep other processes of this machine from doing the same; the lock dies with the process.

    Raises TurnNotGiven, naming who has it, after the wait. `what` is done alone, in words.
    """
    deadline = time.monotonic() + wait_seconds
    with open_private(path, append=True) as lock:
        while not _locked(lock):
            if time.monotonic() >= deadline:
                raise TurnNotGiven(_who_locks(path, wait_seconds, what))
            time.sleep(PAUSE_SECONDS)
        os.ftruncate(lock.fileno(), 0)
        # A full disk keeps nobody from anything here: the name is for those who wait.
        with suppress(OSError):
            os.write(lock.fileno(), holding().encode())
        yield


def _locked(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _who_locks(path: Path, wait_seconds: float, what: str) -> str:
    who = path.read_text(errors="replace")[:NAME_LENGTH] or "a process that does not say its name"
    return (
        f"{what} is one process's turn at a time, and {wait_seconds:g} s were not enough for this "
        f"one to come: {path} is locked by {who}. Wait for it; if it hangs, end that process "
        "(kill -CONT lets one go on that was stopped, kill -KILL ends it). Nothing was changed; "
        "run the same command again."
    )


def room_left(path: Path, error: OSError) -> str:
    """Which disk is full, where that is what an error at this path says; empty otherwise."""
    if error.errno not in NO_SPACE:
        return ""
    place = path.absolute()
    while not place.is_mount():
        place = place.parent
    free = quantity(shutil.disk_usage(place).free, "byte", grouped)
    return f" It lies on the disk mounted at {place}, which has {free} free."


def write_file(path: Path, content: bytes) -> None:
    """Write beside the name, flush to disk, rename; a full disk leaves what was there before."""

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_files(path.parent, {path.name: write})


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def close_flushed(file: IO[bytes]) -> None:
    """Close a file that was flushed: what it could not write was raised then, and comes again."""
    with suppress(OSError):
        file.close()


Write = Callable[[IO[bytes]], object]
"""Writes what a file holds, bit by bit."""


def write_files(
    folder: Path, files: Mapping[str, Write], meanwhile: str | None = None
) -> dict[str, str]:
    """Write files by their names below a folder, all beside it, and rename them in the end.

    None has its name before all are whole and on disk; what is returned is the SHA-256 of each.
    `meanwhile` names one that is written by a thread of its own while those before it are. However
    many there are, few are open at once.
    """
    hashes = {}
    path = folder / next(iter(files), "")
    with ExitStack() as own:
        try:
            drafts = own.enter_context(
                _drafts(folder, {path.parent for path in map(folder.joinpath, files)})
            )
            thread = own.enter_context(ThreadPoolExecutor(1))
            started: dict[str, Future[str]] = {}
            if meanwhile is not None:
                started[meanwhile] = thread.submit(_written, drafts(meanwhile), files[meanwhile])
            for name, write in files.items():
                path = folder / name
                writing = started.get(name)
                hashes[name] = writing.result() if writing else _written(drafts(name), write)
                reach("file-written")
            for name in files:
                path = folder / name
                drafts(name).replace(path)
                reach("file-renamed")
        except OSError as error:
            raise ReconError(
                f"{path} could not be written: {error.strerror}.{room_left(path, error)} "
                f"{cure(error)} or choose another folder, then run the command again."
            ) from error
    return hashes


def _written(path: Path, write: Write) -> str:
    """Write a new file to disk; its SHA-256."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w+b") as file:
        write(file)
        file.flush()
        os.fsync(descriptor)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _drafts(folder: Path, folders: Iterable[Path]) -> Iterator[Callable[[str], Path]]:
    """Places in a folder to write files of these folders in, by their name, until they get it.

    One file beside them is locked as long as they are needed: what a killed process left goes.
    """
    for one in {folder, *folders}:
        private_folder(one)
        sweep_files(one, f"{DRAFT}*")
    mark, lock = locked_file(folder, prefix=DRAFT)
    places: dict[str, Path] = {}

    def place(name: str) -> Path:
        return places.setdefault(name, mark.with_name(f"{mark.name}{OF_MARK}{len(places)}"))

    with lock:
        try:
            yield place
        finally:
            for one in places.values():
                one.unlink(missing_ok=True)
            mark.unlink(missing_ok=True)


def named(name: str, ending: str) -> str:
    """The name with an ending, cut where both together are longer than a name may be."""
    room = NAME_BYTES - len(ending)
    head = os.fsencode(name)[:room]
    while True:
        try:
            # Not within a character, where the name has none that are broken already.
            head.decode() if len(os.fsencode(name)) > room else None
            break
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                break
            head = head[: error.start]
    return os.fsdecode(head) + ending


OF_MARK = "~"
"""In a name: before it stands that of the locked file for which this one is needed."""


def locked_file(folder: Path, *, prefix: str = "", suffix: str = "") -> tuple[Path, BufferedRandom]:
    """A new file with mode 0600 that is locked, and there; who closes it gives it up."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        file = os.fdopen(descriptor, "w+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return Path(name), file
        # Between the two another process took it for one of a killed process.
        file.close()


def sweep_files(folder: Path, pattern: str = "*") -> None:
    """Remove files of processes that were killed, and those that they mark: nobody has the lock."""
    for path in folder.glob(pattern):
        if OF_MARK in path.name:
            continue
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The mark last: what it marks is never without one.
            for marked in folder.glob(f"{escape(path.name)}{OF_MARK}*"):
                marked.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
