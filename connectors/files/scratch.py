"""Folders for a moment: delivered text that is written out only to be read again.

Whoever makes one first removes those of processes that were killed: nobody holds their lock.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from connectors.files.atomic import file_alone, open_private, private_folder

LOCK = "lock"
WAIT_SECONDS = 60


@contextmanager
def scratch_folder(place: Path) -> Iterator[Path]:
    """An empty folder below `place`, for nobody else, and gone afterwards.

    Raises TurnNotGiven where another process holds up whoever wants one.
    """
    private_folder(place)
    with file_alone(place / LOCK, WAIT_SECONDS, "Making a folder for a moment"):
        _sweep(place)
        folder = Path(tempfile.mkdtemp(dir=place))
        lock = open_private(_lock_of(folder))
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
            _lock_of(folder).unlink()


def _sweep(place: Path) -> None:
    for folder in (one for one in place.iterdir() if one.is_dir()):
        with suppress(OSError), open_private(_lock_of(folder), append=True) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
            _lock_of(folder).unlink()


def _lock_of(folder: Path) -> Path:
    return folder.with_suffix(f".{LOCK}")
