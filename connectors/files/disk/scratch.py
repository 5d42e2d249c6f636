"""Temporary folders for delivered text that is written out only to be read again.

Creating one first removes the folders of killed processes, whose locks nobody holds.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from connectors.files.disk.atomic import locked_file, private_folder

PREFIX, LOCK = ".recon-", ".lock"
"""Prefix of a folder's name, and ending of the file beside it that is locked while in use."""


@contextmanager
def scratch_folder(place: Path | None = None) -> Iterator[Path]:
    """An empty private folder in `place`, removed afterwards.

    `place` may be shared with others, as the default, the system's temporary folder, is.
    """
    place = Path(tempfile.gettempdir()) if place is None else private_folder(place)
    for left in place.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError):
            _remove(left)
    lock, held = locked_file(place, prefix=PREFIX, suffix=LOCK)
    folder = _folder_of(lock)
    try:
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
    finally:
        lock.unlink()
        held.close()


def _remove(lock: Path) -> None:
    """Remove an unused folder; raises OSError if it is in use; leaves it if it is not ours."""
    descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (folder := _folder_of(lock)).exists():
            shutil.rmtree(folder)
        lock.unlink()
    finally:
        os.close(descriptor)


def _folder_of(lock: Path) -> Path:
    return lock.with_name(lock.name.removesuffix(LOCK))
