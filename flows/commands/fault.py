"""Unforeseen errors on the command line: one line for the user, the traceback in a file.

The text of a foreign error may quote a row, an address or a password, so it is neither shown nor
kept; the places in the program are enough to fix a fault.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from traceback import extract_tb, format_tb

from connectors.errors import ReconError
from connectors.files.disk.atomic import write_file
from connectors.settings import home_folder
from flows.commands.streams import tell

WHOLE = "RECON_TRACEBACK"
"""If set, the whole traceback, with the texts of errors, also goes to standard error."""


def tell_of_fault(error: BaseException, command: str) -> None:
    """Write one line to standard error, and the traceback to a file that the line names."""
    if os.environ.get(WHOLE):
        sys.excepthook(type(error), error, error.__traceback__)
    tell(
        f"a fault of the program ended `recon {command}`: {type(error).__name__} in "
        f"{_place(error)}. {_kept(error, command)} What was committed before stands; `recon "
        "status` shows it. Please report this with that text, which holds no data of yours."
    )


def _place(error: BaseException) -> str:
    """The last line of our own code, because what it called is seldom at fault."""
    frames = extract_tb(error.__traceback__)
    root = str(Path(__file__).parents[2])
    ours = [frame for frame in frames if frame.filename.startswith(root)] or frames
    if not ours:
        return "an unknown place"
    where = ours[-1].filename.removeprefix(root).lstrip("/")
    return f"{where}, line {ours[-1].lineno}"


def _kept(error: BaseException, command: str) -> str:
    now = datetime.now(UTC)
    content = _traceback(error, f"recon {command}, version {version('recon')}, {now:%FT%TZ}")
    name = f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    for folder in _folders():
        path = folder / name
        try:
            write_file(path, content.encode("utf-8", "backslashreplace"))
        except (OSError, ValueError, ReconError):
            continue
        return f"Where it happened is in {path}."
    return f"Where it happened could not be kept; {WHOLE}=1 shows it."


def _folders() -> list[Path]:
    other = Path(tempfile.gettempdir()) / f"recon-faults-{os.getuid()}"
    try:
        return [home_folder() / "faults", other]
    except (ReconError, OSError, RuntimeError):
        return [other]


def _traceback(error: BaseException, head: str) -> str:
    """Types and places of the error and of what led to it, the first cause first."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    parts = [
        f"{''.join(format_tb(each.__traceback__))}{type(each).__module__}.{type(each).__name__}\n"
        for each in reversed(chain)
    ]
    return f"{head}\n\n" + "\n".join(parts)
