"""Texts that a splitter of plain CSV can read: as they are, or as a shadow.

Plain CSV is what a reader that knows a delimiter and a quote alone reads as the feed means it. Such
a reader knows neither delimiters of several signs, nor escapes, nor blanks beside a quote.

In a shadow of a text what only looks like a sign is covered. Every byte keeps its place. A byte
behind an escape is covered, and so is the escape; a delimiter of several signs is so many of one
sign that stands nowhere else. Line ends stay what they are.
"""

import re
from dataclasses import replace

from connectors.files.text.dialect import Dialect


def is_csv(dialect: Dialect) -> bool:
    """Whether every record of a dialect is plain."""
    return len(dialect.delimiter) == 1 and not dialect.escape and not dialect.blanks


def is_plain_text(text: str, dialect: Dialect) -> bool:
    if len(dialect.delimiter) > 1 or (dialect.escape and "\\" in text):
        return False
    quote = re.escape(dialect.quote.decode())
    return not (dialect.blanks and re.search(rf"[ \t]{quote}|{quote}[ \t]", text))


COVER, DELIMITER = b"x", b"\x1f"


def shadow(text: bytes, dialect: Dialect) -> bytes:
    """The text as `covered` reads it; it may begin with any record."""
    if dialect.escape and dialect.escape in text:
        from connectors.files.text.escapes import covered_escapes

        text = covered_escapes(text, ord(COVER))
    if len(dialect.delimiter) > 1:
        many = DELIMITER * len(dialect.delimiter)
        text = text.replace(DELIMITER, COVER).replace(dialect.delimiter, many)
    return text


def has_open_quote(text: bytes, dialect: Dialect) -> bool:
    """Whether a cell in quotes begins in a text, or ends in it, and not both."""
    return dialect.has_quote and shadow(text, dialect).count(dialect.quote) % 2 == 1


def covered(dialect: Dialect) -> Dialect:
    """The dialect of a shadow."""
    delimiter = DELIMITER if len(dialect.delimiter) > 1 else dialect.delimiter
    return replace(dialect, delimiter=delimiter, escape=b"")


def covered_width(width: int, dialect: Dialect) -> int:
    """How many fields a record of a shadow has: there are empty ones within a delimiter."""
    return (width - 1) * len(dialect.delimiter) + 1


def loose_end(text: bytes, dialect: Dialect) -> int:
    """How many bytes at the end of a shadow may mean something else with those behind them."""
    loose = 0
    for size in range(1, len(dialect.delimiter)):
        if text.endswith(dialect.delimiter[:size]):
            loose = size
    # A CR may be half of CRLF, and a quote half of a doubled one.
    return loose + text[: len(text) - loose].endswith((b"\r", dialect.quote))
