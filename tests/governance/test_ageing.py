"""How old breaks are, and the matrix an auditor reads."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.breaks.ageing import BUCKETS, ageing, with_ages
from flows.steps.breaks.lifecycle import CARRIED, DECISIONS, carry
from flows.steps.breaks.severity import severities
from flows.steps.rules.rules import Rules, Severities
from tests.governance.runs import found, with_counts

FRIDAY, MONDAY = date(2026, 1, 2), date(2026, 1, 5)


def carried(breaks: pl.DataFrame, first_seen: date) -> pl.DataFrame:
    nobody = pl.DataFrame(schema=DECISIONS)
    gone = pl.DataFrame(schema={"id": pl.String(), "side": pl.String()})
    return with_counts(carry(breaks, pl.DataFrame(schema=CARRIED), nobody, gone, first_seen))


@pytest.mark.long(
    but=(
        "begin0-as_of0-None-0-0",
        "begin1-as_of1-None-3-1",
        "begin2-as_of2-None-2-2",
        "begin4-as_of4-None-0-0",
        "None-as_of5-None-3-1",
    )
)
@pytest.mark.parametrize(
    ("begin", "as_of", "calendar", "days", "business"),
    [
        (FRIDAY, FRIDAY, None, 0, 0),
        (FRIDAY, MONDAY, None, 3, 1),
        (date(2025, 12, 31), FRIDAY, None, 2, 2),
        (date(2025, 12, 31), FRIDAY, "DE", 2, 1),
        (MONDAY, FRIDAY, None, 0, 0),
        (None, MONDAY, None, 3, 1),
    ],
)
def test_an_age_in_calendar_and_business_days(
    begin: date | None, as_of: date, calendar: str | None, days: int, business: int
) -> None:
    """Without a business date a break ages from its first sighting, here the Friday."""
    aged = with_ages(carried(found("1", date=begin), FRIDAY), as_of, calendar)
    assert aged.select("age_days", "age_business_days").rows() == [(days, business)]


@pytest.mark.parametrize(
    ("facts", "days"),
    [
        # One more payment for a debt, and a record that is dated later now.
        ({"code": "DEBT_UNDER", "side": ""}, 3),
        ({}, 3),
        # A plan detail of another day is another one, and this one was seen before it was due.
        ({"code": "PLAN_EARLY", "record": "payment_plan_detail", "side": ""}, 0),
    ],
)
def test_no_break_is_younger_than_it_is_known(facts: dict[str, Any], days: int) -> None:
    aged = with_ages(carried(found("1", date=MONDAY, **facts), FRIDAY), MONDAY, None)
    assert aged["age_days"].to_list() == [days]
    rules = Rules(severities=Severities(medium_age_days=3))
    assert severities(aged, rules, MONDAY).to_list() == ["medium" if days else "low"]


@pytest.mark.parametrize(
    ("days", "severity"), [(6, "low"), (7, "medium"), (29, "medium"), (30, "high")]
)
def test_a_break_is_as_severe_as_the_age_that_is_told(days: int, severity: str) -> None:
    """Also one without a business date, as that of an invoice file."""
    rules = Rules(severities=Severities(medium_age_days=7, high_age_days=30))
    one = carried(found("1", date=None, amount=None), FRIDAY)
    as_of = FRIDAY + timedelta(days=days)
    assert with_ages(one, as_of, None)["age_days"].to_list() == [days]
    assert severities(one, rules, as_of).to_list() == [severity]


@pytest.mark.parametrize(
    ("days", "bucket"),
    [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3"), (4, "4-7"), (7, "4-7"), (8, "8-30"),
     (30, "8-30"), (31, "31-60"), (60, "31-60"), (61, "61-90"), (90, "61-90"), (91, "> 90"),
     (4000, "> 90")],
)  # fmt: skip
def test_both_ends_of_every_bucket(days: int, bucket: str) -> None:
    begin = date.fromordinal(MONDAY.toordinal() - days)
    (line,) = ageing(with_ages(carried(found("1", date=begin), MONDAY), MONDAY, None))
    assert dict(zip(BUCKETS, line.counts, strict=True)) == {
        name: int(name == bucket) for name in BUCKETS
    }


def test_open_breaks_by_code_and_currency_and_no_sum_across_them() -> None:
    breaks = pl.concat(
        [
            found("1", "2", amount="9000000000000000.01", date=FRIDAY),
            found("3", amount="5", currency=12, date=FRIDAY),
            found("4", amount="5", currency=None, code="RATE_MISSING", date=date(2025, 1, 1)),
        ]
    )
    aged = with_ages(carried(breaks, FRIDAY), MONDAY, None)
    shut = aged.with_columns(
        state=pl.when(pl.col("key") == "2").then(pl.lit("ACCEPTED")).otherwise("state")
    )
    lines = ageing(aged)
    assert [(line.code, line.currency, sum(line.counts)) for line in lines] == [
        ("AMOUNT", "1", 2),
        ("AMOUNT", "12", 1),
        ("RATE_MISSING", "", 1),
    ]
    assert sum(lines[0].amounts) == Decimal("18000000000000000.02")
    assert sum(ageing(shut)[0].counts) == 1
    assert ageing(aged.clear()) == ()
