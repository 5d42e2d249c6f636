"""Payment plans and debts: one minimal case per code, and a neighbour that raises nothing."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.frame import gather
from flows.steps.reconcile.allotment import PlanAnnex
from flows.steps.reconcile.debts import debt_lines, listed_debts, reconcile_debts, roll_up
from flows.steps.reconcile.documents import cover
from flows.steps.reconcile.plans import reconcile_plans
from flows.steps.rules.rules import Discount, Plans, Rules
from schemas.amounts import BEYOND
from schemas.tables import INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL
from tests.examples import examples
from tests.reconcile.records import database, extract

AS_OF = date(2026, 3, 10)
RULES = Rules(plans=Plans(early_days=5, late_days=2))
COUNTS = Rules(plans=Plans(discount=Discount.COUNTS))
CENT = Rules(plans=Plans(under=Decimal("0.01"), over=Decimal("0.01")))
EUR, USD = 978, 840


def paid(number: int = 1, day: int = 4, amount: str = "10", **values: Any) -> dict[str, Any]:
    moment = datetime(2026, 3, day, 12, tzinfo=UTC)
    return {
        "Id": number,
        "PaymentDate": moment,
        "PaymentDate_offset": 0,
        "PaidAmount": Decimal(amount),
        **values,
    }


def planned(
    payment: int | None = 1, day: int = 4, amount: str = "10", plan: int | None = 7, **values: Any
) -> dict[str, Any]:
    return {
        "PaymentPlansId": plan,
        "PlannedDate": datetime(2026, 3, day),  # noqa: DTZ001
        "PlannedAmount": Decimal(amount),
        "PaymentsId": payment,
        **values,
    }


def judged(
    details: list[dict[str, Any]], payments: list[dict[str, Any]], rules: Rules = RULES
) -> PlanAnnex:
    return reconcile_plans(
        database(PAYMENT_PLAN_DETAIL, *details), extract(PAYMENT, *payments), rules, AS_OF
    )


def told(breaks: pl.DataFrame) -> list[tuple[str, str]]:
    return sorted(breaks.select("code", "key").iter_rows())


LATER_CASES = [
    # payments, later payments, breaks
    # Delivered as of a day up to the cut-off, dated after it by the target.
    ([paid(day=12)], [], [("PLAN_UNPAID", "7/2026-03-09/10/978/1/1")]),
    ([paid(day=12)], [paid(99, day=15)], [("PLAN_UNPAID", "7/2026-03-09/10/978/1/1")]),
    # A number that is known on the day means what it meant, whoever uses it later.
    ([paid(day=9)], [], []),
    ([paid(day=9)], [paid(day=20, TenantsId=2)], []),
    ([], [paid(day=20, TenantsId=2)], [("PLAN_UNPAID", "7/2026-03-09/10/978/1/1")]),
]


@pytest.mark.parametrize(("payments", "later", "breaks"), LATER_CASES)
def test_what_is_said_of_a_day_does_not_hang_on_payments_after_it(
    payments: list[dict[str, Any]],
    later: list[dict[str, Any]],
    breaks: list[tuple[str, str]],
) -> None:
    annex = reconcile_plans(
        database(PAYMENT_PLAN_DETAIL, planned(day=9)),
        extract(PAYMENT, *payments),
        RULES,
        AS_OF,
        later_payments=extract(PAYMENT, *later),
    )
    assert told(annex.breaks) == breaks


def test_a_detail_without_a_day_is_told_whatever_is_planned_later() -> None:
    annex = reconcile_plans(
        database(PAYMENT_PLAN_DETAIL, planned(2, PlannedDate=None)),
        extract(PAYMENT, paid()),
        RULES,
        AS_OF,
        later_details=database(PAYMENT_PLAN_DETAIL, planned(None, day=20)),
    )
    assert annex.breaks["code"].to_list() == ["PLAN_ORPHAN"]


WIDE = 2**32 + 1
"""A number that 32 bits cut to 1."""
OF_PLAN = "7/2026-03-04/10/978/1/1"

CASES: list[tuple[str, str, list[dict[str, Any]], list[dict[str, Any]], Rules]] = [
    # code, key, details, payments, rules
    ("", "", [planned()], [paid()], RULES),
    ("PLAN_ORPHAN", OF_PLAN, [planned()], [paid(2)], RULES),
    ("PLAN_REF_WIDTH", OF_PLAN, [planned()], [paid(WIDE)], RULES),
    ("PLAN_REF_WIDTH", "7/2026-03-04/10/978/2147483647/1",
     [planned(2**31 - 1)], [paid(2**53 + 1)], RULES),
    ("", "", [planned(2**31 - 1)], [paid(2**31 - 1)], RULES),
    ("PLAN_REF_WIDTH", "7/2026-03-04/10/978/-2147483648/1",
     [planned(-(2**31))], [paid(-(2**31) - 1)], RULES),
    ("", "", [planned(-(2**31))], [paid(-(2**31))], RULES),
    # A payment of a planned debt that no plan can name, and one of a debt without a plan.
    ("PLAN_REF_WIDTH", f"{2**53 + 1}/1", [planned()], [paid(), paid(2**53 + 1)], RULES),
    ("", "", [planned()], [paid(), paid(2**53 + 1, DebtsId=71)], RULES),
    ("PLAN_CURRENCY", "7/2026-03-04/10/840/1/1",
     [planned(PlannedCurrenciesId=USD)], [paid()], RULES),
    ("", "", [planned(PlannedCurrenciesId=None)], [paid()], RULES),
    ("PLAN_UNDER", "1/1", [planned(amount="10.01")], [paid()], RULES),
    ("", "", [planned(amount="10.01")], [paid()], CENT),
    ("PLAN_OVER", "1/1", [planned(amount="9.99")], [paid()], RULES),
    ("", "", [planned(amount="9.99")], [paid()], CENT),
    ("", "", [planned(amount="4", day=3), planned(amount="6")], [paid()], RULES),
    ("", "", [planned(amount="12")], [paid(DiscountAmount=Decimal(2))], COUNTS),
    ("PLAN_OVER", "1/1", [planned()], [paid(DiscountAmount=Decimal(2))], COUNTS),
    ("", "", [planned()], [paid(DiscountAmount=Decimal(2))], RULES),
    # Apart by one cent beyond what a double holds.
    ("PLAN_UNDER", "1/1",
     [planned(amount="9000000000000000.01")], [paid(amount="9000000000000000")], RULES),
    ("PLAN_LATE", "7/2026-03-01/10/978/1/1", [planned(day=1)], [paid()], RULES),
    ("", "", [planned(day=2)], [paid()], RULES),
    ("", "", [planned(day=1)], [paid()], Rules(plans=Plans(late_days=None))),
    ("PLAN_EARLY", "7/2026-03-10/10/978/1/1", [planned(day=10)], [paid()], RULES),
    ("", "", [planned(day=9)], [paid()], RULES),
    ("", "", [planned(day=30)], [paid()], Rules()),
    ("PLAN_UNPAID", "7/2026-03-10/10/978//1", [planned(None, day=10)], [], RULES),
    ("", "", [planned(None, day=11)], [], RULES),
    ("PLAN_DUPLICATE", "7/2026-03-11/10/978//1",
     [planned(None, day=11), planned(None, day=11)], [], RULES),
    ("", "", [planned(None, day=11), planned(None, day=12)], [], RULES),
    ("PLAN_MIXED_CCY", "7",
     [planned(None, day=11), planned(None, day=11, PlannedCurrenciesId=USD)], [], RULES),
    ("", "",
     [planned(None, day=11), planned(None, day=11, plan=8, PlannedCurrenciesId=USD)], [], RULES),
    ("TENANT_CROSS", "7",
     [planned(1), planned(2)], [paid(1), paid(2, TenantsId=2)], RULES),
    ("", "",
     [planned(1), planned(2, plan=8)], [paid(1), paid(2, TenantsId=2)], RULES),
    # Details without a plan have nothing in common.
    ("", "",
     [planned(1, plan=None), planned(2, plan=None)], [paid(1), paid(2, TenantsId=2)], RULES),
    ("TENANT_CROSS", "",
     [planned(1, plan=None), planned(2, plan=None)],
     [paid(1), paid(2), paid(2, TenantsId=2)], RULES),
]  # fmt: skip


@pytest.mark.parametrize(("code", "key", "details", "payments", "rules"), CASES)
def test_plans(
    code: str,
    key: str,
    details: list[dict[str, Any]],
    payments: list[dict[str, Any]],
    rules: Rules,
) -> None:
    assert told(judged(details, payments, rules).breaks) == ([(code, key)] if code else [])


def test_of_several_numbers_that_may_have_been_cut_the_lowest_is_named() -> None:
    payments = [paid(WIDE + 2**32), paid(WIDE), paid(WIDE + 2**33)]
    breaks = judged([planned()], payments).breaks
    assert breaks.select("code", "expected").rows() == [("PLAN_REF_WIDTH", str(WIDE))]


@pytest.mark.parametrize(("rules", "day", "note"), [
    (Rules(plans=Plans(late_days=0)), 3, "1 day"),
    (RULES, 1, "3 days"),
    (Rules(plans=Plans(early_days=0)), 5, "1 day"),
    (RULES, 10, "6 days"),
])  # fmt: skip
def test_days_late_or_early_are_counted_as_a_person_would(
    rules: Rules, day: int, note: str
) -> None:
    assert judged([planned(day=day)], [paid()], rules).breaks["note"].to_list() == [note]


def test_a_number_of_two_tenants_is_that_of_the_plan_s_tenant() -> None:
    payments = [paid(1), paid(1, TenantsId=2, amount="99"), paid(2)]
    annex = judged([planned(1), planned(2)], payments)
    assert told(annex.breaks) == []
    assert [(line.tenant, line.paid) for line in annex.lines] == [(1, Decimal(20))]


def test_a_number_of_two_tenants_that_nothing_decides_is_told_and_counts_for_neither() -> None:
    annex = judged([planned(1)], [paid(1), paid(1, TenantsId=2)])
    assert told(annex.breaks) == [("TENANT_CROSS", "7")]
    assert [(line.tenant, line.paid) for line in annex.lines] == [(None, Decimal(0))]


def test_whose_a_detail_is_hangs_on_its_own_plan_alone() -> None:
    for plan, tenant in ((7, 1), (None, None)):
        annex = judged([planned(1, plan=plan), planned(None, plan=plan)], [paid(1)])
        assert annex.breaks.select("code", "tenant").rows() == [("PLAN_UNPAID", tenant)]


def test_a_discount_that_nobody_settled_is_not_counted_and_said() -> None:
    payments = [paid(DiscountAmount=Decimal("0.50"))]
    breaks = judged([planned(amount="10.50")], payments).breaks
    assert told(breaks) == [("PLAN_UNDER", "1/1")]
    assert breaks["note"][0] == "equal with the discount, which the rules do not say to count"
    assert breaks["delta"][0] == Decimal("-0.5")


def test_a_payment_is_allotted_once_in_the_order_of_days() -> None:
    details = [
        planned(1, 2, "4", plan=7),
        planned(1, 3, "4", plan=8),
        planned(1, 4, "4", plan=9),
    ]
    lines = judged(details, [paid(amount="9")]).lines
    assert [(line.plan, line.paid, line.outstanding, line.overdue) for line in lines] == [
        ("7", Decimal(4), Decimal(0), Decimal(0)),
        ("8", Decimal(4), Decimal(0), Decimal(0)),
        ("9", Decimal(1), Decimal(3), Decimal(3)),
    ]


ALLOTTED: list[tuple[list[dict[str, Any]], str, list[tuple[str, str, str, str]]]] = [
    # details, what was paid, and of each plan: paid, outstanding, overdue
    # A refund is allotted as a payment is.
    (
        [planned(1, 2, "-4", plan=7), planned(1, 3, "-4", plan=8)],
        "-8",
        [("7", "-4", "0", "0"), ("8", "-4", "0", "0")],
    ),
    (
        [planned(1, 2, "-4", plan=7), planned(1, 3, "-4", plan=8)],
        "-5",
        [("7", "-4", "0", "0"), ("8", "-1", "-3", "-3")],
    ),
    # A credit is settled with what it is a credit of.
    (
        [planned(1, 2, "10", plan=7), planned(1, 3, "-4", plan=8)],
        "6",
        [("7", "10", "0", "0"), ("8", "-4", "0", "0")],
    ),
    (
        [planned(1, 2, "-4", plan=7), planned(1, 3, "10", plan=8)],
        "5",
        [("7", "-4", "0", "0"), ("8", "9", "1", "1")],
    ),
    # What is left is the last one's, whatever it plans.
    (
        [planned(1, 2, "10", plan=7), planned(1, 3, "-4", plan=8)],
        "7",
        [("7", "10", "0", "0"), ("8", "-3", "-1", "-1")],
    ),
    (
        [planned(1, 2, "4", plan=7), planned(1, 3, "4", plan=8)],
        "-3",
        [("7", "0", "4", "4"), ("8", "-3", "7", "7")],
    ),
    # A credit that is due takes from what is overdue, and one that was not paid back is.
    (
        [planned(None, 2, "10", plan=7), planned(None, 3, "-4", plan=7)],
        "5",
        [("7", "0", "6", "6")],
    ),
    ([planned(1, 2, "-10", plan=7)], "-6", [("7", "-6", "-4", "-4")]),
    # More than was planned makes nothing overdue, either way.
    ([planned(1, 2, "-10", plan=7)], "-12", [("7", "-12", "2", "0")]),
    ([planned(1, 2, "10", plan=7)], "12", [("7", "12", "-2", "0")]),
]


@pytest.mark.parametrize(("details", "amount", "plans"), ALLOTTED)
def test_refunds_and_credits_are_allotted_as_what_they_are(
    details: list[dict[str, Any]], amount: str, plans: list[tuple[str, str, str, str]]
) -> None:
    lines = judged(details, [paid(amount=amount)]).lines
    assert [
        (line.plan, *map(str, (line.paid, line.outstanding, line.overdue))) for line in lines
    ] == plans


def test_what_was_paid_in_another_currency_is_a_line_of_its_own() -> None:
    lines = judged([planned(PlannedCurrenciesId=USD, StatusCodesId=4)], [paid()]).lines
    assert [(line.currency, line.planned, line.paid, line.status_codes) for line in lines] == [
        ("840", Decimal(10), Decimal(0), (4,)),
        ("978", Decimal(0), Decimal(10), ()),
    ]
    assert lines[0].flags == ("PLAN_CURRENCY",)


DEBT_CASES: list[tuple[str, str, list[dict[str, Any]], list[dict[str, Any]], Rules]] = [
    # code, key, details, payments, rules
    ("", "", [planned()], [paid()], RULES),
    ("DEBT_UNDER", "70/978", [planned(amount="11")], [paid()], RULES),
    ("DEBT_OVER", "70/978", [planned(amount="9")], [paid()], RULES),
    # One paid too little and one too much of the same debt is even for the debt.
    ("", "", [planned(1, amount="11"), planned(2, amount="9")], [paid(1), paid(2)], RULES),
    # What is due and unpaid counts, what is not due does not.
    ("DEBT_UNDER", "70/978", [planned(), planned(None, day=10)], [paid()], RULES),
    ("", "", [planned(), planned(None, day=11)], [paid()], RULES),
    ("", "", [planned(amount="12")], [paid(DiscountAmount=Decimal(2))], COUNTS),
    ("", "", [], [paid()], RULES),
    ("DEBT_MIXED_CCY", "70", [], [paid(1), paid(2, CurrenciesId=USD)], RULES),
    ("", "", [], [paid(1), paid(2, CurrenciesId=USD, DebtsId=71)], RULES),
    ("", "", [], [paid(1), paid(2, CurrenciesId=USD, TenantsId=2)], RULES),
    ("DISCOUNT_GT_PAID", "70/978", [], [paid(DiscountAmount=Decimal("10.01"))], RULES),
    ("", "", [], [paid(DiscountAmount=Decimal(10))], RULES),
    ("", "", [], [paid(amount="-10")], RULES),
]


@pytest.mark.parametrize(("code", "key", "details", "payments", "rules"), DEBT_CASES)
def test_debts(
    code: str,
    key: str,
    details: list[dict[str, Any]],
    payments: list[dict[str, Any]],
    rules: Rules,
) -> None:
    rolled = roll_up(extract(PAYMENT, *payments))
    asked = judged(details, payments, rules).planned
    assert told(reconcile_debts(rolled, asked, rules)) == ([(code, key)] if code else [])


def test_the_debt_annex_has_every_debt_by_currency() -> None:
    payments = [paid(1), paid(2), paid(3, CurrenciesId=USD), paid(4, DebtsId=71)]
    rolled = roll_up(extract(PAYMENT, *payments))
    asked = judged([planned(1, amount="25")], payments).planned
    breaks = reconcile_debts(rolled, asked, RULES)
    files = database(INVOICE_FILE, {"Id": 1}, {"Id": 2}, {"Id": 3, "DebtsId": 99})
    lines = debt_lines([listed_debts(rolled, asked, cover(rolled, files).counts, breaks)])
    both = ("DEBT_MIXED_CCY", "DEBT_UNDER")
    assert [
        (
            line.debt,
            line.currency,
            line.payments,
            line.paid,
            line.planned,
            line.invoices,
            line.flags,
        )
        for line in lines
    ] == [
        ("70", "840", 1, Decimal(10), None, 2, both),
        ("70", "978", 2, Decimal(20), Decimal(25), 2, both),
        ("71", "978", 1, Decimal(10), None, 0, ()),
        ("99", "", 0, Decimal(0), None, 1, ()),
    ]


def test_of_very_many_debts_those_with_breaks_and_the_largest_are_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As they are with all debts beside them."""
    payments = [paid(number, amount=str(number), DebtsId=number) for number in range(1, 41)]
    every = extract(PAYMENT, *payments, paid(41, amount="0.50", DebtsId=2))
    rolled = roll_up(every)
    details = [planned(number, amount=amount) for number, amount in ((3, "99"), (39, "39"))]
    asked = judged(details, payments).planned
    breaks = reconcile_debts(rolled, asked, RULES)
    files = database(INVOICE_FILE, {"Id": 1, "DebtsId": 40}, {"Id": 2, "DebtsId": 99})
    beside = asked, cover(rolled, files).counts, breaks
    every = {line.debt: line for line in debt_lines([listed_debts(rolled, *beside)])}
    assert len(every) == 41
    monkeypatch.setattr("flows.steps.reconcile.debts.LINES", 3)
    shown = debt_lines([listed_debts(rolled, *beside)])
    assert shown == (every["3"], every["39"], every["40"])
    # What no exact column holds is larger than all others.
    payments = [*payments, paid(42, DebtsId=42)]
    texts = pl.Series("PaidAmount" + BEYOND, [*[None] * 40, "1000000000000000000000"], pl.String)
    huge = extract(PAYMENT, *payments).with_columns(
        pl.when(texts.is_null()).then("PaidAmount").alias("PaidAmount"), texts
    )
    shown = debt_lines([listed_debts(roll_up(huge), *beside)])
    assert [line.debt for line in shown] == ["3", "40", "42"]


cents = st.integers(-500, 2000).map(lambda n: Decimal(n) / 100)
currencies = st.sampled_from([EUR, USD])
some_payments = st.lists(
    st.builds(
        lambda number, tenant, currency, amount, debt: paid(
            number, amount=str(amount), TenantsId=tenant, CurrenciesId=currency, DebtsId=debt
        ),
        st.integers(1, 4), st.integers(1, 2), currencies, cents, st.integers(70, 72),
    ),
    max_size=6,
    unique_by=lambda row: (row["Id"], row["TenantsId"]),
)  # fmt: skip
some_details = st.lists(
    st.builds(
        lambda number, day, amount, plan, currency: planned(
            number, day, str(amount), plan, PlannedCurrenciesId=currency
        ),
        st.none() | st.integers(1, 5), st.integers(1, 20), cents, st.integers(1, 3), currencies,
    ),
    max_size=8,
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(some_details, some_payments)
def test_money_is_conserved_from_payments_to_plans(
    details: list[dict[str, Any]], payments: list[dict[str, Any]]
) -> None:
    """Plans add up to what details plan, and to what their payments paid, each counted once."""
    frame, records = database(PAYMENT_PLAN_DETAIL, *details), extract(PAYMENT, *payments)
    annex = reconcile_plans(frame, records, RULES, AS_OF)
    asked: Counter[str] = Counter()
    for detail in details:
        asked[str(detail["PlannedCurrenciesId"])] += detail["PlannedAmount"]
    named = {detail["PaymentsId"] for detail in details}
    tenants = Counter(payment["Id"] for payment in payments)
    given_: Counter[str] = Counter()
    for payment in payments:
        if payment["Id"] in named and tenants[payment["Id"]] == 1:
            given_[str(payment["CurrenciesId"])] += payment["PaidAmount"]
    rows = annex.rows
    certain = all(tenants[number] < 2 for number in named)
    for currency in ("978", "840"):
        lines = [line for line in annex.lines if line.currency == currency]
        assert sum((line.planned for line in lines), Decimal(0)) == asked[currency]
        if certain:
            assert sum((line.paid for line in lines), Decimal(0)) == given_[currency]
        assert all(line.outstanding == line.planned - line.paid for line in lines)
    assert sum(line.details for line in annex.lines) == len(details)
    assert rows.height == len(annex.lines)
    again = reconcile_plans(frame.reverse(), records.reverse(), RULES, AS_OF)
    assert gather([again.breaks]).equals(gather([annex.breaks]))
    assert again.lines == annex.lines
