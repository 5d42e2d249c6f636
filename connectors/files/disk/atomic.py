"""Private files that appear under their name only when they are complete and on disk.

The files may hold personal data: folders are created with mode 0700 and files with 0600 from the
first moment, whatever the umask. Existing ones keep the mode somebody gave them. A lock on a file
lets one process at a time do what it guards.
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
"""Prefix of names of things about to be removed, which nobody uses any more."""
DRAFT = ".writing-"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
PAUSE_SECONDS, NAMING_SECONDS = 0.02, 60
NAME_LENGTH = 200
OTHERS = 0o077
"""The rights of everybody but the owner."""
NAME_BYTES = 255
"""Most bytes of a file name, on every file system in use."""


def keep_private() -> None:
    """Make files private that this process and its children write through foreign code."""
    os.umask(OTHERS)


def private_folder(path: Path) -> Path:
    """Create a folder and its missing parents; an existing folder stays as it is."""
    if not path.is_dir():
        if path.parent != path:
            private_folder(path.parent)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return path


def open_private(path: Path, *, append: bool = False, follow: bool = True) -> BinaryIO:
    """Open a file of our own for writing, emptied unless `append`.

    A file that others may read, left by an earlier version, is closed to them before it is written.
    With `follow` off, a link in its place is an error.
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

    Raises TurnNotGiven, naming the holder, after the wait. `what` names the guarded work in words.
    """
    with open_private(path, append=True) as lock:
        take_lock(lock, wait_seconds, lambda: _who_locks(path, wait_seconds, what))
        os.ftruncate(lock.fileno(), 0)
        # A full disk stops nothing here: the name is only for those who wait.
        with suppress(OSError):
            os.write(lock.fileno(), holding().encode())
        yield


def take_lock(lock: BinaryIO | int, wait_seconds: float, message: Callable[[], str]) -> None:
    """Wait for a lock; raises TurnNotGiven with the message after the wait."""
    deadline = time.monotonic() + wait_seconds
    while not _locked(lock):
        if time.monotonic() >= deadline:
            raise TurnNotGiven(message())
        time.sleep(PAUSE_SECONDS)


def _locked(lock: BinaryIO | int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _who_locks(path: Path, wait_seconds: float, what: str) -> str:
    who = path.read_text(errors="replace")[:NAME_LENGTH] or "a process that does not say its name"
    waited = (
        f", and this one waited {wait_seconds:g} s for its turn in vain" if wait_seconds else ""
    )
    return (
        f"{what} is done by one process at a time{waited}: {path} is locked by {who}. Wait for it; "
        "if it hangs, end that process (kill -CONT lets one go on that was stopped, kill -KILL "
        "ends it). Nothing was changed; run the same command again."
    )


def room_left(path: Path, error: OSError) -> str:
    """Which disk is full, if that is the error at this path; empty otherwise."""
    if error.errno not in NO_SPACE:
        return ""
    place = path.absolute()
    while not place.is_mount():
        place = place.parent
    free = quantity(shutil.disk_usage(place).free, "byte", grouped)
    return f" It lies on the disk mounted at {place}, which has {free} free."


def write_file(path: Path, content: bytes) -> None:
    """Write beside the name, flush to disk, rename; a full disk leaves the old content."""
    write_files(path.parent, {path.name: as_it_is(content)})


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def close_flushed(file: IO[bytes]) -> None:
    """Close a file that was flushed: an error in writing was already raised by the flush."""
    with suppress(OSError):
        file.close()


Write = Callable[[IO[bytes]], object]
"""Writes a file's content piece by piece."""


def as_it_is(content: bytes) -> Write:
    """Write this content."""
    return lambda file: file.write(content)


def write_files(
    folder: Path, files: Mapping[str, Write], meanwhile: str | None = None
) -> dict[str, str]:
    """Write files by their names below a folder, all as drafts, and rename them in the end.

    None gets its name before all are complete and on disk, and then as `place_files` says; returns
    the SHA-256 of each. `meanwhile` names one that a thread of its own writes while those before it
    are written. Only a few files are open at once, however many there are.
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
            path = folder
            place_files(folder, {name: drafts(name) for name in files})
        except OSError as error:
            raise ReconError(
                f"{path} could not be written: {error.strerror}.{room_left(path, error)} "
                f"{cure(error)} or choose another folder, then run the command again."
            ) from error
    return hashes


def place_files(folder: Path, drafts: Mapping[str, Path]) -> None:
    """Give complete files, by their names below a folder on the same disk, these names.

    Files of two results are never there together: all names are free before the first is given. The
    last file is the mark of a whole result: it is there only while all others are. A single file
    replaces what has its name.
    """

    def place(name: str) -> None:
        drafts[name].replace(folder / name)
        reach("file-renamed")

    *others, mark = drafts
    if not others:
        place(mark)
        return
    with _naming_alone(folder):
        for name in (mark, *others):
            (folder / name).unlink(missing_ok=True)
        reach("names-free")
        _sync_folders(folder, drafts)
        for name in others:
            place(name)
        _sync_folders(folder, drafts)
        place(mark)


def _sync_folders(folder: Path, names: Iterable[str]) -> None:
    """Keep the order of what happens to names: a power cut might undo only the earlier half."""
    for one in {(folder / name).parent for name in names}:
        sync_folder(one)


@contextmanager
def _naming_alone(folder: Path) -> Iterator[None]:
    """Let one process at a time give names in a folder; the lock dies with the process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        take_lock(
            descriptor,
            NAMING_SECONDS,
            lambda: (
                f"{folder}: another process gives its files their names there, and did not end "
                f"within {NAMING_SECONDS} s. Wait for it, or end it if it hangs. Nothing was "
                "changed; run the same command again."
            ),
        )
        yield
    finally:
        os.close(descriptor)


def _written(path: Path, write: Write) -> str:
    """Write a new file to disk and return its SHA-256."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w+b") as file:
        write(file)
        file.flush()
        os.fsync(descriptor)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _drafts(folder: Path, folders: Iterable[Path]) -> Iterator[Callable[[str], Path]]:
    """Draft paths in a folder, by the name that each file gets in the end.

    A file beside them stays locked while they are needed, so drafts of a killed process can go.
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
    """The name with an ending, cut if both together are too long for a file name."""
    room = NAME_BYTES - len(ending)
    head = os.fsencode(name)[:room]
    while True:
        try:
            # Do not cut within a character, unless the name has undecodable bytes already.
            head.decode() if len(os.fsencode(name)) > room else None
            break
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                break
            head = head[: error.start]
    return os.fsdecode(head) + ending


OF_MARK = "~"
"""Separates the name of a locked file from the rest in names of files that belong to it."""


def locked_file(folder: Path, *, prefix: str = "", suffix: str = "") -> tuple[Path, BufferedRandom]:
    """A new locked file with mode 0600; closing it gives up the lock."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        file = os.fdopen(descriptor, "w+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return Path(name), file
        # Another process removed it before it was locked, as left by a killed process.
        file.close()


def sweep_files(folder: Path, pattern: str = "*") -> None:
    """Remove the unlocked files of killed processes, and the files that belong to them."""
    for path in folder.glob(pattern):
        if OF_MARK in path.name:
            continue
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The lock file goes last: files that belong to it are never without it.
            for marked in folder.glob(f"{escape(path.name)}{OF_MARK}*"):
                marked.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
