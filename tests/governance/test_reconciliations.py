"""Runs of a scope in the ledger: one after the other, each with the breaks it leaves."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

from connectors.errors import DecisionRefused, ReconciliationUnknown, ScopeHeldElsewhere
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.breaks import Decision, breaks_before, breaks_of
from connectors.postgres.runs.reconciliations import (
    find_run,
    hold_scope,
    latest_run,
    list_runs,
    next_number,
    scope_hash,
)
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked
from flows.stages.reconcile.run import reconcile as reconcile_scope
from flows.stages.reconcile.saved_report import SavedReport
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.breaks.saved import from_saved
from flows.steps.rules.rules import Rules
from schemas.guards.trail_rules import chain_hash
from schemas.life import Choice
from tests.governance.runs import DAY, SCOPE, found, ids, reconcile, tamper

ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))


def states(workspace: Workspace, number: int) -> dict[str, str]:
    with workspace.database.connect() as connection:
        left = from_saved(breaks_of(connection, number))
    return dict(left.select("key", "state").iter_rows())


@pytest.mark.long
def test_breaks_live_from_run_to_run(workspace: Workspace) -> None:
    first = reconcile(workspace, found("1", "2", "3", "4", batch_id=1))
    assert states(workspace, first.id) == dict.fromkeys("1234", "NEW")
    decide_breaks(workspace, None, Chosen(ids=ids(found("2"))), ACCEPT)
    second = reconcile(workspace, found("1", "2", batch_id=1), delivered=[("3", 2), ("4", 1)])
    assert states(workspace, second.id) == {
        "1": "OPEN",
        "2": "ACCEPTED",
        "3": "RESOLVED_SOURCE",
        "4": "RESOLVED_SERVICE",
    }
    third = reconcile(workspace, found("1", "2", "5", batch_id=1))
    assert states(workspace, third.id) == {"1": "OPEN", "2": "ACCEPTED", "5": "NEW"}
    # Back after a run that did not know it any more, and the acceptance has run out meanwhile.
    fourth = reconcile(workspace, found("2", "3", batch_id=1), as_of=date(2027, 1, 1))
    assert states(workspace, fourth.id) == {
        "1": "RESOLVED_SERVICE",
        "2": "EXPIRED",
        "3": "REOPENED",
        "5": "RESOLVED_SERVICE",
    }
    with workspace.database.connect() as connection:
        back = from_saved(breaks_of(connection, fourth.id)).filter(pl.col("key") == "3")
        proof = verify(connection)
    assert back["first_seen"].to_list() == [DAY]
    assert (proof.events, proof.broken) == (5, None)


@pytest.mark.long
def test_every_run_continues_its_scope_and_no_other(workspace: Workspace) -> None:
    first = reconcile(workspace, found("1"))
    other = reconcile(workspace, found("1"), scope="another")
    second = reconcile(workspace, found("1"))
    assert [run.previous_id for run in (first, other, second)] == [None, None, first.id]
    assert states(workspace, other.id) == {"1": "NEW"}
    assert states(workspace, second.id) == {"1": "OPEN"}
    assert second.chain_hash == chain_hash(first.chain_hash, second.report_hash)
    with workspace.database.connect() as connection:
        assert latest_run(connection, SCOPE) == second
        assert latest_run(connection, "a third") is None
        assert find_run(connection) == second
        with pytest.raises(ReconciliationUnknown, match="no reconciliation 99"):
            find_run(connection, 99)


@pytest.mark.long
def test_one_run_at_a_time_and_no_decision_is_lost_on_it(workspace: Workspace) -> None:
    first = reconcile(workspace, found("1"))
    with workspace.database.connect() as connection, hold_scope(connection, SCOPE):
        with pytest.raises(ScopeHeldElsewhere) as second:
            reconcile(workspace, found("1"))
        assert second.value.exit_code == 3
        with pytest.raises(ScopeHeldElsewhere, match="being reconciled right now"):
            decide_breaks(workspace, first.id, Chosen(code="AMOUNT"), ACCEPT)
        reconcile(workspace, found("1"), scope="another")
    assert decide_breaks(workspace, first.id, Chosen(code="AMOUNT"), ACCEPT).ids
    run = reconcile(workspace, found("1"))
    assert states(workspace, run.id) == {"1": "ACCEPTED"}


@pytest.mark.long
def test_a_decision_acts_once(workspace: Workspace) -> None:
    first = reconcile(workspace, found("1"))
    decide_breaks(workspace, first.id, Chosen(code="AMOUNT"), ACCEPT)
    second = reconcile(workspace, found("1"))
    assert (first.decided_through, second.decided_through) == (0, 1)
    decide_breaks(workspace, None, Chosen(state="ACCEPTED"), Decision(Choice.REOPEN, "no", "bo"))
    third = reconcile(workspace, found("1"))
    assert states(workspace, third.id) == {"1": "REOPENED"}
    assert states(workspace, reconcile(workspace, found("1")).id) == {"1": "OPEN"}
    with pytest.raises(DecisionRefused, match="was followed by 4"):
        decide_breaks(workspace, first.id, Chosen(code="AMOUNT"), ACCEPT)


def test_a_run_that_dies_leaves_nothing_but_a_number(workspace: Workspace, rows: Any) -> None:
    with workspace.database.connect() as connection, hold_scope(connection, SCOPE):
        folder = f"reconciliation-{next_number(connection)}"
        (workspace.settings.reports / folder).mkdir(parents=True)
    assert rows("SELECT count(*) FROM reconciliation") == [(0,)]
    after = reconcile(workspace, found("1"))
    assert after.folder != folder
    assert after.previous_id is None
    assert Path(after.folder).name == after.folder, "a folder is told without the machine's path"


@pytest.mark.long
def test_thousands_of_breaks_are_saved_carried_and_decided(workspace: Workspace) -> None:
    many = found(*map(str, range(20_000)))
    first = reconcile(workspace, many)
    with workspace.database.connect() as connection:
        kept = breaks_of(connection, first.id)
        again = breaks_before(connection, scope_hash(SCOPE), first.id, many["id"])
        assert verify(connection).broken is None
    assert kept.height == again.height == 20_000
    assert decide_breaks(workspace, None, Chosen(code="AMOUNT"), ACCEPT).ids == tuple(
        kept["break_id"]
    )
    second = reconcile(workspace, many.head(19_999))
    with workspace.database.connect() as connection:
        counts = dict(breaks_of(connection, second.id)["state"].value_counts().iter_rows())
    assert counts == {"ACCEPTED": 19_999, "RESOLVED_SERVICE": 1}


TAMPERED = [
    ("decision", "UPDATE decision SET by = 'mallory'", "decisions of event 2 are not what link 2"),
    ("decision", "UPDATE decision SET until = '2099-01-01'", "decisions of event 2"),
    ("decision", "DELETE FROM decision WHERE id = 1", "decisions of event 2"),
    ("decision", "DELETE FROM decision", "the decisions that event 2 (link 2) tells of"),
    (
        "decision",
        "INSERT INTO decision (reconciliation_id, break_id, what, by, reason, at, event_id) "
        "VALUES (1, 'x', 'accept', 'mallory', '', now(), 1)",
        "decisions of event 1 are not what any event says",
    ),
    (
        "reconciliation",
        "UPDATE reconciliation SET verdict = 'RECONCILED'",
        "reconciliation 1 is not",
    ),
    ("reconciliation", "DELETE FROM reconciliation", "the reconciliation that event 1 (link 1)"),
    ("break_state", "UPDATE break_state SET amount = 0", "the breaks of reconciliation 1 are not"),
    ("break_state", "DELETE FROM break_state", "the breaks of reconciliation 1 are not"),
]


@pytest.mark.long(
    but=("decision-DELETE FROM decision-the decisions that event 2 (link 2) tells of",)
)
@pytest.mark.parametrize(("table", "statement", "told"), TAMPERED)
def test_what_events_tell_of_is_proven_too(
    workspace: Workspace, table: str, statement: str, told: str
) -> None:
    reconcile(workspace, found("1", "2"))
    decide_breaks(workspace, None, Chosen(code="AMOUNT"), ACCEPT)
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
    tamper(workspace, table, statement)
    with workspace.database.connect() as connection:
        assert told in (verify(connection).broken or "")


RENUMBERED = [
    # which decisions get which numbers; the event that is named
    ("UPDATE decision SET id = 100 WHERE event_id = 2", 2),
    ("UPDATE decision SET id = 100 WHERE event_id = 3", 3),
    ("UPDATE decision SET id = 0 WHERE event_id = 5", 5),
    ("UPDATE decision SET id = CASE id WHEN 1 THEN 2 ELSE 1 END WHERE id < 3", 3),
]


@pytest.mark.long
@pytest.mark.parametrize(("statement", "event"), RENUMBERED)
def test_decisions_are_in_the_order_of_their_events(
    workspace: Workspace, statement: str, event: int
) -> None:
    """Whoever renumbers them has an acceptance come after the one who took it back."""
    reopen = Decision(Choice.REOPEN, "not paid", "bo")
    reconcile(workspace, found("1"))
    for decision in (ACCEPT, reopen):
        decide_breaks(workspace, None, Chosen(code="AMOUNT"), decision)
    run = reconcile(workspace, found("1"))
    decide_breaks(workspace, run.id, Chosen(code="AMOUNT"), ACCEPT)
    reconcile(workspace, found("1"))
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        # Two numbers are exchanged in one statement, which the key would refuse half way.
        connection.execute("ALTER TABLE decision DROP CONSTRAINT decision_pkey")
    tamper(workspace, "decision", statement)
    with workspace.database.connect() as connection:
        assert f"decisions of event {event} (link {event}) have" in str(verify(connection).broken)


@pytest.mark.long
def test_the_rules_of_a_run_are_not_taken_away(workspace: Workspace) -> None:
    """A run of a time that kept no rules names no version either: nothing is said of that."""
    run = reconcile(workspace, found("1"))
    with workspace.database.connect() as connection:
        assert (run.version, verify(connection).broken) == (None, None)
    asked = Asked(Scope(tenants=(7,)), DAY, Rules())
    number = reconcile_scope(workspace, asked).run.id
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
    tamper(workspace, "reconciliation", "UPDATE reconciliation SET rules_text = NULL")
    with workspace.database.connect() as connection:
        told = f"the text of the rules of reconciliation {number} was removed"
        assert verify(connection).broken == told


def test_the_ledger_refuses_two_runs_under_one_number(workspace: Workspace) -> None:
    first = reconcile(workspace, found("1"))
    with workspace.database.connect() as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(
            "INSERT INTO reconciliation SELECT * FROM reconciliation WHERE id = %s", [first.id]
        )


@pytest.mark.long
def test_runs_at_once_follow_each_other_by_their_numbers(workspace: Workspace) -> None:
    """A scope gives a number to one run at a time, so the highest is the one saved last."""
    restated = f"{SCOPE}; restated as of 2026-01-01"

    def run(key: int) -> str:
        scope = restated if key % 3 == 0 else SCOPE
        for _ in range(1_000):
            try:
                reconcile(workspace, found(str(key), batch_id=1), scope=scope)
            except ScopeHeldElsewhere:
                continue
            return scope
        raise AssertionError("the scope was held all the time")

    with ThreadPoolExecutor(4) as pool:
        scopes = list(pool.map(run, range(1, 7)))
    with workspace.database.connect() as connection:
        runs = list_runs(connection)
        assert len(runs) == len(scopes)
        for scope in (SCOPE, restated):
            own = [one for one in runs if one.scope == scope]
            assert [one.previous_id for one in own] == [None, *(one.id for one in own[:-1])]
            assert [one.event_id for one in own] == sorted(one.event_id for one in own)
            # A restatement is the last of its own scope, and never that of the one it restates.
            assert latest_run(connection, scope) == own[-1]
        # Over all scopes it is the number, whichever was saved last.
        assert find_run(connection).id == max(one.id for one in runs)


def test_a_report_that_is_shown_again_ends_as_its_run_did(workspace: Workspace) -> None:
    for breaks, code in ((found(), 0), (found("1"), 1)):
        run = reconcile(workspace, breaks)
        assert SavedReport(run, Path(), "").exit_code == code
