"""Totals: whatever is wrong with the records, both sides and the explanation tie to the cent."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal, localcontext
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.frame import BREAK_SCHEMA, no_breaks
from flows.steps.breaks.severity import severities
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA, ToleranceLine, reconcile_tolerated
from flows.steps.reconcile.break_lines import BreakFigures
from flows.steps.reconcile.report import PreviousLine
from flows.steps.reconcile.roll_forward import RUN_OUT, RollForward
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.sums import Sides, add_up
from flows.steps.reconcile.totals import (
    ChainLine,
    ControlLine,
    Proof,
    ProofLine,
    chain_lines,
    control_lines,
    excluded_lines,
    proofs,
    status_counts,
    status_lines,
)
from flows.steps.reconcile.verdict import reached, untied
from flows.steps.rules.rules import Budget, Exclusion, Rules, Severities, Tolerance, Window
from flows.steps.totals import Totals
from schemas.amounts import EXACT
from schemas.field import Table
from schemas.tables import INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL
from tests.examples import examples
from tests.reconcile.records import DAY, answers, database, extract, matched, new

CENT = Tolerance("payment", "PaidAmount", above=Decimal("0.01"), below=Decimal("0.01"))
RULES = Rules(
    tolerances=(CENT,),
    windows=(Window("payment", 10),),
    exclusions=(Exclusion("test-debts", "payment", "DebtsId", ("666",), "tests of the producer"),),
)
Row = dict[str, Any]


def added(
    table: Table,
    ours: list[Row],
    theirs: list[Row],
    rules: Rules = RULES,
    sent: pl.DataFrame | None = None,
) -> tuple[Sides, pl.DataFrame]:
    e, d = extract(table, *ours), database(table, *theirs)
    statuses = matched(table, e, d, rules=rules, sent=sent).statuses
    return add_up(table, e, d, statuses), statuses


def texts(proof: Proof) -> list[tuple[str, int, Decimal]]:
    return [(line.text, line.rows, line.amount) for line in proof.lines]


def test_what_is_another_tenant_s_in_the_target_is_explained_in_both() -> None:
    """An own kind may be told apart without its tenant."""
    table = replace(PAYMENT, key=("Id",))
    sides, _ = added(table, [{"Id": 1}, {"Id": 2}], [{"Id": 1, "TenantsId": 2}, {"Id": 2}])
    lines = control_lines(sides)
    assert [(one.tenant, one.explained["PaidAmount"]) for one in lines] == [(1, -10), (2, 10)]
    assert [(one.residual["PaidAmount"], one.residual_rows) for one in lines] == [(0, 0), (0, 0)]


def test_the_proof_reads_from_the_extract_to_the_target() -> None:
    long_ago = DAY - timedelta(days=100)
    ours: list[Row] = [
        {"Id": 1},
        {"Id": 2, "state": "rejected", "PaidAmount": Decimal("3.50")},
        {"Id": 3, "PaidAmount": Decimal("100.01")},
        {"Id": 4, "PaymentDate": long_ago, "PaidAmount": Decimal(7)},
        {"Id": 5, "PaidAmount": Decimal(9)},
        {"Id": 6, "DebtsId": 666, "PaidAmount": Decimal(20)},
        {"Id": 7, "state": "superseded"},
        {"Id": 8},
    ]
    theirs: list[Row] = [
        {"Id": 1, "row": 1},
        {"Id": 3, "row": 3, "PaidAmount": Decimal("100.11")},
        {"Id": 8, "row": 8, "PaidAmount": Decimal("10.01")},
        {"Id": 9, "row": None, "PaidAmount": Decimal(1000)},
    ]
    sides, statuses = added(PAYMENT, ours, theirs)
    paid, discount = proofs(sides)
    assert (paid.field, paid.currency, paid.unexplained) == ("PaidAmount", "978", Decimal(0))
    assert texts(paid) == [
        ("total per extract", 8, Decimal("169.51")),
        ("+ missing in extract", 1, Decimal(1000)),
        ("- missing in target", -1, Decimal(-7)),
        ("+/- amounts and currencies that differ", 0, Decimal("0.10")),
        ("+/- differences inside tolerance", 0, Decimal("0.01")),
        ("- rejected", -1, Decimal("-3.50")),
        ("- excluded: superseded", -1, Decimal(-10)),
        ("- excluded: test-debts", -1, Decimal(-20)),
        ("- timing: inside the window", -1, Decimal(-9)),
        ("= total per target", 4, Decimal("1120.12")),
        ("counted in the target", 4, Decimal("1120.12")),
    ]
    assert discount.unexplained == 0
    (control,) = control_lines(sides)
    assert (control.tenant, control.currency) == (1, "978")
    assert (control.expected_rows, control.found_rows, control.residual_rows) == (8, 4, 0)
    assert (control.expected_keys, control.found_keys) == (36, 21)
    assert control.explained["PaidAmount"] == Decimal("950.61")
    assert [
        (line.stage, line.rows, line.rows_change) for line in chain_lines(sides, service=False)
    ] == [
        ("delivered", 8, 0),
        ("accepted", 7, -1),
        ("to be found", 5, -2),
        ("in the target", 4, -1),
    ]
    counts = status_counts(statuses)
    assert sum(line.rows for line in status_lines(PAYMENT, counts)) == 9
    assert [
        (line.rule, line.rows, line.reason) for line in excluded_lines(PAYMENT, counts, RULES)
    ] == [
        ("superseded", 1, ""),
        ("test-debts", 1, "tests of the producer"),
    ]


def test_what_a_rule_leaves_out_is_told_of_each_side() -> None:
    """What the target has of it is neither less of what was delivered, nor a difference."""
    tests: Row = {"DebtsId": 666}
    ours: list[Row] = [{"Id": 1, "PaidAmount": Decimal(20), **tests}, {"Id": 2}]
    theirs: list[Row] = [
        {"Id": 1, "row": 1, "PaidAmount": Decimal(25), **tests},
        {"Id": 2, "row": 2},
        {"Id": 3, "row": None, "PaidAmount": Decimal(7), **tests},
    ]
    sides, _ = added(PAYMENT, ours, theirs)
    paid, discount = proofs(sides)
    assert texts(paid) == [
        ("total per extract", 2, Decimal(30)),
        ("- excluded: test-debts", -1, Decimal(-20)),
        ("+ excluded in the target: test-debts", 2, Decimal(32)),
        ("= total per target", 3, Decimal(42)),
        ("counted in the target", 3, Decimal(42)),
    ]
    assert (paid.left_out, paid.difference, paid.unexplained) == (-20, 0, 0)
    assert (paid.target.rows, paid.target.amount) == (1, Decimal(10))
    assert len(texts(discount)) == 5, "rows without money are told too"
    last = chain_lines(sides, service=False)[-1]
    assert (last.rows_change, last.residual_rows) == (2, 0)
    assert last.explained == "breaks, timing, and what rules leave out there"


def test_what_no_status_explains_is_said_to_the_cent() -> None:
    """The target was changed behind the statuses: the proof must not close."""
    e = extract(PAYMENT, {"Id": 1}, {"Id": 2})
    d = database(PAYMENT, {"Id": 1}, {"Id": 2})
    statuses = matched(PAYMENT, e, d).statuses
    changed = database(PAYMENT, {"Id": 1}, {"Id": 2, "PaidAmount": Decimal("10.01")}, {"Id": 3})
    sides = add_up(PAYMENT, e, changed, statuses)
    (control,) = control_lines(sides)
    assert (control.residual["PaidAmount"], control.residual_rows) == (Decimal("10.01"), 1)
    paid, _ = proofs(sides)
    assert paid.unexplained == Decimal("10.01")
    last = chain_lines(sides, service=False)[-1]
    assert (last.residual["PaidAmount"], last.residual_rows) == (Decimal("10.01"), 1)


def test_a_match_may_not_hide_a_difference() -> None:
    """Statuses that call two different amounts the same do not explain the difference."""
    e, d = extract(PAYMENT, {"Id": 1}), database(PAYMENT, {"Id": 1, "PaidAmount": Decimal(11)})
    statuses = matched(PAYMENT, e, d).statuses.with_columns(status=pl.lit("MATCHED_EXACT"))
    paid, _ = proofs(add_up(PAYMENT, e, d, statuses))
    assert paid.unexplained == Decimal(1)


def test_currencies_and_tenants_are_never_added() -> None:
    ours: list[Row] = [{"Id": 1}, {"Id": 2, "CurrenciesId": 840}, {"Id": 3, "TenantsId": 2}]
    theirs: list[Row] = [{"Id": 1, "CurrenciesId": 840}, {"Id": 2, "CurrenciesId": 840}]
    sides, _ = added(PAYMENT, ours, theirs, Rules())
    lines = control_lines(sides)
    assert [
        (
            line.tenant,
            line.currency,
            line.expected_rows,
            line.found_rows,
            line.explained["PaidAmount"],
        )
        for line in lines
    ] == [
        (1, "840", 1, 2, Decimal(10)),
        (1, "978", 1, 0, Decimal(-10)),
        (2, "978", 1, 0, Decimal(-10)),
    ]
    assert all(not line.residual["PaidAmount"] and not line.residual_rows for line in lines)


def test_sums_beyond_one_decimal_column_are_exact() -> None:
    huge = Decimal("90000000000000000000.01")
    ours: list[Row] = [{"Id": number, "PaidAmount": huge} for number in (1, 2, 3)]
    theirs: list[Row] = [*ours[:2], {"Id": 3, "PaidAmount": huge + Decimal("0.01")}]
    sides, _ = added(PAYMENT, ours, theirs, Rules())
    (control,) = control_lines(sides)
    assert control.expected["PaidAmount"] == Decimal("270000000000000000000.03")
    assert control.found["PaidAmount"] == Decimal("270000000000000000000.04")
    assert control.explained["PaidAmount"] == Decimal("0.01")
    assert control.residual["PaidAmount"] == 0


def test_keys_beyond_doubles_are_added_exactly() -> None:
    far = 2**63 - 1
    ours: list[Row] = [{"Id": far}, {"Id": far - 1}, {"Id": far - 2}]
    sides, _ = added(PAYMENT, ours, ours)
    assert control_lines(sides)[0].expected_keys == 3 * far - 3


def test_records_without_money_tie_in_number() -> None:
    sides, _ = added(INVOICE_FILE, [{"Id": 1}, {"Id": 2}], [{"Id": 1}])
    (control,) = control_lines(sides)
    assert (control.currency, control.expected_rows, control.residual_rows) == ("", 2, 0)
    assert control.explained == {}
    assert proofs(sides) == ()


def test_the_chain_ends_at_the_service() -> None:
    ours: list[Row] = [{"Id": number} for number in (1, 2, 3, 4)]
    sent = answers(
        {}, {"state": "unsent", "status": None}, {"state": "in_doubt"}, {"state": "refused"}
    )
    sides, _ = added(PAYMENT, ours, ours, Rules(), sent)
    lines = chain_lines(sides, service=True)
    assert [(line.stage, line.rows, line.residual_rows) for line in lines] == [
        ("delivered", 4, 0),
        ("accepted", 4, 0),
        ("to be found", 4, 0),
        ("in the target", 4, 0),
        ("acknowledged by the service", 1, 0),
    ]


ids = st.integers(2**53, 2**53 + 5)
amounts = st.sampled_from(["0.01", "10", "9000000000000000.01", "-3.5", "0.000000000000000001"])
records = st.builds(
    lambda number, tenant, currency, amount, debt: {
        "Id": number,
        "TenantsId": tenant,
        "CurrenciesId": currency,
        "PaidAmount": Decimal(amount),
        "DebtsId": debt,
    },
    ids, st.integers(1, 2), st.sampled_from([978, 840]), amounts, st.sampled_from([70, 666]),
)  # fmt: skip
states = st.sampled_from(["inserted", "inserted", "rejected", "conflict", "superseded", "stale"])
nudges = st.sampled_from(["0", "0", "0.01", "1", "-0.01"])
sends = st.sampled_from(["acknowledged", "unsent", "in_doubt", "refused", "differs", "sending"])


@st.composite
def both_sides(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[Row]]:
    """Extract rows, some of them repeated, and a target made of them with planted changes."""
    ours = [
        record | {"state": draw(states), "batch_id": draw(st.integers(1, 2))}
        for record in draw(st.lists(records, max_size=8))
    ]
    theirs: dict[tuple[int, int], Row] = {}
    for number, row in enumerate(ours, start=1):
        kept = {name: value for name, value in row.items() if name not in ("state", "batch_id")}
        if draw(st.booleans()):
            kept["PaidAmount"] += Decimal(draw(nudges))
            kept["CurrenciesId"] = draw(st.sampled_from([row["CurrenciesId"], 978]))
            theirs[row["Id"], row["TenantsId"]] = kept | {"row": number}
    for record in draw(st.lists(records, max_size=3)):
        theirs.setdefault((record["Id"], record["TenantsId"]), record | {"row": None})
    sent = [{"state": draw(sends)} for _ in ours]
    return ours, list(theirs.values()), sent


@pytest.mark.long
@pytest.mark.parametrize("service", [False, True])
@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(case=both_sides())
def test_the_law_nothing_is_left_over(
    service: bool, case: tuple[list[Row], list[Row], list[Row]]
) -> None:
    """For any records and changes, every residual is zero and every record has one status."""
    ours, theirs, sent = case
    e, d = extract(PAYMENT, *ours), database(PAYMENT, *theirs)
    result = matched(PAYMENT, e, d, rules=RULES, sent=answers(*sent) if service else None)
    sides = add_up(PAYMENT, e, d, result.statuses)
    for line in control_lines(sides):
        assert line.residual == {"PaidAmount": 0, "DiscountAmount": 0}
        assert line.residual_rows == 0
    for proof in proofs(sides):
        assert proof.unexplained == 0
        *_, reached, counted = proof.lines
        assert (reached.rows, reached.amount) == (counted.rows, counted.amount)
        with localcontext(prec=100):
            assert sum(part.amount for part in proof.lines[:-2]) == reached.amount
    for link in chain_lines(sides, service=service):
        assert (link.residual_rows, set(link.residual.values())) == (0, {Decimal(0)})
    alone = result.statuses.height - len(ours)
    paired = int(result.statuses.head(len(ours))["in_target"].sum() or 0)
    assert paired + alone == len(theirs)
    assert (
        sum(line.rows for line in status_lines(PAYMENT, status_counts(result.statuses)))
        == len(ours) + alone
    )


@pytest.mark.long
@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([1, 2, 3]), max_size=6),
    st.lists(st.sampled_from([1, 2, 3]), max_size=6),
)
def test_records_without_a_key_tie_as_multisets(ours: list[int], theirs: list[int]) -> None:
    sides, _ = added(
        PAYMENT_PLAN_DETAIL,
        [{"PaymentPlansId": number} for number in ours],
        [{"PaymentPlansId": number} for number in theirs],
    )
    for proof in proofs(sides):
        assert proof.unexplained == 0
    for line in control_lines(sides):
        assert line.residual_rows == 0


def tolerated(*rows: tuple[str, int, str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "tolerance": rule,
                "currency": currency,
                "delta": None if delta is None else Decimal(delta),
            }
            for rule, currency, delta in rows
        ],
        schema=TOLERATED_SCHEMA,
    )


BUDGETS: list[tuple[Budget, list[tuple[str, str]]]] = [
    # budget, breaks by key and what was found
    (Budget(), []),
    (Budget(count=4, amount=Decimal("0.03")), []),
    (Budget(count=3), [("count/", "4")]),
    (Budget(amount=Decimal("0.02")), [("amount/978", "0.03")]),
    (Budget(count=0, amount=Decimal(0)),
     [("amount/840", "0.01"), ("amount/978", "0.03"), ("count/", "4")]),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "breaks"), BUDGETS)
def test_the_tolerance_budget(budget: Budget, breaks: list[tuple[str, str]]) -> None:
    waved = tolerated(
        ("a", 978, "0.01"), ("b", 978, "-0.02"), ("a", 840, "0.01"), ("days", 978, None)
    )
    annex = reconcile_tolerated(waved, Rules(budget=budget))
    assert annex.lines[:4] == (
        ToleranceLine("a", "840", 1, Decimal("0.01"), None, None),
        ToleranceLine("a", "978", 1, Decimal("0.01"), None, None),
        ToleranceLine("b", "978", 1, Decimal("0.02"), None, None),
        ToleranceLine("days", "978", 1, Decimal(0), None, None),
    )
    assert annex.breaks["code"].unique().to_list() == (["TOLERANCE_BUDGET"] if breaks else [])
    assert sorted(annex.breaks.select("key", "found").iter_rows()) == breaks
    assert all(line.within for line in annex.lines) == (not breaks)


def test_a_budget_of_less_than_a_millionth_is_told_in_digits() -> None:
    waved = tolerated(("a", 978, "0.0000002"))
    annex = reconcile_tolerated(waved, Rules(budget=Budget(amount=Decimal("0.0000001"))))
    told = annex.breaks.select("expected", "found").rows()
    assert told == [("at most 0.0000001", "0.0000002")]


SEVERITIES = [
    # code, delta, amount, days old, severity
    ("AMOUNT", "9999.99", "9999.99", 0, "medium"),
    ("AMOUNT", "-10000", "10000", 0, "high"),
    ("AMOUNT", "0.01", "0.01", 0, "low"),
    # By how much a rate differs is no money.
    ("VALUE", "50000", None, 0, "low"),
    ("RATE_STALE", None, "100", 0, "medium"),
    ("RATE_STALE", None, "99.99", 6, "low"),
    ("RATE_STALE", None, "1", 7, "medium"),
    ("RATE_STALE", None, None, 30, "high"),
    ("RATE_STALE", None, None, None, "low"),
    ("TENANT_CROSS", None, None, None, "high"),
    ("TOLERANCE_BUDGET", None, None, None, "high"),
    ("OFFSET", None, "50000", 90, "low"),
]


@pytest.mark.parametrize(("code", "delta", "amount", "age", "severity"), SEVERITIES)
def test_severity(
    code: str, delta: str | None, amount: str | None, age: int | None, severity: str
) -> None:
    as_of = date(2026, 3, 31)
    line = {
        "code": code,
        "delta": None if delta is None else Decimal(delta),
        "amount": None if amount is None else Decimal(amount),
        "date": None if age is None else as_of - timedelta(days=age),
    }
    breaks = pl.DataFrame([line], schema=BREAK_SCHEMA)
    assert severities(new(breaks), Rules(severities=Severities()), as_of).to_list() == [severity]
    assert severities(new(no_breaks()), Rules(), as_of).to_list() == []


IN_TWO = "paid 5 in currency 1, paid 10000 in currency 2"


@pytest.mark.parametrize(
    ("amount", "amounts", "field", "severity"),
    [
        ("0.01", "PaidAmount 0.01", "", "low"),
        ("0.01", "PaidAmount 0.01, DiscountAmount 99.99", "", "low"),
        ("0.01", "PaidAmount 0.01, DiscountAmount -10000, OfferDiscountAmount 1", "", "high"),
        ("0.01", "PaidAmount 0.01, DiscountAmount NaN", "", "high"),
        ("0.01", f"PaidAmount 0.01, DiscountAmount 1{'0' * 40}", "", "high"),
        ("0.01", "PaidAmount 0.01, DiscountAmount 10000", "PlanId", "low"),
        (None, "DiscountAmount 10000", "", "high"),
        (None, IN_TWO, "DebtsId", "high"),
        (None, IN_TWO.replace("10000", "99"), "DebtsId", "low"),
    ],
)
def test_a_record_is_as_severe_as_its_largest_amount(
    amount: str | None, amounts: str, field: str, severity: str
) -> None:
    line = {
        "code": "MISSING_IN_TARGET",
        "field": field,
        "amount": None if amount is None else Decimal(amount),
        "amounts": amounts,
    }
    breaks = pl.DataFrame([line], schema=BREAK_SCHEMA)
    assert severities(new(breaks), Rules(), date(2026, 3, 31)).to_list() == [severity]


@pytest.mark.parametrize(
    ("code", "note", "severity"),
    [
        ("REJECTED", 'DiscountAmount is not readable: "x"', "high"),
        ("REJECTED", "", "low"),
        ("MISSING_IN_TARGET", "seen at the bank", "low"),
    ],
)
def test_a_rejected_row_is_as_severe_as_any_amount_of_it_that_is_no_number(
    code: str, note: str, severity: str
) -> None:
    """As it takes two people to accept it, whichever of its amounts can be read."""
    line = {
        "code": code,
        "record": "payment",
        "field": "",
        "amount": Decimal("0.01"),
        "amounts": "PaidAmount 0.01",
        "note": note,
    }
    breaks = pl.DataFrame([line], schema=BREAK_SCHEMA)
    assert severities(new(breaks), Rules(), date(2026, 3, 31)).to_list() == [severity]


def test_what_cannot_be_read_is_added_and_taken_away_as_rows_are() -> None:
    one = Totals(2, 3, {"EUR": {"PaidAmount": Decimal("1.50")}}, {"PaidAmount": 1})
    other = Totals(5, 7, {"EUR": {"PaidAmount": Decimal("2.25")}}, {"PaidAmount": 2, "x": 4})
    both = Totals(7, 10, {"EUR": {"PaidAmount": Decimal("3.75")}}, {"PaidAmount": 3, "x": 4})
    assert one + other == both
    assert (both - other).unreadable == {"PaidAmount": 1, "x": 0}
    assert both - other - one == Totals(
        0, 0, {"EUR": {"PaidAmount": Decimal(0)}}, {"PaidAmount": 0, "x": 0}
    )


NO_BREAKS = BreakFigures(0, 0, 0, (), (), (), (), (), ())


def test_acceptances_that_have_run_out_are_told_with_their_money() -> None:
    large = EXACT.add(Decimal("1e308"), Decimal("10.5"))
    forwards = [
        RollForward(currency, (ProofLine(RUN_OUT, *line),), 0, Decimal(0))
        for currency, line in {
            "": (3, Decimal(0)),
            "1": (41, Decimal("-22126.5"), False, large, 2),
            "2": (1, Decimal(7)),
            "3": (0, Decimal(0)),
        }.items()
    ]
    told = reached(
        incomplete=(),
        unexplained=(),
        breaks=replace(NO_BREAKS, open=45, roll_forward=tuple(forwards)),
        proven=(),
        previous=PreviousLine(4, date(2026, 3, 1), "", ""),
        currencies={"1": "EUR"},
    )
    assert told.because == (
        "45 open breaks",
        "45 acceptances have run out since reconciliation 4 as of 2026-03-01: 3 in no currency; "
        "41 in 1 EUR (difference -22126.50, gross 1e308 + 10.50, 2 not readable); "
        "1 in currency 2 (difference 7.00)",
    )


def test_what_is_unexplained_names_its_currency() -> None:
    sums = [Proof("payment", "PaidAmount", key, (), Decimal("100.5")) for key in ("", "1", "2")]
    assert [*untied(sums, (), (), NO_BREAKS, SelfTest(1, 1, ()), {"1": "EUR"})] == [
        "Payment PaidAmount: 100.5 without a currency unexplained",
        "Payment PaidAmount: 100.5 in 1 EUR unexplained",
        "Payment PaidAmount: 100.5 in currency 2 unexplained",
    ]
    left = {"PaidAmount": Decimal(1)}
    controls = [
        ControlLine("payment", tenant, currency, 1, 1, {}, {}, 0, 0, {}, left, 0)
        for tenant in (7, 8)
        for currency in ("1", "2", "")
    ]
    bare = ControlLine("invoice_file", 7, "", 2, 1, {}, {}, 0, 0, {}, {}, 1)
    chain = ChainLine("payment", "matched", "1", 1, {}, 0, 0, {}, "", 1, {})
    forward = replace(NO_BREAKS, roll_forward=(RollForward("2", (), 0, Decimal(1)),))
    told = untied((), (*controls, bare), (chain,), forward, SelfTest(1, 1, ()), {"1": "EUR"})
    assert [*dict.fromkeys(told)] == [
        "Payment: a residual in the control totals in 1 EUR",
        "Payment: a residual in the control totals in currency 2",
        "Payment: a residual in the control totals without a currency",
        "Invoice file: a residual in the control totals",
        "Payment, matched: a residual in the chain in 1 EUR",
        "the roll-forward does not tie in currency 2",
    ]
