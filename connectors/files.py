"""Files that appear under their name only when they are whole and on disk."""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from connectors.errors import ReconError
from connectors.recovery import reach

DRAFT = ".writing-"


def write_file(path: Path, content: bytes) -> None:
    """Write beside the name, flush to disk, rename; a full disk leaves what was there before."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=DRAFT, delete=False) as file:
            temporary = Path(file.name)
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        reach("file-written")
        temporary.replace(path)
        reach("file-renamed")
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise ReconError(
            f"{path} could not be written: {error.strerror}. "
            "Free space or choose another folder, then run the command again."
        ) from error


def _sweep(folder: Path) -> None:
    """Remove drafts of runs that were killed: nobody holds their lock."""
    for draft in folder.glob(f"{DRAFT}*"):
        with suppress(OSError), draft.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink(missing_ok=True)
