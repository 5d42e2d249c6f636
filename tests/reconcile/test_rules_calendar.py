"""Business days after one day, up to and including another."""

from datetime import date

import polars as pl
import pytest

from flows.steps.rules.calendar import (
    CalendarUnknown,
    business_ages,
    business_days,
    calendar_ages,
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


def test_a_calendar_has_its_own_weekend() -> None:
    assert weekmask(None) == "1111100"
    assert weekmask("ECB") == "1111100"
    assert weekmask("IL") == "1111001"


@pytest.mark.parametrize("name", ["XX", "DE-XX", "ecb!", ""])
def test_an_unknown_calendar_is_refused(name: str) -> None:
    with pytest.raises(CalendarUnknown, match="no calendar"):
        business_days(date(2026, 1, 1), date(2026, 1, 2), name)
