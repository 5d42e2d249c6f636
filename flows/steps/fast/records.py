"""The records of a chunk that take the fast path, typed in one loop over their bytes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flows.steps.fast.cells import (
    Bytes,
    byte_at,
    read_decimal,
    read_integer,
    read_moment,
)
from flows.steps.fast.forms import Book, Form, HowRead, TimePart, lines_of
from flows.steps.fast.written import (
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
"""Bytes of several cells that are read as one."""
_QUOTED = -1
"""Where a cell ends that has quotes in it: its bytes are not its text."""


class RecordBytes(NamedTuple):
    """The records of a chunk as bytes, and how they are divided into cells."""

    text: Bytes
    start: Places
    stop: Places
    signs: tuple[int, int]
    """Delimiter and quote."""
    ranges: Places
    """Of cells that nothing divides, by column: the first sign, and the one behind the last."""


class Fields(NamedTuple):
    """What is read of a record."""

    how: Sequence[HowRead]
    """A line for each field."""
    book: Book
    left: Places
    """Columns of which only the places are found."""


class Read(NamedTuple):
    """What the loop finds: a line for each field, or column, as long as there are records.

    The records it reads stand one after the other, without gaps.
    """

    values: Places
    beside: NDArray[np.int16]
    """The offset of a time in minutes, or the digits an amount was written with."""
    given: Flags
    begins: Places
    """Of the columns that are left to others: where their cells are."""
    ends: Places


class ReadCell:
    """The last cell that a field of one column was read from, as a line of an array."""

    begin: int
    end: int
    value: int
    beside: int
    given: bool


class Room(NamedTuple):
    """What the loop writes to while it reads a record."""

    begins: Places
    """Of all columns: where their cells are."""
    ends: Places
    text: Bytes
    joined: Bytes
    """The same as `text`, to be read: so that all that is read is of one kind."""
    parts: Places
    """Of a time that is read by its layout."""
    last: Sequence[ReadCell]
    """A line for each field."""


def room_for(width: int, fields: int) -> Room:
    """Room for records of so many columns, of which so many fields are read."""
    cells = np.empty(width, np.int64), np.empty(width, np.int64)
    text = np.empty(_ROOM, np.uint8)
    joined = text.view()
    joined.flags.writeable = False
    last: Any = np.zeros(fields, lines_of(ReadCell)).view(np.recarray)
    last.end = _QUOTED
    return Room(*cells, text, joined, np.empty(len(TimePart) + 1, np.int64), last)


@compiled
def read_records(records: RecordBytes, fields: Fields, fast: Flags, room: Room, read: Read) -> int:
    """Type the records that are `fast` so far; those that cannot be are taken out of it.

    Returns how many records are left.
    """
    text, begins, ends = records.text, room.begins, room.ends
    how, book = fields.how, fields.book
    all_bare = len(records.ranges) == 0 and _all_bare(how, len(begins))
    count = 0
    for record in range(len(records.start)):
        if not fast[record]:
            continue
        at, stop = records.start[record], records.stop[record]
        # Most records of most files end here.
        if all_bare and _read_bare(text, at, stop, records.signs[0], how, read, count):
            count += 1
            continue
        known = (
            _cut_cells(text, at, stop, records.ranges, begins, ends)
            if len(records.ranges) > 0
            else _divide_cells(text, at, stop, records.signs, begins, ends)
        )
        field = 0
        while known and field < len(how):
            of = how[field]
            value, beside, given, known = 0, 0, True, False
            if of.bare:
                begin, end = begins[of.column], ends[of.column]
                at, value, beside, known = _read_bare_cell(text, begin, end, of)
                known = known and at == end
            if not known and of.beyond_column - of.first_column != 1:
                value, beside, given, known = _read_joined(text, book, of, room)
            elif not known:
                column, last = book.columns[of.first_column], room.last[field]
                begin, end = begins[column], ends[column]
                value, beside, given, known = _read_cell(
                    text, begin, end, book, of, room.parts, last
                )
            read.values[field, count] = value
            read.beside[field, count] = beside
            read.given[field, count] = given
            field += 1
        fast[record] = known and _leave_cells(fields.left, begins, ends, read, count)
        count += fast[record]
    return count


@loop_part
def _all_bare(how: Sequence[HowRead], width: int) -> bool:
    """Whether each column is a field in the service document's own form, as most files have it."""
    for field in range(len(how)):
        if not how[field].bare or how[field].column != field:
            return False
    return len(how) == width


@loop_part
def _read_bare(
    text: Bytes, at: int, stop: int, delimiter: int, how: Sequence[HowRead], read: Read, count: int
) -> bool:
    """Read a record cell by cell; whether each of them is empty or in that form, without quotes."""
    for field in range(len(how)):
        of = how[field]
        if field > 0:
            if at == stop or byte_at(text, at) != delimiter:
                return False
            at += 1
        given = at < stop and byte_at(text, at) != delimiter
        value, beside, known = of.default, of.default_beside, True
        if given:
            at, value, beside, known = _read_bare_cell(text, at, stop, of)
        if not known:
            return False
        read.values[field, count] = value
        read.beside[field, count] = beside
        read.given[field, count] = given or of.default_given
    return at == stop


@loop_part
def _read_bare_cell(text: Bytes, begin: int, stop: int, how: HowRead) -> tuple[int, int, int, bool]:
    """A field in the service document's own form: where it ends, and what `_read_text` says."""
    if how.form == _INTEGER:
        at, value, known = read_integer(text, begin, stop)
        return at, value, 0, known and value <= how.largest
    if how.form == _DECIMAL:
        return read_decimal(text, begin, stop)
    at, value, offset, known = read_moment(text, begin, stop)
    return at, value - offset * MINUTE if how.instant else value, offset, known


@loop_part
def _read_joined(text: Bytes, book: Book, how: HowRead, room: Room) -> tuple[int, int, bool, bool]:
    """A field from the cells of several columns; see `_read_text`."""
    end = _join(text, room.begins, room.ends, book, how, room.text)
    if end == _QUOTED:
        return 0, 0, True, False
    return _read_text(room.joined, 0, end, book, how, room.parts)


@loop_part
def _read_cell(
    text: Bytes, begin: int, end: int, book: Book, how: HowRead, parts: Places, last: ReadCell
) -> tuple[int, int, bool, bool]:
    """A field from the cell of one column, as it was read the last time or by its text."""
    if end == _QUOTED:
        return 0, 0, True, False
    if _is_same(text, begin, end, last):
        return last.value, last.beside, last.given, True
    first, beyond = _trimmed(text, begin, end, book, how)
    value, beside, given, known = _read_text(text, first, beyond, book, how, parts)
    if known:
        last.begin, last.end, last.given = begin, end, given
        last.value, last.beside = value, beside
    return value, beside, given, known


@loop_part
def _is_same(text: Bytes, begin: int, end: int, last: ReadCell) -> bool:
    """Whether a cell is the last one again, as the day of a line of a table: it is read once."""
    if last.end == _QUOTED or last.end - last.begin != end - begin:
        return False
    for place in range(end - begin):
        if byte_at(text, begin + place) != byte_at(text, last.begin + place):
            return False
    return True


@loop_part
def _leave_cells(left: Places, begins: Places, ends: Places, read: Read, count: int) -> bool:
    """Say where the cells are that others read; whether the bytes of each are its text."""
    for place in range(len(left)):
        begin, end = begins[left[place]], ends[left[place]]
        if end == _QUOTED:
            return False
        read.begins[place, count] = begin
        read.ends[place, count] = end
    return True


@loop_part
def _divide_cells(
    text: Bytes, at: int, stop: int, signs: tuple[int, int], begins: Places, ends: Places
) -> bool:
    """Where cells are between delimiters, quotes left out; whether as many as there are columns."""
    delimiter, quote = signs
    for column in range(len(begins)):
        if column > 0:
            if at == stop or byte_at(text, at) != delimiter:
                return False
            at += 1
        if at < stop and byte_at(text, at) == quote:
            at += 1
            begins[column] = at
            quoted = False
            while at < stop:
                if byte_at(text, at) == quote:
                    if at + 1 == stop or byte_at(text, at + 1) != quote:
                        break
                    quoted = True
                    at += 1
                at += 1
            ends[column] = _QUOTED if quoted else at
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
    """Where cells are that nothing divides, blanks around them left out."""
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
def _trimmed(text: Bytes, begin: int, end: int, book: Book, how: HowRead) -> tuple[int, int]:
    """Where the text of a cell is; it is empty if it is a word for nothing."""
    if how.trimmed:
        begin, end = without_blanks(text, begin, end)
    if one_of(text, begin, end, book, how.first_null, how.beyond_null):
        end = begin
    return begin, end


@loop_part
def _join(text: Bytes, begins: Places, ends: Places, book: Book, how: HowRead, room: Bytes) -> int:
    """Write the cells of several columns into `room` as one; returns its size, or `_QUOTED`.

    Those that cannot be read as one are left to others, as cells with quotes are.
    """
    size, numbers = 0, 0
    several = False
    for place in range(how.first_column, how.beyond_column):
        column = book.columns[place]
        end = ends[column]
        if end == _QUOTED:
            return _QUOTED
        begin, end = _trimmed(text, begins[column], end, book, how)
        if begin == end:
            continue
        numbers += how.one_number and has_digit(text, begin, end)
        if numbers > 1:
            return _QUOTED
        between = book.words[how.join]
        needed = end - begin + between.stop - between.start
        if size + needed > _ROOM:
            return _QUOTED
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
def _read_text(
    text: Bytes, begin: int, end: int, book: Book, how: HowRead, parts: Places
) -> tuple[int, int, bool, bool]:
    """A field from its text: its value and what goes with it, whether given, whether known."""
    form = how.form
    if form == _KEPT:
        value, known = read_word(text, begin, end, book, how)
        return 0, 0, True, known != how.left_out
    if begin == end:
        return how.default, how.default_beside, how.default_given, True
    if form == _WORD:
        value, known = read_word(text, begin, end, book, how)
        return value, 0, True, known
    if form == _DECIMAL:
        # With blanks around it the strict path does not keep how many digits it was written with.
        at, value, scale, known = read_decimal(text, begin, end)
        return value, scale, True, known and at == end
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
    """Write cells one after the other, each on its line; their bytes fill `out`."""
    size = 0
    for cell in range(len(begins)):
        for at in range(begins[cell], ends[cell]):
            out[size] = byte_at(text, at)
            size += 1
        out[size] = _LINE_FEED
        size += 1
