"""What to do about errors of the system, by number: each has its own cure.

The error of too many open files is about no single file, so few are opened where few may be.
"""

import errno
import resource
from pathlib import Path

from schemas.counting import grouped, quantity

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
CURES = {
    **dict.fromkeys(NO_SPACE, "Free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Give the rights"),
    errno.EROFS: "Make it writable",
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
        "Move away what has the name of a folder or a file that is needed there",
    ),
    errno.ENOENT: "See that it is there",
    errno.ENAMETOOLONG: "Shorten the name",
    errno.EIO: "See that the disk is sound",
    errno.EXDEV: "Have both places on one file system",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "Raise the limit of open files (`ulimit -n`)"),
}
WORKING_FOLDER = "the folder that this runs in, or a file"
"""The subject of an error without a name if something is missing; nothing else lacks a name."""


def cure(error: OSError) -> str:
    """What to do, as the beginning of a sentence."""
    return CURES.get(error.errno or 0, "Do what the system asks for")


def unread(error: OSError) -> str:
    """Text to follow the name of a file that was asked for and cannot be read."""
    return f"cannot be read: {error.strerror}. {cure(error)}, then run this again."


def where(error: OSError) -> str:
    """The subject of an error, as far as the error names it."""
    if error.filename:
        return repr(error.filename)
    return WORKING_FOLDER if error.errno == errno.ENOENT else "standard output or a file"


OPEN_FILES = Path("/dev/fd")
SHARE = 2
"""One in this many of the files left may be opened: connections and libraries open some too."""


def most_open(wanted: int) -> int:
    """How many files to have open at once, of `wanted`; at least one."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return wanted
    try:
        used = sum(1 for _ in OPEN_FILES.iterdir())
    except OSError:
        used = most // SHARE
    return max(1, min(wanted, (most - used) // SHARE))


def too_many_open(error: BaseException) -> str | None:
    """What to do if an error is about the number of open files, not about one; else None."""
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
