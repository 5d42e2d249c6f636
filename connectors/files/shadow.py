"""A text with what only looks like a sign covered, so that a splitter of plain CSV can read it.

Every byte keeps its place. A byte behind an escape is covered, and so is the escape; a delimiter of
several signs is so many of one sign that stands nowhere else. Line ends stay what they are.
"""

import re
from dataclasses import replace

import numpy as np

from connectors.files.bitmask import Bytes, Flags, Places
from connectors.files.dialect import Dialect
from connectors.files.record_cells import KNOWN

COVER, DELIMITER = b"x", b"\x1f"
_ESCAPED = re.compile(rb"\\[^\r\n]")
_KNOWN = re.compile(rb"\\[" + KNOWN.encode() + rb"]")
_BACKSLASH, _N = ord("\\"), ord("N")
_ENDS = {*b"\r\n"}


def shadow(text: bytes, dialect: Dialect) -> bytes:
    """The text as `covered` reads it; it may begin with any record."""
    if dialect.escape:
        text = _ESCAPED.sub(COVER * 2, text)
    if len(dialect.delimiter) > 1:
        signs = DELIMITER * len(dialect.delimiter)
        text = text.replace(DELIMITER, COVER).replace(dialect.delimiter, signs)
    return text


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


def stray_escapes(text: bytes, shade: bytes, start: Places, end: Places, dialect: Dialect) -> Flags:
    """Which records have an escape before a sign that it is not known to stand before."""
    stray = np.zeros(len(start), np.bool_)
    left = np.frombuffer(_KNOWN.sub(COVER * 2, text), np.uint8)
    places = np.flatnonzero(left == _BACKSLASH)
    record = np.searchsorted(start, places, "right") - 1
    held = (record >= 0) & (places < np.append(end, 0)[record])
    places, record = places[held], record[held]
    if not len(places):
        return stray
    null = _nulls(left, np.frombuffer(shade, np.uint8), places, start[record], end[record], dialect)
    for place, of in zip(places[~null].tolist(), record[~null].tolist(), strict=True):
        behind = text[place + 1] if place + 1 < end[of] else None
        stray[of] |= behind not in _ENDS
    return stray


def _nulls(
    left: Bytes, shade: Bytes, places: Places, start: Places, end: Places, dialect: Dialect
) -> Flags:
    """Which of these escapes are before the N of a cell that has nothing else, and no quotes."""
    delimiter = ord(covered(dialect).delimiter)
    around = np.concatenate([[0], shade, [0, 0]]), np.append(left, [0, 0])
    behind = places + 2
    alone = (around[1][places + 1] == _N) & (behind <= end)
    alone &= (places == start) | (around[0][places] == delimiter)
    alone &= (behind == end) | (around[0][behind + 1] == delimiter)
    quotes = np.flatnonzero(shade == ord(dialect.quote))
    before = np.searchsorted(quotes, places) - np.searchsorted(quotes, start)
    found: Flags = alone & (before % 2 == 0)
    return found
