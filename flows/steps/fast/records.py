"""Type the records of a chunk that take the fast path, in one loop over their bytes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flows.steps.fast.cells import Bytes, byte_at, read_decimal, read_integer, read_moment
from flows.steps.fast.forms import Book, Form, HowRead, TimePart
from flows.steps.fast.written import (
    all_is_seen,
    find_behind,
    has_digit,
    one_of,
    read_amount,
    read_count,
    read_laid_out,
    read_word,
    without_blanks,
)
from schemas.cells.reading import MINUTE
from schemas.compiled import compiled, loop_part

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
_INTEGER, _DECIMAL, _AMOUNT, _MOMENT, _LAID_OUT, _COUNT, _WORD, _BEHIND, _KEPT = map(int, Form)
_LINE_FEED = ord("\n")
_ROOM = 256
"""Most bytes of several cells that are joined and read as one."""
_UNKNOWN = -1
"""The end of a cell that contains a quote, so that its bytes are not its text."""
_BEGIN, _END, _VALUE, _COMPANION, _GIVEN = range(5)
"""Columns of `Room.last`: the place of a cell that was read, and its result."""


class Read(NamedTuple):
    """The results of the loop: a line for each field or column, with a place for each record.

    The records that are read come one after the other, without gaps.
    """

    values: Places
    companions: NDArray[np.int16]
    """The offset of a time in minutes, or the number of decimals of an amount."""
    given: Flags
    begins: Places
    """Begin and end of the cells in columns that are left to others."""
    ends: Places


class Room(NamedTuple):
    """Memory that the loop writes to while it reads a record."""

    begins: Places
    """Begin and end of the cells of all columns."""
    ends: Places
    text: Bytes
    joined: Bytes
    """A read-only view of `text`, so that all text that is read has the same type."""
    parts: Places
    last: Places
    """A line for each field of one column: the last cell read in detail, and its result."""


def room_for(width: int, fields: int) -> Room:
    """Memory for records of `width` columns with `fields` lines that are read."""
    cells = np.empty(width, np.int64), np.empty(width, np.int64)
    text = np.empty(_ROOM, np.uint8)
    joined = text.view()
    joined.flags.writeable = False
    last = np.full((fields, _GIVEN + 1), _UNKNOWN, np.int64)
    return Room(*cells, text, joined, np.empty(len(TimePart) + 1, np.int64), last)


@compiled
def read_records(
    text: Bytes,
    start: Places,
    stop: Places,
    fast: Flags,
    signs: tuple[int, int],
    ranges: Places,
    how: Sequence[HowRead],
    book: Book,
    left: Places,
    room: Room,
    read: Read,
) -> int:
    """Type the records that are `fast`, and clear the flag of those that cannot be.

    `signs` are delimiter and quote. `ranges`, for cells of fixed width, has for each column its
    first character and the one behind its last. `how` has a line for each field; of the columns
    `left` only the places of cells are returned. Returns the number of records typed.
    """
    begins, ends, _, _, parts, last = room
    values, companions, given, left_begins, left_ends = read
    plain = len(ranges) == 0 and _is_plain(how, len(begins))
    count = 0
    for record in range(len(start)):
        if not fast[record]:
            continue
        if plain and _read_plain(text, start[record], stop[record], signs[0], how, read, count):
            count += 1
            continue
        known = (
            _cut_cells(text, start[record], stop[record], ranges, begins, ends)
            if len(ranges) > 0
            else _find_cells(text, start[record], stop[record], signs, begins, ends)
        )
        field = 0
        while known and field < len(how):
            of = how[field]
            value, more, there, known = 0, 0, True, False
            if of.bare:
                begin, end = begins[of.column], ends[of.column]
                at, value, more, known = _read_bare(text, begin, end, of)
                known = known and at == end
            of_one = of.beyond_column - of.first_column == 1
            column = book.columns[of.first_column] if of_one else 0
            if not known and of_one and _is_again(text, begins[column], ends[column], last, field):
                value, more, known = last[field, _VALUE], last[field, _COMPANION], True
                there = last[field, _GIVEN] != 0
            elif not known:
                if of_one:
                    begin, end = _cell(text, begins, ends, book, of)
                    cell = text
                else:
                    begin, end = 0, _join(text, begins, ends, book, of, room.text)
                    cell = room.joined
                if end != _UNKNOWN:
                    value, more, there, known = _read_text(cell, begin, end, book, of, parts)
                if known and of_one:
                    last[field, _BEGIN], last[field, _END] = begins[column], ends[column]
                    last[field, _VALUE], last[field, _COMPANION] = value, more
                    last[field, _GIVEN] = there
            values[field, count] = value
            companions[field, count] = more
            given[field, count] = there
            field += 1
        for place in range(len(left)):
            left_begins[place, count] = begins[left[place]]
            left_ends[place, count] = ends[left[place]]
            known = known and ends[left[place]] != _UNKNOWN
        fast[record] = known
        count += known
    return count


@loop_part
def _is_again(text: Bytes, begin: int, end: int, last: Places, field: int) -> bool:
    """Whether a cell equals the last one read, as the day of a line of a table often does."""
    before = last[field, _BEGIN]
    if (
        end == _UNKNOWN
        or last[field, _END] == _UNKNOWN
        or last[field, _END] - before != end - begin
    ):
        return False
    for place in range(end - begin):
        if byte_at(text, begin + place) != byte_at(text, before + place):
            return False
    return True


@loop_part
def _is_plain(how: Sequence[HowRead], width: int) -> bool:
    """Whether each column is a field in the service document's own form, as in most files."""
    for field in range(len(how)):
        if not how[field].bare or how[field].column != field:
            return False
    return len(how) == width


@loop_part
def _read_plain(
    text: Bytes, at: int, stop: int, delimiter: int, how: Sequence[HowRead], read: Read, count: int
) -> bool:
    """Read a record cell by cell; return whether all are empty or in that form, without quotes."""
    for field in range(len(how)):
        of = how[field]
        if field > 0:
            if at == stop or byte_at(text, at) != delimiter:
                return False
            at += 1
        there = at < stop and byte_at(text, at) != delimiter
        value, more, known = of.default, of.default_companion, True
        if there:
            at, value, more, known = _read_bare(text, at, stop, of)
        if not known:
            return False
        read.values[field, count] = value
        read.companions[field, count] = more
        read.given[field, count] = there or of.default_given
    return at == stop


@loop_part
def _read_bare(text: Bytes, begin: int, stop: int, how: HowRead) -> tuple[int, int, int, bool]:
    """Read a field in the service document's own form: end, value, companion, whether known."""
    if how.form == _INTEGER:
        at, value, known = read_integer(text, begin, stop)
        return at, value, 0, known and value <= how.largest
    if how.form == _DECIMAL:
        at, value, scale, known = read_decimal(text, begin, stop)
        return at, value, scale, known and scale <= how.most_decimals
    at, value, offset, known = read_moment(text, begin, stop)
    return at, value - offset * MINUTE if how.instant else value, offset, known


@loop_part
def _find_cells(
    text: Bytes, at: int, stop: int, signs: tuple[int, int], begins: Places, ends: Places
) -> bool:
    """Find the cells of a record without quotes around them; return if their number is right."""
    delimiter, quote = signs
    for column in range(len(begins)):
        if column > 0:
            if at == stop or byte_at(text, at) != delimiter:
                return False
            at += 1
        if at < stop and byte_at(text, at) == quote:
            at += 1
            begins[column] = at
            unescaped = True
            while at < stop:
                if byte_at(text, at) == quote:
                    if at + 1 == stop or byte_at(text, at + 1) != quote:
                        break
                    unescaped = False
                    at += 1
                at += 1
            ends[column] = at if unescaped else _UNKNOWN
            at += 1
        else:
            begins[column] = at
            while at < stop and byte_at(text, at) != delimiter:
                at += 1
            ends[column] = at
    return at == stop


@loop_part
def _cut_cells(
    text: Bytes, at: int, stop: int, ranges: Places, begins: Places, ends: Places
) -> bool:
    """Find the cells of a record of fixed widths, without blanks around them."""
    sign = 0
    for column in range(len(begins)):
        for edge in range(2):
            while sign < ranges[2 * column + edge] and at < stop:
                at += 1
                while at < stop and byte_at(text, at) & 0xC0 == 0x80:
                    at += 1
                sign += 1
            if edge == 0:
                begins[column] = at
        begins[column], ends[column] = without_blanks(text, begins[column], at)
    return True


@loop_part
def _cell(text: Bytes, begins: Places, ends: Places, book: Book, how: HowRead) -> tuple[int, int]:
    """The place of the cell of a field with one column; empty if the cell means null."""
    column = book.columns[how.first_column]
    begin, end = begins[column], ends[column]
    if end != _UNKNOWN and how.trimmed:
        begin, end = without_blanks(text, begin, end)
    if end != _UNKNOWN and one_of(text, begin, end, book, how.first_null, how.beyond_null):
        end = begin
    return begin, end


@loop_part
def _join(text: Bytes, begins: Places, ends: Places, book: Book, how: HowRead, room: Bytes) -> int:
    """Write the cells of several columns into `room` as one; return its size, or `_UNKNOWN`."""
    size, numbers = 0, 0
    several = False
    for place in range(how.first_column, how.beyond_column):
        column = book.columns[place]
        begin, end = begins[column], ends[column]
        if end == _UNKNOWN:
            return _UNKNOWN
        if how.trimmed:
            begin, end = without_blanks(text, begin, end)
        if begin == end or one_of(text, begin, end, book, how.first_null, how.beyond_null):
            continue
        numbers += how.one_number and has_digit(text, begin, end)
        if numbers > 1:
            return _UNKNOWN
        between = book.words[how.join]
        needed = end - begin + between.stop - between.start
        if size + needed > _ROOM:
            return _UNKNOWN
        if several:
            for at in range(between.start, between.stop):
                room[size] = byte_at(book.text, at)
                size += 1
        for at in range(begin, end):
            room[size] = byte_at(text, at)
            size += 1
        several = True
    return size


@loop_part
def _is_kept(text: Bytes, begin: int, end: int, book: Book, how: HowRead) -> bool:
    """Whether a cell keeps its row beyond doubt."""
    _, known = read_word(text, begin, end, book, how)
    if how.left_out:  # Without invisible characters it could be one of the words.
        return not known and all_is_seen(text, begin, end)
    return known


@loop_part
def _read_text(
    text: Bytes, begin: int, end: int, book: Book, how: HowRead, parts: Places
) -> tuple[int, int, bool, bool]:
    """Read a field from its text: value, companion, whether given, whether known."""
    form = how.form
    if form == _KEPT:
        return 0, 0, True, _is_kept(text, begin, end, book, how)
    if begin == end:
        return how.default, how.default_companion, how.default_given, True
    if form == _WORD:
        value, known = read_word(text, begin, end, book, how)
        return value, 0, True, known
    if form == _DECIMAL:
        # Blanks are not dropped: the strict path does not keep the number of decimals then.
        at, value, scale, known = read_decimal(text, begin, end)
        return value, scale, True, known and at == end and scale <= how.most_decimals
    if form == _BEHIND:
        begin, end = find_behind(text, begin, end, book, how)
    else:
        begin, end = without_blanks(text, begin, end)
    if form in (_INTEGER, _BEHIND):
        at, value, known = read_integer(text, begin, end)
        return value, 0, True, known and at == end and value <= how.largest
    if form == _AMOUNT:
        value, scale, known = read_amount(text, begin, end, book, how)
        return value, scale, True, known
    offset = how.offset
    if form == _MOMENT:
        at, value, offset, known = read_moment(text, begin, end)
        known = known and at == end
    elif form == _LAID_OUT:
        value, known = read_laid_out(text, begin, end, book, how, parts)
    else:
        value, known = read_count(text, begin, end, how)
    if how.instant:
        value -= offset * MINUTE
    return value, offset, True, known


@compiled
def copy_cells(text: Bytes, begins: Places, ends: Places, out: Bytes) -> None:
    """Write cells one after the other, each on a line of its own; together they fill `out`."""
    size = 0
    for cell in range(len(begins)):
        for at in range(begins[cell], ends[cell]):
            out[size] = byte_at(text, at)
            size += 1
        out[size] = _LINE_FEED
        size += 1
