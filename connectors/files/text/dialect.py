"""How an extract is written, and what can be wrong with its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypedDict

from connectors.files.text.encodings import contains_ascii, stands_alone
from connectors.settings import Limits
from schemas.cells.formula_guard import Guard

NO_QUOTE = "\x01"
"""A profile's quote for a text without quotes."""
NEVER, OURS = b"\0", NO_QUOTE.encode()
"""Stand-ins for the quote of a text without quotes; a delivered record with that sign is unsound.

A record with NUL is never sound anyway. The other is for texts to which we add cells that may need
quotes, because NUL cannot be stored.
"""
_USUAL = Limits()


def may_separate(sign: str) -> bool:
    """Whether a sign may separate or quote cells; signs of names and numbers may not."""
    return len(sign) == 1 and sign.isascii() and not sign.isalnum() and sign not in "\r\n\0+-."


class CsvSigns(TypedDict):
    """The signs that separate the cells of a record."""

    delimiter: str
    quotechar: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an extract is written. Limits are in bytes as written, quotes included."""

    delimiter: bytes = b","
    """One sign, or several that separate cells only together."""
    quote: bytes = b'"'
    encoding: str = "utf-8"
    max_field_bytes: int = _USUAL.field_bytes
    max_record_bytes: int = _USUAL.record_bytes
    look_ahead_bytes: int = _USUAL.look_ahead_bytes
    """How far from the start of a record to look for its closing quote."""
    line_breaks: bool = True
    """Whether a quoted field may hold a line break: numbers, times and booleans never do."""
    escape: bytes = b""
    """The sign that escapes the next one; empty if there is none and quotes are doubled."""
    blanks_dropped: bool = False
    """Whether blanks may stand between a delimiter and a quote."""
    comment: tuple[bytes, ...] = ()
    """Beginnings of lines that are no records; empty if there are no such lines."""
    skip_lines: tuple[str, ...] = ()
    """Patterns of whole lines that are no records either."""

    def __post_init__(self) -> None:
        if not contains_ascii(self.encoding):
            raise ValueError(f"encoding {self.encoding!r} does not contain ASCII; transcode first")
        signs = {*self.delimiter}
        if not self.delimiter.isascii() or len(self.quote) != 1 or not self.quote.isascii():
            raise ValueError("delimiter and quote must be ASCII characters, the quote one")
        ends = {*signs, *self.quote} & {*b"\r\n"}
        if not signs or ends or 0 in signs or signs & {*self.quote, *self.escape}:
            raise ValueError("delimiter and quote must differ, and be neither line end nor NUL")
        if self.escape not in (b"", b"\\") or self.escape == self.quote:
            raise ValueError("an escape must be a backslash, and the quote another sign")
        for sign in {bytes([one]) for one in (*signs, *self.quote, *self.escape)}:
            if not stands_alone(self.encoding, sign):
                raise ValueError(f"{sign!r} can be part of a character; transcode to utf-8 first")
        if not 0 < self.max_field_bytes <= self.max_record_bytes <= self.look_ahead_bytes:
            raise ValueError(
                "limits must satisfy 0 < max_field_bytes <= max_record_bytes <= look_ahead_bytes"
            )

    @property
    def has_quote(self) -> bool:
        """Whether delivered cells can be quoted."""
        return self.quote not in (NEVER, OURS)

    @property
    def blanks(self) -> bytes:
        """The blanks that may stand between a delimiter and a quote."""
        return bytes({*b" \t"} - {*self.delimiter}) if self.blanks_dropped else b""

    @property
    def signs(self) -> CsvSigns:
        """Delimiter and quote for the csv module, if records are plain."""
        return {"delimiter": self.delimiter.decode(), "quotechar": self.quote.decode()}

    def begins_comment(self, line: bytes) -> bool:
        """Whether a line is a comment, provided no quoted field from above is still open."""
        return line.startswith(self.comment)

    @property
    def skips(self) -> bool:
        """Whether some lines are skipped as no records."""
        return bool(self.comment or self.skip_lines)

    @property
    def guard(self) -> Guard:
        """The guard that keeps a spreadsheet from running texts written in this dialect."""
        return Guard(self.delimiter.decode(), self.quote.decode())


def dialect_within(
    limits: Limits,
    *,
    delimiter: str,
    quote: str,
    encoding: str,
    escape: str = "",
    comment: Sequence[str] = (),
    skip_lines: Sequence[str] = (),
    blanks_dropped: bool = False,
) -> Dialect:
    """The dialect of a file read within these limits."""
    return Dialect(
        delimiter=delimiter.encode(),
        quote=NEVER if quote == NO_QUOTE else quote.encode(),
        encoding=encoding,
        max_field_bytes=min(limits.field_bytes, limits.record_bytes),
        max_record_bytes=limits.record_bytes,
        look_ahead_bytes=max(limits.look_ahead_bytes, 2 * limits.record_bytes),
        escape=escape.encode(),
        blanks_dropped=blanks_dropped,
        comment=tuple(one.encode() for one in comment),
        skip_lines=tuple(skip_lines),
    )


class RecordFault(IntEnum):
    """What is wrong with a record; of several faults the one with the lowest number is reported.

    Bytes that are no text come first: faults in quotes, width and size may only follow from them. A
    name is the code of a reject in other letters: STRAY_QUOTE is `StrayQuote` in
    `schemas/reasons.py`.
    """

    NONE = 0
    NUL_CHARACTER = 1
    ENCODING = 2
    STRAY_QUOTE = 3
    UNTERMINATED_QUOTE = 4
    RECORD_TOO_LARGE = 5
    FIELD_TOO_LARGE = 6
    TOO_FEW_FIELDS = 7
    TOO_MANY_FIELDS = 8
    STRAY_ESCAPE = 9

    @property
    def code(self) -> str:
        """The stable code that rejects carry, a key of REASONS."""
        return "".join(word.capitalize() for word in self.name.split("_"))
