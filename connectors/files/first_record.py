"""The first record of an extract, read with the dialect in which most of its names are known."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from connectors.files.blocks import blocks
from connectors.files.content import Content, refused
from connectors.files.dialect import Dialect, dialect_within
from connectors.files.profile import Profile
from connectors.settings import Limits
from schemas.counting import quantity

DELIMITERS = (",", ";", "\t", "|")
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """The first record of a file, read with one dialect."""

    names: tuple[str, ...]
    dialect: Dialect
    number: int
    end: int
    end_line: int

    @property
    def folded_names(self) -> set[str]:
        return {folded(name) for name in self.names}


def candidates(
    content: Content, dialect: Dialect | None, profile: Profile, limits: Limits
) -> list[Dialect]:
    """The dialects a file may be written in, as far as they are not stated."""
    if dialect is not None:
        return [dialect]
    delimiters = (profile.delimiter,) if profile.delimiter else DELIMITERS
    return [
        dialect_within(limits, delimiter=delimiter, quote=profile.quote, encoding=content.encoding)
        for delimiter in delimiters
        if delimiter != profile.quote
    ]


def first_record(
    content: Content, dialects: list[Dialect], limits: Limits, known: set[str]
) -> FirstRecord:
    """The first record that is not blank, in the dialect in which most names are known."""
    for head, final in heads(content, limits):
        lines = head.splitlines(keepends=True)
        if not final:
            # The last line may go on, and its CR may be half of CRLF.
            lines = lines[:-1]
        blank = next((n for n, line in enumerate(lines) if line.strip(b" \t\r\n")), len(lines))
        if blank == len(lines):
            if final:
                raise refused("empty_file", content.name)
            continue
        readings, fault = _read_with_each(content, lines, blank, dialects)
        best = max(readings, key=lambda line: len(known & line.folded_names), default=None)
        # Read with a sign it was not written with, a broken header is one long unknown name.
        if best and (known & best.folded_names or not fault):
            return best
        if fault != UNFINISHED or final:
            detail = "a quote is never closed" if fault == UNFINISHED else fault
            raise refused("malformed_csv", content.name, line=blank + 1, detail=detail)
    detail = f"no header ends within {quantity(limits.record_bytes, 'byte')}"
    raise refused("too_large", content.name, line=1, detail=detail)


UNFINISHED = "unexpected end of data"
"""The csv module's words for a quote that is not closed in the lines it was given."""


def _read_with_each(
    content: Content, lines: list[bytes], blank: int, dialects: list[Dialect]
) -> tuple[list[FirstRecord], str]:
    readings, fault = [], ""
    before = content.text_start + sum(map(len, lines[:blank]))
    for dialect in dialects:
        reader = csv.reader(_decoded(content, lines, blank), **dialect.signs, strict=True)
        try:
            cells = next(reader)
        except csv.Error as error:
            fault = fault or str(error)
            continue
        taken = blank + reader.line_num
        end = before + sum(map(len, lines[blank:taken]))
        names = tuple(clean(cell, dialect.quote.decode()) for cell in cells)
        readings.append(FirstRecord(names, dialect, blank + 1, end, taken + 1))
    return readings, fault


def _decoded(content: Content, lines: list[bytes], first: int) -> Iterator[str]:
    for number, line in enumerate(lines[first:], first + 1):
        try:
            yield line.decode(content.encoding)
        except UnicodeDecodeError as error:
            raise refused(
                "bad_encoding", content.name, line=number, encoding=content.encoding
            ) from error


def heads(content: Content, limits: Limits) -> Iterator[tuple[bytes, bool]]:
    """Longer and longer beginnings of the text, and whether that is all of it."""
    wanted = min(HEAD_BYTES, limits.record_bytes)
    head = b""
    for piece in blocks(content, content.text_start, wanted):
        head += piece
        if len(head) >= wanted:
            yield head, False
            wanted *= 4
        if len(head) > limits.record_bytes:
            return
    yield head, True


def clean(cell: str, quote: str) -> str:
    """A name without blanks and quotes around it."""
    name = cell.strip()
    if len(name) > 1 and name[0] == name[-1] == quote:
        name = name[1:-1].strip()
    return name


def cells(line: str, dialect: Dialect) -> tuple[str, ...]:
    """The cells of one physical line by itself."""
    quote = dialect.quote.decode()
    return tuple(clean(cell, quote) for cell in next(csv.reader([line], **dialect.signs), []))


def folded(name: str) -> str:
    """A name as names are compared."""
    return name.strip().casefold()
