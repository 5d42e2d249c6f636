"""Where backslashes escape a sign in a whole text, and where that sign is not a known one."""

import re

import numpy as np

from connectors.files.text.bitmask import Bytes, Flags, Places
from connectors.files.text.dialect import Dialect
from connectors.files.text.lines import CARRIAGE_RETURN, LINE_FEED
from connectors.files.text.record_cells import KNOWN
from connectors.files.text.shadow import covered

_BACKSLASH = ord("\\")


def escapes(text: Bytes) -> Places:
    """Positions of the backslashes that escape the following sign, from left to right."""
    places = np.flatnonzero(text == _BACKSLASH)
    number = np.arange(len(places))
    begins = np.append(True, np.diff(places) != 1)[: len(places)]
    first_of_run = np.maximum.accumulate(np.where(begins, number, 0))
    found: Places = places[(number - first_of_run) % 2 == 0]
    return found


def covered_escapes(text: bytes, cover: int) -> bytes:
    """The text with each escape and its sign covered, line ends excepted."""
    signs = np.frombuffer(text + b"\n", np.uint8).copy()
    places = escapes(signs)
    behind = signs[places + 1]
    places = places[(behind != LINE_FEED) & (behind != CARRIAGE_RETURN)]
    signs[places] = signs[places + 1] = cover
    return signs[:-1].tobytes()


_KNOWN = np.array([re.fullmatch(f"[{KNOWN}]", chr(sign)) is not None for sign in range(256)])
_N = ord("N")
_ENDS = {*b"\r\n"}
_BEYOND = b"\0\0"


def stray_escapes(text: bytes, shade: bytes, start: Places, end: Places, dialect: Dialect) -> Flags:
    """Which records have an escape before a sign that cannot be escaped."""
    stray = np.zeros(len(start), np.bool_)
    signs = np.frombuffer(text + _BEYOND, np.uint8)
    places = escapes(signs)
    places = places[~_KNOWN[signs[places + 1]]]
    record = np.searchsorted(start, places, "right") - 1
    held = (record >= 0) & (places < np.append(end, 0)[record])
    places, record = places[held], record[held]
    if not len(places):
        return stray
    null = _nulls(signs, shade, places, start[record], end[record], dialect)
    for place, of in zip(places[~null].tolist(), record[~null].tolist(), strict=True):
        behind = text[place + 1] if place + 1 < end[of] else None
        stray[of] |= behind not in _ENDS
    return stray


def _nulls(
    text: Bytes, shade: bytes, places: Places, start: Places, end: Places, dialect: Dialect
) -> Flags:
    r"""Which of these escapes are the `\N` that makes up a whole unquoted cell."""
    delimiter = ord(covered(dialect).delimiter)
    shaded = np.frombuffer(shade + _BEYOND, np.uint8)
    behind = places + 2
    alone = (text[places + 1] == _N) & (behind <= end)
    alone &= (places == start) | (shaded[places - 1] == delimiter)
    alone &= (behind == end) | (shaded[behind] == delimiter)
    quotes = np.flatnonzero(shaded == ord(dialect.quote))
    before = np.searchsorted(quotes, places) - np.searchsorted(quotes, start)
    found: Flags = alone & (before % 2 == 0)
    return found
