"""Days whose month is a word in another language than English: their formats and month names."""

import calendar
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

MONTHS = 12
_ENGLISH = {name.casefold() for name in (*calendar.month_name, *calendar.month_abbr)}
_TWO_NUMBERS = re.compile(r"(\D*)([0-9]{4}|[0-9]{1,2})(\D+)([0-9]{4}|[0-9]{1,2})(\D*)")
_CLOCK = re.compile(r"(.*\D)[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", re.DOTALL)
_WORD = re.compile(r"[^\s\d.,;:/'\u2019_-]+(?:\.(?=\s|$))?")
_SHORT = 2
"""Most letters of words such as `de`, which some languages put beside the month."""
_YEARS, _DAYS = range(1900, 2100), range(1, 32)


class WordedDays(NamedTuple):
    """How the cells of a column are days with the month in words."""

    forms: tuple[str, ...]
    """Formats by which all of them may be days."""
    names: tuple[str, ...]
    """The month names that occur, in the order of the cells."""


class _Day(NamedTuple):
    """A cell that may be a day; `template` has `{}` in place of its numbers."""

    template: str
    numbers: tuple[str, str]
    name: str
    clock: str
    """Format of the time of day behind it."""

    @property
    def alike(self) -> tuple[str, str]:
        """The values that must be equal for all cells of a column."""
        return self.template, self.clock


def worded_days(cells: Iterable[str]) -> WordedDays | None:
    """How all cells are a day, a word and a year in one order; None if not, or if in English.

    Words are not assigned to months, because names that do not occur are unknown.
    """
    days: list[_Day] = []
    names: dict[str, str] = {}
    for cell in dict.fromkeys(cells):
        day = _day(cell)
        if day is None or (days and day.alike != days[0].alike):
            return None
        days.append(day)
        names.setdefault(day.name.casefold(), day.name)
    if not days or len(names) > MONTHS or names.keys() <= _ENGLISH:
        return None
    of_each = list(zip(*(day.numbers for day in days), strict=True))
    forms = tuple(
        f"{days[0].template.format(*order)}{days[0].clock}"
        for order in (("%d", "%Y"), ("%Y", "%d"), ("%d", "%y"), ("%y", "%d"))
        if all(map(_may_all_be, order, of_each))
    )
    return WordedDays(forms, tuple(names.values())) if forms else None


def _may_all_be(directive: str, numbers: Sequence[str]) -> bool:
    if directive == "%Y":
        return all(int(one) in _YEARS for one in numbers)
    if directive == "%y":
        return all(len(one) == len("26") for one in numbers)
    return all(int(one) in _DAYS for one in numbers)


def _day(cell: str) -> _Day | None:
    """A cell of two numbers and one word; None for any other cell."""
    clock = ""
    if timed := _CLOCK.fullmatch(cell):
        cell, clock = timed[1], "%H:%M:%S" if timed[2] else "%H:%M"
    found = _TWO_NUMBERS.fullmatch(cell)
    if found is None or {*"%{}"} & {*cell}:
        return None
    words = [word for word in _WORD.finditer(cell) if word[0][0].isalpha()]
    words = [word for word in words if len(word[0]) > _SHORT] or words
    if len(words) != 1:
        return None
    places = [*sorted([found.span(2), found.span(4), words[0].span()])]
    marks = ["%B" if place == words[0].span() else "{}" for place in places]
    around = [(0, 0), *places, (len(cell), len(cell))]
    between = [cell[one[1] : other[0]] for one, other in pairwise(around)]
    template = "".join(map("".join, zip(between, [*marks, ""], strict=True)))
    return _Day(template, (found[2], found[4]), words[0][0], clock)
