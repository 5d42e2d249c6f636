"""Memory of large arrays: used again for the next chunk instead of given back after each.

Pages that are given back come zeroed by the system when they are wanted again, page by page; for
arrays of some megabytes that costs more than most of what is done with them.
"""

import ctypes
from contextlib import suppress
from functools import cache

from connectors.settings import MIB

# Source: malloc.h of the GNU C library, mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_OWN_PAGES = 32 * MIB
"""Arrays from this size on have pages of their own; more is not accepted."""
_KEPT = 64 * MIB
"""Free memory at the end of a heap that is not given back: that of a chunk or two."""


@cache
def keep_arrays() -> None:
    """Have the C library keep freed arrays, for good; other libraries do as they think best."""
    with suppress(OSError, AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        # With a heap for each thread, what one has freed does not serve the others.
        adjust(_ARENA_MAX, 1)
        # Both: setting one ends the library's own adjusting of the other.
        adjust(_MMAP_THRESHOLD, _OWN_PAGES)
        adjust(_TRIM_THRESHOLD, _KEPT)
