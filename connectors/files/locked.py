"""Files that are locked as long as they are needed: those of killed processes can be told."""

import fcntl
import os
import tempfile
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path


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
    """Remove files of processes that were killed: nobody holds their lock."""
    for path in folder.glob(pattern):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
