"""Columns of a fixed width: the cells of a line where a layout says that they are."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from schemas.cells.numbers import AROUND

RANGE = re.compile(r"([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?")
DELIMITER, QUOTE = b"\x1f", b"\x1e"
"""What separates and quotes cells where nothing does: signs that no such line has."""


@dataclass(frozen=True, slots=True)
class CellRanges:
    """Where the cells of a line are, in signs and not in bytes."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First sign, counted from 0, and the one behind the last."""
    short_filled: bool = False
    """Whether a line may lack the blanks at its end."""
    entire: tuple[tuple[int, int], ...] = ()
    """Of these the cells that have to be there to their last sign: a number is not told from its
    first digits."""
    behind: int = 0
    """How many cells of other lines are written behind one, each with DELIMITER before it."""

    @property
    def width(self) -> int:
        """How many signs a line has."""
        return max(end for _, end in self.ranges)

    def is_whole(self, signs: int) -> bool:
        """Whether a line of so many signs has all that is not left out."""
        if signs >= self.width or not self.short_filled:
            return signs >= self.width
        return not any(first < signs < end for first, end in self.entire)

    def cells_of(self, line: str) -> list[str]:
        """The cells of one line; none if it is not of the width."""
        line, *others = line.split(DELIMITER.decode()) if self.behind else [line]
        written = line.rstrip(AROUND)
        if len(written) > self.width or not self.is_whole(len(line)):
            return []
        return [*(line[first:end].strip(AROUND) for first, end in self.ranges), *others]

    def cut(self, line: pl.Expr) -> list[pl.Expr]:
        """The cells of a line, without the blanks around them; an empty one is null."""
        others: list[pl.Expr] = []
        if self.behind:
            parts = line.str.split(DELIMITER.decode())
            line, *others = (parts.list.get(place) for place in range(self.behind + 1))
        cells = [line.str.slice(first, end - first) for first, end in self.ranges]
        stripped = [cell.str.strip_chars(AROUND) for cell in cells]
        return [pl.when(cell != "").then(cell) for cell in (*stripped, *others)]


def positions_of(
    stated: Mapping[str, str], *, short_filled: bool, entire: Collection[int], behind: int
) -> CellRanges:
    """The positions that a profile states by column: `1-10`, or `11` for a single sign.

    `entire` are the places of columns whose cells are not told by a part of them.
    """
    ranges = tuple(range_of(text) for text in in_order(stated).values())
    return CellRanges(ranges, short_filled, tuple(ranges[place] for place in entire), behind)


def in_order(stated: Mapping[str, str]) -> dict[str, str]:
    """The same by their places in a line, whatever order they are written in."""
    return dict(sorted(stated.items(), key=lambda one: range_of(one[1])))


def range_of(text: str) -> tuple[int, int]:
    """First sign, counted from 0, and the one behind the last; ValueError for what is no range."""
    found = RANGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no range")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f"{text!r} ends before it begins")
    return first - 1, last


def overlapping(stated: Mapping[str, str]) -> Sequence[str]:
    """Two columns that have a sign in common, or none."""
    ranges = sorted((range_of(text), name) for name, text in stated.items())
    for (before, one), (behind, other) in pairwise(ranges):
        if behind[0] < before[1]:
            return one, other
    return ()
