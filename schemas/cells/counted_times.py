"""Times as a count since an epoch: days as a spreadsheet counts them, or Unix seconds."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

_DAY = 86_400
_MOST_OPEN = Decimal("0.0005")
"""The most seconds between a number of days and the time it is taken for."""
_PLACES = 6
"""Digits of a second's fraction that are kept."""
_LAST = datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001


class Count(NamedTuple):
    epoch: datetime
    """The time with the number 0; an instant, or a wall clock."""
    seconds: Decimal
    """The seconds of one step."""
    form: re.Pattern[str]
    unit: str
    least: int = 0
    """The first number that is certain."""
    remark: str = ""
    """Why numbers before it are not."""


_DAYS = re.compile(r"[0-9]{1,7}(?:[.][0-9]{1,15})?")
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
EPOCHS: Mapping[str, Count] = {
    "excel": Count(
        datetime(1899, 12, 30),  # noqa: DTZ001
        Decimal(_DAY),
        _DAYS,
        "days",
        # Before this day `excel` counts a 29 February 1900 that never existed; others do not.
        61,
        "a day before 1 March 1900, which spreadsheets number differently",
    ),
    "excel-1904": Count(datetime(1904, 1, 1), Decimal(_DAY), _DAYS, "days"),  # noqa: DTZ001
    "unix": Count(_UNIX, Decimal(1), re.compile(r"[0-9]{1,12}(?:[.][0-9]{1,6})?"), "seconds"),
    "unix-ms": Count(
        _UNIX,
        Decimal("0.001"),
        re.compile(r"[0-9]{1,15}"),
        "milliseconds",
        100_000_000_000,
        "before 3 March 1973, unless they are seconds",
    ),
}
"""Name of a form -> what its numbers count."""
INSTANTS = frozenset(name for name, of in EPOCHS.items() if of.epoch.tzinfo)
"""Forms whose numbers are instants, whatever zone they were written in."""


def counted_time(text: str, form: str) -> datetime | str:
    """The time given by a number in a form of `EPOCHS`, or why it gives none."""
    count = EPOCHS[form]
    if count.form.fullmatch(text) is None:
        return f"not a number of {count.unit} of {form}"
    return time_at(Decimal(text), count)


def time_at(number: Decimal, count: Count) -> datetime | str:
    """The time of a number of steps since an epoch, or why it has none."""
    if number < count.least:
        return count.remark
    seconds = seconds_of(number) if count.seconds == _DAY else number * count.seconds
    if seconds is None:
        return "at midnight, and nobody knows of which day"
    days, rest = divmod(int(seconds * 1_000_000), _DAY * 1_000_000)
    with suppress(OverflowError):
        found = count.epoch + timedelta(days=days, microseconds=rest)
        if found.replace(tzinfo=None) <= _LAST:
            return found
    return "no such day exists"


def seconds_of(days: Decimal) -> Decimal | None:
    """The seconds that a number of days stands for, with as few decimals as possible.

    The number's last digit, and a double of its size, leave a range open. A time of the next day is
    never chosen; None if there is no other.
    """
    seconds, (_, _, exponent) = days * _DAY, days.as_tuple()
    last_digit = Decimal(1).scaleb(int(exponent)) / 2
    left_open = min(_MOST_OPEN, _DAY * max(last_digit, Decimal(math.ulp(float(days)))))
    for places in range(_PLACES + 1):
        near = seconds.quantize(Decimal(1).scaleb(-places))
        is_it = abs(near - seconds) <= left_open or places == _PLACES
        if is_it and near // _DAY == seconds // _DAY:
            return near
    return None
