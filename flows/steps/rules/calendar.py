"""Business days: Monday to Friday, or those of a country or market of the `holidays` library.

Some countries work on a Saturday for a bridge day: that is a business day too.
"""

from datetime import date
from functools import cache
from typing import Any

import holidays
import numpy as np
import polars as pl
from numpy.typing import NDArray

WEEKDAYS = "1111100"
"""Monday to Friday, as numpy writes a week."""


class CalendarUnknown(ValueError):
    """No country, subdivision or market of this name."""


def business_days(first: date, last: date, calendar: str | None) -> int:
    """Business days after `first` up to and including `last`; negative where `last` is earlier."""
    if last < first:
        return -business_days(last, first, calendar)
    days = pl.Series([first], dtype=pl.Date)
    return int(business_ages(days, last, calendar)[0])


def business_ages(days: pl.Series, as_of: date, calendar: str | None = None) -> pl.Series:
    """Business days after each day up to and including `as_of`; null where the day is null.

    Raises CalendarUnknown for a calendar that does not exist.
    """
    if days.null_count() == days.len():
        return pl.Series(days.name, [None] * days.len(), dtype=pl.Int32)
    known = days.drop_nulls()
    years = known.dt.year().unique().sort().to_list()
    week = weekmask(calendar)
    span = min(years[0], as_of.year), max(years[-1], as_of.year)
    off, worked = _days_off(calendar, *span), _weekends_worked(calendar, *span)
    begin = known.to_numpy().astype("datetime64[D]") + 1
    end = np.datetime64(as_of) + 1
    # numpy counts from the first day on and leaves out the last; backwards it is the other way.
    counted = np.busday_count(begin, end, weekmask=week, holidays=off)
    backwards = begin > end
    if backwards.any():
        counted[backwards] = -np.busday_count(end, begin[backwards], weekmask=week, holidays=off)
    counted += np.searchsorted(worked, end) - np.searchsorted(worked, begin)
    ages = pl.Series(days.name, counted, dtype=pl.Int32)
    if not days.null_count():
        return ages
    empty = pl.Series(days.name, [None] * days.len(), dtype=pl.Int32)
    return empty.scatter(days.is_not_null().arg_true(), ages)


def next_business_days(days: pl.Series, calendar: str | None) -> pl.Series:
    """The first business day after each day; no day is null."""
    if days.is_empty():
        return days
    years = days.dt.year().unique().sort().to_list()
    span = years[0], min(years[-1] + 1, date.max.year)
    known = days.to_numpy().astype("datetime64[D]")
    following = np.busday_offset(
        known,
        1,
        roll="backward",
        weekmask=weekmask(calendar),
        holidays=_days_off(calendar, *span),
    )
    worked = np.append(_weekends_worked(calendar, *span), np.datetime64(date.max))
    earlier = worked[np.searchsorted(worked[:-1], known, side="right")]
    return pl.Series(days.name, np.minimum(following, earlier), dtype=pl.Date)


def calendar_ages(days: pl.Series, as_of: date) -> pl.Series:
    """Days from each day to `as_of`; null where the day is null."""
    return (pl.Series([as_of]) - days).dt.total_days().cast(pl.Int32).alias(days.name)


def weekmask(calendar: str | None) -> str:
    """The working days of a week, Monday first, as numpy writes them."""
    if calendar is None:
        return WEEKDAYS
    weekend = _known(calendar, 2026, 2026).weekend
    return "".join("0" if day in weekend else "1" for day in range(7))


def _days_off(calendar: str | None, first: int, last: int) -> list[np.datetime64]:
    if calendar is None:
        return []
    return [np.datetime64(day) for day in sorted(_known(calendar, first, last))]


def _weekends_worked(calendar: str | None, first: int, last: int) -> NDArray[np.datetime64]:
    """Days of a weekend that are worked all the same, in order: for a bridge day, as a rule."""
    week = weekmask(calendar)
    of_calendar = _known(calendar, first, last).weekend_workdays if calendar else ()
    worked = sorted(day for day in of_calendar if week[day.weekday()] == "0")
    return np.array(worked, "datetime64[D]")


@cache
def _known(calendar: str, first: int, last: int) -> Any:
    years = range(first, last + 1)
    country, _, subdivision = calendar.partition("-")
    try:
        return holidays.country_holidays(country, subdiv=subdivision or None, years=years)
    except NotImplementedError:
        pass
    try:
        return holidays.financial_holidays(calendar, years=years)
    except NotImplementedError:
        raise CalendarUnknown(
            f"There is no calendar {calendar!r}. Use a country (DE), a country and its subdivision "
            "(DE-BY), or a market (ECB, NYSE) of the holidays library."
        ) from None
