"""Business days after one day, up to and including another."""

from datetime import date, timedelta
from itertools import pairwise

import holidays
import polars as pl
import pytest

from flows.steps.rules.calendar import (
    CalendarUnknown,
    business_ages,
    business_days,
    calendar_ages,
    find_calendar,
    next_business_days,
    unknown_years,
)
from tests.examples import ALL

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
    # Kelantan works on Sundays, and not on Fridays; so did the Emirates until 2022, and Johor
    # until 2025. The stock exchange of New York was open on Saturdays until September 1952.
    (date(2026, 11, 19), date(2026, 11, 20), "MY-03", 0),
    (date(2026, 11, 20), date(2026, 11, 22), "MY-03", 1),
    (date(2026, 11, 23), date(2026, 11, 19), "MY-03", -2),
    (date(2021, 6, 10), date(2021, 6, 13), "AE", 1),
    (date(2021, 12, 30), date(2022, 1, 7), "AE", 5),
    (date(2026, 6, 4), date(2026, 6, 5), "AE", 1),
    (date(2024, 11, 14), date(2024, 11, 15), "MY-01", 0),
    (date(2026, 11, 19), date(2026, 11, 20), "MY-01", 1),
    (date(1951, 11, 16), date(1951, 11, 18), "NYSE", 1),
    # Azerbaijan worked on Sunday 29 December 2024 for 3 January, Myanmar on Saturday 11 January
    # 2025 for 31 December, and on Saturday 3 January 2026 for 26 December.
    (date(2024, 12, 28), date(2024, 12, 29), "AZ", 1),
    (date(2025, 1, 10), date(2025, 1, 11), "MM", 1),
    (date(2026, 1, 2), date(2026, 1, 3), "MM", 1),
    (date(1, 1, 1), date(1, 1, 8), "DE", 5),
    (date(9999, 12, 24), date(9999, 12, 31), "DE", 5),
    (date(9999, 12, 24), date(9999, 12, 31), None, 5),
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
    assert next_business_days(pl.Series([date(2026, 11, 19)]), "MY-03")[0] == date(2026, 11, 22)
    assert next_business_days(pl.Series([date(2021, 6, 10)]), "AE")[0] == date(2021, 6, 13)
    assert next_business_days(pl.Series([date(9999, 12, 31)]), None)[0] == date(9999, 12, 31)


@pytest.mark.filterwarnings("ignore:Requested Holidays are available only from")
def test_each_day_is_asked_of_its_calendar() -> None:
    """Every calendar, in years of which several had another weekend."""
    countries = holidays.list_supported_countries(include_aliases=False)
    names = [*countries, *holidays.list_supported_financial(include_aliases=False)]
    names += [f"{country}-{part}" for country, parts in countries.items() for part in parts]
    wrong = []
    for name in names if ALL else names[:: len(names) // 12]:
        known = find_calendar(name)
        for year in (1951, 2013, 2021, 2024, 2026):
            days = [date(year, 3, 1) + timedelta(days=one) for one in range(28)]
            ages = business_ages(pl.Series(days), days[-1], name).to_list()
            worked = [before - after == 1 for before, after in pairwise(ages)]
            if worked != [known.is_working_day(day) for day in days[1:]]:
                wrong.append((name, year))
    assert not wrong


YEARS = [
    (date(2026, 1, 1), date(2026, 12, 31), "LK", []),
    (date(2002, 12, 31), date(2003, 1, 1), "LK", [2002]),
    (date(2026, 12, 31), date(2028, 1, 1), "LK", [2027, 2028]),
    (date(1999, 5, 1), date(2001, 5, 1), "IN", [1999, 2000]),
    (date(2034, 5, 1), date(2036, 5, 1), "IN-MH", [2036]),
    (date(2013, 1, 1), date(2014, 1, 1), "XHKG", [2013]),
    (date(1, 1, 1), date(9999, 12, 31), None, []),
    (date(9998, 1, 1), date(9999, 12, 31), "DE-BY", [9998, 9999]),
]


@pytest.mark.parametrize(("first", "last", "calendar", "years"), YEARS)
def test_years_whose_holidays_the_library_does_not_know(
    first: date, last: date, calendar: str | None, years: list[int]
) -> None:
    assert unknown_years(first, last, calendar) == years
    business_days(first, last, calendar and "IN")  # And nothing is printed of that.


@pytest.mark.parametrize("name", ["XX", "DE-XX", "ecb!", "", "utils", "HolidayBase", "NYSE-NY"])
def test_an_unknown_calendar_is_refused(name: str) -> None:
    with pytest.raises(CalendarUnknown, match="no calendar"):
        business_days(date(2026, 1, 1), date(2026, 1, 2), name)
