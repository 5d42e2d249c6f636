"""What to do about an error of the system, by its number: each has a cure of its own."""

import errno

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
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "Raise the limit of open files (`ulimit -n`)"),
}
WORKING_FOLDER = "the folder that this runs in, or a file"
"""What an error without a name is about where something is missing: nothing else has none."""


def cure(error: OSError) -> str:
    """What to do, as the beginning of a sentence."""
    return CURES.get(error.errno or 0, "Do what the system asks for")


def where(error: OSError) -> str:
    """What an error is about, as far as it says so."""
    if error.filename:
        return repr(error.filename)
    return WORKING_FOLDER if error.errno == errno.ENOENT else "standard output or a file"
