"""The records of a text of unknown width, and what distinguishes other lines from rows."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import NamedTuple, Self

from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.record_cells import cells_of
from connectors.files.text.records import split

SAMPLE_LINES = 1000
"""How many first lines show the delimiter and the width of a text."""
LINE_END = re.compile(r"\r\n|\r|\n")
QUOTE = '"'
"""The quote of cells if no other is known."""
_DIVIDED = (RecordFault.NONE, RecordFault.TOO_FEW_FIELDS, RecordFault.TOO_MANY_FIELDS)


class TextRecord(NamedTuple):
    """A record of a text, or a line that is none."""

    line: int
    """Physical line it begins on; 0 in the end of a text, where lines are not counted."""
    text: str
    cells: tuple[str, ...]
    sound: bool
    """Whether its quotes leave no doubt about its cells."""

    @property
    def first_filled(self) -> str:
        """The first non-empty cell."""
        return next(filter(str.strip, self.cells), "")

    @property
    def filled(self) -> int:
        """The number of non-empty cells."""
        return sum(1 for cell in self.cells if cell.strip())


def first_lines(text: str) -> str:
    """The beginning of a text, as many lines as the sample has."""
    ends = (end.end() for end in LINE_END.finditer(text))
    return text[: next((at for number, at in enumerate(ends, 1) if number == SAMPLE_LINES), None)]


def records_of(
    text: str, delimiter: str, *, quote: str = QUOTE, escaped: bool = False
) -> list[TextRecord]:
    """The records that the reader of extracts finds in a text of unknown width."""
    dialect = Dialect(delimiter.encode(), quote.encode(), escape=b"\\" if escaped else b"")
    lines = LINE_END.split(first_lines(text))
    of_lines = usual([_record(number, line, dialect) for number, line in enumerate(lines)]).width
    records = _split(text, dialect, of_lines)
    of_records = usual(records).width
    return records if of_records == of_lines else _split(text, dialect, of_records)


def _split(text: str, dialect: Dialect, width: int) -> list[TextRecord]:
    data = text.encode("utf-8", "replace")
    found = split(data, width, dialect, line=1, final=True)
    spans = zip(found.start, found.end, found.first_line, found.fault, strict=True)
    return [
        _record(int(line), data[start:end].decode(), dialect, sound=fault in _DIVIDED)
        for start, end, line, fault in spans
    ]


def _record(line: int, text: str, dialect: Dialect, *, sound: bool = True) -> TextRecord:
    if len(dialect.delimiter) > 1 or dialect.escape:
        cells = [cell or "" for cell in cells_of(text, dialect)]
    else:
        cells = next(csv.reader(StringIO(text, newline=""), **dialect.signs), [])
    return TextRecord(line, text, tuple(cells), sound)


class Usual(NamedTuple):
    width: int
    """Number of cells that most records have; if any has several, one is not considered."""
    records: int


def usual(records: Sequence[TextRecord]) -> Usual:
    """The width of most records, and how many have it."""
    widths = Counter(len(one.cells) for one in records if one.text.strip())
    several = Counter({width: count for width, count in widths.items() if width > 1})
    return Usual(*(several or widths or Counter({1: 0})).most_common(1)[0])


def rows_of(records: Sequence[TextRecord], width: int) -> list[TextRecord]:
    """The non-empty records of this width whose cells are beyond doubt."""
    return [one for one in records if one.sound and len(one.cells) == width and one.filled]


_COMPARABLE_ROWS = 3
"""From this many rows on, common properties of a column's cells mean something."""
_TOTAL_WORD = re.compile(
    r"\*|\W*((grand|sub)\W*)?(total|sum|suma|somm|gesamt|saldo|solde|anzahl|count|rows|records|"
    r"trailer|balance|razem|celkem|итого|всего|合計|合计)",
    re.IGNORECASE,
)


class _Column(NamedTuple):
    """What the non-empty cells of a column have in common."""

    without_letters: bool
    with_digits: bool

    @classmethod
    def of(cls, cells: Sequence[str]) -> Self:
        filled = [cell for cell in cells if cell.strip()]
        letters = any(map(str.isalpha, "".join(filled)))
        digits = all(any(map(str.isdigit, cell)) for cell in filled)
        return cls(bool(filled) and not letters, bool(filled) and digits)

    def is_unlike(self, cell: str) -> bool:
        """Whether a cell has letters where none has any, or no digit where all have one."""
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
        """Of at least one row; all rows have the same number of cells."""
        columns = zip(*(row.cells for row in rows), strict=True)
        return cls(len(rows), min(row.filled for row in rows), tuple(map(_Column.of, columns)))

    def cells_unlike(self, record: TextRecord) -> Iterator[str]:
        """The cells of a record that are unlike those of all rows in their column."""
        for cell, column in zip(record.cells, self.columns, strict=False):
            if column.is_unlike(cell):
                yield cell

    def differences(self, record: TextRecord) -> Iterator[str]:
        """How a record differs from all rows; a cut or broken record may differ in one way."""
        if LINE_END.search(record.text) or not record.sound:
            return
        if any(map(_TOTAL_WORD.match, record.cells)):
            yield "a word"
        if record.filled < self.fewest_filled:
            yield "empty cells"
        if any(self._comparable(record)):
            yield "another sort"

    def is_outlier(self, record: TextRecord) -> bool:
        """Whether two differences, or two cells unlike the rows', show that it is no row."""
        return len([*self.differences(record)]) > 1 or len([*self._comparable(record)]) > 1

    def _comparable(self, record: TextRecord) -> Iterator[str]:
        if self.rows >= _COMPARABLE_ROWS:
            yield from self.cells_unlike(record)
