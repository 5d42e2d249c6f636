"""Escapes before signs that they are not known to stand before."""

import re

import numpy as np

from connectors.files.bitmask import Bytes, Flags, Places
from connectors.files.dialect import Dialect
from connectors.files.record_cells import KNOWN
from connectors.files.shadow import COVER, covered

_KNOWN = re.compile(rb"\\[" + KNOWN.encode() + rb"]")
_BACKSLASH, _N = ord("\\"), ord("N")
_ENDS = {*b"\r\n"}


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
