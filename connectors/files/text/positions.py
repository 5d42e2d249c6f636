"""Fixed-width columns: the cells of a line at the positions a layout gives."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from connectors.errors import ProfileError
from connectors.files.text.encodings import utf8_sizes
from schemas.cells.numbers import AROUND

RANGE = re.compile(r"([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?")
DELIMITER, QUOTE = b"\x1f", b"\x1e"
"""Separator and quote for lines without any: signs that no such line contains."""
FILL = "\ufdd0"
"""Fills every place of a character after its first; occurs in no text."""
CHARACTERS, BYTES = "characters", "bytes"
"""The units in which positions count."""


@dataclass(frozen=True, slots=True)
class CellRanges:
    """Where the cells of a line are, in characters or in the sender's bytes."""

    ranges: tuple[tuple[int, int], ...]
    """First place, counted from 0, and the place after the last."""
    short_filled: bool = False
    """Whether a line may lack the blanks at its end."""
    entire: tuple[tuple[int, int], ...] = ()
    """Those ranges whose cells must be complete: a number cannot be told from its first digits."""
    behind: int = 0
    """How many cells of other lines are appended to a line, each after a DELIMITER."""
    encoding: str | None = None
    """The encoding whose bytes are counted; None to count characters."""

    @property
    def width(self) -> int:
        """Length of a full line in places."""
        return max(end for _, end in self.ranges)

    def is_whole(self, signs: int) -> bool:
        """Whether a line of this length lacks only what may be left out."""
        if signs >= self.width or not self.short_filled:
            return signs >= self.width
        return not any(first < signs < end for first, end in self.entire)

    def cells_of(self, line: str) -> list[str]:
        """The cells of one line; empty if the line does not have the width."""
        line, *others = line.split(DELIMITER.decode()) if self.behind else [line]
        line = self.spaced(line)
        written = line.rstrip(AROUND)
        if len(written) > self.width or not self.is_whole(len(line)) or self._is_split(line):
            return []
        return [*(cell.strip(AROUND) for cell in self._cut(line)), *others]

    def pieces(self, line: str) -> list[str]:
        """The text at each range of any line, with the blanks around it."""
        return self._cut(self.spaced(line))

    def _cut(self, spaced: str) -> list[str]:
        return [spaced[first:end].replace(FILL, "") for first, end in self.ranges]

    def spaced(self, line: str) -> str:
        """A line in which each character takes as many places as it has counted bytes."""
        if self.encoding is None or line.isascii():
            return line
        sizes = (len(sign.encode(self.encoding, "replace")) for sign in line)
        return "".join(sign + FILL * (size - 1) for sign, size in zip(line, sizes, strict=True))

    def spaced_all(self, lines: pl.Expr) -> pl.Expr:
        """`spaced` for many lines."""
        if self.encoding is None:
            return lines
        spaced = self.spaced

        def each(texts: pl.Series) -> pl.Series:
            return pl.Series(
                texts.name,
                [text if text is None else spaced(text) for text in texts.to_list()],
                pl.String,
            )

        return lines.map_batches(each, return_dtype=pl.String)

    @property
    def _edges(self) -> list[int]:
        return sorted({edge for one in self.ranges for edge in one})

    def _is_split(self, spaced: str) -> bool:
        """Whether a character lies across the border of two cells."""
        return any(spaced[edge : edge + 1] == FILL for edge in self._edges)

    def is_split(self, spaced: pl.Expr) -> pl.Expr:
        """`_is_split` for many lines."""
        if self.encoding is None:
            return pl.lit(value=False)
        return pl.any_horizontal(spaced.str.slice(edge, 1) == FILL for edge in self._edges)

    def cut(self, line: pl.Expr) -> list[pl.Expr]:
        """The cells of a line, without the blanks around them; an empty cell is null."""
        others: list[pl.Expr] = []
        if self.behind:
            parts = line.str.split(DELIMITER.decode())
            line, *others = (parts.list.get(place) for place in range(self.behind + 1))
        line = self.spaced_all(line)
        cells = [line.str.slice(first, end - first) for first, end in self.ranges]
        if self.encoding is not None:
            cells = [cell.str.replace_all(FILL, "", literal=True) for cell in cells]
        stripped = [cell.str.strip_chars(AROUND) for cell in cells]
        return [pl.when(cell != "").then(cell) for cell in (*stripped, *others)]


def in_order(stated: Mapping[str, str]) -> dict[str, str]:
    """Positions by column, sorted by place in the line, in whatever order they are stated."""
    return dict(sorted(stated.items(), key=lambda one: range_of(one[1])))


def range_of(text: str) -> tuple[int, int]:
    """First place, counted from 0, and the place after the last, of `1-10`, or `11` for one place.

    Raises ValueError if the text is no range.
    """
    found = RANGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no range")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f"{text!r} ends before it begins")
    return first - 1, last


def check_unit(unit: str | None, encoding: str) -> None:
    """Refuse positions whose unit is unknown; raises ProfileError."""
    if encoding.startswith("utf-16") and unit == BYTES:
        raise ProfileError(
            f"position_unit counts no bytes of {encoding}: each character has two there, or four. "
            "State the positions in characters."
        )
    if unit is None and not encoding.startswith("utf-") and utf8_sizes(encoding) is None:
        raise ProfileError(
            f"position_unit has to say what positions count: a character of {encoding} has one "
            f'byte, or more. Write "{BYTES}", as most layouts of such files do, or "{CHARACTERS}".'
        )


def overlapping(stated: Mapping[str, str]) -> Sequence[str]:
    """Two columns that share a place; empty if there are none."""
    ranges = sorted((range_of(text), name) for name, text in stated.items())
    for (before, one), (behind, other) in pairwise(ranges):
        if behind[0] < before[1]:
            return one, other
    return ()
