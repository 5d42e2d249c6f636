"""Texts that a splitter of plain CSV can read: as they are, or as a shadow.

CSV is plain if a reader that knows only a delimiter and a quote reads it as the feed means it. Such
a reader knows no delimiters of several signs, no escapes, and no blanks beside a quote.

In the shadow of a text, signs without their usual meaning are covered, and every byte keeps its
place. An escape and the byte after it are covered; a delimiter of several signs becomes as many of
one sign that stands nowhere else. Line ends stay.
"""

import re
from dataclasses import replace

from connectors.files.text.dialect import Dialect


def is_csv(dialect: Dialect) -> bool:
    """Whether every record of the dialect is plain."""
    return len(dialect.delimiter) == 1 and not dialect.escape and not dialect.blanks


def is_plain_text(text: str, dialect: Dialect) -> bool:
    if len(dialect.delimiter) > 1 or (dialect.escape and "\\" in text):
        return False
    quote = re.escape(dialect.quote.decode())
    return not (dialect.blanks and re.search(rf"[ \t]{quote}|{quote}[ \t]", text))


COVER, DELIMITER = b"x", b"\x1f"


def shadow(text: bytes, dialect: Dialect) -> bytes:
    """The text in the dialect that `covered` gives; it may begin with any record."""
    if dialect.escape and dialect.escape in text:
        from connectors.files.text.escapes import covered_escapes

        text = covered_escapes(text, ord(COVER))
    if len(dialect.delimiter) > 1:
        many = DELIMITER * len(dialect.delimiter)
        text = text.replace(DELIMITER, COVER).replace(dialect.delimiter, many)
    return text


def has_open_quote(text: bytes, dialect: Dialect) -> bool:
    """Whether a quoted cell begins in the text but does not end in it, or the other way round."""
    return dialect.has_quote and shadow(text, dialect).count(dialect.quote) % 2 == 1


def covered(dialect: Dialect) -> Dialect:
    """The dialect of a shadow."""
    delimiter = DELIMITER if len(dialect.delimiter) > 1 else dialect.delimiter
    return replace(dialect, delimiter=delimiter, escape=b"")


def covered_width(width: int, dialect: Dialect) -> int:
    """The number of fields of a shadow's record: a long delimiter has empty fields within it."""
    return (width - 1) * len(dialect.delimiter) + 1


def loose_end(text: bytes, dialect: Dialect) -> int:
    """How many bytes at the end of a shadow may change their meaning with those that follow."""
    loose = 0
    for size in range(1, len(dialect.delimiter)):
        if text.endswith(dialect.delimiter[:size]):
            loose = size
    # A CR may be half of a CRLF, and a quote half of a doubled one.
    return loose + text[: len(text) - loose].endswith((b"\r", dialect.quote))
