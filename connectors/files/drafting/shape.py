"""The shape of a delimited text: delimiter, header, records, and what stands behind them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from connectors.files.drafting.line_kinds import LineKind, is_rule, line_kinds
from connectors.files.drafting.sum_rows import SumRow, sum_kinds, sum_rows
from connectors.files.drafting.text_records import (
    LINE_END,
    QUOTE,
    SAMPLE_LINES,
    Alike,
    TextRecord,
    first_lines,
    records_of,
    rows_of,
    usual,
)
from connectors.files.layout.first_record import DELIMITERS, SEPARATOR, may_state
from connectors.files.layout.header_names import DATA_CELL
from connectors.files.text.linear_patterns import as_series, fitting

COMMENT = "#"
"""What lines may begin with that are no records."""
_BAR = "|"
"""A delimiter that some write twice between cells, or between other signs: `~|~`."""
_FOOTER_LINES = 10
"""Records at the end that may be a footer."""
_HEADER_ROWS = 5
"""Rows of names that a header may have."""
_HEADER_BELOW = 10
"""Records among the first of which one with digits in its names may be the header."""
_AROUND_BAR = re.compile(r"[^\w\s.+\"'-]*\|[^\w\s.+\"'-]*")
"""A bar with the signs beside it that a delimiter may have as well."""
_MOST_SIGNS = 10
"""Of a delimiter."""
_OF_UNITS = 3
"""Cells of currencies with their units that are rather names than amounts."""
_UNITS = re.compile(r"10*\s?[A-Z]{3}")
_MANY = re.compile(r"(?<![\d.,/:-])10{2,6}(?![\d.,/:-]*\d)")
_SIGNS = re.escape("".join(DELIMITERS))
_PLAIN = re.compile(rf"[^{_SIGNS}]*|[^\d{_SIGNS}]{{0,5}}\d[\d.,'\s]*[^\d{_SIGNS}]{{0,5}}")
"""A cell that is not likely to be several: a number, or a text without other delimiters."""


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
    """Lines at the end that can be no records, without the blanks around them, as patterns of a
    footer fit them; the first one first."""
    kinds: tuple[LineKind, ...]
    """Lines between the records that can be none."""
    sums: tuple[SumRow, ...]
    """Rows that may be none, because they seem to be sums of others."""
    of_units: tuple[str, ...] = ()
    """Lines above the header that may say for how many units its amounts are."""
    unnamed: int = 0
    """Cells that records have behind those of the header; below 0: how many they have too few."""
    comments: int = 0
    """Lines that begin as comments do, and have not the cells of records."""
    may_be_comments: int = 0
    """Records that begin so."""
    quote: str = QUOTE
    """What is read as standing around cells."""
    escaped: bool = False
    """Whether its cells are read with a backslash before what means nothing."""

    @property
    def like_values(self) -> list[str]:
        """The names of its header that begin as values do."""
        return [*_like_values(self.names)] if self.headed else []

    def column(self, place: int) -> list[str]:
        """The cells of one column that hold anything."""
        return [row[place].strip() for row in self.rows if row[place].strip()]


def shape_of(
    text: str,
    end: str | None = None,
    *,
    of_workbook: bool = False,
    quote: str = QUOTE,
    escaped: bool = False,
) -> Shape:
    """The shape of a text, or of its beginning where `end` is the end of it.

    In one that was made of a workbook each line is a row. Each step needs what the steps before it
    found. The footer comes before the kinds of lines between records, or it would be one of them;
    where there is none, once more without those lines, which may have hidden the last record.
    """
    stated = _stated_delimiter(text)
    delimiter = stated or _likely_delimiter(first_lines(text), quote)
    divided = partial(records_of, delimiter=delimiter, quote=quote, escaped=escaped)
    width = usual(divided(first_lines(text))).width
    # Where a text is cut, so are the last record of its beginning and the first of its end.
    records = divided(text)
    records = records[1 if stated else 0 : None if end is None else -1]
    header = _header(records[:SAMPLE_LINES], width)
    above, below = records[: header.below], records[header.below :]
    head, tail = ([], below) if end is None else (below, divided(end)[1:])

    footer = _footer(tail, head, width)
    above_footer = _remaining(below, width, footer=footer)
    between = () if of_workbook else _between(above, above_footer, width, delimiter)
    footer = footer or _footer(tail, head, width, between)
    body = _remaining(below, width, between, footer)
    rows = rows_of(body, width)
    sums = sum_rows(rows)
    last = [] if end is None else _remaining(tail[-_FOOTER_LINES:], width, between, footer)
    unnamed = width - len(header.names)
    return Shape(
        delimiter=delimiter,
        divided=width > 1,
        stated=stated is not None,
        header_line=header.line,
        headed=header.headed,
        more_headers=header.more,
        first_line=rows[0].line if rows else header.line,
        names=header.names + ("",) * unnamed,
        rows=tuple(row.cells + ("",) * -unnamed for row in rows),
        odd=_odd([*body, *(one._replace(line=0) for one in last)], width),
        behind=tuple(record.text.strip() for record in footer),
        kinds=between + sum_kinds(sums, rows),
        sums=sums,
        of_units=tuple(one.text for one in above[:-1] if _MANY.search(one.text)),
        unnamed=unnamed * header.headed,
        comments=sum(_is_comment(one, width) for one in records if one.line != header.line),
        may_be_comments=sum(one.text.startswith(COMMENT) for one in rows),
        quote=quote,
        escaped=escaped,
    )


def numbered(width: int) -> tuple[str, ...]:
    """What columns are called that have no names."""
    return tuple(f"Column {number}" for number in range(1, width + 1))


def _stated_delimiter(text: str) -> str | None:
    """The delimiter that the first line says, as spreadsheets write it."""
    stated = SEPARATOR.fullmatch(LINE_END.split(text, maxsplit=1)[0].encode())
    return stated[1].decode() if stated and may_state(stated[1]) else None


def _likely_delimiter(sample: str, quote: str) -> str:
    best = max(DELIMITERS, key=lambda delimiter: _fit(sample, delimiter, quote))
    return (_of_several_signs(sample, quote) if best == _BAR else None) or best


def _of_several_signs(sample: str, quote: str) -> str | None:
    """The delimiter of several signs that leaves no bar on most lines, the shortest of several.

    It reads the same from both sides, and divides no fewer records alike than a bar.
    """
    lines = [line for line in LINE_END.split(sample) if _BAR in line]
    found = Counter[str](sign for line in lines for sign in {*_AROUND_BAR.findall(line)})
    for sign, count in sorted(found.items(), key=lambda one: (len(one[0]), one[0])):
        if not 1 < len(sign) <= _MOST_SIGNS or sign != sign[::-1] or count * 2 <= len(lines):
            continue
        without = sum(sign in line and _BAR not in line.replace(sign, "") for line in lines)
        if without * 2 > len(lines):
            several, bar = (records_of(sample, one, quote=quote) for one in (sign, _BAR))
            if _sound_alike(several) >= _sound_alike(bar):
                return sign
    return None


def _sound_alike(records: Sequence[TextRecord]) -> int:
    """How many records without doubt about their cells have the width that most of them have."""
    return usual([one for one in records if one.sound]).records


def _fit(sample: str, delimiter: str, quote: str) -> float:
    """How well a delimiter divides: most records alike, and into cells that need no other one."""
    records = records_of(sample, delimiter, quote=quote)
    width, count = usual(records)
    cells = [cell for one in records if len(one.cells) == width for cell in one.cells]
    plain = sum(_PLAIN.fullmatch(cell.strip()) is not None for cell in cells)
    headed = any(_may_be_header(one, width) for one in records)
    return count * (width - 1) / width * (plain + 1) / (len(cells) + 1) * (1 + headed)


class _Header(NamedTuple):
    line: int
    headed: bool
    names: tuple[str, ...]
    below: int
    """How many records stand above the first one that it is the header of."""
    more: tuple[int, ...] = ()


def _header(records: Sequence[TextRecord], width: int) -> _Header:
    """The first record as wide as the others that is a header, or another one above most of them.

    Where there is none, it is the first as wide, as far as that does not begin as a record does.
    """
    ways = (_header_of_width, _header_unlike_rows, _widest_header)
    at = next((found for way in ways if (found := way(records, width)) is not None), None)
    if at is None:
        return _first_as_header(records, width)
    end = at + 1
    while end < len(records) and _may_be_header(records[end], width):
        end += 1
    has_rows = end < len(records) and end - at <= _HEADER_ROWS
    more = tuple(one.line for one in records[at + 1 : end]) if has_rows else ()
    names = tuple(name.strip() for name in records[at].cells)
    return _Header(records[at].line, True, names, at + 1, more)


def _header_of_width(records: Sequence[TextRecord], width: int) -> int | None:
    """Where the first header is; of several one that is printed again, and so is no heading."""
    headers = [at for at, one in enumerate(records) if _is_header(one, width)]
    times = Counter(records[at].text for at in headers)
    repeated = [at for at in headers if times[records[at].text] > 1]
    few = len(headers) * 2 <= sum(len(one.cells) == width for one in records)
    return next(iter(repeated if repeated and few else headers), None)


def _header_unlike_rows(records: Sequence[TextRecord], width: int) -> int | None:
    """Where the first one is that begins with a name, and is not written as the other rows.

    Some of its names begin as values do, such as `2026` or `1st reminder`. Above it is no header
    with other cells than the rows have, which would be theirs.
    """
    rows = rows_of(records[:SAMPLE_LINES], width)
    for at, one in enumerate(records[:_HEADER_BELOW]):
        if _is_header(one) and len(one.cells) * 2 > width:
            return None
        if not _is_filled(one, width) or DATA_CELL.match(one.first_filled.strip()):
            continue
        others = [row for row in rows if row.line > one.line or _is_filled(row, width)]
        others = [row for row in others if row.text != one.text]
        is_above = any(row.line > one.line for row in others)
        if is_above and any(Alike.of(others).cells_unlike(one)):
            return at
    return None


def _widest_header(records: Sequence[TextRecord], width: int) -> int | None:
    """Where a header is that has more or fewer cells than its records: the widest of several."""
    rows, above, headers = sum(len(one.cells) == width for one in records), 0, []
    for at, one in enumerate(records):
        if above * 2 >= rows:
            break
        if len(one.cells) > 1 and _is_header(one):
            headers.append(at)
        above += len(one.cells) == width
    return max(headers, key=lambda at: len(records[at].cells), default=None)


def _first_as_header(records: Sequence[TextRecord], width: int) -> _Header:
    at = next((at for at, one in enumerate(records) if len(one.cells) == width), None)
    if at is None:
        return _Header(1, False, (), 0)
    cells = tuple(cell.strip() for cell in records[at].cells)
    if DATA_CELL.match(next(filter(None, cells), "0")):
        return _Header(records[at].line, False, numbered(width), at)
    return _Header(records[at].line, True, cells, at + 1)


def _is_header(record: TextRecord, width: int | None = None) -> bool:
    filled = [cell.strip() for cell in record.cells if cell.strip()]
    return _is_filled(record, width or len(record.cells)) and not _like_values(filled)


def _like_values(cells: Sequence[str]) -> list[str]:
    """Those that begin as values do; of several currencies their units are names: `100 JPY`."""
    found = [*filter(DATA_CELL.match, cells)]
    are_units = len(found) >= _OF_UNITS and all(map(_UNITS.fullmatch, found))
    return [] if are_units else found


def _is_filled(record: TextRecord, width: int) -> bool:
    """Whether it has so many cells, most of them with a text."""
    return (
        record.sound
        and len(record.cells) == width
        and record.filled * 2 > width
        and not is_rule(record.text)
    )


def _may_be_header(record: TextRecord, width: int) -> bool:
    return _is_header(record) and 1 < len(record.cells) <= width


def _odd(records: Sequence[TextRecord], width: int) -> tuple[TextRecord, ...]:
    """Records without the cells of a row: of equal ones the first, in the place of the last."""
    odd = {one.text: one for one in reversed(records) if len(one.cells) != width or not one.sound}
    return tuple(reversed(odd.values()))


def _is_comment(record: TextRecord, width: int) -> bool:
    """Whether it begins as comments do; what has all cells of a record may be one."""
    return record.text.startswith(COMMENT) and len(record.cells) != width


def _remaining(
    records: Sequence[TextRecord],
    width: int,
    between: Sequence[LineKind] = (),
    footer: Sequence[TextRecord] = (),
) -> list[TextRecord]:
    """The records that are no comments, of none of these kinds and none of this footer."""
    footer_texts = {one.text for one in footer}
    skipped = fitting(as_series([one.text for one in records]), [one.pattern for one in between])
    return [
        one
        for one, is_skipped in zip(records, skipped, strict=True)
        if not (is_skipped or one.text in footer_texts or _is_comment(one, width))
    ]


def _between(
    above: Sequence[TextRecord], body: Sequence[TextRecord], width: int, delimiter: str
) -> tuple[LineKind, ...]:
    """The kinds of lines below a header that are no records; it is the last of those above."""
    *over, header = above or [TextRecord(0, "", (), sound=False)]
    rows = [
        one for one in rows_of(body, width) if one.text != header.text and not is_rule(one.text)
    ]
    # Where most records begin with a number, a word is no beginning of one.
    numeric = [one for one in rows if not any(map(str.isalpha, one.first_filled))]
    alike = Alike.of(numeric) if len(numeric) * 2 > len(rows) else None
    outliers = {one.text for one in rows if alike and alike.is_outlier(one)}
    return line_kinds(
        header=header.text,
        above=[one.text for one in over],
        lines=[one.text for one in body],
        rows={one.text for one in rows} - outliers,
        names=header.cells,
        delimiter=delimiter,
    )


def _footer(
    tail: Sequence[TextRecord],
    head: Sequence[TextRecord],
    width: int,
    between: Sequence[LineKind] = (),
) -> list[TextRecord]:
    """The records at the end of `tail` that are none, compared with the rows of `head`.

    Where `head` has none, they are compared with the rows above them.
    """
    tail = [one for one in _remaining(tail, width, between) if one.filled]
    of_head = _alike(rows_of(_remaining(head, width, between), width))
    for at in range(max(0, len(tail) - _FOOTER_LINES), len(tail)):
        first, *others = tail[at:]
        alike = of_head or _alike(rows_of(tail[:at], width))
        if alike is None or len([*alike.differences(first)]) < 2:
            continue
        # Below a footer there are no records.
        if all(len(one.cells) != width or any(alike.differences(one)) for one in others):
            return [first, *others]
    return []


def _alike(rows: Sequence[TextRecord]) -> Alike | None:
    """What the first of some rows have in common; None: there is none."""
    return Alike.of(rows[:SAMPLE_LINES]) if rows else None
