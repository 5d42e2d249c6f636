"""The shape of a delimited text: delimiter, header, records, and what follows them."""

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
"""The beginning of lines that may be comments."""
_BAR = "|"
"""A delimiter that is sometimes doubled between cells, or put between other signs: `~|~`."""
_FOOTER_LINES = 10
"""How many records at the end may be a footer."""
_HEADER_ROWS = 5
"""How many rows of names a header may have."""
_HEADER_BELOW = 10
"""How many of the first records may be a header with digits in its names."""
_AROUND_BAR = re.compile(r"[^\w\s.+\"'-]*\|[^\w\s.+\"'-]*")
"""A bar with the signs beside it that may belong to the delimiter."""
_MOST_SIGNS = 10
"""Most characters of a delimiter."""
_OF_UNITS = 3
"""From this many cells of currencies with units on, the cells are names and not amounts."""
_UNITS = re.compile(r"10*\s?[A-Z]{3}")
_MANY = re.compile(r"(?<![\d.,/:-])10{2,6}(?![\d.,/:-]*\d)")
_SIGNS = re.escape("".join(DELIMITERS))
_PLAIN = re.compile(rf"[^{_SIGNS}]*|[^\d{_SIGNS}]{{0,5}}\d[\d.,'\s]*[^\d{_SIGNS}]{{0,5}}")
"""A cell that is probably a single one: a number, or a text without other delimiters."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a text is divided."""

    delimiter: str
    divided: bool
    """Whether the delimiter separates any cells."""
    stated: bool
    """Whether its first line states the delimiter."""
    header_line: int
    headed: bool
    """Whether one of its first records looks like a header rather than a record."""
    more_headers: tuple[int, ...]
    """Lines below the header that look like headers too, above the first that does not."""
    first_line: int
    """Where its records begin if it has no header."""
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    odd: tuple[TextRecord, ...]
    """Records with more or fewer cells than the others, or with misplaced quotes."""
    behind: tuple[str, ...]
    """Lines at the end that cannot be records, in order, without the blanks around them, as the
    patterns of a footer match them."""
    kinds: tuple[LineKind, ...]
    """Lines between the records that cannot be records."""
    sums: tuple[SumRow, ...]
    """Rows that may be no records because they seem to be sums of others."""
    of_units: tuple[str, ...] = ()
    """Lines above the header that may say for how many units its amounts are."""
    unnamed: int = 0
    """Number of cells in records after those of the header; negative if they have fewer."""
    comments: int = 0
    """Number of lines that begin like comments and do not have the cells of records."""
    may_be_comments: int = 0
    """Number of records that begin like comments."""
    quote: str = QUOTE
    """The sign read as the quote of cells."""
    escaped: bool = False
    """Whether cells are read with a backslash as escape."""

    @property
    def like_values(self) -> list[str]:
        """The names in its header that begin like values."""
        return [*_like_values(self.names)] if self.headed else []

    def column(self, place: int) -> list[str]:
        """The non-empty cells of one column."""
        return [row[place].strip() for row in self.rows if row[place].strip()]


def shape_of(
    text: str,
    end: str | None = None,
    *,
    of_workbook: bool = False,
    quote: str = QUOTE,
    escaped: bool = False,
) -> Shape:
    """The shape of a text, or of its beginning if `end` is the end of it.

    In the text of a workbook every line is a row. Each step needs the results of the steps before
    it. The footer is sought before the kinds of lines between records, or it would become one of
    them; if none is found, again without those lines, which may have hidden the last record.
    """
    stated = _stated_delimiter(text)
    delimiter = stated or _likely_delimiter(first_lines(text), quote)
    divided = partial(records_of, delimiter=delimiter, quote=quote, escaped=escaped)
    width = usual(divided(first_lines(text))).width
    # A cut text has a cut last record in its beginning and a cut first record in its end.
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
    """Names for columns that have none."""
    return tuple(f"Column {number}" for number in range(1, width + 1))


def _stated_delimiter(text: str) -> str | None:
    """The delimiter stated on the first line, in the way of spreadsheets."""
    stated = SEPARATOR.fullmatch(LINE_END.split(text, maxsplit=1)[0].encode())
    return stated[1].decode() if stated and may_state(stated[1]) else None


def _likely_delimiter(sample: str, quote: str) -> str:
    best = max(DELIMITERS, key=lambda delimiter: _fit(sample, delimiter, quote))
    return (_of_several_signs(sample, quote) if best == _BAR else None) or best


def _of_several_signs(sample: str, quote: str) -> str | None:
    """The shortest delimiter of several signs that leaves no bar on most lines, or None.

    It reads the same from both sides, and gives no fewer records of equal width than a bar.
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
    """How many records with clear cells have the usual width."""
    return usual([one for one in records if one.sound]).records


def _fit(sample: str, delimiter: str, quote: str) -> float:
    """How well a delimiter divides: most records have equal width, and cells need no other one."""
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
    """Number of records above the first one below the header."""
    more: tuple[int, ...] = ()


def _header(records: Sequence[TextRecord], width: int) -> _Header:
    """The first record of the usual width that is a header, or another one above most of them.

    If there is none, the first record of the usual width, unless it begins like a record.
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
    """Index of the first header; if some are repeated, the first of those: it is no heading."""
    headers = [at for at, one in enumerate(records) if _is_header(one, width)]
    times = Counter(records[at].text for at in headers)
    repeated = [at for at in headers if times[records[at].text] > 1]
    few = len(headers) * 2 <= sum(len(one.cells) == width for one in records)
    return next(iter(repeated if repeated and few else headers), None)


def _header_unlike_rows(records: Sequence[TextRecord], width: int) -> int | None:
    """Index of the first record that begins with a name and differs from the other rows.

    Some of its names begin like values, such as `2026` or `1st reminder`. A header above it with
    other cells than the rows would be theirs instead.
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
    """Index of a header with more or fewer cells than its records; of several the widest."""
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
    """Cells that begin like values; units of several currencies count as names: `100 JPY`."""
    found = [*filter(DATA_CELL.match, cells)]
    are_units = len(found) >= _OF_UNITS and all(map(_UNITS.fullmatch, found))
    return [] if are_units else found


def _is_filled(record: TextRecord, width: int) -> bool:
    """Whether a record has this many cells, most of them with a text."""
    return (
        record.sound
        and len(record.cells) == width
        and record.filled * 2 > width
        and not is_rule(record.text)
    )


def _may_be_header(record: TextRecord, width: int) -> bool:
    return _is_header(record) and 1 < len(record.cells) <= width


def _odd(records: Sequence[TextRecord], width: int) -> tuple[TextRecord, ...]:
    """Records without the cells of a row; of equal ones only one, in the last one's place."""
    odd = {one.text: one for one in reversed(records) if len(one.cells) != width or not one.sound}
    return tuple(reversed(odd.values()))


def _is_comment(record: TextRecord, width: int) -> bool:
    """Whether a line begins like a comment; with all cells of a record it may be a record."""
    return record.text.startswith(COMMENT) and len(record.cells) != width


def _remaining(
    records: Sequence[TextRecord],
    width: int,
    between: Sequence[LineKind] = (),
    footer: Sequence[TextRecord] = (),
) -> list[TextRecord]:
    """The records without comments, these kinds of lines and this footer."""
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
    """The kinds of lines below a header that are no records; the header is the last of `above`."""
    *over, header = above or [TextRecord(0, "", (), sound=False)]
    rows = [
        one for one in rows_of(body, width) if one.text != header.text and not is_rule(one.text)
    ]
    # If most records begin with a number, no record begins with a word.
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
    """The records at the end of `tail` that are no records, compared with the rows of `head`.

    If `head` has no rows, they are compared with the rows above them.
    """
    tail = [one for one in _remaining(tail, width, between) if one.filled]
    of_head = _alike(rows_of(_remaining(head, width, between), width))
    for at in range(max(0, len(tail) - _FOOTER_LINES), len(tail)):
        first, *others = tail[at:]
        alike = of_head or _alike(rows_of(tail[:at], width))
        if alike is None or len([*alike.differences(first)]) < 2:
            continue
        # No records come after a footer.
        if all(len(one.cells) != width or any(alike.differences(one)) for one in others):
            return [first, *others]
    return []


def _alike(rows: Sequence[TextRecord]) -> Alike | None:
    """What the first rows have in common; None if there are no rows."""
    return Alike.of(rows[:SAMPLE_LINES]) if rows else None
