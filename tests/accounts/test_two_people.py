"""An acceptance above the limit takes two people: one proposes, another accepts the same terms."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import psycopg
import pytest

from connectors.errors import AccountRefused
from connectors.postgres.accounts import Account, keep_account, keep_limit, list_limits
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.breaks import Decision, add_decisions, proposals_on
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.money import basis
from schemas.accounts import AccountRole
from schemas.breaks import Money
from schemas.guards.decisions import NO_AMOUNT
from schemas.life import Choice
from tests.accounts.people import ADA, ANNA, BO, CLEO, add, logged_in
from tests.conftest import Once
from tests.governance.runs import found, ids, reconcile, tamper

UNREADABLE = 'PaidAmount is not readable: "12.500.000,00"'
UNTIL = date(2026, 12, 31)
ACCEPT = Decision(Choice.ACCEPT, "agreed", None, until=UNTIL)
PROPOSE = replace(ACCEPT, what=Choice.PROPOSE)


@pytest.fixture
def place(workspace: Workspace, once: Once) -> Workspace:
    """Above 100.00 in currency 1, and 50 in any other, an acceptance takes two."""

    def build() -> None:
        add(workspace, ANNA, BO, CLEO)
        with workspace.database.connect() as connection:
            keep_limit(connection, "1", Decimal("100.00"))
            keep_limit(connection, "*", Decimal(50))

    return once(build)


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_nobody_decides_by_what_was_so_when_a_transaction_began(
    place: Workspace, isolation: str
) -> None:
    """It would see the account and the limit as they were, for as long as it is open."""
    breaks = found("1", amount="100")
    run = reconcile(place, breaks)
    anna = logged_in(place, ANNA)
    with (
        anna.database.connect() as connection,
        connection.transaction(force_rollback=True),
    ):
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")  # type: ignore[call-overload]
        connection.execute("SELECT acting_as()")
        with place.database.connect() as others:
            keep_account(others, replace(ANNA, disabled=True))
            keep_limit(others, "1", Decimal(1))
        with pytest.raises(psycopg.Error, match=f"this one is {isolation}"):
            add_decisions(connection, run.id, ids(breaks), ACCEPT)
    with place.database.connect() as others:
        assert others.execute("SELECT count(*) FROM decision").fetchone() == (0,)


def decide(place: Workspace, decision: Decision, *breaks: str) -> None:
    decide_breaks(place, None, Chosen(breaks), decision)


@pytest.mark.long
def test_a_large_acceptance_is_proposed_and_taken_by_another(place: Workspace) -> None:
    large, small = found("1", amount="-100.01"), found("2", amount="100")
    breaks = large.vstack(small)
    (one,), (other,) = ids(large), ids(small)
    reconcile(place, breaks)
    anna, bo = logged_in(place, ANNA), logged_in(place, BO)
    decide(anna, ACCEPT, other)
    with pytest.raises(AccountRefused, match=rf"more than 100.00 takes two people, and 1 .*{one}"):
        decide(anna, ACCEPT, one)
    decide(anna, PROPOSE, one)
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(anna, ACCEPT, one)
    for terms in ({"until": date(2027, 1, 1)}, {"up_to": Decimal(200)}):
        with pytest.raises(AccountRefused, match="takes two people"):
            decide(bo, replace(ACCEPT, **terms), one)
    decide(bo, replace(ACCEPT, reason="seen, and agreed"), one)

    run = reconcile(place, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    both = Account("dan", "Dan Roe", (AccountRole.PREPARER, AccountRole.APPROVER))
    add(place, both, replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER)))
    prepare(logged_in(place, both), run.id, by=None, comment="")
    for who in (ANNA, BO):
        with pytest.raises(AccountRefused, match="in which they accepted a break"):
            approve(logged_in(place, who), run.id, by=None, comment="")
    with place.database.connect() as connection:
        assert verify(connection).broken is None


MISSING = {"code": "MISSING_IN_TARGET", "field": "", "amount": "10"}
"""A whole record, of which all amounts are missing."""
OF_DEBT = {"code": "INV_NONE", "field": "DebtsId", "amount": None, "currency": None}
"""A debt that was paid in several currencies, without a file."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("facts", "alone"),
    [
        ({"amount": "100"}, True),
        ({"amount": "100.000000000000000001"}, False),
        ({"amount": "50", "currency": 2}, True),
        ({"amount": "-50.01", "currency": 2}, False),
        ({"amount": "50.01", "currency": None}, False),
        ({"amount": None}, True),
        ({"amount": None, "amount_beyond": "1e308"}, False),
        ({"amount": None, "code": "REJECTED"}, True),
        ({"amount": None, "code": "REJECTED", "note": UNREADABLE}, False),
        ({"amount": None, "code": "REJECTED", "note": UNREADABLE, "currency": None}, False),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount -100"}, True),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount -100.01"}, False),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount 1e308"}, False),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount NaN"}, False),
        (MISSING | {"amounts": "Fee -500", "amount": None}, False),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount 500", "code": "NOT_SENT"}, False),
        ({"code": "REJECTED", "note": 'DiscountAmount is not readable: "12.5OO"'}, False),
        ({"amounts": "PaidAmount 10, DiscountAmount 500", "code": "VALUE"}, True),
        (OF_DEBT | {"amounts": "paid 30 in currency 1, paid -50 in currency 2"}, True),
        (OF_DEBT | {"amounts": "paid 30 in currency 1, paid -50.01 in currency 2"}, False),
    ],
)
def test_what_one_person_accepts_alone(
    place: Workspace, facts: dict[str, Any], alone: bool
) -> None:
    breaks = found("1", **facts)
    reconcile(place, breaks)
    anna = logged_in(place, ANNA)
    if alone:
        decide(anna, ACCEPT, *ids(breaks))
    else:
        with pytest.raises(AccountRefused, match="takes two people"):
            decide(anna, ACCEPT, *ids(breaks))


def test_money_is_no_amount_to_the_database_where_it_is_none_to_the_report(
    place: Workspace,
) -> None:
    """One says so in SQL, the other in a frame."""
    chance = Random(5)
    signs = ["", " ", "\t", "\\u0000", '"', "'", "%", "{", "null", "\N{SNOWMAN}", "12,5"]
    rows = [
        {
            "code": chance.choice(["REJECTED", "REJECTED", "AMOUNT"]),
            "record": chance.choice(["payment", "currency_rate"]),
            "key": str(number),
            "amount": chance.choice([None, None, Decimal(10)]),
            "amount_beyond": chance.choice([None, None, "1e308"]),
            "note": "".join(chance.choices(signs, k=chance.randrange(3))),
        }
        for number in range(200)
    ]
    for row in rows:
        if row["record"] == "currency_rate":
            row["note"] = ""  # It has no amount that a note could be on.
    breaks = gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])
    reconcile(place, breaks)
    asked = f"SELECT b.break_id FROM break_state b WHERE {NO_AMOUNT}"
    with place.database.connect() as connection:
        told = {one for (one,) in connection.execute(asked)}  # type: ignore[call-overload]
    beyond = pl.col("amount_beyond").is_not_null()
    # A rejected row may have one amount that can be read, and another that cannot.
    unreadable = (pl.col("code") == "REJECTED") & (pl.col("note") != "")
    assert told == {*ids(breaks.filter(beyond | unreadable))}
    assert told >= {*ids(breaks.filter(basis() == Money.UNREADABLE))}
    assert 0 < len(told) < breaks.height


@pytest.mark.long(but=("100-True",))
@pytest.mark.parametrize(("amount", "alone"), [("100", True), ("100.01", False)])
def test_money_of_no_currency_is_held_to_the_least_limit(
    place: Workspace, amount: str, *, alone: bool
) -> None:
    """Where no limit is for every currency, none was for money whose currency cannot be read."""
    with place.database.connect() as connection:
        keep_limit(connection, "*", None)
        keep_limit(connection, "2", Decimal(500))
    breaks = found("1", amount=amount, currency=None)
    reconcile(place, breaks)
    if alone:
        decide(logged_in(place, ANNA), ACCEPT, *ids(breaks))
    else:
        with pytest.raises(AccountRefused, match="takes two people"):
            decide(logged_in(place, ANNA), ACCEPT, *ids(breaks))


@pytest.mark.long
def test_a_ceiling_above_the_limit_takes_two_as_well(place: Workspace) -> None:
    breaks = found("1", amount="99")
    reconcile(place, breaks)
    anna = logged_in(place, ANNA)
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(anna, replace(ACCEPT, up_to=Decimal("100.01")), *ids(breaks))
    decide(anna, replace(ACCEPT, up_to=Decimal(100)), *ids(breaks))


@pytest.mark.long
def test_a_proposal_on_an_earlier_run_is_none(place: Workspace) -> None:
    """What was proposed are the amounts of that run."""
    breaks = found("1", amount="500")
    reconcile(place, breaks)
    decide(logged_in(place, ANNA), PROPOSE, *ids(breaks))
    reconcile(place, breaks)
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(logged_in(place, BO), ACCEPT, *ids(breaks))


RESOLVE = Decision(Choice.RESOLVE, "booked there", None, side="service")
REOPEN = Decision(Choice.REOPEN, "not so", None)
AFTER = [
    # what is decided after the proposal, by whom; whether it can still be taken
    ([(BO, ACCEPT), (BO, REOPEN)], False),
    ([(ANNA, RESOLVE)], False),
    ([(BO, Decision(Choice.COMMENT, "asked the bank", None))], True),
    ([(BO, replace(PROPOSE, until=date(2027, 1, 1)))], True),
]


@pytest.mark.long
@pytest.mark.parametrize(("decided", "stands"), AFTER)
def test_a_proposal_that_something_was_decided_after_is_none(
    place: Workspace, decided: list[tuple[Account, Decision]], stands: bool
) -> None:
    breaks = found("1", amount="500")
    run = reconcile(place, breaks)
    decide(logged_in(place, ANNA), PROPOSE, *ids(breaks))
    for who, decision in decided:
        decide(logged_in(place, who), decision, *ids(breaks))
    with place.database.connect() as connection:
        assert bool(proposals_on(connection, run.id, run.decided_through)) is stands
    if stands:
        decide(logged_in(place, BO), ACCEPT, *ids(breaks))
        return
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(logged_in(place, BO), ACCEPT, *ids(breaks))
    decide(logged_in(place, ANNA), PROPOSE, *ids(breaks))
    decide(logged_in(place, BO), ACCEPT, *ids(breaks))


@pytest.mark.long
def test_a_ceiling_is_the_same_however_it_is_written(place: Workspace) -> None:
    breaks = found("1", amount="500")
    reconcile(place, breaks)
    decide(logged_in(place, ANNA), replace(PROPOSE, up_to=Decimal(750)), *ids(breaks))
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(logged_in(place, BO), replace(ACCEPT, up_to=Decimal("750.01")), *ids(breaks))
    decide(logged_in(place, BO), replace(ACCEPT, up_to=Decimal("750.00")), *ids(breaks))


@pytest.mark.long
def test_limits_are_kept_by_administrators(place: Workspace, controller: str) -> None:
    add(place, ADA)
    lesser = replace(place, database=type(place.database)(controller, 10))
    with (
        pytest.raises(AccountRefused, match="takes administrator"),
        logged_in(lesser, BO).database.connect() as connection,
    ):
        keep_limit(connection, "1", None)
    with logged_in(lesser, ADA).database.connect() as connection:
        keep_limit(connection, "1", None)
        assert list_limits(connection) == {"*": Decimal(50)}
        assert verify(connection).broken is None
    tamper(place, "acceptance_limit", "UPDATE acceptance_limit SET above = '99999'")
    with place.database.connect() as connection:
        assert "limit of acceptances" in str(verify(connection).broken)


@pytest.mark.parametrize(
    ("currency", "above"), [("EUR", "1"), ("1", "-1"), ("", "1"), ("1", "NaN")]
)
def test_a_limit_that_is_none(place: Workspace, currency: str, above: str) -> None:
    with (
        pytest.raises(AccountRefused, match="is no limit of the currency"),
        place.database.connect() as connection,
    ):
        keep_limit(connection, currency, Decimal(above))


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [{"disabled": True}, {"roles": (AccountRole.VIEWER,)}, {"tenants": (8,)}],
    ids=lambda change: next(iter(change)),
)
def test_a_proposal_of_somebody_who_may_not_make_it_any_more_is_none(
    place: Workspace, change: dict[str, Any]
) -> None:
    large = found("1", amount="101")
    reconcile(place, large)
    decide(logged_in(place, ANNA), PROPOSE, *ids(large))
    add(place, replace(ANNA, **change))
    bo = logged_in(place, BO)
    with pytest.raises(AccountRefused, match="takes two people"):
        decide(bo, ACCEPT, *ids(large))
    add(place, ANNA)
    decide(bo, ACCEPT, *ids(large))
