"""Dividing a chunk that grows beyond the size it was read with."""

from collections.abc import Iterator

import numpy as np

from connectors.files.text.bitmask import Places


def in_parts(sizes: Places, most: int) -> Iterator[tuple[int, int]]:
    """First record and the one after the last, for parts of about `most` bytes.

    The part of a record depends only on its size and on earlier records in the chunk, so a run that
    continues after a part cuts the same parts.
    """
    filled, first = np.cumsum(sizes), 0
    while first < len(sizes):
        before = filled[first - 1] if first else 0
        beyond = max(first + 1, int(np.searchsorted(filled, before + most, "right")))
        yield first, beyond
        first = beyond
