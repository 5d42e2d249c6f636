"""Read one cell from its bytes: where it ends, and its value if it is in a common form.

Results equal those of `schemas.cells.reading` for the same text. A cell in any other form is not
`known`, and the other values returned for it mean nothing.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.amounts import MICRO_DIGITS, MOST_SCALE
from schemas.cells.reading import MAX_OFFSET_MINUTES
from schemas.compiled import loop_part

Bytes = NDArray[np.uint8]

_MOST_DIGITS = 16
_MOST_WHOLE_DIGITS = 8
_QUARTER = 15
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_WITH_Z, _WITH_OFFSET = 20, 25
_ZERO, _POINT, _PLUS, _MINUS, _COLON, _T, _Z = (ord(sign) for sign in "0.+-:TZ")
_NO_DIGITS = -10_000
"""A number so low that no sum with other pairs of digits is valid."""
MICRO = 1_000_000
"""Microseconds in a second."""
POWERS = 10 ** np.arange(MICRO_DIGITS, -1, -1)
"""Factor that turns a number into millionths, by its number of decimals."""


@loop_part
def byte_at(text: Bytes, at: int) -> int:
    """The byte at an index; an unsigned index saves the check for counting from the end."""
    return int(text[np.uint64(at)])


@loop_part
def read_integer(text: Bytes, start: int, stop: int) -> tuple[int, int, bool]:
    """Read `5` or `0012`, not `+5`, ` 5` or `5.0`: where it ends, its value, whether known."""
    value, at = 0, start
    # One digit more shows that there are too many; reading even more might overflow.
    most = min(stop, start + _MOST_DIGITS + 1)
    while at < most:
        digit = byte_at(text, at) - _ZERO
        if not 0 <= digit <= 9:
            break
        value = value * 10 + digit
        at += 1
    return at, value, start < at <= start + _MOST_DIGITS


@loop_part
def read_decimal(text: Bytes, start: int, stop: int) -> tuple[int, int, int, bool]:
    """Read `5` or `-12.50`: where it ends, its millionths, number of decimals, whether known."""
    negative = start < stop and byte_at(text, start) == _MINUS
    end, value, known = read_integer(text, start + negative, stop)
    known = known and end - start - negative <= _MOST_WHOLE_DIGITS
    part, scale = 0, 0
    if known and end < stop and byte_at(text, end) == _POINT:
        point = end
        end, part, known = read_fraction(text, point + 1, stop)
        scale = end - point - 1
    if not known:
        return end, 0, 0, False
    micro = value * POWERS[0] + part
    return end, -micro if negative else micro, scale, True


@loop_part
def read_fraction(text: Bytes, start: int, stop: int) -> tuple[int, int, bool]:
    """Read decimals, which may have zeros beyond millionths, as databases write them.

    Returns where they end, their millionths, whether they are known.
    """
    end, part, known = read_integer(text, start, min(stop, start + MICRO_DIGITS))
    part *= POWERS[end - start]
    if end == start + MICRO_DIGITS:
        most = min(stop, start + MOST_SCALE)
        while end < most and byte_at(text, end) == _ZERO:
            end += 1
        known = end == stop or not 0 <= byte_at(text, end) - _ZERO <= 9
    return end, part, known


@loop_part
def read_moment(text: Bytes, start: int, stop: int) -> tuple[int, int, int, bool]:
    """Read `2026-01-15T10:30:00Z`, or with an offset such as `+02:00` in quarters of an hour.

    Returns where it ends, the wall clock in microseconds from 1970, the minutes it is ahead of UTC,
    whether it is known.
    """
    if stop - start < _WITH_Z:
        return start, 0, 0, False
    if not (
        byte_at(text, start + 4) == byte_at(text, start + 7) == _MINUS
        and byte_at(text, start + 10) == _T
        and byte_at(text, start + 13) == byte_at(text, start + 16) == _COLON
    ):
        return start, 0, 0, False
    year = pair(text, start) * 100 + pair(text, start + 2)
    month, day = pair(text, start + 5), pair(text, start + 8)
    hour, minute = pair(text, start + 11), pair(text, start + 14)
    wall, known = wall_clock(year, month, day, hour, minute, pair(text, start + 17))
    sign = byte_at(text, start + 19)
    if sign == _Z:
        return start + _WITH_Z, wall, 0, known
    if stop - start < _WITH_OFFSET or sign not in (_PLUS, _MINUS):
        return start, 0, 0, False
    hours, minutes = pair(text, start + 20), pair(text, start + 23)
    offset = hours * 60 + minutes
    known = known and byte_at(text, start + 22) == _COLON and hours >= 0 and 0 <= minutes < 60
    known = known and minutes % _QUARTER == 0 and offset <= MAX_OFFSET_MINUTES
    return start + _WITH_OFFSET, wall, -offset if sign == _MINUS else offset, known


@loop_part
def wall_clock(
    year: int, month: int, day: int, hour: int, minute: int, second: int
) -> tuple[int, bool]:
    """Microseconds from 1970 to a wall clock time, and whether there is such a time."""
    if not _FIRST_YEAR <= year <= _LAST_YEAR or not 1 <= month <= 12:
        return 0, False
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return 0, False
    if day < 1 or (day > 28 and day > _month_days(year, month)):
        return 0, False
    days = _days(year, month) + day - 1
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * MICRO, True


@loop_part
def pair(text: Bytes, at: int) -> int:
    tens, ones = byte_at(text, at) - _ZERO, byte_at(text, at + 1) - _ZERO
    if 0 <= tens <= 9 and 0 <= ones <= 9:
        return tens * 10 + ones
    return _NO_DIGITS


@loop_part
def _month_days(year: int, month: int) -> int:
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


@loop_part
def _days(year: int, month: int) -> int:
    """Days from 1970 to the first of a month.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
    """
    if month <= 2:
        year, month = year - 1, month + 12
    era = year // 400
    of_era = year - era * 400
    return (
        era * 146_097
        + of_era * 365
        + of_era // 4
        - of_era // 100
        + (153 * (month - 3) + 2) // 5
        - 719_468
    )
