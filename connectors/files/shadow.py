"""A text with what only looks like a sign covered, so that a splitter of plain CSV can read it.

Every byte keeps its place. A byte behind an escape is covered, and so is the escape; a delimiter of
several signs is so many of one sign that stands nowhere else. Line ends stay what they are.
"""

from dataclasses import replace

import numpy as np

from connectors.files.bitmask import Bytes, Places
from connectors.files.dialect import Dialect
from connectors.files.lines import CARRIAGE_RETURN, LINE_FEED

COVER, DELIMITER = b"x", b"\x1f"
_BACKSLASH = ord("\\")


def shadow(text: bytes, dialect: Dialect) -> bytes:
    """The text as `covered` reads it; it may begin with any record."""
    if dialect.escape and dialect.escape in text:
        signs = np.frombuffer(text + b"\n", np.uint8).copy()
        places = escapes(signs)
        behind = signs[places + 1]
        places = places[(behind != LINE_FEED) & (behind != CARRIAGE_RETURN)]
        signs[places] = signs[places + 1] = ord(COVER)
        text = signs[:-1].tobytes()
    if len(dialect.delimiter) > 1:
        many = DELIMITER * len(dialect.delimiter)
        text = text.replace(DELIMITER, COVER).replace(dialect.delimiter, many)
    return text


def escapes(text: Bytes) -> Places:
    """Where backslashes stand that mean something with the sign behind them, from left to right."""
    places = np.flatnonzero(text == _BACKSLASH)
    number = np.arange(len(places))
    begins = np.append(True, np.diff(places) != 1)[: len(places)]
    first_of_run = np.maximum.accumulate(np.where(begins, number, 0))
    found: Places = places[(number - first_of_run) % 2 == 0]
    return found


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
