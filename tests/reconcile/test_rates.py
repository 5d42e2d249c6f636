"""Exchange rates: one minimal case per code, and beside it a neighbour that raises nothing."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.acceptance import BOUND
from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.frame import gather
from flows.steps.breaks.make import Annex
from flows.steps.frames.parts import held
from flows.steps.reconcile.rates import reconcile_rates
from flows.steps.rules.rules import Direction, Rates, Rules, Window
from schemas.tables import CURRENCY_RATE, PAYMENT
from tests.examples import examples
from tests.reconcile.records import database, extract, new

RULES = Rules(rates=Rates(daily=True))
FIRST_DAY = date(2026, 3, 1)
"""No series has ended by then."""


def paid(day: int = 4, **values: Any) -> dict[str, Any]:
    """A payment on a day of March 2026, at noon."""
    moment = datetime(2026, 3, day, 12, tzinfo=UTC)
    return {"PaymentDate": moment, "PaymentDate_offset": 0, **values}


def rate(number: int, day: int, value: float = 1.1, **values: Any) -> dict[str, Any]:
    """A rate of a day of March 2026, from 978 to 840 unless said otherwise."""
    effective = datetime(2026, 3, 1) + timedelta(days=day - 1)  # noqa: DTZ001
    return {"Id": number, "ExchangeRate": value, "EffectiveDate": effective, **values}


def between(source: int, target: int) -> dict[str, int]:
    return {"FromCurrenciesId": source, "ToCurrenciesId": target}


def judged(
    payments: list[dict[str, Any]],
    rates: list[dict[str, Any]],
    rules: Rules = RULES,
    as_of: date = FIRST_DAY,
) -> Annex[Any]:
    return reconcile_rates(
        (held(extract(PAYMENT, *payments)),), database(CURRENCY_RATE, *rates), rules, as_of
    )


def told(annex: Annex[Any]) -> list[tuple[str, str, str]]:
    return sorted(annex.breaks.select("code", "key", "field").iter_rows())


USED = "CurrencyRatesId"
PAYMENT_CASES: list[tuple[str, dict[str, Any], list[dict[str, Any]], Rules]] = [
    # code, payment, rates, rules
    ("", paid(), [rate(5, 4)], RULES),
    ("RATE_MISSING", paid(), [rate(6, 4)], RULES),
    # Numbers apart by one, beyond what a double tells apart.
    ("RATE_MISSING", paid(CurrencyRatesId=2**53 + 1), [rate(2**53, 4)], RULES),
    ("", paid(CurrencyRatesId=2**53 + 1), [rate(2**53 + 1, 4)], RULES),
    ("", paid(CurrenciesId=840), [rate(5, 4)], RULES),
    ("RATE_PAIR", paid(CurrenciesId=756), [rate(5, 4)], RULES),
    ("RATE_PAIR", paid(CurrenciesId=978), [rate(5, 4)], Rules(rates=Rates(base_currency=756))),
    ("", paid(CurrenciesId=978), [rate(5, 4)], Rules(rates=Rates(base_currency=840))),
    ("RATE_FUTURE", paid(4), [rate(5, 5)], RULES),
    ("RATE_STALE", paid(12), [rate(5, 4)], RULES),
    ("", paid(11), [rate(5, 4)], RULES),
    ("", paid(30), [rate(5, 4)], Rules(rates=Rates(stale_days=None))),
    ("RATE_NOT_LATEST", paid(5), [rate(5, 4), rate(6, 5)], RULES),
    ("", paid(5), [rate(5, 5), rate(6, 6)], RULES),
    ("", paid(5), [rate(5, 4), rate(6, 5, **between(978, 756))], RULES),
    ("", paid(5), [rate(5, 4), rate(6, 5, TenantsId=2)], RULES),
]


@pytest.mark.parametrize(("code", "payment", "rates", "rules"), PAYMENT_CASES)
def test_the_rate_of_a_payment(
    code: str, payment: dict[str, Any], rates: list[dict[str, Any]], rules: Rules
) -> None:
    assert told(judged([payment], rates, rules)) == ([(code, "1/1", USED)] if code else [])


RATE_CASES: list[tuple[str, str, list[dict[str, Any]], Rules]] = [
    # code, key it is told at, rates, rules
    ("RATE_NONPOSITIVE", "5/1", [rate(5, 4, 0.0)], RULES),
    ("RATE_NONPOSITIVE", "5/1", [rate(5, 4, -1.1)], RULES),
    ("", "", [rate(5, 4, 1e-9)], RULES),
    ("RATE_SELF", "5/1", [rate(5, 4, 1.01, **between(978, 978))], RULES),
    ("", "", [rate(5, 4, 1.0, **between(978, 978))], RULES),
    ("RATE_INVERSE", "6/1", [rate(5, 4, 1.25), rate(6, 4, 0.81, **between(840, 978))], RULES),
    ("", "", [rate(5, 4, 1.25), rate(6, 4, 0.8, **between(840, 978))], RULES),
    ("", "", [rate(5, 4, 1.25), rate(6, 5, 0.81, **between(840, 978))], RULES),
    ("", "", [rate(5, 4, 1.25), rate(6, 4, 0.81, TenantsId=2, **between(840, 978))], RULES),
    # Exactly at the bound is inside it, a digit further is not.
    ("", "", [rate(5, 4, 1.001), rate(6, 4, 1.0, **between(840, 978))], RULES),
    ("RATE_INVERSE", "6/1",
     [rate(5, 4, 1.0010000000000001), rate(6, 4, 1.0, **between(840, 978))], RULES),
    # The product is less than 1 by one in its thirtieth digit.
    ("RATE_INVERSE", "6/1",
     [rate(5, 4, 1.000000000000001), rate(6, 4, 0.999999999999999, **between(840, 978))],
     Rules(rates=Rates(inverse_tolerance=Decimal(0)))),
    ("RATE_TRIANGLE", "7/1",
     [rate(5, 4, 2.0, **between(1, 2)), rate(6, 4, 3.0, **between(2, 3)),
      rate(7, 4, 6.1, **between(1, 3))], RULES),
    ("", "",
     [rate(5, 4, 2.0, **between(1, 2)), rate(6, 4, 3.0, **between(2, 3)),
      rate(7, 4, 6.001, **between(1, 3))], RULES),
    ("", "",
     [rate(5, 4, 2.0, **between(1, 2)), rate(6, 4, 4.0, **between(2, 3)),
      rate(7, 4, 0.125, **between(3, 1))], RULES),
    # A product of just 1.001 is within what is allowed, whichever way the third rate is quoted.
    ("", "",
     [rate(5, 4, 2.002, **between(1, 2)), rate(6, 4, 1.0, **between(2, 3)),
      rate(7, 4, 2.0, **between(1, 3))], RULES),
    ("", "",
     [rate(5, 4, 2.002, **between(1, 2)), rate(6, 4, 1.0, **between(2, 3)),
      rate(7, 4, 0.5, **between(3, 1))], RULES),
    # March 6 is a Friday, March 10 a Tuesday.
    ("RATE_GAP", "6/1", [rate(5, 6), rate(6, 10)], RULES),
    ("", "", [rate(5, 6), rate(6, 9)], RULES),
    ("", "", [rate(5, 6), rate(6, 10)], Rules()),
    ("RATE_JUMP", "6/1", [rate(5, 4, 1.0), rate(6, 5, 1.11)], RULES),
    ("", "", [rate(5, 4, 1.0), rate(6, 5, 1.1)], RULES),
    # One wrong rate jumps there and back; only the wrong one is told.
    ("RATE_JUMP", "6/1", [rate(5, 4, 1.0), rate(6, 5, 10.0), rate(7, 6, 1.0)], RULES),
    ("", "", [rate(5, 4, 1.0), rate(6, 5, 1.5)], Rules(rates=Rates(jump_percent=None))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "key", "rates", "rules"), RATE_CASES)
def test_rates_among_themselves(
    code: str, key: str, rates: list[dict[str, Any]], rules: Rules
) -> None:
    found = [(code, key) for code, key, _ in told(judged([], rates, rules))]
    assert found == ([(code, key)] if code else [])


WITHIN_A_DAY = Rules(rates=Rates(daily=True), windows=(Window(CURRENCY_RATE.name, 1),))
END_CASES: list[tuple[list[tuple[str, str | None]], int, list[dict[str, Any]], Rules]] = [
    # Keys it is told at and the day that is missing, day of March, rates, rules.
    # March 6 is a Friday, March 10 a Tuesday.
    ([], 6, [rate(5, 6)], RULES),
    ([], 8, [rate(5, 6)], RULES),
    ([("5/1", "2026-03-09")], 9, [rate(5, 6)], RULES),
    ([("5/1", "2026-03-09")], 31, [rate(5, 6)], RULES),
    ([("5/1", "2026-03-09")], 9, [rate(5, 7)], RULES),
    ([], 31, [rate(5, 6)], Rules()),
    # The last rate of the series says it, also where a gap is told of that rate.
    ([("6/1", "2026-03-11")], 11, [rate(5, 9), rate(6, 10)], RULES),
    ([("6/1", None), ("6/1", "2026-03-11")], 11, [rate(5, 6), rate(6, 10)], RULES),
    # Each series by itself; a rate that cannot be used is none.
    ([("6/1", "2026-03-10")], 10, [rate(5, 10), rate(6, 9, **between(978, 756))], RULES),
    ([("6/2", "2026-03-10")], 10, [rate(5, 10), rate(6, 9, TenantsId=2)], RULES),
    ([("5/1", "2026-03-10")], 10, [rate(5, 9), rate(6, 10, 0.0)], RULES),
    ([], 10, [rate(5, 2, 1.0, **between(978, 978))], RULES),
    # A window gives the missing days time: two of them, the first a business day too old.
    ([], 10, [rate(5, 6)], WITHIN_A_DAY),
    ([("5/1", "2026-03-09")], 11, [rate(5, 6)], WITHIN_A_DAY),
    # Good Friday and Easter Monday, April 3 and 6, are no days of the ECB.
    ([], 37, [rate(6, 33)], replace(RULES, calendar="ECB")),
    ([("6/1", "2026-04-07")], 38, [rate(6, 33)], replace(RULES, calendar="ECB")),
]  # fmt: skip


@pytest.mark.parametrize(("missing", "day", "rates", "rules"), END_CASES)
def test_a_series_that_ends_before_the_day_of_the_report(
    missing: list[tuple[str, str | None]], day: int, rates: list[dict[str, Any]], rules: Rules
) -> None:
    as_of = date(2026, 3, 1) + timedelta(days=day - 1)
    found = gather([judged([], rates, rules, as_of).breaks]).filter(pl.col("code") == "RATE_GAP")
    ends = found.filter(pl.col("field") == "").select("key", "expected").rows()
    assert sorted(ends) == sorted(each for each in missing if each[1])
    assert found.height == len(missing)


def test_that_a_series_has_ended_is_accepted_once() -> None:
    """What an acceptance is bound to is the same on each day; the missing days are the age."""
    days = (date(2026, 3, 9), date(2026, 3, 10), date(2026, 12, 31))
    found = [judged([], [rate(5, 6)], RULES, day).breaks for day in days]
    first, *others = (one.select("code", "key", *BOUND).rows() for one in found)
    assert [len(first), *others] == [1, first, first]
    aged = [with_ages(new(one), day, None) for one, day in zip(found, days, strict=True)]
    assert [one["age_business_days"].item() for one in aged] == [1, 2, 214]


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ([rate(5, 4, 1e200, **between(1, 2)), rate(6, 4, 1e200, **between(2, 3)),
          rate(7, 4, 1e-200, **between(1, 3))], ("1e+600", "open triangles: 1; ")),
        ([rate(5, 4, 1e-200, **between(1, 2)), rate(6, 4, 1e-200, **between(2, 3)),
          rate(7, 4, 1e200, **between(1, 3))], ("1e-600", "open triangles: 1; ")),
        ([rate(5, 4, 1e-300), rate(6, 5, 1e300)], ("1e+300", "1e+602 % since ")),
        ([rate(5, 4, 1.0), rate(6, 5, 1.25)], ("1.25", "25.0 % since ")),
        ([rate(5, 4, 2.0, **between(1, 2)), rate(6, 4, 3.0, **between(2, 3)),
          rate(7, 4, 7.0, **between(1, 3))], ("0.857142857", "open triangles: 1; ")),
    ],
)  # fmt: skip
def test_how_far_rates_are_apart_is_told_whatever_their_size(
    rates: list[dict[str, Any]], words: tuple[str, str]
) -> None:
    """What no double holds is no fault, and neither nothing nor infinite."""
    ((found, note),) = judged([], rates).breaks.select("found", "note").iter_rows()
    assert found == words[0]
    assert note.startswith(words[1])


def test_a_rate_of_another_tenant_is_told_and_the_tenants_that_meet_once() -> None:
    payments = [paid(Id=1), paid(Id=2)]
    annex = judged(payments, [rate(5, 4, TenantsId=2)])
    assert told(annex) == [
        ("RATE_TENANT", "1/1", USED),
        ("RATE_TENANT", "2/1", USED),
        ("TENANT_CROSS", "1/2", USED),
    ]


def test_one_rate_number_of_two_tenants_is_two_rates() -> None:
    payments = [paid(TenantsId=1), paid(TenantsId=2)]
    annex = judged(payments, [rate(5, 4, 1.1), rate(5, 4, 1.2, TenantsId=2)])
    assert told(annex) == []
    assert [(line.tenant, line.value, line.payments) for line in annex.lines] == [
        (1, Decimal("1.1"), 1),
        (2, Decimal("1.2"), 1),
    ]


def test_the_rate_in_most_open_triangles_is_the_one_told() -> None:
    pairs = {(1, 2): 2.0, (1, 3): 3.0, (1, 4): 4.0, (2, 3): 1.5, (2, 4): 2.0, (3, 4): 4 / 3}
    pairs[1, 3] = 9.0
    rates = [
        rate(place, 4, value, **between(*pair)) for place, (pair, value) in enumerate(pairs.items())
    ]
    found = judged([], rates).breaks
    assert found.select("code", "key").rows() == [("RATE_TRIANGLE", "1/1")]


def test_a_payment_s_day_is_the_day_where_it_was_made() -> None:
    late = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)
    tokyo = {"PaymentDate": late, "PaymentDate_offset": 540}
    london = {"PaymentDate": late, "PaymentDate_offset": 0}
    rates = [rate(5, 5)]
    assert told(judged([tokyo], rates)) == []
    assert told(judged([london], rates)) == [("RATE_FUTURE", "1/1", USED)]


def test_the_annex_tells_use_and_what_the_nearest_rate_would_have_made() -> None:
    payments = [
        paid(4, Id=1, PaidAmount=Decimal("100.10")),
        paid(6, Id=2, PaidAmount=Decimal("9000000000000000.01")),
    ]
    rules = Rules(rates=Rates(direction=Direction.FROM_TO))
    annex = judged(payments, [rate(5, 4, 1.1), rate(6, 6, 1.2)], rules)
    (line,) = annex.lines
    assert (line.rate, line.payments, line.age_min, line.age_max) == ("5", 2, 0, 2)
    assert line.amounts == {"978": Decimal("9000000000000100.11")}
    assert line.flags == ("RATE_NOT_LATEST",)
    assert line.nearest == "6"
    # Only the second payment had a nearer rate: 9000000000000000.01 at 0.1 more.
    assert (line.rerated, line.rerated_in) == (Decimal("900000000000000.001"), "840")


def test_the_nearest_rate_is_named_beside_a_payment_that_has_none() -> None:
    # Tenant 2 has no rate of the pair: the one it used is that of tenant 1.
    payments = [paid(2, Id=1, TenantsId=2), paid(6, Id=2), paid(7, Id=3)]
    (line,) = judged(payments, [rate(5, 4), rate(6, 6, 1.2)]).lines
    assert (line.rate, line.tenant, line.payments, line.nearest) == ("5", 1, 3, "6")
    (line,) = judged(payments[:1], [rate(5, 4)]).lines
    assert line.nearest is None


@pytest.mark.parametrize(
    ("direction", "currency", "effect"),
    [
        (Direction.UNKNOWN, 978, None),
        (Direction.FROM_TO, 978, Decimal(25)),
        (Direction.TO_FROM, 840, Decimal(25)),
        (Direction.FROM_TO, 840, Decimal(-10)),
        (Direction.TO_FROM, 978, Decimal(-10)),
    ],
)
def test_rerating_asks_what_a_rate_multiplies(
    direction: Direction, currency: int, effect: Decimal | None
) -> None:
    payment = paid(5, PaidAmount=Decimal(100), CurrenciesId=currency)
    rules = Rules(rates=Rates(direction=direction, jump_percent=None))
    annex = judged([payment], [rate(5, 4, 2.0), rate(6, 5, 2.25 if effect == 25 else 2.5)], rules)
    assert annex.lines[0].rerated == effect
    other = "840" if currency == 978 else "978"
    assert annex.lines[0].rerated_in == ("" if effect is None else other)


@pytest.mark.parametrize("direction", [Direction.FROM_TO, Direction.TO_FROM])
@pytest.mark.parametrize(("used", "best"), [(5e-324, 1.7e308), (1.7e308, 5e-324)])
def test_the_furthest_rates_a_double_holds_can_be_rerated(
    direction: Direction, used: float, best: float
) -> None:
    rules = Rules(rates=Rates(direction=direction, jump_percent=None))
    payment = paid(5, PaidAmount=Decimal("9e18"), CurrenciesId=978)
    annex = judged([payment], [rate(5, 4, used), rate(6, 5, best)], rules)
    assert annex.lines[0].rerated


def test_effects_in_two_currencies_are_not_added() -> None:
    payments = [paid(5, Id=1, CurrenciesId=978), paid(5, Id=2, CurrenciesId=840)]
    rules = Rules(rates=Rates(direction=Direction.FROM_TO, jump_percent=None))
    (line,) = judged(payments, [rate(5, 4, 2.0), rate(6, 5, 2.5)], rules).lines
    assert (line.rerated, line.rerated_in) == (None, "")
    assert line.amounts == {"840": Decimal(10), "978": Decimal(10)}


numbers = st.integers(1, 6)
tenants = st.integers(1, 2)
some_payments = st.lists(
    st.builds(
        lambda number, tenant, day, currency, used: paid(
            day, Id=number, TenantsId=tenant, CurrenciesId=currency, CurrencyRatesId=used
        ),
        st.integers(2**53, 2**53 + 3), tenants, st.integers(2, 20), st.integers(1, 3), numbers,
    ),
    max_size=8,
    unique_by=lambda row: (row["Id"], row["TenantsId"]),
)  # fmt: skip
some_rates = st.lists(
    st.builds(
        lambda number, tenant, day, pair, value: rate(
            number, day, value, TenantsId=tenant, **between(*pair)
        ),
        numbers, tenants, st.integers(2, 20), st.tuples(st.integers(1, 3), st.integers(1, 3)),
        st.sampled_from([0.5, 1.0, 2.0, 0.0]),
    ),
    max_size=8,
    unique_by=lambda row: (row["Id"], row["TenantsId"]),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(some_payments, some_rates)
def test_against_a_slow_reading_of_the_rules(
    payments: list[dict[str, Any]], rates: list[dict[str, Any]]
) -> None:
    """Each payment looks for its rate by itself, with loops in place of joins."""
    extracted, known = extract(PAYMENT, *payments), database(CURRENCY_RATE, *rates)
    annex = reconcile_rates((held(extracted),), known, RULES, FIRST_DAY)
    own = annex.breaks.filter(record="payment").filter(pl.col("code") != "TENANT_CROSS")
    expected = {
        (code, f"{payment['Id']}/{payment['TenantsId']}")
        for payment in payments
        for code in slow_codes(payment, rates)
    }
    assert set(own.select("code", "key").iter_rows()) == expected
    assert own.height == len(expected)
    named = sum(any(r["Id"] == p["CurrencyRatesId"] for r in rates) for p in payments)
    assert sum(line.payments for line in annex.lines) == named
    again = reconcile_rates((held(extracted.reverse()),), known.reverse(), RULES, FIRST_DAY)
    assert gather([again.breaks]).equals(gather([annex.breaks]))
    assert again.lines == annex.lines


def slow_codes(payment: dict[str, Any], rates: list[dict[str, Any]]) -> set[str]:
    day = payment["PaymentDate"].date()
    same = [r for r in rates if r["Id"] == payment["CurrencyRatesId"]]
    if not same:
        return {"RATE_MISSING"}
    tenants = [r for r in same if r["TenantsId"] == payment["TenantsId"]]
    used = tenants[0] if tenants else min(same, key=lambda r: r["TenantsId"])
    effective = used["EffectiveDate"].date()
    pair = (used["FromCurrenciesId"], used["ToCurrenciesId"])
    codes = set() if tenants else {"RATE_TENANT"}
    if payment["CurrenciesId"] not in pair:
        codes.add("RATE_PAIR")
    if effective > day:
        codes.add("RATE_FUTURE")
    if (day - effective).days > 7:
        codes.add("RATE_STALE")
    better = [
        r
        for r in rates
        if r["TenantsId"] == payment["TenantsId"]
        and (r["FromCurrenciesId"], r["ToCurrenciesId"]) == pair
        and effective < r["EffectiveDate"].date() <= day
        and r["ExchangeRate"] > 0
        and pair[0] != pair[1]
    ]
    if tenants and better:
        codes.add("RATE_NOT_LATEST")
    return codes
