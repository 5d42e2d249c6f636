"""Open files: how many a process may have at once, and what to say where that was too many."""

import errno
import resource
from pathlib import Path

from schemas.counting import grouped, quantity

OPEN_FILES = Path("/dev/fd")
SHARE = 2
"""One in so many of those that are left: connections, threads and libraries open some too."""


def most_open(wanted: int) -> int:
    """How many files to have open at once, of so many wanted; at least one."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return wanted
    try:
        used = sum(1 for _ in OPEN_FILES.iterdir())
    except OSError:
        used = most // SHARE
    return max(1, min(wanted, (most - used) // SHARE))


def too_many_open(error: BaseException) -> str | None:
    """What to do about an error that is about no file but about how many are open, or None."""
    code = getattr(error, "errno", None)
    if code == errno.EMFILE:
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return (
            f"This process may have {quantity(most, 'file', grouped)} open at once, which is too "
            "few; nothing is wrong with the file. Raise the limit (`ulimit -n 1024`) and run again."
        )
    if code == errno.ENFILE:
        return (
            "All files that this machine may have open are; nothing is wrong with the file. End "
            "what is not needed and run again."
        )
    return None
