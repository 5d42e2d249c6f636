"""Days as a spreadsheet counts them: since an epoch, with the time of day behind the point."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

EPOCHS: Mapping[str, datetime] = {
    "excel": datetime(1899, 12, 30),  # noqa: DTZ001 -- of a wall clock, as every one below.
    "excel-1904": datetime(1904, 1, 1),  # noqa: DTZ001
}
"""Name -> the day whose number is 0."""
_FORM = re.compile(r"[0-9]{1,7}(?:[.][0-9]{1,15})?")
_DAY = 86_400
_COARSE = Decimal("0.001")
"""Seconds: finer a double of days does not tell times apart, so a time is one of these."""
_SECOND = Decimal("0.0005")
_FIRST_SURE = 61
"""1 March 1900. Before it `excel` counts a 29 February 1900 that never was, and others do not."""
_LAST = datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001


def day_number(text: str, epoch: str) -> datetime | str:
    """The time that a number of days says, to the millisecond; or why it says none."""
    if _FORM.fullmatch(text) is None:
        return f"not a number of days of {epoch}"
    number = Decimal(text)
    if epoch == "excel" and number < _FIRST_SURE:
        return "a day before 1 March 1900, which spreadsheets number differently"
    seconds = number * _DAY
    whole = seconds.quantize(Decimal(1))
    # A double holds a second only nearly: what is within half a millisecond of one is that one.
    near = whole if abs(seconds - whole) <= _SECOND else seconds.quantize(_COARSE)
    days, rest = divmod(int(near * 1000), _DAY * 1000)
    try:
        found = EPOCHS[epoch] + timedelta(days=days, milliseconds=rest)
    except OverflowError:
        return "no such day exists"
    return found if found <= _LAST else "no such day exists"
