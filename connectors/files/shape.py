"""The shape of a delimited text: delimiter, header, records, and what stands behind them."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import NamedTuple

from connectors.files.dialect import Dialect, RecordFault
from connectors.files.first_record import DELIMITERS, SEPARATOR, may_state
from connectors.files.header_names import DATA_CELL
from connectors.files.line_kinds import LineKind, is_rule, line_kinds
from connectors.files.linear_patterns import as_series, fitting
from connectors.files.record_cells import cells_of
from connectors.files.records import split

BAR = "|"
"""A sign that some write twice between cells."""
COMMENT = "#"
"""What lines may begin with that are no records."""
LINES = 1000
"""Lines that tell what divides a text, from the first."""
BEHIND = 10
"""Records at the end that may be a footer."""
HEADERS = 5
"""Rows of names that a header may have."""
SEVERAL = 3
"""Rows from which on what all cells of a column have in common is a sign."""
FOOT = re.compile(
    r"\*|\W*((grand|sub)\W*)?(total|sum|suma|somm|gesamt|saldo|solde|anzahl|count|rows|records|"
    r"trailer|balance|razem|celkem|итого|всего|合計|合计)",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_LONE_BAR = re.compile(r"(?<!\|)\|(?:\|\|)*(?!\|)")
_SIGNS = re.escape("".join(DELIMITERS))
_PLAIN = re.compile(rf"[^{_SIGNS}]*|[^\d{_SIGNS}]{{0,5}}\d[\d.,'\s]*[^\d{_SIGNS}]{{0,5}}")
"""A cell that is not likely to be several: a number, or a text without signs that divide others."""
_DIVIDED = (RecordFault.NONE, RecordFault.TOO_FEW_FIELDS, RecordFault.TOO_MANY_FIELDS)


class TextRecord(NamedTuple):
    """A record of a text, or a line that is none."""

    line: int
    """The physical line it begins on; 0: it is of the end of a text, and nobody counted."""
    text: str
    cells: tuple[str, ...]
    sound: bool
    """Whether its cells can be told apart."""

    @property
    def begin(self) -> str:
        """The first of its cells that holds anything."""
        return next(filter(str.strip, self.cells), "")

    @property
    def filled(self) -> int:
        """How many of its cells hold anything."""
        return sum(1 for cell in self.cells if cell.strip())


@dataclass(frozen=True, slots=True)
class Shape:
    """How a text is divided."""

    delimiter: str
    divided: bool
    """Whether that sign is between any cells."""
    stated: bool
    """Whether its first line says what the delimiter is."""
    header_line: int
    headed: bool
    """Whether one of its first records looks like a header, and not like a record."""
    more_headers: tuple[int, ...]
    """Lines below that look like a header as well, above the first that does not."""
    first_line: int
    """Where its records begin, if it has no header."""
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    odd: tuple[TextRecord, ...]
    """Records with more or fewer cells than the others, or with quotes out of place."""
    behind: tuple[str, ...]
    """Lines at the end that can be no records, the first one first."""
    kinds: tuple[LineKind, ...]
    """Lines between the records that can be none."""
    unnamed: int = 0
    """Cells that records have behind those of the header; below 0: how many they have too few."""
    comments: int = 0
    """Lines that begin as comments do, and have not the cells of records."""
    may_be_comments: int = 0
    """Records that begin so."""

    def column(self, place: int) -> list[str]:
        """The cells of one column that hold anything."""
        return [row[place].strip() for row in self.rows if row[place].strip()]


def shape_of(text: str, end: str | None = None, *, of_workbook: bool = False) -> Shape:
    """The shape of a text, or of its beginning where `end` is the end of it.

    In one that was made of a workbook each line is a row.
    """
    said = SEPARATOR.fullmatch(_LINE_END.split(text, maxsplit=1)[0].encode())
    said = said if said and may_state(said[1]) else None
    first = _first_lines(text)
    delimiter = said[1].decode() if said else max(DELIMITERS, key=lambda sign: _fit(first, sign))
    if delimiter == BAR and BAR in first and not said and not _LONE_BAR.search(first):
        delimiter = BAR * 2
    width = _usual(_records(first, delimiter)).width
    records = _records(text, delimiter)[1 if said else 0 : -1 if end is not None else None]
    header = _header(records[:LINES], width)
    body = records[header.below :]
    last = body if end is None else _records(end, delimiter)[1:]
    foot = _behind(last, width, [] if end is None else _rows(body, width))
    body = _but(foot, body, width)
    above = records[: header.below]
    kinds = () if of_workbook else _kinds(above, body, width, delimiter)
    body = _without(kinds, body)
    # What is no row hides where the last one is.
    sound = [] if end is None else _rows(body, width)
    foot = foot or _behind(_without(kinds, last), width, sound)
    body = _but(foot, body, width)
    behind = {record.text for record in foot}
    rows = _rows(body, width)
    if end is not None:
        ending = [one._replace(line=0) for one in last[-BEHIND:] if one.text not in behind]
        body += _without(kinds, ending)
    odd = {
        one.text: one
        for one in reversed(body)
        if (len(one.cells) != width or not one.sound) and not _is_comment(one, width)
    }
    unnamed = width - len(header.names)
    names = header.names + ("",) * unnamed
    return Shape(
        delimiter,
        width > 1,
        said is not None,
        header.line,
        header.headed,
        header.more,
        rows[0].line if rows else header.line,
        names,
        tuple(row.cells + ("",) * -unnamed for row in rows),
        tuple(reversed(odd.values())),
        tuple(record.text for record in foot),
        kinds,
        unnamed * header.headed,
        sum(_is_comment(one, width) for one in records if one.line != header.line),
        sum(one.text.startswith(COMMENT) for one in rows),
    )


def numbered(width: int) -> tuple[str, ...]:
    """What columns are called that have no names."""
    return tuple(f"Column {number}" for number in range(1, width + 1))


def _first_lines(text: str) -> str:
    ends = (end.end() for end in _LINE_END.finditer(text))
    return text[: next((at for number, at in enumerate(ends, 1) if number == LINES), None)]


def _records(text: str, delimiter: str) -> list[TextRecord]:
    """What the reader of extracts makes of a text, whose width nobody has stated."""
    lines = _LINE_END.split(_first_lines(text))
    width = _usual([_record(number, line, delimiter) for number, line in enumerate(lines)]).width
    found = _split(text, delimiter, width)
    usual = _usual(found).width
    return found if usual == width else _split(text, delimiter, usual)


def _split(text: str, delimiter: str, width: int) -> list[TextRecord]:
    data = text.encode("utf-8", "replace")
    found = split(data, width, Dialect(delimiter.encode()), line=1, final=True)
    places = zip(found.start, found.end, found.first_line, found.fault, strict=True)
    return [
        _record(int(line), data[start:end].decode(), delimiter, sound=fault in _DIVIDED)
        for start, end, line, fault in places
    ]


def _record(line: int, text: str, delimiter: str, *, sound: bool = True) -> TextRecord:
    if len(delimiter) > 1:
        cells = [cell or "" for cell in cells_of(text, Dialect(delimiter.encode()))]
    else:
        cells = next(csv.reader(StringIO(text, newline=""), delimiter=delimiter), [])
    return TextRecord(line, text, tuple(cells), sound)


class _Usual(NamedTuple):
    width: int
    """The number of cells that most records have; above one, where any has several."""
    records: int


def _usual(records: Sequence[TextRecord]) -> _Usual:
    widths = Counter(len(one.cells) for one in records if one.text.strip())
    several = Counter({width: count for width, count in widths.items() if width > 1})
    return _Usual(*(several or widths or Counter({1: 0})).most_common(1)[0])


def _fit(text: str, delimiter: str) -> float:
    """How well a sign divides a text: most records alike, and into cells that need no other one."""
    records = _records(text, delimiter)
    width, several = _usual(records)
    alike = [cell for one in records if len(one.cells) == width for cell in one.cells]
    plain = sum(_PLAIN.fullmatch(cell.strip()) is not None for cell in alike)
    headed = any(_may_be_header(one, width) for one in records)
    return several * (width - 1) / width * (plain + 1) / (len(alike) + 1) * (1 + headed)


class _Header(NamedTuple):
    line: int
    headed: bool
    names: tuple[str, ...]
    below: int
    """How many records stand above the first one that it is the header of."""
    more: tuple[int, ...] = ()


def _header(records: Sequence[TextRecord], width: int) -> _Header:
    """The first record as wide as the others that is a header, or another one above most of them.

    Where there is none, it is the first of them, as far as that does not begin as a record does.
    """
    found = _first_header(records, width)
    if found is None:
        found = _other_header(records, width)
    if found is not None:
        names = tuple(name.strip() for name in records[found].cells)
        end = found + 1
        while end < len(records) and _may_be_header(records[end], width):
            end += 1
        has_rows = end < len(records) and end - found <= HEADERS
        more = records[found + 1 : end if has_rows else found + 1]
        return _Header(records[found].line, True, names, found + 1, tuple(one.line for one in more))
    at = next((at for at, one in enumerate(records) if len(one.cells) == width), None)
    if at is None:
        return _Header(1, False, (), 0)
    told = [cell.strip() for cell in records[at].cells]
    is_record = DATA_CELL.match(next(filter(None, told), "0")) is not None
    line = records[at].line
    names = numbered(width) if is_record else tuple(told)
    return _Header(line, False, names, at + (not is_record))


def _first_header(records: Sequence[TextRecord], width: int) -> int | None:
    """Where the first header is; of several one that is printed anew, and so is no heading."""
    places = [at for at, one in enumerate(records) if _is_header(one, width)]
    times = Counter(records[at].text for at in places)
    again = [at for at in places if times[records[at].text] > 1]
    few = len(places) * 2 <= sum(len(one.cells) == width for one in records)
    return next(iter(again if again and few else places), None)


def _other_header(records: Sequence[TextRecord], width: int) -> int | None:
    """Where a header is that has more or fewer cells than its records: the widest of several."""
    rows, above, places = sum(len(one.cells) == width for one in records), 0, []
    for at, one in enumerate(records):
        if above * 2 >= rows:
            break
        if len(one.cells) > 1 and _is_header(one):
            places.append(at)
        above += len(one.cells) == width
    return max(places, key=lambda at: len(records[at].cells), default=None)


def _is_header(record: TextRecord, width: int | None = None) -> bool:
    told = [cell.strip() for cell in record.cells if cell.strip()]
    return (
        record.sound
        and len(record.cells) == (width or len(record.cells))
        and len(told) * 2 > len(record.cells)
        and not any(map(DATA_CELL.match, told))
        and not is_rule(record.text)
    )


def _may_be_header(record: TextRecord, width: int) -> bool:
    return _is_header(record) and 1 < len(record.cells) <= width


def _rows(records: Sequence[TextRecord], width: int) -> list[TextRecord]:
    return [one for one in records if one.sound and len(one.cells) == width and one.filled]


def _kinds(
    above: Sequence[TextRecord], body: Sequence[TextRecord], width: int, delimiter: str
) -> tuple[LineKind, ...]:
    """The kinds of lines below a header that are no records; it is the last of those above."""
    *over, header = above or [TextRecord(0, "", (), sound=False)]
    plain = [one for one in _rows(body, width) if one.text != header.text and not is_rule(one.text)]
    # Where most records begin with a number, a word is no beginning of one.
    numbered = [one for one in plain if not any(map(str.isalpha, one.begin))]
    usual = numbered if len(numbered) * 2 > len(plain) else plain
    doubt = [] if usual is plain else [one for one in plain if _is_no_row(one, usual)]
    rows = {one.text for one in plain} - {one.text for one in doubt}
    lines = [one.text for one in body]
    return line_kinds(header.text, [one.text for one in over], lines, rows, header.cells, delimiter)


def _but(foot: Sequence[TextRecord], records: Sequence[TextRecord], width: int) -> list[TextRecord]:
    """The records that are neither a footer nor a comment."""
    behind = {one.text for one in foot}
    return [one for one in records if one.text not in behind and not _is_comment(one, width)]


def _is_comment(record: TextRecord, width: int) -> bool:
    """Whether it begins as comments do; what has all cells of a record may be one."""
    return record.text.startswith(COMMENT) and len(record.cells) != width


def _is_no_row(record: TextRecord, rows: Sequence[TextRecord]) -> bool:
    """Whether two signs say so, or two cells of another sort than those of all rows."""
    return len([*_signs(record, rows)]) > 1 or len([*_of_another_sort(record, rows)]) > 1


def _without(kinds: Sequence[LineKind], records: Sequence[TextRecord]) -> list[TextRecord]:
    """The records that are of none of these kinds."""
    texts = as_series([one.text for one in records])
    none = fitting(texts, [kind.pattern for kind in kinds])
    return [one for one, is_none in zip(records, none, strict=True) if not is_none]


def _behind(
    records: Sequence[TextRecord], width: int, above: Sequence[TextRecord]
) -> list[TextRecord]:
    """The records at the end that are none; `above`: those by which they are told, if not these."""
    told = [
        at
        for at in range(len(records))
        if records[at].filled and not _is_comment(records[at], width)
    ]
    for place in range(max(0, len(told) - BEHIND), len(told)):
        first, *others = [records[at] for at in told[place:]]
        rows = (above or _rows(records[: told[place]], width))[:LINES]
        if not rows or len([*_signs(first, rows)]) < 2:
            continue
        # Behind a footer there are no records.
        if all(len(one.cells) != width or any(_signs(one, rows)) for one in others):
            return [first, *others]
    return []


def _signs(record: TextRecord, rows: Sequence[TextRecord]) -> Iterator[str]:
    """What says that it is none of these rows; one that is cut or broken may have one sign."""
    if _LINE_END.search(record.text) or not record.sound:
        return
    if any(map(FOOT.match, record.cells)):
        yield "a word"
    if record.filled < min(row.filled for row in rows):
        yield "empty cells"
    if any(_of_another_sort(record, rows)):
        yield "another sort"


def _of_another_sort(record: TextRecord, rows: Sequence[TextRecord]) -> Iterator[str]:
    """Its cells that are of another sort than those of all rows in their columns."""
    if len(rows) >= SEVERAL:
        columns = zip(*(row.cells for row in rows), strict=True)
        for cell, column in zip(record.cells, columns, strict=False):
            if _is_of_another_sort(cell, column):
                yield cell


def _is_of_another_sort(cell: str, column: Sequence[str]) -> bool:
    """Whether it has letters where no cell has any, or no digit where all cells have one."""
    told = [one for one in column if one.strip()]
    if not told or not cell.strip():
        return False
    lettered = any(map(str.isalpha, cell)) and not any(any(map(str.isalpha, one)) for one in told)
    digits = any(map(str.isdigit, cell)) or not all(any(map(str.isdigit, one)) for one in told)
    return lettered or not digits
