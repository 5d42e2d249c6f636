"""Files that are locked as long as they are needed: those of killed processes can be told."""

import fcntl
import os
import tempfile
from contextlib import suppress
from glob import escape
from io import BufferedRandom
from pathlib import Path

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
