"""A reader that is slow and obviously right: one character at a time, nothing clever.

It reads a whole file at once, so it also says what any cutting into blocks has to give.
"""

import re
import string
from dataclasses import dataclass, field
from typing import NamedTuple

from connectors.files.text.dialect import Dialect, RecordFault

NEVER = 1 << 62
PUNCTUATION = string.punctuation


class Record(NamedTuple):
    start: int
    end: int
    first_line: int
    last_line: int
    fault: RecordFault


class Line(NamedTuple):
    start: int
    stop: int


@dataclass
class Reading:
    """What reading a record strictly from one place came to."""

    end: int | None = None  # Where the record ended, if it ended outside quotes.
    fields: int = 1
    largest_field: int = 0
    largest_quoted: int = 0
    stray_at: int = NEVER
    texts: list[bytes] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return self.end is not None and self.stray_at == NEVER

    def measure(self, cell: bytes, dialect: Dialect) -> None:
        self.texts.append(cell)
        self.largest_field = max(self.largest_field, len(cell))
        if cell.lstrip(dialect.blanks).startswith(dialect.quote):
            self.largest_quoted = max(self.largest_quoted, len(cell))


def read(data: bytes, width: int, dialect: Dialect) -> list[Record]:
    """Read every record of a file, first line 1."""
    lines = physical_lines(data)
    records: list[Record] = []
    at = 0
    while at < len(lines):
        start, stop = lines[at]
        if start == stop or is_skipped(data, lines[at], dialect):
            at += 1
        elif stop - start > dialect.look_ahead_bytes:
            for piece in range(start, stop, dialect.max_record_bytes):
                end = min(stop, piece + dialect.max_record_bytes)
                fault = text_fault(data[piece:end], RecordFault.RECORD_TOO_LARGE, dialect)
                records.append(Record(piece, end, at + 1, at + 1, fault))
            at += 1
        else:
            last, fault = record_at(data, lines, at, width, dialect)
            end = lines[last].stop
            fault = fault or content_fault(data[start:end], width, dialect)
            fault = text_fault(data[start:end], fault, dialect)
            records.append(Record(start, end, at + 1, last + 1, fault))
            at = last + 1
    return records


def record_at(
    data: bytes, lines: list[Line], at: int, width: int, dialect: Dialect
) -> tuple[int, RecordFault]:
    """Give the last line of the record that begins on line `at`, and its structural fault."""
    start, stop = lines[at]
    reading = strict_reading(data[: start + dialect.look_ahead_bytes + 1], start, dialect)
    if reading.end is not None and reading.end - start > dialect.look_ahead_bytes:
        reading.end = None  # The data was cut there: nobody looked for the real end.
    rival = next(
        (
            later
            for later in range(at + 1, len(lines))
            if is_good(data, lines[later], width, dialect)
        ),
        len(lines),
    )
    if reading.closed:
        closes_on = next(line for line in range(at, len(lines)) if lines[line].stop == reading.end)
        if (reading.fields == width and dialect.line_breaks) or rival > closes_on:
            return closes_on, RecordFault.NONE
    elif reading.stray_at < stop:
        return at, RecordFault.STRAY_QUOTE
    last = at
    for later in range(at + 1, rival):
        within_limit = lines[later].stop - start <= dialect.max_record_bytes
        if within_limit and lines[later].stop > lines[later].start:
            last = later
    return last, structural_fault(data[start : lines[last].stop], dialect)


def is_good(data: bytes, line: Line, width: int, dialect: Dialect) -> bool:
    """Is this line none, or does a complete record of the right width begin on it?"""
    if line.start == line.stop:
        return False
    if is_skipped(data, line, dialect):
        return True
    reading = strict_reading(data, line.start, dialect)
    if not reading.closed or reading.fields != width:
        return False
    return fits(data[line.start : reading.end], dialect)


def is_skipped(data: bytes, line: Line, dialect: Dialect) -> bool:
    if line.stop - line.start > dialect.look_ahead_bytes:
        return False
    whole = data[line.start : line.stop]
    text = whole.decode(dialect.encoding, "surrogateescape")
    return whole.startswith(dialect.comment) or any(
        re.fullmatch(pattern, text) for pattern in dialect.skip_lines
    )


def fits(record: bytes, dialect: Dialect) -> bool:
    """Is the record within its limit, and every quoted field within that of a field?"""
    return (
        len(record) <= dialect.max_record_bytes
        and strict_reading(record, 0, dialect).largest_quoted <= dialect.max_field_bytes
    )


def structural_fault(record: bytes, dialect: Dialect) -> RecordFault:
    """Judge a failed record by its own bytes."""
    reading = strict_reading(record, 0, dialect)
    return RecordFault.UNTERMINATED_QUOTE if reading.stray_at == NEVER else RecordFault.STRAY_QUOTE


def content_fault(record: bytes, width: int, dialect: Dialect) -> RecordFault:
    reading = strict_reading(record, 0, dialect)
    if len(record) > dialect.max_record_bytes:
        return RecordFault.RECORD_TOO_LARGE
    if reading.largest_field > dialect.max_field_bytes:
        return RecordFault.FIELD_TOO_LARGE
    if reading.fields < width:
        return RecordFault.TOO_FEW_FIELDS
    if reading.fields > width:
        return RecordFault.TOO_MANY_FIELDS
    if dialect.escape and any(has_stray_escape(cell, dialect) for cell in reading.texts):
        return RecordFault.STRAY_ESCAPE
    return RecordFault.NONE


def has_stray_escape(cell: bytes, dialect: Dialect) -> bool:
    """Does a backslash of a field stand before nothing, or what it says nothing of?"""
    if cell == b"\\N":
        return False
    at = 0
    while at < len(cell):
        if cell[at : at + 1] != b"\\":
            at += 1
            continue
        sign = cell[at + 1 : at + 2]
        if not sign or not (
            sign in b"nrtbfv \t\r\n" or (sign.isascii() and sign.decode() in PUNCTUATION)
        ):
            return True
        at += 2
    return False


def text_fault(record: bytes, fault: RecordFault, dialect: Dialect) -> RecordFault:
    """Put bytes that are no text before any other fault; a piece may cut a character in two."""
    if b"\0" in record:
        return RecordFault.NUL_CHARACTER
    try:
        record.decode(dialect.encoding)
    except UnicodeDecodeError:
        if fault != RecordFault.RECORD_TOO_LARGE:
            return RecordFault.ENCODING
    return RecordFault.STRAY_QUOTE if not dialect.has_quote and dialect.quote in record else fault


def physical_lines(data: bytes) -> list[Line]:
    lines = []
    start = at = 0
    while at < len(data):
        if data[at : at + 1] not in (b"\r", b"\n"):
            at += 1
            continue
        lines.append(Line(start, at))
        at += 2 if data[at : at + 2] == b"\r\n" else 1
        start = at
    if start < len(data):
        lines.append(Line(start, len(data)))
    return lines


def strict_reading(data: bytes, start: int, dialect: Dialect) -> Reading:
    """Read one record from `start` until it ends or fails, keeping to RFC 4180 letter by letter.

    Beside it, what a dialect states: an escape, a delimiter of several signs, blanks beside quotes.
    """
    reading = Reading()
    quote = dialect.quote if dialect.has_quote else None
    state = "field start"
    field_start = at = start
    while at < len(data):
        sign = data[at : at + 1]
        behind = data[at + 1 : at + 2]
        if dialect.escape and sign == dialect.escape and behind and behind not in (b"\r", b"\n"):
            at, sign = at + 1, b"x"  # Whatever it is, it is no sign.
        if state == "quoted":
            if sign == quote:
                state = "after quote"
        elif sign in (b"\r", b"\n"):
            break
        elif sign == dialect.delimiter[:1] and data.startswith(dialect.delimiter, at):
            reading.fields += 1
            reading.measure(data[field_start:at], dialect)
            field_start = at + len(dialect.delimiter)
            at = field_start - 1
            state = "field start"
        elif sign == quote:
            if state in ("unquoted", "behind quote"):
                reading.stray_at = at
                return reading
            state = "quoted"  # It opens the field, or it is the second of a doubled quote.
        elif sign in dialect.blanks and state in ("field start", "after quote", "behind quote"):
            state = "field start" if state == "field start" else "behind quote"
        elif state in ("after quote", "behind quote"):
            reading.stray_at = at
            return reading
        else:
            state = "unquoted"
        at += 1
    reading.measure(data[field_start:at], dialect)
    if state != "quoted":
        reading.end = at
    return reading


def cells(record: bytes, dialect: Dialect) -> list[bytes | None]:
    """What a sound record says; None: nothing."""
    return [value(cell, dialect) for cell in strict_reading(record, 0, dialect).texts]


def value(cell: bytes, dialect: Dialect) -> bytes | None:
    around = cell.strip(dialect.blanks)
    quoted = around.startswith(dialect.quote)
    text = around[1:-1] if quoted else cell
    if not quoted and (not text or (dialect.escape and text == b"\\N")):
        return None
    said, at = b"", 0
    while at < len(text):
        sign, behind = text[at : at + 1], text[at + 1 : at + 2]
        if dialect.escape and sign == dialect.escape:
            said += (
                dict(zip(b"nrtbfv", b"\n\r\t\b\f\v", strict=True))
                .get(behind[0], behind[0])
                .to_bytes()
            )
            at += 2
        else:
            said += sign
            at += 1 + (quoted and sign == behind == dialect.quote)
    return said
