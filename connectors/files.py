"""Files that appear under their name only when they are whole and on disk."""

import os
import tempfile
from pathlib import Path

from connectors.errors import ReconError


def write_file(path: Path, content: bytes) -> None:
    """Write beside the name, flush to disk, rename; a full disk leaves what was there before."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".writing-", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise ReconError(
            f"{path} could not be written: {error.strerror}. "
            "Free space or choose another folder, then run the command again."
        ) from error
