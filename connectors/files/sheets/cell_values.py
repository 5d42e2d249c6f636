"""Workbook cell values turned into text that the readers of cells understand.

Numbers keep the document's text; days and times become ISO 8601.
"""

import re
from datetime import date, time
from decimal import Decimal

from schemas.cells.counted_times import EPOCHS, seconds_of, time_at
from schemas.cells.sheet_cells import NO_DAY, NOT_READ, TOO_EARLY, TOO_LARGE, remarked

EXACT_BELOW = 1 << 53
"""From here on, a workbook cannot hold every whole number."""
DIGITS = 15
"""Most digits that a spreadsheet shows of a number."""
_ALL_DIGITS = 17
"""Digits that distinguish a double from any other; the number it was made of may have fewer."""
MOST_DIGITS = 400
"""More digits than any number of a spreadsheet has."""
_LEFT_OUT = Decimal("0.0005")
"""Showing `DIGITS` digits may drop less than this from a number: so little is no money."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_MOMENT = re.compile(
    r"([0-9]{4,}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
)
_TIME = re.compile(r"(-?)PT([0-9]{1,9})H([0-9]{1,9})M([0-9]{1,9})(?:[.,]([0-9]{1,99}))?S")
_DAY, _HOUR, _MINUTE = 86_400, 3600, 60
_MICRO_DIGITS = 6
"""Digits of a second's fraction: no database keeps more, and no double of a day tells more."""
_EPOCH = date(1899, 12, 30)


def number_text(text: str) -> str:
    """A number as written; with more digits than a spreadsheet shows, as the spreadsheet shows it.

    So 0.1 + 0.2 is 0.3. If rounding could drop money, only the digits are dropped that a 17-digit
    double adds to the number.
    """
    number = _number(text)
    if number is None:
        return remarked(text, NOT_READ)
    if abs(number) >= EXACT_BELOW:
        return remarked(text, TOO_LARGE)
    if number == number.to_integral_value():
        return str(int(number))
    if len(number.normalize().as_tuple().digits) > DIGITS:
        double = float(number)
        rounded = f"{double:.{DIGITS}g}"
        if abs(Decimal(rounded) - number) < _LEFT_OUT:
            return rounded
        if Decimal(f"{double:.{_ALL_DIGITS}g}") == number:
            return repr(double)
    return text if _PLAIN.fullmatch(text) else str(number)


def serial_text(text: str, epoch: str) -> str:
    """The day or time that a number of days stands for; below 1 it is a time of day.

    `epoch` is the name of the day count in `EPOCHS`.
    """
    number = _number(text)
    if number is None:
        return remarked(text, NOT_READ)
    if 0 <= number < 1:
        return duration_text(text)
    if number >= EXACT_BELOW:
        return remarked(text, NO_DAY)
    count = EPOCHS[epoch]
    found = time_at(number, count)
    if isinstance(found, str):
        return remarked(text, TOO_EARLY if number < count.least else NO_DAY)
    return moment_text(found.isoformat())


def duration_text(text: str) -> str:
    """The hours, minutes and seconds that a number of days stands for."""
    number = _number(text)
    if number is None or abs(number) >= EXACT_BELOW:
        return remarked(text, NOT_READ)
    seconds = seconds_of(abs(number))
    if seconds is None:
        return remarked(text, NO_DAY)
    return ("-" if number < 0 else "") + _clock_of(seconds)


def moment_text(text: str) -> str:
    """A day or time in ISO 8601, without a time of day or fraction that is zero."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return remarked(text, NOT_READ)
    day, clock, offset = found[1] or "", found[2] or "", found[3] or ""
    if _has_more_than_micros(clock if day else text):
        return _in_micros(text, day, clock[1:] if day else text, offset)
    if not day:
        return text
    if not clock.strip("T0:.") and not offset:
        return day
    return day + (clock.rstrip("0").rstrip(".") if "." in clock else clock) + offset


def clock_text(text: str) -> str:
    """A duration in ISO 8601 as hours, minutes and seconds."""
    found = _TIME.fullmatch(text)
    if found is None:
        return remarked(text, NOT_READ)
    part = f".{found[5]}" if (found[5] or "").strip("0") else ""
    if _has_more_than_micros(part):
        seconds = seconds_of(_days_of(f"{found[2]}:{found[3]}:{found[4]}{part}"))
        return remarked(text, NO_DAY) if seconds is None else f"{found[1]}{_clock_of(seconds)}"
    return f"{found[1]}{int(found[2]):02}:{int(found[3]):02}:{int(found[4]):02}{part}"


def _has_more_than_micros(clock: str) -> bool:
    return len(clock.partition(".")[2].rstrip("0")) > _MICRO_DIGITS


def _in_micros(text: str, day: str, clock: str, offset: str) -> str:
    """A time to the microsecond, as if read from its number of days; `text` is the whole cell."""
    days = 0
    try:
        time.fromisoformat(clock[: len("00:00:00")])
        if day:
            days = abs((date.fromisoformat(day) - _EPOCH).days)
    except ValueError:
        return text
    seconds = seconds_of(days + _days_of(clock))
    if seconds is None:
        return remarked(text, NO_DAY)
    time_of_day = _clock_of(seconds - days * _DAY)
    return moment_text(f"{day}T{time_of_day}{offset}") if day else time_of_day


def _days_of(clock: str) -> Decimal:
    hours, minutes, seconds = clock.split(":")
    return (int(hours) * _HOUR + int(minutes) * _MINUTE + Decimal(seconds)) / _DAY


def _clock_of(seconds: Decimal) -> str:
    """Hours, minutes and seconds, with a fraction if there is one."""
    whole, part = divmod(seconds, 1)
    hours, rest = divmod(int(whole), _HOUR)
    fraction = f"{part:f}"[1:] if part else ""
    return f"{hours:02}:{rest // _MINUTE:02}:{rest % _MINUTE:02}{fraction}"


def _number(text: str) -> Decimal | None:
    if not _NUMBER.fullmatch(text) or len(text) > MOST_DIGITS:
        return None
    return Decimal(text)
