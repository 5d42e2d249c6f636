"""Integers, decimals and times straight from bytes, a column at once, eight bytes at a time.

What is said here is what `schemas.reading` says of the same text. Of a cell that is written in any
other way than most are, nothing is said: `known` is false, whatever the values beside it are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.reading import MAX_OFFSET_MINUTES

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

LEAST_TEXT = 8
"""Bytes a text must have, so that eight can be looked at."""
MICRO_DIGITS = 6
_WORD = 8
_MOST_DIGITS = 16
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_QUARTER = 15
_WITH_Z, _WITH_OFFSET = 20, 25
_DAYS = np.arange("0000-01", "10000-01", dtype="M8[M]").astype("M8[D]").astype(np.int64)
"""Days from 1970 to the first of every month, from year 0."""
_MONTH_DAYS = np.diff(_DAYS, append=_DAYS[-1] + 31)
_POWERS = 10 ** np.arange(MICRO_DIGITS, -1, -1, dtype=np.int64)
"""By digits behind the point: what makes millionths of them."""
_MASKS = np.array([(1 << 64) - (1 << 64 - 8 * number) for number in range(9)], np.uint64)
_HALVES = [
    tuple(map(np.uint64, step))
    for step in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10_000, 32, 0x00000000FFFFFFFF),
    )
]


class Cells(NamedTuple):
    """One column: where its cells lie in a text."""

    text: Bytes
    start: Places
    stop: Places


class Integers(NamedTuple):
    """Integers without a sign, of at most sixteen digits."""

    value: Places
    known: Flags


class Decimals(NamedTuple):
    """Decimals in millionths, with the number of digits that were written behind the point."""

    micro: Places
    scale: NDArray[np.int8]
    known: Flags


class Moments(NamedTuple):
    """Wall clocks in microseconds from 1970, with the minutes that they are ahead of UTC."""

    wall: Places
    offset: NDArray[np.int64]
    known: Flags


def read_integers(cells: Cells) -> Integers:
    """`5`, `0012`; not `+5`, ` 5`, `5.0`."""
    length = cells.stop - cells.start
    value, known = _number(_before(cells.text, cells.stop), length)
    if (length > _WORD).any():
        high, sound = _number(_before(cells.text, cells.stop - _WORD), length - _WORD)
        high *= np.uint64(10**_WORD)
        value += high
        known &= sound
        known &= length <= _MOST_DIGITS
    known &= length > 0
    return Integers(value.view(np.int64), known)


def read_decimals(cells: Cells) -> Decimals:
    """`5`, `-12.50`; at most eight digits before the point and six behind it."""
    text, start, stop = cells
    tail = _before(text, stop)
    negative = text[np.minimum(start, len(text) - 1)] == ord("-")
    first = start + negative
    scale = _behind_point(tail, stop - first)
    pointed = scale >= 0
    scale = np.maximum(scale, 0)
    part, sound_part = _number(tail, scale)
    middle = stop - scale - pointed
    whole, sound_whole = _number(_before(text, middle), middle - first)
    known = sound_part & sound_whole & (middle > first) & (middle - first <= _WORD)
    known &= (scale > 0) == pointed
    known &= scale <= MICRO_DIGITS
    micro = whole.astype(np.int64) * 10**MICRO_DIGITS
    micro += part.astype(np.int64) * _POWERS[np.minimum(scale, MICRO_DIGITS)]
    return Decimals(np.where(negative, -micro, micro), scale.astype(np.int8), known)


def read_moments(cells: Cells) -> Moments:
    """`2026-01-15T10:30:00Z`, `2026-01-15T10:30:00+02:00`; offsets of quarters of an hour."""
    text, start, stop = cells
    length = stop - start
    zulu = length == _WITH_Z
    known = zulu | (length == _WITH_OFFSET)
    # A cell of another length is not known, but what is looked at must lie within the text.
    date, sound = _pairs(_before(text, np.where(known, start + 8, _WORD)), b"0000-00-")
    known &= sound
    clock, sound = _pairs(_before(text, np.where(known, start + 16, _WORD)), b"00T00:00")
    known &= sound
    word = _before(text, np.where(known, stop, _WORD))
    word = np.where(zulu, word >> np.uint64(40) | np.uint64(0x30303A3030000000), word)
    ahead = (word >> np.uint64(16)) & np.uint64(0xFF)
    minus = ahead == ord("-")
    known &= np.where(zulu, _byte(word, 2) == ord("Z"), minus | (ahead == ord("+")))
    word = word & ~np.uint64(0xFF0000) | np.uint64(ord("+") << 16)
    zone, sound = _pairs(word, b"00+00:00")
    known &= sound
    year, month = _byte(date, 0) * 100 + _byte(date, 2), _byte(date, 5)
    day, hour, minute = _byte(clock, 0), _byte(clock, 3), _byte(clock, 6)
    second = _byte(zone, 0)
    offset, quarter = _byte(zone, 3) * 60 + _byte(zone, 6), _byte(zone, 6)
    known &= (year >= _FIRST_YEAR) & (year <= _LAST_YEAR) & (month >= 1) & (month <= 12)
    known &= (hour < 24) & (minute < 60) & (second < 60) & (quarter < 60)
    known &= (offset <= MAX_OFFSET_MINUTES) & (quarter % _QUARTER == 0)
    at = np.where(known, year * 12 + month - 1, 0)
    known &= (day >= 1) & (day <= _MONTH_DAYS[at])
    days = _DAYS[at] + day - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return Moments(seconds * 1_000_000, np.where(minus, -offset, offset), known)


def _before(text: Bytes, stop: Places) -> Words:
    """The eight bytes before each place, the last of them highest; zeros before the text."""
    windows = np.ndarray((len(text) - _WORD + 1,), f"V{_WORD}", text.data, strides=(1,))
    at = stop - _WORD
    word: Words = windows[np.maximum(at, 0)].view("<u8")
    early = np.flatnonzero(at < 0)
    word[early] <<= (-8 * at[early]).astype(np.uint64)
    return word


def _number(word: Words, length: Places) -> tuple[Words, Flags]:
    """The number that the last bytes of each word write, and whether they are all digits."""
    digits = word ^ np.uint64(0x3030303030303030)
    # The bytes before the number become zeros, as digits in front of a number are.
    digits &= _last_bytes(length)
    sound = digits + np.uint64(0x0606060606060606)
    sound |= digits
    sound &= np.uint64(0xF0F0F0F0F0F0F0F0)
    # Eight digits, the first one lowest, are four pairs, two fours, one number.
    for weight, bits, kept in _HALVES:
        upper = digits >> bits
        digits *= weight
        digits += upper
        digits &= kept
    return digits, sound == 0


def _last_bytes(number: Places) -> Words:
    """Words of which so many of the last bytes are ones."""
    return _MASKS[np.minimum(np.maximum(number, 0), _WORD)]


def _behind_point(word: Words, length: Places) -> Places:
    """How many of a number's last eight bytes are behind its first point; -1: there is none."""
    # A byte that is a point becomes zero; of the bytes that are, the lowest is found exactly.
    zero = (word ^ np.uint64(0x2E2E2E2E2E2E2E2E)) | ~_last_bytes(length)
    marks = (zero - np.uint64(0x0101010101010101)) & ~zero & np.uint64(0x8080808080808080)
    lowest = marks & (~marks + np.uint64(1))
    below: Places = np.bitwise_count(lowest - np.uint64(1)).astype(np.int64) >> 3
    return 7 - below


def _pairs(word: Words, form: bytes) -> tuple[Words, Flags]:
    """Each byte with the one behind it as a number of two digits, and whether all is as in `form`.

    A 0 in the form is any digit, any other byte is itself.
    """
    is_digit = [byte == ord("0") for byte in form]
    digits = word ^ np.uint64(int.from_bytes(form, "little"))
    carry = np.uint64(int.from_bytes(bytes(6 if one else 0 for one in is_digit), "little"))
    wrong = np.uint64(int.from_bytes(bytes(0xF0 if one else 0xFF for one in is_digit), "little"))
    sound = ((digits + carry) | digits) & wrong
    return digits * np.uint64(10) + (digits >> np.uint64(8)), sound == 0


def _byte(word: Words, number: int) -> Places:
    return ((word >> np.uint64(8 * number)) & np.uint64(0xFF)).astype(np.int64)
