"""Lines that are no record, because they begin with the text that a feed begins comments with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from connectors.files.bitmask import Bytes, Flags, Places
from connectors.files.lines import CARRIAGE_RETURN, LINE_FEED, PhysicalLines
from connectors.files.readings import Readings


class CommentLines(NamedTuple):
    """Where comments are in a block, line end excluded, and the number of each line."""

    start: Places
    end: Places
    line: Places

    def part(self, begin: int, end: int) -> CommentLines:
        """Those of a part of the block, as that part has them."""
        there = (begin <= self.start) & (self.start < end)
        return CommentLines(self.start[there] - begin, self.end[there] - begin, self.line[there])

    def within(self, text: Bytes, comment: bytes) -> bool:
        """Prove that each of them is one line that begins with the text, from the bytes."""
        size = self.end - self.start
        if not comment or (size < len(comment)).any():
            return not len(size)
        offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        of_lines = text[np.repeat(self.start, size) + offset]
        if ((of_lines == LINE_FEED) | (of_lines == CARRIAGE_RETURN)).any():
            return False
        return all((text[self.start + at] == sign).all() for at, sign in enumerate(comment))


_NONE = np.empty(0, np.int64)
NO_COMMENTS = CommentLines(_NONE, _NONE, _NONE)


def may_be_comments(text: Bytes, lines: PhysicalLines, comment: bytes, oversize: Flags) -> Flags:
    """Which lines begin as comments do: all of them are, but for those within a quoted field."""
    found: Flags = (lines.stop - lines.start >= len(comment)) & ~oversize
    for at, sign in enumerate(comment):
        places = np.flatnonzero(found)
        found[places] = text[lines.start[places] + at] == sign
    return found


def without_comments(readings: Readings, comments: Flags) -> Readings:
    """The readings of a block in which no record begins on these lines."""
    return readings._replace(
        suspects=readings.suspects[~comments[readings.suspects]],
        rivals=readings.rivals[~comments[readings.rivals]],
    )
