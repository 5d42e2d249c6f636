"""The forms in which a feed writes times: by them a text has exactly one reading, or none.

If two forms would read a text as two different times, it is not clear which is meant: it has none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product

from schemas.cells.counted_times import EPOCHS, counted_time
from schemas.cells.dates import DateForm, Zones, date_form, date_parts, outline

_YEARS, _DAYS = (2001, 2026, 2012, 1011), ((2, 3), (11, 10), (1, 12), (12, 31))
_CLOCKS = ((4, 5, 6, 70_000), (0, 0, 0, 0), (11, 12, 10, 120_000))
"""Times whose parts may also be other parts: a day, a month, two digits of a year."""
_CLOCK = frozenset("HIMSfp")
"""Directives of a time of day."""
_OFFSETS = ("Z", "+0100", "+01:00", "-02")
_COUNTS = ("61", "45292", "1010203", "45292.5", "1767225600", "100000000000", "1767225600000")


@dataclass(frozen=True, slots=True)
class DateForms:
    """How a feed writes dates and times; the default is ISO 8601."""

    texts: tuple[str, ...] = ()
    """Directives, or names of `EPOCHS`; each time is written in one of these forms."""
    zeros_dropped: bool = False
    """Whether digits of a date lack their leading zeros."""
    months: tuple[str, ...] = ()
    """The names of the twelve months; empty: English names."""
    zones: Zones = ()
    """The meaning of zone names beside times: an offset, or the rules of a zone."""
    year_zero: int = 0
    """Which year is the feed's year 0: 2018, if 8 is 2026."""
    decimal: str = "."
    """The sign before the fraction of a number of days or seconds."""

    @property
    def counted(self) -> bool:
        """Whether a time may be a number."""
        return not EPOCHS.keys().isdisjoint(self.texts)

    @property
    def outlines(self) -> tuple[str, ...]:
        """For each form a pattern that all its texts match, and perhaps others; for polars."""
        number = r"[0-9]+(?:[.,][0-9]+)?"
        return tuple(number if form in EPOCHS else outline(form) for form in self.texts)

    def wall(self, text: str) -> datetime | str:
        """The time in a text, with its offset or zone if it has one; or why there is none."""
        walls = self._walls(text)
        first = next((wall for _, wall in walls if isinstance(wall, datetime)), None)
        if first is None:
            return "; ".join(str(why) for _, why in walls)
        return _two_times(walls) or first

    def says_a_day(self, text: str) -> bool:
        """Whether a text gives a day without a time of day."""
        return any(
            isinstance(wall, datetime) and not _has_clock(form, text)
            for form, wall in self._walls(text)
        )

    def ambiguous(self) -> tuple[str, str] | None:
        """A text that two forms read as two times, and how; None if none was found."""
        for written_in in self.texts if len(self.texts) > 1 else ():
            for text in self._written(written_in):
                if two := _two_times(self._walls(text)):
                    return text, two
        return None

    def _walls(self, text: str) -> list[tuple[str, datetime | str]]:
        """By form, the time in a text, or why there is none."""
        return [(form, self._wall(form, text)) for form in self.texts]

    def _wall(self, form: str, text: str) -> datetime | str:
        if form in EPOCHS:
            point = {ord(self.decimal): ".", ord("."): self.decimal}
            wall = counted_time(number := text.translate(point), form)
            is_other = "," in number and EPOCHS[form].form.fullmatch(number.replace(",", "."))
            return f"{wall}: decimal sign is {self.decimal!r}" if is_other else wall
        return self.form(form).wall(text)

    def form(self, text: str) -> DateForm:
        """The form of a text of directives, with the feed's names and years; raises NoForm."""
        return date_form(
            text,
            zeros_dropped=self.zeros_dropped,
            months=self.months,
            zones=self.zones,
            year_zero=self.year_zero,
        )

    def _written(self, form: str) -> Iterator[str]:
        """Texts as a form writes times, with and without zeros; not all of them need be valid."""
        if form in EPOCHS:
            yield from (text.replace(".", self.decimal) for text in _COUNTS)
            return
        parts = [*date_parts(form)]
        named = {part.directive for part in parts}
        offsets = _OFFSETS if "z" in named else ("",)
        zones = [name for name, _ in self.zones] if "Z" in named else [""]
        for year, day, clock, offset, zone in product(_YEARS, _DAYS, _CLOCKS, offsets, zones):
            wall = datetime(year, *day, *clock)  # noqa: DTZ001
            own = {"z": offset, "Z": zone}
            if self.year_zero and (counted := year - self.year_zero) > 0:
                own |= {"Y": f"{counted:03}", "y": f"{counted % 100:02}"}
            if self.months:
                own |= dict.fromkeys("bB", self.months[wall.month - 1])
            text = "".join(
                part.text
                if part.directive is None
                else own.get(part.directive) or wall.strftime(f"%{part.directive}")
                for part in parts
            )
            yield text
            yield re.sub("(?<![0-9])0+(?=[0-9])", "", text)


def _has_clock(form: str, text: str) -> bool:
    if form in EPOCHS:
        return not text.isdecimal()
    return any(part.directive in _CLOCK for part in date_parts(form) if part.directive)


def _two_times(walls: Sequence[tuple[str, datetime | str]]) -> str | None:
    """What two forms read differently in one text; None if all read the same time."""
    read = [(form, wall) for form, wall in walls if isinstance(wall, datetime)]
    for form, wall in read[1:]:
        first_form, first = read[0]
        # One instant with two offsets counts as two times, because the offset is kept.
        if (wall.replace(tzinfo=None), wall.tzinfo) != (first.replace(tzinfo=None), first.tzinfo):
            return f"{first.isoformat()} as {first_form}, and {wall.isoformat()} as {form}"
    return None
