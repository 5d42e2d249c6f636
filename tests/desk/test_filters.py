"""The filter of the breaks: what each field means, and that what fits comes to the figures."""

from decimal import Decimal
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from connectors.errors import DecisionRefused
from flows.desk.filters import FIELDS, BreakSearch
from flows.desk.review import POOLS, figures_of
from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.lifecycle import CHANGED, DECISIONS, carry, nothing_before
from flows.steps.breaks.money import Sums
from flows.steps.breaks.severity import severities
from flows.steps.rules.rules import Rules
from schemas.life import BreakState
from tests.desk.many import many_breaks
from tests.governance.runs import DAY, found, with_counts

NOBODY, UNCHANGED = pl.DataFrame(schema=DECISIONS), pl.DataFrame(schema=CHANGED)


def standing(breaks: pl.DataFrame) -> pl.DataFrame:
    """Breaks as pages have them."""
    carried = with_counts(carry(breaks, nothing_before(), NOBODY, UNCHANGED, DAY))
    absent = {"cause", "proposed_by"} - {*carried.columns}
    carried = carried.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
    return with_ages(carried.with_columns(severities(carried, Rules(), DAY)), DAY, None)


def fitting(breaks: pl.DataFrame, **typed: str) -> list[str]:
    return BreakSearch.read(typed).fitting(breaks)["key"].to_list()


ONE = standing(
    pl.concat(
        [
            found("1", amount="10"),
            found("2", amount="99999999999999999999.5", currency=None, tenant=None),
            found("3", amount=None, amount_beyond="1e308"),
            found("Straße/4", amount="0.01", code="LATE_ARRIVAL", file="April.csv"),
            found("5", amount=None, code="REJECTED", note='PaidAmount is not readable: "12,50"'),
            found("6", amount=None, code="REJECTED", expected="Booked", found="-"),
        ]
    )
)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ({}, ["1", "2", "3", "5", "6", "Straße/4"]),
        ({"currency": "-"}, ["2"]),
        ({"currency": "1", "code": "AMOUNT"}, ["1", "3"]),
        ({"tenant": " 7 "}, ["1", "3", "5", "6", "Straße/4"]),
        ({"tenant": "-"}, ["2"]),
        ({"amount": "10.00"}, ["1", "2", "3", "5"]),
        ({"amount": "10.000000000000000001"}, ["2", "3", "5"]),
        ({"amount": "99 999 999 999 999 999 999.5"}, ["2", "3", "5"]),
        ({"amount": "99999999999999999999.51"}, ["3", "5"]),
        ({"amount": "99999999999999999999.999999999"}, ["3", "5"]),
        ({"age": "0"}, ["1", "2", "3", "5", "6", "Straße/4"]),
        ({"age": "1"}, []),
        ({"text": "straße"}, ["Straße/4"]),
        ({"text": "APRIL.csv"}, ["Straße/4"]),
        ({"text": "PaidAm"}, ["1", "2", "3", "5", "6", "Straße/4"]),
        ({"text": ".*"}, []),
        ({"text": "straße april"}, ["Straße/4"]),
        ({"text": "straße may"}, []),
        ({"text": "booked"}, ["6"]),
        ({"text": "10.00"}, ["1"]),
        ({"text": "\u221210,00"}, ["1"]),
        ({"text": "99\u202f999\u202f999\u202f999\u202f999\u202f999\u202f999.50"}, ["2"]),
        ({"text": "99.999.999.999.999.999.999,5"}, ["2"]),
        ({"text": "1e400"}, []),
        ({"text": "1e999999999999999999"}, []),
        ({"text": "9" * 60}, []),
        ({"text": "0." + "1" * 60}, []),
        ({"state": "open", "basis": "gross"}, ["Straße/4"]),
        ({"state": "aside"}, []),
        ({"owner": "-"}, ["1", "2", "3", "5", "6", "Straße/4"]),
        ({"owner": "anna"}, []),
    ],
)
def test_each_field_of_the_filter(typed: dict[str, str], keys: list[str]) -> None:
    assert sorted(fitting(ONE, **typed)) == keys


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"tenant": "seven"}, "'seven' is no tenant to look for: give a whole number, as 30."),
        ({"age": "1.5"}, "'1.5' is no age to look for"),
        ({"age": "nan"}, "'nan' is no age to look for"),
        ({"currency": "99999999999"}, "'99999999999' is no currency to look for"),
        ({"amount": "1e400"}, "'1e400' is no amount to look for: give an amount, as 1250.00."),
        ({"amount": "12,50"}, "'12,50' is no amount to look for"),
        ({"state": "GONE"}, "There is no state 'GONE'. Known: open, aside, resolved, NEW"),
        ({"severity": "bad"}, "There is no severity 'bad'. Known: high, medium, low."),
    ],
)
def test_what_cannot_be_looked_for_is_said(typed: dict[str, str], said: str) -> None:
    with pytest.raises(DecisionRefused) as refused:
        fitting(ONE, **typed)
    assert said in str(refused.value)


@pytest.mark.long
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_figures_come_to_the_breaks_their_filter_finds(seed: int, rows: int) -> None:
    breaks = standing(many_breaks(rows, seed))
    places = [*BreakState]
    breaks = breaks.with_columns(
        pl.Series("state", [places[(seed + place) % len(places)] for place in range(rows)])
    )
    total = 0
    for one in figures_of(breaks):
        here = BreakSearch({}).query(currency=one.currency, state=one.pool)
        own = BreakSearch.read(QueryParams(here)).fitting(breaks)
        assert own.height == one.breaks
        assert figures_of(own) == (one,)
        total += own.height
        for kind in one.kinds:
            part = BreakSearch.read(QueryParams(here + f"&basis={kind}")).fitting(own)
            sums = figures_of(part)[0].sums
            assert (
                sums
                == {
                    "difference": Sums(difference=one.sums.difference),
                    "gross": Sums(gross=one.sums.gross),
                    "not readable": Sums(unreadable=one.sums.unreadable),
                    "none": Sums(),
                }[kind]
            )
    assert total == rows, "every break is in one figure"


def test_a_filter_keeps_its_fields_in_an_address() -> None:
    typed = dict.fromkeys(FIELDS, "a&b=ü") | {"page": "3"}
    asked = BreakSearch.read(typed)
    assert BreakSearch.read(QueryParams(asked.query(sort="age"))) == asked
    assert "page" not in asked.typed


def test_every_state_is_in_one_pool() -> None:
    states = [state for pool in POOLS.values() for state in pool]
    assert sorted(states) == sorted(BreakState)
    assert not any({*a} & {*b} for a, b in pairwise(POOLS.values()))


def test_largest_sums_are_exact() -> None:
    most = "99999999999999999999.999999999999999999"
    breaks = standing(found("1", "2", "3", amount=most))
    exact = Decimal("299999999999999999999.999999999999999997")
    assert figures_of(breaks)[0].sums.difference == exact
