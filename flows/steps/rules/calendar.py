"""Business days: Monday to Friday, or those of a country or market of the `holidays` library.

A weekend is the one of that day: in the Emirates it began on Friday until 2022. Some countries work
on a Saturday for a bridge day: that is a business day too.
"""

from datetime import date
from functools import cache
from typing import Any

import holidays
import numpy as np
import polars as pl
from numpy.typing import NDArray

_Days = NDArray[np.datetime64]


class CalendarUnknown(ValueError):
    """No country, subdivision or market of this name."""


def business_days(first: date, last: date, calendar: str | None) -> int:
    """Business days after `first` up to and including `last`; negative where `last` is earlier."""
    return int(business_ages(pl.Series([first], dtype=pl.Date), last, calendar)[0])


def business_ages(days: pl.Series, as_of: date, calendar: str | None = None) -> pl.Series:
    """Business days after each day up to and including `as_of`; null where the day is null.

    Raises CalendarUnknown for a calendar that does not exist.
    """
    known, empty = days.drop_nulls(), pl.Series(days.name, [None] * days.len(), dtype=pl.Int32)
    if known.is_empty():
        return empty
    years = [*known.dt.year().unique(), as_of.year]
    worked = _worked(min(years), max(years), calendar)
    until = np.searchsorted(worked, np.datetime64(as_of), side="right")
    counted = until - np.searchsorted(worked, _days(known), side="right")
    ages = pl.Series(days.name, counted, dtype=pl.Int32)
    return empty.scatter(days.is_not_null().arg_true(), ages) if days.null_count() else ages


def next_business_days(days: pl.Series, calendar: str | None) -> pl.Series:
    """The first business day after each day; no day is null."""
    if days.is_empty():
        return days
    years = days.dt.year().unique().to_list()
    worked = _worked(min(years), min(max(years) + 1, date.max.year), calendar)
    worked = np.append(worked, np.datetime64(date.max))
    following = worked[np.searchsorted(worked[:-1], _days(days), side="right")]
    return pl.Series(days.name, following, dtype=pl.Date)


def calendar_ages(days: pl.Series, as_of: date) -> pl.Series:
    """Days from each day to `as_of`; null where the day is null."""
    return (pl.Series([as_of]) - days).dt.total_days().cast(pl.Int32).alias(days.name)


def _days(days: pl.Series) -> _Days:
    return days.to_numpy().astype("datetime64[D]")


def _worked(first: int, last: int, calendar: str | None) -> _Days:
    """The business days from the first year to the last, in order."""
    return np.concatenate([_of_year(year, calendar) for year in range(first, last + 1)])


@cache
def _of_year(year: int, calendar: str | None) -> _Days:
    first = np.datetime64(f"{year:04}")
    days: _Days = np.arange(first, first + 1, dtype="datetime64[D]")
    if calendar is None:
        return days[np.is_busday(days)]
    known = find_calendar(calendar)
    return days[[known.is_working_day(day) for day in days.tolist()]]


@cache
def find_calendar(name: str) -> Any:
    """A country or market by its name; raises CalendarUnknown."""
    country, _, subdivision = name.partition("-")
    try:
        return holidays.country_holidays(country, subdiv=subdivision or None)
    except NotImplementedError:
        pass
    try:
        return holidays.financial_holidays(name)
    except NotImplementedError:
        raise CalendarUnknown(
            f"There is no calendar {name!r}. Use a country (DE), a country and its subdivision "
            "(DE-BY), or a market (ECB, NYSE) of the holidays library."
        ) from None
