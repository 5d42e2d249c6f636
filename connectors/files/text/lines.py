"""Physical lines of a block of bytes, ended by LF, CRLF or CR."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from connectors.files.text.bitmask import Bytes, Places

LINE_FEED, CARRIAGE_RETURN = 10, 13


class PhysicalLines(NamedTuple):
    """Physical lines: [start, stop) is the content, `after` where the next line starts.

    The last line may lack its terminator; unless the data ends there, only `complete` lines count.
    """

    start: Places
    stop: Places
    after: Places
    complete: int
    size: int


def physical_lines(text: Bytes, *, final: bool, returns: bool) -> PhysicalLines:
    if returns:
        ends = np.flatnonzero((text == LINE_FEED) | (text == CARRIAGE_RETURN))
        trail = np.zeros(len(ends), np.bool_)
        trail[1:] = (text[ends[:-1]] == CARRIAGE_RETURN) & (text[ends[1:]] == LINE_FEED)
        trail[1:] &= np.diff(ends) == 1
        stop = ends[~trail]
        after = stop + 1 + np.append(trail[1:], False)[~trail]
    else:
        stop = np.flatnonzero(text == LINE_FEED)
        after = stop + 1
    complete = len(stop)
    rest = int(after[-1]) if complete else 0
    if rest < len(text):
        stop, after = np.append(stop, len(text)), np.append(after, len(text))
        complete += final
    start = np.concatenate([[0], after[:-1]])[: len(stop)]
    return PhysicalLines(start, stop, after, complete, len(text))
