"""The shape of a delimited text: delimiter, header, records, and what stands behind them."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from connectors.files.first_record import DELIMITERS, SEPARATOR
from connectors.files.header_names import DATA_CELL

BAR, UNIT = "|", "\x1f"
"""A sign that some write twice between cells, and one that stands for both of them."""
LINES = 1000
"""Lines that tell what divides a text, from the first."""
BEHIND = 10
"""Lines at the end that may be a footer."""
FOOT = re.compile(r"\*|\W*(total|sum|summe|gesamt|saldo|anzahl|count|rows|records)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a text is divided."""

    delimiter: str
    stated: bool
    """Whether its first line says what the delimiter is."""
    header_line: int
    headed: bool
    """Whether one of its first lines looks like a header, and not like a record."""
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    behind: tuple[str, ...]
    """Lines at the end that look like no records, the first one first."""
    unnamed: int = 0
    """Empty cells that records have behind those of the header."""

    def column(self, place: int) -> list[str]:
        """The cells of one column that hold anything."""
        return [row[place].strip() for row in self.rows if row[place].strip()]


def shape_of(lines: Sequence[str], last: Sequence[str]) -> Shape:
    """The shape of a text by its first lines and its last ones."""
    said = SEPARATOR.fullmatch(lines[0].encode()) if lines else None
    delimiter = said[1].decode() if said else max(DELIMITERS, key=lambda sign: _fit(lines, sign))
    if delimiter == BAR and not said and all(_is_doubled(line) for line in lines[:LINES]):
        one, other = ([line.replace(BAR * 2, UNIT) for line in some] for some in (lines, last))
        shape = _shape(one, other, UNIT, None)
        behind = tuple(line.replace(UNIT, BAR * 2) for line in shape.behind)
        return replace(shape, delimiter=BAR * 2, behind=behind)
    return _shape(lines, last, delimiter, said)


def _is_doubled(line: str) -> bool:
    return BAR not in line.replace(BAR * 2, "")


def _shape(
    lines: Sequence[str], last: Sequence[str], delimiter: str, said: re.Match[bytes] | None
) -> Shape:
    begin = 1 if said else 0
    width, _ = _usual(lines[begin:LINES], delimiter)
    behind = tuple(_behind(last, delimiter, width))
    headers = (
        number
        for number, line in enumerate(lines[begin:LINES], begin)
        if _is_header(_cells(line, delimiter), width)
    )
    found = next(headers, None)
    unnamed = 0
    if found is None and (short := _short_header(lines[begin:LINES], delimiter, width)):
        found, unnamed = short[0] + begin, short[1]
    header = begin if found is None else found
    records = csv.reader(lines[header:], delimiter=delimiter)
    names, *rows = [tuple(one) for one in records if any(cell.strip() for cell in one)] or [()]
    names += ("",) * unnamed
    left = {tuple(_cells(line, delimiter)) for line in behind}
    return Shape(
        delimiter,
        said is not None,
        header + 1,
        found is not None,
        tuple(name.strip() for name in names),
        tuple(row for row in rows if len(row) == len(names) and row not in left),
        behind,
        unnamed,
    )


def _short_header(lines: Sequence[str], delimiter: str, width: int) -> tuple[int, int] | None:
    """The line of a header behind whose names all records have empty cells, and how many."""
    for number, line in enumerate(lines):
        names = _cells(line, delimiter)
        if 1 < len(names) < width and _is_header(names, len(names)):
            below = [_cells(one, delimiter) for one in lines[number + 1 :] if one.strip()]
            ends = [cells[len(names) :] for cells in below if len(cells) == width]
            return None if any(map(any, ends)) else (number, width - len(names))
    return None


def _fit(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    """How well a sign divides the lines: most of them in the same number of cells, above one."""
    width, count = _usual(lines[:LINES], delimiter)
    return (count, width) if width > 1 else (0, 0)


def _usual(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    widths = Counter(len(_cells(line, delimiter)) for line in lines if line.strip())
    several = Counter({width: count for width, count in widths.items() if width > 1})
    return (several or widths or Counter({1: 0})).most_common(1)[0]


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _is_header(cells: Sequence[str], width: int) -> bool:
    told = [cell.strip() for cell in cells if cell.strip()]
    return len(cells) == width and len(told) * 2 > width and not any(map(DATA_CELL.match, told))


def _behind(last: Sequence[str], delimiter: str, width: int) -> Iterator[str]:
    found: list[str] = []
    for line in reversed(last[-BEHIND:]):
        if line.strip():
            if len(_cells(line, delimiter)) == width and not FOOT.match(line):
                break
            found.append(line)
    # All of them: the usual width was not that of the records.
    yield from reversed(found if len(found) < BEHIND else [])
