"""Business days: Monday to Friday, or those of a country or market of the `holidays` library.

Weekends are those of their time: in the Emirates they began on Friday until 2022. A Saturday that a
country works in exchange for a bridge day, even one of another year, is a business day too. Whether
a day is a business day does not depend on the years that were asked for before.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from itertools import chain
from threading import Lock
from typing import Any

import holidays
import numpy as np
import polars as pl
from holidays.registry import COUNTRIES, FINANCIAL
from numpy.typing import NDArray

_Days = NDArray[np.datetime64]
_NAMES = tuple(frozenset(chain.from_iterable(of.values())) for of in (COUNTRIES, FINANCIAL))
"""Names of countries and of markets; other names in the library are not calendars."""
_TURN = Lock()
"""Serialises the collection of warnings, which is process-wide."""


class CalendarUnknown(ValueError):
    """No country, subdivision or market of this name."""


def business_days(first: date, last: date, calendar: str | None) -> int:
    """Business days after `first` up to and including `last`; negative if `last` is earlier."""
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
    """The first business day after each day; `days` must not contain null."""
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


def unknown_years(first: date, last: date, calendar: str | None) -> list[int]:
    """The years of these days for which the library does not know all holidays."""
    if calendar is None:
        return []
    known = find_calendar(calendar)
    within = range(known.start_year, known.end_year + 1)
    years = range(first.year, last.year + 1)
    return [year for year in years if year not in within or not _is_whole(year, calendar)]


def _worked(first: int, last: int, calendar: str | None) -> _Days:
    """The business days from the first year to the last, in order."""
    return np.concatenate([_of_year(year, calendar) for year in range(first, last + 1)])


@cache
def _of_year(year: int, calendar: str | None) -> _Days:
    first = np.datetime64(f"{year:04}")
    days: _Days = np.arange(first, first + 1, dtype="datetime64[D]")
    if calendar is None:
        return days[np.is_busday(days)]
    # A day may be worked in exchange for a holiday of the previous or next year.
    near = range(max(date.min.year, year - 1), min(date.max.year, year + 1) + 1)
    with _warnings():
        known = find_calendar(calendar, near)
    return days[[known.is_working_day(day) for day in days.tolist()]]


@cache
def _is_whole(year: int, calendar: str) -> bool:
    with _warnings() as warned:
        find_calendar(calendar, (year,))
    return not any(issubclass(one.category, UserWarning) for one in warned)


@contextmanager
def _warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of the library for the caller instead of printing them."""
    with _TURN, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield warned


def find_calendar(name: str, years: Iterable[int] = ()) -> Any:
    """Find a country or market by name, with the holidays of `years`; raise CalendarUnknown."""
    country, _, subdivision = name.partition("-")
    countries, markets = _NAMES
    try:
        if country in countries:
            return holidays.country_holidays(country, subdiv=subdivision or None, years=years)
        if name in markets:
            return holidays.financial_holidays(name, years=years)
    except NotImplementedError:  # It has no such subdivision.
        pass
    raise CalendarUnknown(
        f"There is no calendar {name!r}. Use a country (DE), a country and its subdivision "
        "(DE-BY), or a market (ECB, NYSE) of the holidays library."
    )
