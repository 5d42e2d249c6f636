"""The first record of an extract, in the dialect in which most of its names are known."""

import csv
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, islice, zip_longest

from connectors.errors import ExtractRefused
from connectors.files.archived.blocks import blocks
from connectors.files.layout.titles import KEPT, with_titles
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content, refused
from connectors.files.text.dialect import Dialect, dialect_within, may_separate
from connectors.files.text.pieces import record_pattern
from connectors.files.text.record_cells import cells_of
from connectors.files.text.shadow import DELIMITER, covered, is_csv, is_plain_text, shadow
from connectors.printable import shown
from connectors.settings import Limits
from schemas.counting import quantity

DELIMITERS = (",", ";", "\t", "|")
SEPARATOR = re.compile(rb'"?sep=([^\w"\r\n])"?\s*', re.IGNORECASE)
"""A first line that states the delimiter, as spreadsheets write and read it."""
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """The first record of a file, read with one dialect."""

    names: tuple[str, ...]
    dialect: Dialect
    number: int
    end: int
    end_line: int
    rows: tuple[tuple[str, ...], ...]
    """The names as written, in one row or in several."""

    @property
    def folded_names(self) -> set[str]:
        return {folded(name) for name in self.names}


def candidates(content: Content, profile: Profile, limits: Limits) -> list[Dialect]:
    """The dialects a file may be written in, as far as the profile leaves them open."""
    if content.workbook:
        return [dialect_within(limits, delimiter=",", quote='"', encoding=content.encoding)]
    return of_text(content, profile, limits)


def of_text(content: Content, profile: Profile, limits: Limits) -> list[Dialect]:
    """The dialects that text in a content's encoding may be written in."""
    delimiters = (profile.delimiter,) if profile.delimiter else DELIMITERS
    return [
        dialect_within(
            limits,
            delimiter=delimiter,
            quote=profile.quote,
            encoding=content.encoding,
            escape=profile.escape or "",
            comment=profile.comment,
            skip_lines=profile.skip_lines,
            blanks_dropped=profile.blanks == "dropped",
        )
        for delimiter in delimiters
        if profile.delimiter or delimiter != profile.quote
    ]


def first_record(
    content: Content,
    dialects: Sequence[Dialect],
    limits: Limits,
    known: Set[str],
    *,
    line: int = 1,
    rows: int = 1,
    titles: int | str = KEPT,
) -> FirstRecord:
    """The first record that is neither blank nor a comment, in the dialect with most known names.

    It begins on line `line` or below. If several rows make up the names, the cells of a column are
    joined by a blank; `titles` says how many columns a title stands above.

    Raises ExtractRefused: malformed_header if no dialect divides it into cells, missing_header,
    empty_file, bad_encoding, too_large.
    """
    for head, final in heads(content, limits):
        lines = head.splitlines(keepends=True)
        if not final:
            # The last line may be incomplete, and its CR may be half of a CRLF.
            lines = lines[:-1]
        above = line - 1
        top = _behind_comments(lines, 0, dialects[0])
        if top < len(lines) and (stated := SEPARATOR.fullmatch(lines[top])):
            dialects, above = _separated(content, dialects, stated[1], top + 1), max(above, top + 1)
        blank = _behind_comments(lines, above, dialects[0])
        while blank < len(lines) and not lines[blank].strip(b" \t\r\n"):
            blank = _behind_comments(lines, blank + 1, dialects[0])
        if blank >= len(lines):
            if final and above:
                found = f"The file has {quantity(len(lines), 'line')}, and no text there."
                raise refused("missing_header", content.name, line=above + 1, found=found)
            if final:
                raise refused("empty_file", content.name)
            continue
        readings, fault = _read_with_each(content, lines, blank, dialects, rows, titles)
        best = max(readings, key=lambda one: len(known & one.folded_names), default=None)
        # Read with a wrong delimiter, a broken header is one long unknown name.
        if best and (known & best.folded_names or not fault):
            return best
        is_open = fault in (UNFINISHED, NOT_DIVIDED)
        if not is_open and (several := [one for one in readings if len(one.names) > 1]):
            return max(several, key=lambda one: len(one.names))
        if not is_open or final:
            detail = "a quote is never closed" if fault == UNFINISHED else fault
            raise refused("malformed_header", content.name, line=blank + 1, detail=detail)
    raise without_end(content, limits, line)


def without_end(content: Content, limits: Limits, line: int) -> ExtractRefused:
    """The refusal of a file whose header, from this line on, exceeds the length of a record."""
    detail = (
        f"no header ends within {quantity(limits.record_bytes, 'byte')} (RECON_LIMIT_RECORD_BYTES)"
    )
    return refused("too_large", content.name, line=line, detail=detail)


def _separated(
    content: Content, dialects: Sequence[Dialect], sign: bytes, line: int
) -> list[Dialect]:
    """The dialects with the delimiter that the file itself states on this line."""
    feed, profile_says = dialects[0], "and the feed profile that"
    comment = next((one for one in feed.comment if one.startswith(sign)), None)
    if not may_state(sign):
        why = "which is no ASCII sign that can be one"
    elif comment is not None:
        why = f"{profile_says} comments begin with {comment.decode()!r}"
    elif sign in feed.quote + feed.escape:
        why = f"{profile_says} it is the quote, or an escape"
    elif len(dialects) == 1 and sign != feed.delimiter:
        why = (
            f"{profile_says} it is {' or '.join(repr(one.delimiter.decode()) for one in dialects)}"
        )
    else:
        return [replace(feed, delimiter=sign)]
    written = shown(sign.decode(content.encoding, "backslashreplace"))
    detail = f"the file says that its delimiter is '{written}', {why}"
    raise refused("malformed_header", content.name, line=line, detail=detail)


def may_state(sign: bytes) -> bool:
    """Whether a byte may be a delimiter that a file itself states."""
    return may_separate(sign.decode("ascii", "replace")) and sign != DELIMITER


NOT_DIVIDED = "a quote stands within a field, or is never closed"
UNFINISHED = "unexpected end of data"
"""The csv module's text for a quote that is not closed in the lines it was given."""


def _read_with_each(
    content: Content,
    lines: list[bytes],
    blank: int,
    dialects: Sequence[Dialect],
    rows: int,
    titles: int | str,
) -> tuple[list[FirstRecord], str]:
    readings, fault = [], ""
    before = content.text_start + sum(map(len, lines[:blank]))
    for dialect in dialects:
        found: list[list[str]] = []
        taken = blank
        try:
            for _ in range(rows):
                taken = _behind_comments(lines, taken, dialect)
                row, count = _row(_decoded(content, lines, taken), lines, taken, dialect)
                found += row
                taken += count
        except csv.Error as error:
            fault = fault or str(error)
            continue
        if len(found) < rows:
            fault = UNFINISHED
            continue
        end = before + sum(map(len, lines[blank:taken]))
        quote = dialect.quote.decode()
        written = tuple(tuple(clean(cell, quote) for cell in row) for row in found)
        columns = [*zip_longest(*written, fillvalue="")]
        if titles != KEPT:
            columns = with_titles(columns, titles)
        names = tuple(" ".join(filter(None, column)) for column in columns)
        readings.append(FirstRecord(names, dialect, blank + 1, end, taken + 1, written))
    return readings, fault


def _row(
    decoded: Iterator[str], lines: list[bytes], at: int, dialect: Dialect
) -> tuple[list[list[str]], int]:
    """The row that begins on a line, or none, and its number of lines.

    `decoded` are the texts of this line and those below.
    """
    if is_csv(dialect):
        reader = csv.reader(decoded, **dialect.signs, strict=True)
        return [*islice(reader, 1)], reader.line_num
    text = b"".join(lines[at:])
    match = record_pattern(covered(dialect)).match(shadow(text, dialect))
    if match is None:
        raise csv.Error(NOT_DIVIDED)
    ends = accumulate(map(len, lines[at:]))
    count = next((number for number, end in enumerate(ends, 1) if end >= match.end()), 0)
    whole = "".join(islice(decoded, count)).rstrip("\r\n")
    return [[cell or "" for cell in cells_of(whole, dialect)]], count


def _behind_comments(lines: list[bytes], at: int, dialect: Dialect) -> int:
    while at < len(lines) and dialect.begins_comment(lines[at]):
        at += 1
    return at


def _decoded(content: Content, lines: list[bytes], first: int) -> Iterator[str]:
    for number, line in enumerate(lines[first:], first + 1):
        try:
            yield line.decode(content.encoding)
        except UnicodeDecodeError as error:
            raise refused(
                "bad_encoding", content.name, line=number, encoding=content.delivered_encoding
            ) from error


def heads(content: Content, limits: Limits) -> Iterator[tuple[bytes, bool]]:
    """Longer and longer beginnings of the text, each with whether it is the whole."""
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


def first_lines(content: Content, limits: Limits, count: int) -> list[bytes]:
    """The first `count` lines with their ends; raises ExtractRefused if there are fewer."""
    for head, final in heads(content, limits):
        lines = head.splitlines(keepends=True)
        if len(lines) > count or (final and len(lines) == count):
            return lines[:count]
    found = "The file has fewer lines, or a very long one."
    raise refused("missing_header", content.name, line=count + 1, found=found)


def clean(cell: str, quote: str) -> str:
    """A name without the blanks and quotes around it."""
    name = cell.strip()
    if len(name) > 1 and name[0] == name[-1] == quote:
        name = name[1:-1].strip()
    return name


def cells(lines: list[bytes], at: int, dialect: Dialect) -> tuple[str, ...]:
    """The cells of the record that begins on a line; of that line alone if no record ends."""
    quote = dialect.quote.decode()
    texts = (line.decode(dialect.encoding, "replace") for line in islice(lines, at, None))
    try:
        row, _ = _row(texts, lines, at, dialect)
        found = row[0] if row else []
    except csv.Error:
        found = _cells_of_line(lines[at].decode(dialect.encoding, "replace"), dialect)
    return tuple(clean(cell, quote) for cell in found)


def _cells_of_line(line: str, dialect: Dialect) -> list[str]:
    line = line.rstrip("\r\n")
    if is_plain_text(line, dialect):
        return next(csv.reader([line], **dialect.signs), [])
    return [cell or "" for cell in cells_of(line, dialect)]


def last_named(names: Sequence[str]) -> int:
    """The number of the last column with a name."""
    return max((place for place, name in enumerate(names, 1) if name.strip()), default=0)


def folded(name: str) -> str:
    """A name in the form in which names are compared."""
    return name.strip().casefold()
