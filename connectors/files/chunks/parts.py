"""Parts of a chunk that becomes larger than it was read."""

from collections.abc import Iterator

import numpy as np

from connectors.files.text.bitmask import Places


def in_parts(sizes: Places, most: int) -> Iterator[tuple[int, int]]:
    """First record and the one behind the last, of parts of about `most` bytes.

    A record goes into a part by its size and by those of the records of the part before it: so a
    run that goes on behind a part cuts the same ones.
    """
    filled, first = np.cumsum(sizes), 0
    while first < len(sizes):
        before = filled[first - 1] if first else 0
        beyond = max(first + 1, int(np.searchsorted(filled, before + most, "right")))
        yield first, beyond
        first = beyond
