"""Rules of acceptance: two people stand for each, and no break is accepted beyond its ceilings."""

import logging
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from connectors.errors import AccountRefused, DecisionRefused
from connectors.postgres.accounts import keep_account, keep_limit
from connectors.postgres.auditing.audit import verify
from connectors.postgres.auditing.trail_search import TrailSearch, search_trail
from connectors.postgres.database import Database
from connectors.postgres.runs.acceptance_rules import RuleState, RuleTerms
from connectors.postgres.runs.break_history import decisions_about
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import Reconciliation, find_run
from flows.stages.reconcile.acceptance_rules import (
    accept_by_rules,
    approve_rule,
    list_rules,
    propose_rule,
    withdraw_rule,
)
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.life import RESTATED, Choice
from tests.accounts.conftest import controller as controller  # noqa: PLC0414 -- the fixture.
from tests.accounts.people import ANNA, BO, CLEO, TESSA, add, logged_in
from tests.governance.runs import DAY, SCOPE, found, ids, reconcile

UNTIL = date(2026, 12, 31)
TERMS = RuleTerms("", "AMOUNT", 1, Decimal(10), Decimal(25), UNTIL, "bank charges")


def in_force(place: Workspace, terms: RuleTerms = TERMS) -> int:
    """A rule for the latest scope that two people stand for."""
    number = propose_rule(place, None, terms, "ann")
    approve_rule(place, number, by="bob", reason="agreed")
    return number


def apply(place: Workspace, run: Reconciliation) -> list[tuple[int, bool]]:
    """How many breaks each rule covers of a run, and whether it accepted them."""
    with place.database.connect() as connection:
        return [(one.breaks, one.accepted) for one in accept_by_rules(connection, run)]


def states(rows: Any, run: Reconciliation) -> dict[str, tuple[str, str | None]]:
    return {
        key: (state, by)
        for key, state, by in rows(
            "SELECT key, state, accepted_by FROM break_state WHERE reconciliation_id = %s",
            [run.id],
        )
    }


@pytest.mark.long
def test_what_a_rule_covers_is_accepted_after_the_run_and_counts_in_the_next(
    workspace: Workspace, rows: Any
) -> None:
    breaks = found("1", "2", amount="10").vstack(found("3", amount="10.01"))
    run = reconcile(workspace, breaks)
    number = propose_rule(workspace, None, TERMS, "ann")
    assert apply(workspace, run) == [], "it is only proposed"
    approve_rule(workspace, number, by="bob", reason="agreed")
    assert apply(workspace, run) == [(2, True)]
    assert apply(workspace, run) == [(0, True)], "once"
    after = reconcile(workspace, breaks)
    assert states(rows, after) == {
        "1": ("ACCEPTED", f"rule {number}"),
        "2": ("ACCEPTED", f"rule {number}"),
        "3": ("OPEN", None),
    }
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
    assert rows("SELECT \"by\", reason FROM event WHERE what = 'breaks accepted'") == [
        (f"rule {number}", "bank charges")
    ]


@pytest.mark.long
def test_a_run_accepts_by_its_rules_itself(
    workspace: Workspace, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage does it under the lease of the scope; see `flows.stages.reconcile.run`."""
    from flows.stages.reconcile.run import Asked
    from flows.stages.reconcile.run import reconcile as run_scope
    from flows.stages.reconcile.scope import Scope
    from flows.steps.rules.rules import Rules

    done = run_scope(workspace, Asked(Scope(), DAY, Rules()))
    in_force(workspace)
    assert rows("SELECT count(*) FROM decision") == [(0,)]
    again = run_scope(workspace, Asked(Scope(), DAY, Rules()))
    assert again.run.previous_id == done.run.id


MISSING, MISSING_TOO = {"code": "MISSING_IN_TARGET", "field": ""}, {"code": "MISSING_IN_TARGET"}
"""A whole record, of which all amounts are missing."""
REJECTED = {"code": "REJECTED"}


@pytest.mark.long(but=("facts0-terms0-True", "facts1-terms1-True", "facts2-terms2-False"))
@pytest.mark.parametrize(
    ("facts", "terms", "covered"),
    [
        ({}, {}, True),
        ({"amount": "-10"}, {}, True),
        ({"amount": "10.000000000000000001"}, {}, False),
        ({"amount": None}, {}, False),
        ({"amount": None, "amount_beyond": "1e308"}, {}, False),
        ({"currency": 2}, {}, False),
        ({"currency": None}, {}, False),
        (REJECTED, {}, False),
        ({}, {"record": "payment"}, True),
        ({}, {"record": "currency_rate"}, False),
        ({}, {"tenant": 7}, True),
        ({}, {"tenant": 8}, False),
        ({}, {"until": DAY}, True),
        ({"amount": "25"}, {"each": Decimal(25)}, True),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount -10"}, MISSING_TOO, True),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount -10.01"}, MISSING_TOO, False),
        (MISSING | {"amounts": "PaidAmount 10, DiscountAmount NaN"}, MISSING_TOO, False),
        (REJECTED | {"note": "DiscountAmount is not readable"}, REJECTED, False),
    ],
)
def test_what_a_rule_covers(
    workspace: Workspace, facts: dict[str, Any], terms: dict[str, Any], covered: bool
) -> None:
    run = reconcile(workspace, found("1", **facts))
    in_force(workspace, replace(TERMS, **terms))
    assert apply(workspace, run) == [(int(covered), True)]


@pytest.mark.long
def test_all_that_it_would_hold_is_within_its_ceiling_or_it_accepts_none(
    workspace: Workspace, rows: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = reconcile(workspace, found("1", "2", amount="10"))
    number = in_force(workspace)
    assert apply(workspace, run) == [(2, True)]
    three = found("1", "2", "3", amount="10")
    run = reconcile(workspace, three)
    with caplog.at_level(logging.WARNING, "recon.reconcile"):
        assert apply(workspace, run) == [(1, False)], "20 are held, and 30 would be"
    assert f"Rule {number} covers 1 break" in caplog.text
    assert "would hold 30 accepted, more than its ceiling of 25" in caplog.text
    assert states(rows, reconcile(workspace, three))["3"] == ("OPEN", None)
    in_force(workspace, replace(TERMS, code="MISSING_IN_TARGET"))
    amounts = "PaidAmount 1, DiscountAmount -9"
    whole = found("4", "5", "6", code="MISSING_IN_TARGET", field="", amount="1", amounts=amounts)
    run = reconcile(workspace, whole)
    assert apply(workspace, run)[1:] == [(3, False)], "27 would be held"


@pytest.mark.long
def test_it_ends_with_its_last_day_and_with_a_word(workspace: Workspace, rows: Any) -> None:
    breaks = found("1")
    reconcile(workspace, breaks)
    number = in_force(workspace, replace(TERMS, until=DAY))
    later = date(2026, 2, 1)
    assert apply(workspace, reconcile(workspace, breaks, as_of=later)) == []
    other = in_force(workspace)
    withdraw_rule(workspace, other, by="ann", reason="booked now")
    assert apply(workspace, reconcile(workspace, breaks, as_of=later)) == []
    told = {one.number: one for one in list_rules(workspace)}
    assert told[number].state(later) is RuleState.ENDED
    assert told[other].state(later) is RuleState.WITHDRAWN
    with pytest.raises(AccountRefused, match="withdrawn already"):
        withdraw_rule(workspace, other, by="ann", reason="again")
    with pytest.raises(AccountRefused, match="approved or withdrawn already"):
        approve_rule(workspace, other, by="cid", reason="")


@pytest.mark.long
def test_what_people_have_decided_stays_with_people(workspace: Workspace, rows: Any) -> None:
    breaks = found("1", "2")
    run = reconcile(workspace, breaks)
    in_force(workspace)
    assert apply(workspace, run) == [(2, True)]
    run = reconcile(workspace, breaks)
    reopened = Decision(Choice.REOPEN, "the bank has not paid", "cid")
    decide_breaks(workspace, run.id, Chosen((breaks["id"][0],)), reopened)
    for expected in ("REOPENED", "OPEN", "OPEN"):
        run = reconcile(workspace, breaks)
        assert states(rows, run)["1"] == (expected, None)
        assert apply(workspace, run) == [(0, True)]


CANNOT_HOLD: list[tuple[dict[str, Any], str]] = [
    ({"code": "AMMOUNT"}, "no break code 'AMMOUNT'"),
    ({"record": "payments"}, "no record kind 'payments'"),
    ({"reason": " "}, "--reason"),
    ({"until": date(2026, 1, 30)}, "is before the day of the run"),
    ({"each": Decimal(0)}, "is no ceiling"),
    ({"each": Decimal("NaN")}, "is no ceiling"),
    ({"total": Decimal("1e30")}, "is no ceiling"),
    ({"each": Decimal(26)}, "is above the ceiling of all, 25"),
]


def test_terms_that_cannot_hold_are_refused(workspace: Workspace, rows: Any) -> None:
    reconcile(workspace, found("1"))
    for terms, told in CANNOT_HOLD:
        with pytest.raises(DecisionRefused, match=told):
            propose_rule(workspace, None, replace(TERMS, **terms), "ann")
    assert rows("SELECT count(*) FROM event WHERE what LIKE 'acceptance%'") == [(0,)]


@pytest.mark.long
def test_whoever_names_no_run_means_none_that_restates_an_earlier_day(
    workspace: Workspace, rows: Any
) -> None:
    """A break has one id in both, and what is decided about that one counts for nothing else."""
    breaks = found("1")
    run = reconcile(workspace, breaks)
    again = reconcile(workspace, breaks, scope=f"{SCOPE}{RESTATED}2026-01-02")
    chosen, why = Chosen(tuple(ids(breaks))), "ok"
    told = f"the latest, restates an earlier day.* Name the run that you mean: --run {again.id}"
    for what in Choice:
        with pytest.raises(DecisionRefused, match=told):
            decide_breaks(workspace, None, chosen, Decision(what, why, "ann", until=UNTIL))
    with pytest.raises(DecisionRefused, match=told):
        propose_rule(workspace, None, TERMS, "ann")
    assert rows("SELECT FROM event WHERE id > %s", [again.event_id]) == []
    for meant in (run, again):
        decide_breaks(workspace, meant.id, chosen, Decision(Choice.COMMENT, why, "ann"))
        propose_rule(workspace, meant.id, TERMS, "ann")
    assert {one.terms.scope for one in list_rules(workspace)} == {run.scope, again.scope}
    reconcile(workspace, breaks)
    propose_rule(workspace, None, TERMS, "ann")


def test_nobody_approves_what_they_proposed(workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    number = propose_rule(workspace, None, TERMS, "Ann  Lee")
    for name in ("ann lee ", "\tANN LEE", "\uff21nn\u00a0Lee", "Ann\u200b Lee"):
        with pytest.raises(AccountRefused, match="Nobody approves a rule of acceptance that they"):
            approve_rule(workspace, number, by=name, reason="")
    with pytest.raises(AccountRefused, match="no rule of acceptance 7"):
        approve_rule(workspace, 7, by="bob", reason="")


@pytest.mark.long
def test_roles_tenants_and_a_signature_under_what_the_rule_accepted(
    workspace: Workspace, rows: Any
) -> None:
    both = replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER))
    dan = replace(both, name="dan")
    add(workspace, both, BO, CLEO, TESSA, dan)
    scope = "tenants 7"
    breaks = found("1")
    run = reconcile(workspace, breaks, scope=scope)
    anna, bo, cleo = (logged_in(workspace, one) for one in (both, BO, CLEO))
    tessa = logged_in(workspace, TESSA)
    with pytest.raises(AccountRefused, match="Cleo is viewer"):
        propose_rule(cleo, None, TERMS, None)
    with pytest.raises(AccountRefused, match="tenants 7 alone"):
        propose_rule(tessa, None, TERMS, None)
    propose_rule(tessa, None, replace(TERMS, tenant=7, code="REJECTED"), None)
    number = propose_rule(anna, None, TERMS, None)
    with pytest.raises(AccountRefused, match="anna proposed rule"):
        approve_rule(anna, number, by=None, reason="")
    approve_rule(bo, number, by=None, reason="seen")
    assert apply(workspace, run) == [(1, True)]
    run = reconcile(workspace, breaks, scope=scope, verdict="RECONCILED_WITH_ACCEPTED")
    prepare(logged_in(workspace, dan), run.id, by=None, comment="")
    with pytest.raises(AccountRefused, match=f"a rule they proposed: anna proposed rule {number}"):
        approve(anna, run.id, by=None, comment="")
    with workspace.database.connect() as connection:
        keep_limit(connection, "1", Decimal("9.99"))
    with pytest.raises(AccountRefused, match=f"more than takes two .*bo approved rule {number}"):
        approve(bo, run.id, by=None, comment="")
    with workspace.database.connect() as connection:
        keep_limit(connection, "1", Decimal(10))
    approve(bo, run.id, by=None, comment="")
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None


@pytest.mark.long
def test_an_account_of_some_tenants_sees_what_others_did_with_the_rules_of_its_scopes(
    workspace: Workspace, controller: str
) -> None:
    """Where PostgreSQL shows it its own rows alone, as where nothing does."""
    eve = replace(TESSA, name="eve", tenants=(8,))
    add(workspace, ANNA, BO, TESSA, eve)
    run = reconcile(workspace, breaks := found("1"), scope="tenants 7")
    number = propose_rule(logged_in(workspace, ANNA), None, TERMS, None)
    lowest = replace(workspace, database=Database(controller, 10))

    def seen(place: Workspace) -> list[tuple[int, RuleState]]:
        return [(one.number, one.state(DAY)) for one in list_rules(place)]

    for place in (lowest, workspace):
        assert seen(logged_in(place, TESSA)) == [(number, RuleState.PROPOSED)]
    approve_rule(logged_in(workspace, BO), number, by=None, reason="seen")
    assert apply(workspace, run) == [(1, True)]
    for place in (lowest, workspace):
        tessa = logged_in(place, TESSA)
        assert seen(tessa) == [(number, RuleState.IN_FORCE)]
        assert seen(logged_in(place, eve)) == []
        with tessa.database.connect() as connection:
            (decided,) = decisions_about(connection, run.scope_hash, ids(breaks))
            told = [one.what for one in search_trail(connection, TrailSearch(run=run.id), None)]
        assert (decided.what, decided.by) == (Choice.ACCEPT, f"rule {number}")
        assert told == ["breaks accepted", "reconciled"]


@pytest.mark.long
def test_a_rule_is_not_forged_and_nobody_is_called_like_one(
    workspace: Workspace, controller: str, rows: Any
) -> None:
    breaks = found("1")
    run = reconcile(workspace, breaks)
    number = propose_rule(workspace, None, TERMS, "ann")
    with pytest.raises(AccountRefused, match="Nobody is called"):
        decide_breaks(
            workspace,
            run.id,
            Chosen((breaks["id"][0],)),
            Decision(Choice.ACCEPT, "bank charges", f"rule {number}", UNTIL),
        )
    with psycopg.connect(controller, autocommit=True) as connection:
        for statement in (
            f"SELECT recon.add_event(NULL, 'acceptance rule approved', 'bob', '', '{number}')",
            f"SELECT recon.accept_by_rules({run.id})",
            "SELECT recon.write_decisions('breaks accepted', 'rule 1', 'x', '{}')",
            "INSERT INTO recon.event (what) VALUES ('acceptance rule approved')",
        ):
            with pytest.raises(psycopg.errors.Error):
                connection.execute(statement)
    assert apply(workspace, run) == []
    with workspace.database.connect() as connection:
        assert find_run(connection, run.id).scope == SCOPE


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [{"disabled": True}, {"roles": (AccountRole.VIEWER,)}, {"tenants": (8,)}],
    ids=lambda change: next(iter(change)),
)
def test_a_rule_of_somebody_who_may_not_propose_it_any_more_is_not_approved(
    workspace: Workspace, change: dict[str, Any]
) -> None:
    add(workspace, ANNA, BO)
    reconcile(workspace, found("1"), scope="tenants 7")
    number = propose_rule(logged_in(workspace, ANNA), None, TERMS, None)
    with workspace.database.connect() as owner:
        keep_account(owner, replace(ANNA, **change))
    bo = logged_in(workspace, BO)
    with pytest.raises(AccountRefused, match=f"Anna may not propose rule {number} any more"):
        approve_rule(bo, number, by=None, reason="seen")
    with workspace.database.connect() as owner:
        keep_account(owner, ANNA)
    approve_rule(bo, number, by=None, reason="seen")


def test_what_nobody_who_was_logged_in_approved_accepts_no_more_once_there_are_accounts(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    """What it has accepted is somebody's word until its day, as of any rule that has ended."""
    first = reconcile(workspace, found("1"))
    number = in_force(workspace)
    assert apply(workspace, first) == [(1, True)]
    add(workspace, ANNA, BO)
    second = reconcile(workspace, found("1", "2"))
    with caplog.at_level(logging.WARNING, "recon.reconcile"):
        assert apply(workspace, second) == []
    assert f"Rule {number} accepts nothing" in caplog.text
    (rule,) = list_rules(workspace)
    assert rule.state(DAY) is RuleState.SELF_DECLARED
    with pytest.raises(AccountRefused, match="whoever may proposes it anew"):
        approve_rule(logged_in(workspace, BO), number, by=None, reason="agreed")
    withdraw_rule(logged_in(workspace, BO), number, by=None, reason="proposed anew")
    anew = propose_rule(logged_in(workspace, ANNA), None, TERMS, None)
    approve_rule(logged_in(workspace, BO), anew, by=None, reason="agreed")
    assert apply(workspace, second) == [(1, True)]


def test_a_rule_of_nobody_is_proposed_anew_once_there_are_accounts(workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    number = propose_rule(workspace, None, TERMS, "ann")
    add(workspace, BO)
    (rule,) = list_rules(workspace)
    assert rule.state(DAY) is RuleState.SELF_DECLARED
    with pytest.raises(AccountRefused, match="whoever may proposes it anew"):
        approve_rule(logged_in(workspace, BO), number, by=None, reason="seen")


LONG = "9" * 5000
"""A number that PostgreSQL reads and Python refuses."""


@pytest.mark.parametrize(
    "more", [f'"x": {LONG}', f'"record": {LONG}', '"x": 1'], ids=["unknown", "record", "one"]
)
def test_what_no_rule_says_is_not_kept(workspace: Workspace, rows: Any, more: str) -> None:
    """It can never be taken from the trail again, and every list of rules reads it."""
    reconcile(workspace, found())
    terms = (
        '{"scope": "tenants 7", "code": "AMOUNT", "currency": 1, "each": "1", "total": "2", '
        f'"until": "2026-12-31", {more}}}'
    )
    with (
        workspace.database.connect() as connection,
        pytest.raises(psycopg.errors.RaiseException, match="no terms of a rule"),
    ):
        connection.execute("SELECT propose_rule('ann', 'charges', %s)", [terms])
    assert rows("SELECT count(*) FROM event WHERE what LIKE 'acceptance%'") == [(0,)]
