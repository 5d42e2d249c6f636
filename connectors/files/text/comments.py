"""Lines that are no records: a feed's comments, and lines that fit one of its patterns."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import polars as pl

from connectors.files.text.bitmask import Bytes, Flags, Places
from connectors.files.text.dialect import Dialect
from connectors.files.text.linear_patterns import as_series, decoded, fitting
from connectors.files.text.lines import CARRIAGE_RETURN, LINE_FEED, PhysicalLines
from connectors.files.text.readings import Readings
from connectors.files.text.utf8 import as_utf8

_REPLACED = "\ufffd"
FEW = 50
"""Up to this many lines are cut out one by one."""


class CommentLines(NamedTuple):
    """Positions of comments in a block, line ends excluded, and the number of each line."""

    start: Places
    end: Places
    line: Places

    def part(self, begin: int, end: int) -> CommentLines:
        """The comments of a part of the block, positioned relative to that part."""
        there = (begin <= self.start) & (self.start < end)
        return CommentLines(self.start[there] - begin, self.end[there] - begin, self.line[there])

    def followed_by(self, more: CommentLines, there: int) -> CommentLines:
        """These comments and those of the text that begins at position `there`."""
        return CommentLines(
            np.concatenate([self.start, more.start + there]),
            np.concatenate([self.end, more.end + there]),
            np.concatenate([self.line, more.line]),
        )

    def within(self, text: Bytes, dialect: Dialect) -> bool:
        """Prove from the bytes that each of them is one line and no record."""
        size = self.end - self.start
        if not len(size):
            return True
        offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        of_lines = text[np.repeat(self.start, size) + offset]
        if ((of_lines == LINE_FEED) | (of_lines == CARRIAGE_RETURN)).any():
            return False
        return bool(_no_records(text, self.start, self.end, dialect).all())


_NONE = np.empty(0, np.int64)
NO_COMMENTS = CommentLines(_NONE, _NONE, _NONE)


def may_be_comments(text: Bytes, lines: PhysicalLines, dialect: Dialect, oversize: Flags) -> Flags:
    """Which lines are no records by themselves; such a line within quotes is still part of one.

    A line whose end is not known yet is left out, because a pattern has to fit all of it.
    """
    known = slice(lines.complete)
    found = np.zeros(len(lines.start), np.bool_)
    found[known] = _no_records(text, lines.start[known], lines.stop[known], dialect)
    return found & ~oversize


def _no_records(text: Bytes, start: Places, end: Places, dialect: Dialect) -> Flags:
    """Which of these lines begin like comments or fit a pattern."""
    found = _begin(text, start, end, dialect)
    asked = np.flatnonzero(~found & (end > start))
    if dialect.skip_lines and len(asked):
        texts = cut_out(text.tobytes(), start[asked], end[asked], dialect.encoding)
        found[asked] = fitting(texts, dialect.skip_lines).to_numpy()
    return found


def cut_out(text: bytes, start: Places, end: Places, encoding: str) -> pl.Series:
    """Lines of a block as texts for patterns, in the form `as_series` gives them."""
    utf8 = as_utf8(text, start, end, encoding) if len(start) > FEW else None
    if utf8 is not None and (encoding == "utf-8" or _REPLACED.encode() not in utf8.text):
        begin, length = pl.Series(utf8.start), pl.Series(utf8.end - utf8.start)
        cut = pl.lit(utf8.text).bin.slice(begin, length)
        with suppress(pl.exceptions.ComputeError):  # Some bytes are no text.
            return pl.select(cut.cast(pl.String)).to_series()
    places = zip(start.tolist(), end.tolist(), strict=True)
    return as_series([decoded(text[first:last], encoding) for first, last in places])


def _begin(text: Bytes, start: Places, end: Places, dialect: Dialect) -> Flags:
    """Which of these lines begin like comments."""
    begin: Flags = np.zeros(len(start), np.bool_)
    for one in dialect.comment:
        found = end - start >= len(one)
        for at, sign in enumerate(one):
            places = np.flatnonzero(found)
            found[places] = text[start[places] + at] == sign
        begin |= found
    return begin


def without_comments(readings: Readings, comments: Flags) -> Readings:
    """Readings in which no record begins on these lines, and a failing record ends before them."""
    if not len(readings.suspects):
        return readings  # Every record is a line.
    return readings._replace(
        suspects=readings.suspects[~comments[readings.suspects]],
        rivals=np.union1d(readings.rivals, np.flatnonzero(comments)),
        undecided=readings.undecided & ~comments,
    )
