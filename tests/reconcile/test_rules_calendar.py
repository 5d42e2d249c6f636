"""Business days after one day, up to and including another."""

from datetime import date

import polars as pl
import pytest

from flows.steps.rules.calendar import (
    CalendarUnknown,
    business_ages,
    business_days,
    calendar_ages,
    next_business_days,
    weekmask,
)

DAYS = [
    # 2 January 2026 is a Friday; 3 April is Good Friday, 6 April Easter Monday, 1 May a Friday.
    (date(2026, 1, 2), date(2026, 1, 2), None, 0),
    (date(2026, 1, 2), date(2026, 1, 3), None, 0),
    (date(2026, 1, 2), date(2026, 1, 5), None, 1),
    (date(2026, 1, 2), date(2026, 1, 9), None, 5),
    (date(2026, 1, 5), date(2026, 1, 2), None, -1),
    (date(2026, 1, 3), date(2026, 1, 4), None, 0),
    (date(2026, 4, 2), date(2026, 4, 7), None, 3),
    (date(2026, 4, 2), date(2026, 4, 7), "ECB", 1),
    (date(2026, 4, 7), date(2026, 4, 2), "ECB", -1),
    (date(2026, 1, 5), date(2026, 1, 6), "DE", 1),
    (date(2026, 1, 5), date(2026, 1, 6), "DE-BY", 0),
    (date(2025, 12, 31), date(2026, 1, 2), "NYSE", 1),
    (date(2024, 2, 28), date(2024, 3, 1), None, 2),
    # On Saturday 3 August 2024 Hungary worked for Monday 19, on 14 December for Friday 27.
    (date(2024, 8, 2), date(2024, 8, 3), "HU", 1),
    (date(2024, 8, 3), date(2024, 8, 5), "HU", 1),
    (date(2024, 8, 1), date(2024, 8, 20), "HU", 12),
    (date(2024, 12, 16), date(2024, 12, 13), "HU", -2),
    (date(2024, 8, 2), date(2024, 8, 3), None, 0),
]


@pytest.mark.parametrize(("first", "last", "calendar", "days"), DAYS)
def test_business_days(first: date, last: date, calendar: str | None, days: int) -> None:
    assert business_days(first, last, calendar) == days


def test_ages_of_many_days() -> None:
    days = pl.Series("day", [date(2026, 4, 2), None, date(2026, 4, 7)])
    assert business_ages(days, date(2026, 4, 7), "ECB").to_list() == [1, None, 0]
    assert calendar_ages(days, date(2026, 4, 7)).to_list() == [5, None, 0]
    empty = pl.Series("day", [None], dtype=pl.Date)
    assert business_ages(empty, date(2026, 4, 7)).to_list() == [None]


def test_the_next_business_day_may_be_at_a_weekend() -> None:
    days = [date(2024, 8, day) for day in (1, 2, 3, 9, 16)]
    following = [date(2024, 8, day) for day in (2, 3, 5, 12, 21)]
    assert next_business_days(pl.Series(days), "HU").to_list() == following
    assert next_business_days(pl.Series(days), None)[1] == date(2024, 8, 5)


def test_a_calendar_has_its_own_weekend() -> None:
    assert weekmask(None) == "1111100"
    assert weekmask("ECB") == "1111100"
    assert weekmask("IL") == "1111001"


@pytest.mark.parametrize("name", ["XX", "DE-XX", "ecb!", ""])
def test_an_unknown_calendar_is_refused(name: str) -> None:
    with pytest.raises(CalendarUnknown, match="no calendar"):
        business_days(date(2026, 1, 1), date(2026, 1, 2), name)
