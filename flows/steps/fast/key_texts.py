"""Write the texts of keys to hash in a compiled loop, as `flows.steps.validate.key_ids` does.

A key is a JSON list of texts, each of them the value as Python writes it, between the prefix and
suffix of the key (`schemas.made_keys`).
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from schemas.amounts import MICRO_DIGITS
from schemas.compiled import compiled, loop_part

_Bytes = NDArray[np.uint8]
_ZERO, _POINT, _PLUS, _MINUS, _COLON, _T, _E = (ord(sign) for sign in "0.+-:TE")
_QUOTE, _COMMA, _BLANK, _OPEN, _CLOSE = (ord(sign) for sign in '", []')
_WORDS = np.frombuffer(b"FalseTrue", np.uint8)
_FALSE = 5
_SECOND, _DAY = 1_000_000, 86_400_000_000
"""In microseconds."""
MOST_VALUE = 40
"""Most bytes of a value with its quotes and separator."""
ROOM = 20
"""Room for the digits of a value."""


class KeyForm(IntEnum):
    INTEGER = 1
    AMOUNT = 2
    """An amount in millionths, written without trailing zeros."""
    INSTANT = 3
    """An instant in microseconds from 1970 in UTC."""
    WALL = 4
    BOOLEAN = 5


_INTEGER, _AMOUNT, _INSTANT, _WALL, _BOOLEAN = map(int, KeyForm)


@compiled
def write_keys(
    values: NDArray[np.int64],
    forms: NDArray[np.int8],
    before: _Bytes,
    behind: _Bytes,
    digits: NDArray[np.int64],
    last: NDArray[np.int64],
    out: _Bytes,
    ends: NDArray[np.int64],
) -> int:
    """Write the key of each column of `values` to `out` and its end to `ends`; return the size.

    `values` and `forms` have a line for each value of a key. `digits` has ROOM for the digits of
    one value, `last` for the begin and end of each line's last value. A value equal to that of the
    previous record, such as the day of a line of a table, is copied.
    """
    at = 0
    for record in range(len(ends)):
        for place in range(len(before)):
            at = _sign(out, at, before[place])
        at = _sign(out, at, _OPEN)
        for field in range(len(values)):
            if field > 0:
                at = _sign(out, _sign(out, at, _COMMA), _BLANK)
            at = _sign(out, at, _QUOTE)
            value, form = values[field, record], forms[field, record]
            begin = at
            if (
                record > 0
                and value == values[field, record - 1]
                and form == forms[field, record - 1]
            ):
                at = _again(out, last[2 * field], last[2 * field + 1], at)
            else:
                at = _value(out, at, value, form, digits)
            last[2 * field], last[2 * field + 1] = begin, at
            at = _sign(out, at, _QUOTE)
        at = _sign(out, at, _CLOSE)
        for place in range(len(behind)):
            at = _sign(out, at, behind[place])
        ends[record] = at
    return at


@loop_part
def _again(out: _Bytes, begin: int, end: int, at: int) -> int:
    for place in range(begin, end):
        out[np.uint64(at)] = out[np.uint64(place)]
        at += 1
    return at


@loop_part
def _value(out: _Bytes, at: int, value: int, form: int, digits: NDArray[np.int64]) -> int:
    if form == _INTEGER:
        if value < 0:
            at = _sign(out, at, _MINUS)
        # Negated downwards, because the lowest integer has no positive counterpart.
        count = _split(value if value < 0 else -value, digits)
        return _digits(out, at, digits, 0, count)
    if form == _AMOUNT:
        return _amount(out, at, value, digits)
    if form == _BOOLEAN:
        for place in range(_FALSE if value else 0, len(_WORDS) if value else _FALSE):
            at = _sign(out, at, _WORDS[place])
        return at
    at = _time(out, at, value)
    if form == _INSTANT:
        at = _pair(out, _sign(out, at, _PLUS), 0)
        at = _pair(out, _sign(out, at, _COLON), 0)
    return at


@loop_part
def _amount(out: _Bytes, at: int, value: int, digits: NDArray[np.int64]) -> int:
    """Write an amount as Python does a decimal without trailing zeros: `1500` is `1.5E+3`."""
    if value < 0:
        at = _sign(out, at, _MINUS)
    value, scale = abs(value), MICRO_DIGITS
    if value == 0:
        return _sign(out, at, _ZERO)
    while value % 10 == 0:
        value //= 10
        scale -= 1
    count = _split(-value, digits)
    if scale < 0:
        at = _digits(out, at, digits, 0, 1)
        if count > 1:
            at = _digits(out, _sign(out, at, _POINT), digits, 1, count)
        at = _sign(out, _sign(out, at, _E), _PLUS)
        count = _split(scale + 1 - count, digits)
        return _digits(out, at, digits, 0, count)
    if count <= scale:
        at = _sign(out, at, _ZERO)
    at = _digits(out, at, digits, 0, count - scale)
    if scale > 0:
        at = _sign(out, at, _POINT)
        for _ in range(count, scale):
            at = _sign(out, at, _ZERO)
        at = _digits(out, at, digits, max(count - scale, 0), count)
    return at


@loop_part
def _time(out: _Bytes, at: int, value: int) -> int:
    """Write `2026-01-15T10:30:00`, with six decimals if the second is not whole.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    """
    days, micro = value // _DAY + 719_468, value % _DAY
    era = days // 146_097
    of_era = days - era * 146_097
    year_of = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    day_of = of_era - (365 * year_of + year_of // 4 - year_of // 100)
    part = (5 * day_of + 2) // 153
    month = part + 3 if part < 10 else part - 9
    year = year_of + era * 400 + int(month <= 2)
    at = _pair(out, _pair(out, at, year // 100), year % 100)
    at = _pair(out, _sign(out, at, _MINUS), month)
    at = _pair(out, _sign(out, at, _MINUS), day_of - (153 * part + 2) // 5 + 1)
    second, micro = micro // _SECOND, micro % _SECOND
    at = _pair(out, _sign(out, at, _T), second // 3600)
    at = _pair(out, _sign(out, at, _COLON), second // 60 % 60)
    at = _pair(out, _sign(out, at, _COLON), second % 60)
    if micro > 0:
        at = _pair(out, _sign(out, at, _POINT), micro // 10_000)
        at = _pair(out, _pair(out, at, micro // 100 % 100), micro % 100)
    return at


@loop_part
def _split(value: int, digits: NDArray[np.int64]) -> int:
    """Split a number that is not positive into digits, first digit first; return their count."""
    count, rest = 1, value // -10
    while rest > 0:
        count += 1
        rest //= 10
    for place in range(count - 1, -1, -1):
        digits[place] = -(value % -10)
        value = -(value // -10)
    return count


@loop_part
def _digits(out: _Bytes, at: int, digits: NDArray[np.int64], first: int, beyond: int) -> int:
    for place in range(first, beyond):
        at = _sign(out, at, _ZERO + digits[place])
    return at


@loop_part
def _pair(out: _Bytes, at: int, value: int) -> int:
    return _sign(out, _sign(out, at, _ZERO + value // 10), _ZERO + value % 10)


@loop_part
def _sign(out: _Bytes, at: int, sign: int) -> int:
    out[np.uint64(at)] = sign
    return at + 1
