"""Rows of a sheet as lines of CSV, and facts about the sheet besides its cells."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from connectors.files.text.content import SAVED, Content, refused
from schemas.counting import first_of, grouped

SHOWN = 10
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""The limits of a sheet."""


class Row(NamedTuple):
    """A row of a sheet, or several rows with the same cells."""

    cells: Sequence[str]
    """Cells up to the last value."""
    repeated: int
    currencies: Sequence[tuple[int, str]] = ()
    """Columns, from 0, whose cells name the currency of their number, with its code."""


class SheetLine(NamedTuple):
    """A row of a sheet as a line."""

    line: bytes
    """The cells as CSV."""
    currencies: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class SheetFacts:
    """Facts about a sheet besides its cells."""

    width: int
    remarks: tuple[str, ...]
    """Remarks on what a person sees differently, or does not see."""
    in_doubt: str = ""
    """Why formulas may yield other values than the saved ones; empty if nothing says so."""


@dataclass(slots=True)
class SheetNotes:
    """Facts noted about a sheet while its rows are read."""

    hidden: Sequence[str]
    """Names of the hidden sheets."""
    merged: list[str] = field(default_factory=list)
    hidden_rows: list[str] = field(default_factory=list)
    hidden_columns: list[str] = field(default_factory=list)
    zeros: set[int] = field(default_factory=set)
    """Columns, from 1, of numbers that are shown with leading zeros."""
    uncomputed: list[str] = field(default_factory=list)
    """Formulas saved without a value."""
    formulas: int = 0
    """How many formulas are saved with a value, ..."""
    first_formulas: list[str] = field(default_factory=list)
    """... and the first of them."""
    may_be_stale: str = ""
    """Why such a value may be outdated; empty if nothing says so."""

    def note_formula(self, place: str, *, has_value: bool) -> None:
        if not has_value:
            self.uncomputed.append(place)
            return
        self.formulas += 1
        if self.formulas <= SHOWN:
            self.first_formulas.append(place)

    @property
    def _stale(self) -> str:
        """The formulas whose values may be outdated; empty if nothing says so."""
        if not self.may_be_stale:
            return ""
        more = self.formulas - len(self.first_formulas)
        return ", ".join(self.first_formulas) + (f", and {grouped(more)} more" if more else "")

    def facts(self, content: Content, width: int) -> SheetFacts:
        """The facts about the sheet; raises ExtractRefused if formulas have no valid values."""
        if self.uncomputed:
            detail = f"formulas that were never computed, {first_of(self.uncomputed, SHOWN)}: "
            detail += "open the workbook with a spreadsheet program and save it"
            raise refused("unsupported_format", content.name, detail=detail)
        stale = self._stale
        if stale and content.formulas != SAVED:
            detail = (
                f"formulas whose saved values may not be what they come to, {stale}: "
                f"{self.may_be_stale}; open the workbook with a spreadsheet program and save it, "
                "or, if the program that writes it computes them all before it saves, state "
                f'formulas = "{SAVED}" in the feed profile'
            )
            raise refused("unsupported_format", content.name, detail=detail)
        noted = {
            f"formulas read with the values they were saved with, though {self.may_be_stale}": (
                [stale] if stale else []
            ),
            "hidden sheets": [", ".join(self.hidden)] if self.hidden else [],
            "merged": self.merged,
            "hidden rows": self.hidden_rows,
            "hidden columns": self.hidden_columns,
            "numbers that are shown with zeros before them, and read without, in the columns": [
                letters(column) for column in sorted(self.zeros)
            ],
        }
        remarks = (f"{what}: {first_of(places, SHOWN)}" for what, places in noted.items() if places)
        return SheetFacts(width, tuple(remarks), self.may_be_stale if stale else "")


def written(rows: Iterable[Row], width: int) -> Iterator[SheetLine]:
    """Rows as lines, padded to the width of the widest; trailing empty rows are dropped."""
    empty = 0
    for row in rows:
        if not row.cells:
            empty += row.repeated
            continue
        # Empty rows become lines only if a value follows.
        for _ in range(empty):
            yield SheetLine(b"\n")
        empty = 0
        line = line_of([*row.cells, *[""] * (width - len(row.cells))])
        for _ in range(row.repeated):
            yield SheetLine(line, row.currencies)


def line_of(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    # The writer quotes only characters of its own line end, and a lone CR would end a line too.
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n").encode() + b"\n"


def letters(column: int) -> str:
    """The spreadsheet name of a column counted from 1."""
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name
