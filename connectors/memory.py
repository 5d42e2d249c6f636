"""Memory of large arrays: used again for the next chunk, or given back after each; and of modules.

Pages that are given back come zeroed by the system when they are wanted again, page by page; for
arrays of some megabytes that costs more than most of what is done with them. Where every step wants
arrays of other sizes, what is kept serves nobody, and there is more of it with each step.
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
"""Arrays from this size on have pages of their own: nothing of a chunk is so large."""
_KEPT = 4 * MIB
"""Free memory at the end of a heap that is not given back. What is free within it is kept."""
_RETURNED = 4 * MIB
"""Arrays from this size on have pages of their own where they are given back."""
_POLARS = "narenas:1,muzzy_decay_ms:0"
"""What jemalloc is told: what one thread has freed serves the others, as of the C library; and what
nobody wants any more is given back, and not only said to be free."""


@cache
def keep_arrays() -> None:
    """Have the C library keep freed arrays, until `give_arrays_back` says otherwise.

    Other libraries do as they think best.
    """
    with suppress(OSError, AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        # With a heap for each thread, what one has freed does not serve the others.
        adjust(_ARENA_MAX, 1)
        # Both: setting one ends the library's own adjusting of the other.
        adjust(_MMAP_THRESHOLD, _OWN_PAGES)
        adjust(_TRIM_THRESHOLD, _KEPT)


def give_arrays_back() -> None:
    """Have the C library give freed arrays back at once, and polars too where it is not loaded yet.

    Until `keep_arrays` says otherwise.
    """
    # Polars reads it when it is loaded; whoever has set it knows better.
    os.environ.setdefault("_RJEM_MALLOC_CONF", _POLARS)
    with suppress(OSError, AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        adjust(_ARENA_MAX, 1)
        adjust(_MMAP_THRESHOLD, _RETURNED)
        adjust(_TRIM_THRESHOLD, _RETURNED)
    keep_arrays.cache_clear()


@cache
def keep_modules() -> None:
    """Have no collection look at what is there by now, which is modules and stays.

    That is most of all that a process has, and each full collection goes through it: a tenth of the
    time of what makes many small objects. Once: among what is there later may be garbage.
    """
    gc.freeze()
