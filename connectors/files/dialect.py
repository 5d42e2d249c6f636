"""How an extract is written, and what can be wrong with one of its records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypedDict

from connectors.files.encodings import contains_ascii, stands_alone
from connectors.settings import Limits
from schemas.cells.formulas import Guard

_USUAL = Limits()


class CsvSigns(TypedDict):
    """What tells the cells of a record apart."""

    delimiter: str
    quotechar: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an extract is written. Limits are in bytes as written, quotes included."""

    delimiter: bytes = b","
    quote: bytes = b'"'
    encoding: str = "utf-8"
    max_field_bytes: int = _USUAL.field_bytes
    max_record_bytes: int = _USUAL.record_bytes
    look_ahead_bytes: int = _USUAL.look_ahead_bytes
    """How far from the start of a record the close of its quotes is looked for."""
    line_breaks: bool = True
    """Whether a quoted field may hold one: numbers, times and booleans never do."""
    comment: bytes = b""
    """What a line begins with that is no record; empty: there are no such lines."""

    def __post_init__(self) -> None:
        if not contains_ascii(self.encoding):
            raise ValueError(f"encoding {self.encoding!r} does not contain ASCII; transcode first")
        if any(len(sign) != 1 or not sign.isascii() for sign in (self.delimiter, self.quote)):
            raise ValueError("delimiter and quote must be one ASCII character each")
        if len({self.delimiter, self.quote, b"\r", b"\n", b"\0"}) < 5:
            raise ValueError("delimiter and quote must differ, and be neither line end nor NUL")
        for sign in (self.delimiter, self.quote):
            if not stands_alone(self.encoding, sign):
                raise ValueError(f"{sign!r} can be part of a character; transcode to utf-8 first")
        if not 0 < self.max_field_bytes <= self.max_record_bytes <= self.look_ahead_bytes:
            raise ValueError(
                "limits must satisfy 0 < max_field_bytes <= max_record_bytes <= look_ahead_bytes"
            )

    @property
    def signs(self) -> CsvSigns:
        """Delimiter and quote as the csv module takes them."""
        return {"delimiter": self.delimiter.decode(), "quotechar": self.quote.decode()}

    def begins_comment(self, line: bytes) -> bool:
        """Whether a line is no record, unless a quoted field of one above is still open."""
        return bool(self.comment) and line.startswith(self.comment)

    @property
    def guard(self) -> Guard:
        """What keeps a spreadsheet from running a text that is written so."""
        return Guard(self.delimiter.decode(), self.quote.decode())


def dialect_within(
    limits: Limits, *, delimiter: str, quote: str, encoding: str, comment: str = ""
) -> Dialect:
    """The dialect of a file that is read within these limits."""
    return Dialect(
        delimiter=delimiter.encode(),
        quote=quote.encode(),
        encoding=encoding,
        max_field_bytes=min(limits.field_bytes, limits.record_bytes),
        max_record_bytes=limits.record_bytes,
        look_ahead_bytes=max(limits.look_ahead_bytes, 2 * limits.record_bytes),
        comment=comment.encode(),
    )


class RecordFault(IntEnum):
    """What is wrong with a record; of several faults the lowest number is reported.

    Bytes that are no text come first: what they do to quotes, width and size is no cause. A name is
    the code of a reject in other letters: STRAY_QUOTE is `StrayQuote` in `schemas/reasons.py`.
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

    @property
    def code(self) -> str:
        """The stable code that rejects carry, a key of REASONS."""
        return "".join(word.capitalize() for word in self.name.split("_"))
