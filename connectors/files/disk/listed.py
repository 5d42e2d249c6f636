"""What is in folders, by name; one that cannot be read is told of, and not taken for empty.

The patterns of pathlib pass over it without a word.
"""

import os
import stat
from collections.abc import Callable, Iterator
from fnmatch import filter as matching
from pathlib import Path

OnError = Callable[[OSError], object]
"""Is told what could not be looked at, as `os.walk` tells it; the rest is listed all the same."""


def listed(folder: Path, *patterns: str, onerror: OnError) -> Iterator[Path]:
    """The paths below a folder, by name, a pattern for each level; none where nothing is there."""
    pattern, *deeper = patterns
    try:
        names = sorted(matching((path.name for path in folder.iterdir()), pattern))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        onerror(error)
        return
    for name in names:
        if deeper:
            yield from listed(folder / name, *deeper, onerror=onerror)
        else:
            yield folder / name


def files_below(folder: Path, *, onerror: OnError) -> Iterator[tuple[Path, os.stat_result]]:
    """Every path that is no folder, at whatever depth; no link is followed."""
    for path in listed(folder, "*", onerror=onerror):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            onerror(error)
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from files_below(path, onerror=onerror)
        else:
            yield path, status


def raise_error(error: OSError) -> None:
    """An `OnError` of whoever can do nothing without all of it."""
    raise error
