"""What a record has that rows do not: letters among numbers, a word of a total, empty cells."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from connectors.files.text_records import LINE_END, TextRecord

_COMPARABLE_ROWS = 3
"""Rows from which on what all cells of a column have in common is a sign."""
_TOTAL_WORD = re.compile(
    r"\*|\W*((grand|sub)\W*)?(total|sum|suma|somm|gesamt|saldo|solde|anzahl|count|rows|records|"
    r"trailer|balance|razem|celkem|итого|всего|合計|合计)",
    re.IGNORECASE,
)


class _Column(NamedTuple):
    """What the cells of a column that hold something have in common."""

    without_letters: bool
    with_digits: bool

    @classmethod
    def of(cls, cells: Sequence[str]) -> Self:
        filled = [cell for cell in cells if cell.strip()]
        letters = any(map(str.isalpha, "".join(filled)))
        digits = all(any(map(str.isdigit, cell)) for cell in filled)
        return cls(bool(filled) and not letters, bool(filled) and digits)

    def is_unlike(self, cell: str) -> bool:
        """Whether it has letters where no cell has any, or no digit where all cells have one."""
        if not cell.strip():
            return False
        new_letters = self.without_letters and any(map(str.isalpha, cell))
        return new_letters or (self.with_digits and not any(map(str.isdigit, cell)))


class Alike(NamedTuple):
    """What some rows have in common, found in one pass over them."""

    rows: int
    fewest_filled: int
    columns: tuple[_Column, ...]

    @classmethod
    def of(cls, rows: Sequence[TextRecord]) -> Self:
        """The same of at least one row; all have the same number of cells."""
        columns = zip(*(row.cells for row in rows), strict=True)
        return cls(len(rows), min(row.filled for row in rows), tuple(map(_Column.of, columns)))

    def cells_unlike(self, record: TextRecord) -> Iterator[str]:
        """The cells of a record that are of another sort than those of all rows there."""
        for cell, column in zip(record.cells, self.columns, strict=False):
            if column.is_unlike(cell):
                yield cell

    def differences(self, record: TextRecord) -> Iterator[str]:
        """How it differs from all of them; one that is cut or broken may differ in one way."""
        if LINE_END.search(record.text) or not record.sound:
            return
        if any(map(_TOTAL_WORD.match, record.cells)):
            yield "a word"
        if record.filled < self.fewest_filled:
            yield "empty cells"
        if any(self._comparable(record)):
            yield "another sort"

    def is_outlier(self, record: TextRecord) -> bool:
        """Whether two differences say that it is no row, or two cells of another sort."""
        return len([*self.differences(record)]) > 1 or len([*self._comparable(record)]) > 1

    def _comparable(self, record: TextRecord) -> Iterator[str]:
        if self.rows >= _COMPARABLE_ROWS:
            yield from self.cells_unlike(record)
