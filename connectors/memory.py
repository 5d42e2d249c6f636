"""Memory of large arrays, kept for the next chunk or returned; modules left out of collections.

The system zeroes returned pages when they are wanted again, page by page; for arrays of some
megabytes that costs more than most of what is done with them. But where every step wants arrays of
other sizes, kept memory serves nobody and grows with each step.
"""

import ctypes
import gc
import os
from contextlib import suppress
from functools import cache

from connectors.settings import MIB

# Source: malloc.h of the GNU C library, mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_OWN_PAGES = 16 * MIB
"""Arrays from this size on get pages of their own; no array of a chunk is as large."""
_KEPT = 4 * MIB
"""Free memory at the end of a heap that is kept. Free memory within the heap is kept anyway."""
_RETURNED = 4 * MIB
"""Arrays from this size on get pages of their own in the mode that returns them."""
_POLARS = "narenas:1,muzzy_decay_ms:0"
"""Options for jemalloc: memory freed by one thread serves the others, as in the C library, and
unused pages are returned at once instead of only marked as free."""


@cache
def keep_arrays() -> None:
    """Have the C library keep freed arrays, until `give_arrays_back` is called.

    Other libraries are left alone.
    """
    with suppress(OSError, AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        # With a heap for each thread, memory freed by one thread would not serve the others.
        adjust(_ARENA_MAX, 1)
        # Set both: setting one ends the library's own adjustment of the other.
        adjust(_MMAP_THRESHOLD, _OWN_PAGES)
        adjust(_TRIM_THRESHOLD, _KEPT)


def give_arrays_back() -> None:
    """Have the C library return freed arrays at once, and polars too if it is not loaded yet.

    Holds until `keep_arrays` is called.
    """
    # Polars reads this when it is loaded; a value set by the user takes precedence.
    os.environ.setdefault("_RJEM_MALLOC_CONF", _POLARS)
    with suppress(OSError, AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        adjust(_ARENA_MAX, 1)
        adjust(_MMAP_THRESHOLD, _RETURNED)
        adjust(_TRIM_THRESHOLD, _RETURNED)
    keep_arrays.cache_clear()


@cache
def keep_modules() -> None:
    """Exempt the objects that exist now, mostly modules, from garbage collection.

    They are most of a process's objects and stay; going through them in each full collection costs
    a tenth of the time of work that makes many small objects. Runs only once: later objects may
    become garbage.
    """
    gc.freeze()
