"""Lines that are no record, because they begin with a text that a feed begins comments with."""

from __future__ import annotations

from collections.abc import Sequence
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

    def within(self, text: Bytes, comment: Sequence[bytes]) -> bool:
        """Prove that each of them is one line that begins with one of the texts, from the bytes."""
        size = self.end - self.start
        if not len(size):
            return True
        offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        of_lines = text[np.repeat(self.start, size) + offset]
        if ((of_lines == LINE_FEED) | (of_lines == CARRIAGE_RETURN)).any():
            return False
        return bool(_begin(text, self.start, self.end, comment).all())


_NONE = np.empty(0, np.int64)
NO_COMMENTS = CommentLines(_NONE, _NONE, _NONE)


def may_be_comments(
    text: Bytes, lines: PhysicalLines, comment: Sequence[bytes], oversize: Flags
) -> Flags:
    """Which lines begin as comments do: all of them are, but for those within a quoted field."""
    return _begin(text, lines.start, lines.stop, comment) & ~oversize


def _begin(text: Bytes, start: Places, end: Places, comment: Sequence[bytes]) -> Flags:
    """Which of these stretches begin with one of the texts."""
    begin: Flags = np.zeros(len(start), np.bool_)
    for one in comment:
        found = end - start >= len(one)
        for at, sign in enumerate(one):
            places = np.flatnonzero(found)
            found[places] = text[start[places] + at] == sign
        begin |= found
    return begin


def without_comments(readings: Readings, comments: Flags) -> Readings:
    """The readings of a block in which no record begins on these lines."""
    return readings._replace(
        suspects=readings.suspects[~comments[readings.suspects]],
        rivals=readings.rivals[~comments[readings.rivals]],
    )
