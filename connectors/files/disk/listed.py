"""Listing folders by name; an unreadable folder is reported and not taken for empty.

The patterns of pathlib silently skip such a folder.
"""

import os
import stat
from collections.abc import Callable, Iterator
from fnmatch import filter as matching
from pathlib import Path

OnError = Callable[[OSError], object]
"""Called with the error of an unreadable path, as in `os.walk`; the rest is still listed."""


def listed(folder: Path, *patterns: str, onerror: OnError) -> Iterator[Path]:
    """Paths below a folder, sorted, one pattern for each level; empty if the folder is missing."""
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
    """Every path that is no folder, at any depth; links are not followed."""
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
    """An `OnError` for callers that need the complete listing."""
    raise error
