"""Decisions about breaks: for all that are meant or for none, with who, why and until when."""

import json
import os
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.errors import BreakUnknown, DecisionRefused, DecisionsMoved, ReconError
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import Reconciliation
from connectors.process import user_name
from flows.stages.reconcile.breaks import (
    Chosen,
    breaks_now,
    decide_breaks,
    list_breaks,
    meant_by,
)
from flows.stages.reconcile.decision_rules import Looked, digest_of
from flows.stages.workspace import Workspace
from schemas.life import OPTIONS, Choice
from tests.governance.runs import DAY, found, ids, reconcile

UNTIL = date(2026, 3, 31)
ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=UNTIL)
REOPEN = Decision(Choice.REOPEN, "no", "bo")
RESOLVE = Decision(Choice.RESOLVE, "done", "ann", side="source")
ASSIGN = Decision(Choice.ASSIGN, "hers", "ann", owner="cleo")
ONE, TWO, GONE = (ids(found(key))[0] for key in ("1", "2", "gone"))


def mixed() -> Any:
    return (
        found("1", amount="10")
        .vstack(found("2", amount="-300", currency=2))
        .vstack(found("3", amount="5", code="RATE_MISSING", currency=None))
    )


def test_whoever_gives_no_name_has_one_in_every_process(workspace: Workspace, rows: Any) -> None:
    reconcile(workspace, mixed())
    decide_breaks(workspace, None, Chosen(state="open"), replace(ACCEPT, by=None))
    here = f"{user_name()}@{socket.gethostname()}"
    ((by, detail),) = rows("SELECT by, detail FROM event WHERE what = 'breaks accepted'")
    assert by == here
    assert json.loads(detail)["process"] == f"{here} pid {os.getpid()}"
    assert rows("SELECT DISTINCT by FROM decision") == [(here,)]


LISTED = [
    (Chosen(), ["2", "1", "3"]),
    (Chosen(code="AMOUNT"), ["2", "1"]),
    (Chosen(code="AMOUNT", currency=2), ["2"]),
    (Chosen(state="open"), ["2", "1", "3"]),
    (Chosen(state="new"), ["2", "1", "3"]),
    (Chosen(state="ACCEPTED"), []),
    (Chosen(record="payment", tenant=7), ["2", "1", "3"]),
    (Chosen(tenant=8), []),
    (Chosen(ids=(ONE,)), ["1"]),
]


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (Chosen(code="AMOUTN"), "There is no break code 'AMOUTN'. Known: FILE_REFUSED, MISS"),
        (Chosen(code=""), "There is no break code ''. Known: "),
        (Chosen(record="paymnt"), "There is no record kind 'paymnt'. Known: action_document, "),
        (Chosen(code="\udcff"), "There is no break code '\\udcff'. Known: "),
        (
            Chosen(ids=(ONE, "f" * 16, "\udcff")),
            "has no such break, or it does not fit the filter: ",
        ),
        (Chosen(ids=(GONE,)), f"has no such break, or it does not fit the filter: {GONE}. "),
    ],
)
def test_what_names_no_break_is_no_empty_list(
    workspace: Workspace, chosen: Chosen, told: str
) -> None:
    """A script that mistyped a code read that there was none; an id that is no text was a fault."""
    reconcile(workspace, found("1"))
    with pytest.raises(BreakUnknown, match=re.escape(told)):
        list_breaks(workspace, None, chosen)
    with pytest.raises(ReconError, match=re.escape(told)):
        decide_breaks(workspace, None, chosen, ACCEPT)


@pytest.mark.long
def test_a_list_is_filtered_and_has_the_largest_amounts_first(workspace: Workspace) -> None:
    reconcile(workspace, mixed())
    for chosen, keys in LISTED:
        _, breaks = list_breaks(workspace, None, chosen)
        assert breaks["key"].to_list() == keys, chosen


@pytest.mark.long
def test_a_decision_is_counted_told_and_kept(workspace: Workspace, rows: Any) -> None:
    run = reconcile(workspace, mixed())
    concluded = rows("SELECT (detail::json ->> 'breaks')::int FROM event ORDER BY id DESC LIMIT 1")
    assert concluded == [(mixed().height,)]
    decided = decide_breaks(workspace, None, Chosen(code="AMOUNT"), ACCEPT)
    assert (decided.run.id, set(decided.ids)) == (run.id, {ONE, TWO})
    assert decided.amounts == {"1": Decimal(10), "2": Decimal(300)}
    assert rows("SELECT break_id, what, by, reason, until FROM decision ORDER BY 1") == sorted(
        (one, "accept", "ann", "agreed", "2026-03-31") for one in (ONE, TWO)
    )
    trail = rows("SELECT what, by, reason FROM event ORDER BY id DESC LIMIT 1")
    assert trail == [("breaks accepted", "ann", "agreed")]
    _, left = list_breaks(workspace, None, Chosen(state="open"))
    assert left["key"].to_list() == ["3"]


REFUSED = [
    # what is asked -> why not
    (Chosen(), ACCEPT, "Name the breaks"),
    (Chosen(ids=(ONE, GONE)), ACCEPT, f"no such break, or it does not fit the filter: {GONE}"),
    (Chosen(ids=(ONE,), code="OFFSET"), ACCEPT, f"does not fit the filter: {ONE}"),
    (Chosen(code="OFFSET"), ACCEPT, "has no break that fits"),
    (
        Chosen(state="shut"),
        ACCEPT,
        "There is no state 'shut'. Known: open, aside, resolved, NEW, OPEN",
    ),
    (Chosen(ids=(ONE,)), REOPEN, f"You cannot reopen these: {ONE} is NEW"),
    (Chosen(code="AMOUNT"), REOPEN, "has no break that fits"),
    (Chosen(ids=(ONE,)), Decision(Choice.ACCEPT, "why", until=date(2026, 1, 30)), "has passed"),
    (Chosen(ids=(ONE,)), Decision(Choice.ACCEPT, "why"), "needs its last day"),
    (Chosen(ids=(ONE,)), Decision(Choice.ACCEPT, " ", until=UNTIL), "needs a reason"),
    (Chosen(ids=(ONE,)), Decision(Choice.ACCEPT, "why", " ", until=UNTIL), "--by is empty"),
    (Chosen(ids=(ONE,)), Decision(Choice.RESOLVE, "why", side="bank"), "source, service"),
    (Chosen(ids=(ONE,)), Decision(Choice.ASSIGN, "why", owner=" "), "needs an owner"),
]


def test_what_cannot_be_decided_is_decided_for_none(workspace: Workspace, rows: Any) -> None:
    reconcile(workspace, mixed())
    for chosen, decision, why in REFUSED:
        with pytest.raises(DecisionRefused, match=re.escape(why)):
            decide_breaks(workspace, None, chosen, decision)
        assert rows("SELECT count(*) FROM decision") == [(0,)], why
        assert rows("SELECT count(*) FROM event") == [(1,)], why


def test_the_last_day_may_be_the_day_of_the_run(workspace: Workspace) -> None:
    reconcile(workspace, mixed())
    today = Decision(Choice.ACCEPT, "why", until=DAY)
    assert decide_breaks(workspace, None, Chosen(ids=(ONE,)), today).ids == (ONE,)


@pytest.mark.long
def test_one_decision_after_the_other(workspace: Workspace) -> None:
    """A filter means what can still be decided so; an id insists."""
    reconcile(workspace, mixed())
    assert len(decide_breaks(workspace, None, Chosen(code="AMOUNT"), ACCEPT).ids) == 2
    with pytest.raises(DecisionRefused, match="no break that fits"):
        decide_breaks(workspace, None, Chosen(code="AMOUNT"), ACCEPT)
    assert decide_breaks(workspace, None, Chosen(ids=(ONE,)), ACCEPT).ids == (ONE,)
    assert decide_breaks(workspace, None, Chosen(ids=(ONE,)), REOPEN).ids == (ONE,)
    assert decide_breaks(workspace, None, Chosen(state="open"), RESOLVE).amounts["1"] == 10
    assert decide_breaks(workspace, None, Chosen(ids=(ONE,)), REOPEN).ids == (ONE,)
    assert len(decide_breaks(workspace, None, Chosen(tenant=7), ASSIGN).ids) == 3
    _, breaks = list_breaks(workspace, None, Chosen())
    assert breaks.select("key", "state", "claimed", "owner").rows() == [
        ("2", "ACCEPTED", None, "cleo"),
        ("1", "REOPENED", None, "cleo"),
        ("3", "NEW", "source", "cleo"),
    ]


@pytest.mark.long
def test_a_resolved_break_is_past_deciding(workspace: Workspace) -> None:
    reconcile(workspace, mixed())
    reconcile(workspace, found("1"))
    with pytest.raises(DecisionRefused, match=f"{TWO} is RESOLVED_SERVICE"):
        decide_breaks(workspace, None, Chosen(ids=(TWO,)), ACCEPT)


@pytest.mark.long
def test_two_people_decide_at_once_and_each_break_is_decided_once(workspace: Workspace) -> None:
    reconcile(workspace, mixed())
    ready = threading.Barrier(4)

    def accept(_: int) -> int:
        ready.wait(timeout=30)
        try:
            return len(decide_breaks(workspace, None, Chosen(state="open"), ACCEPT).ids)
        except DecisionRefused:
            return 0

    with ThreadPoolExecutor(4) as people:
        assert sorted(people.map(accept, range(4))) == [0, 0, 0, 3]


def decide(workspace: Workspace, decision: Decision) -> None:
    decide_breaks(workspace, None, Chosen((ONE,)), decision)


@pytest.mark.long
def test_a_comment_changes_nothing_and_stays(workspace: Workspace, rows: Any) -> None:
    breaks = found("1")
    reconcile(workspace, breaks)
    decide(workspace, Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31)))
    decide(workspace, Decision(Choice.COMMENT, "asked the bank", "bo"))
    (now,) = list_breaks(workspace, None, Chosen())[1].iter_rows(named=True)
    assert (now["state"], now["accepted_by"]) == ("ACCEPTED", "ann")
    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    (later,) = list_breaks(workspace, run.id, Chosen())[1].iter_rows(named=True)
    assert (later["state"], later["accepted_by"]) == ("ACCEPTED", "ann")
    assert rows("SELECT what, reason, by FROM event WHERE what = 'breaks commented'") == [
        ("breaks commented", "asked the bank", "bo")
    ]


@pytest.mark.long
def test_an_owner_has_a_day_until_another_owner_is_named(workspace: Workspace) -> None:
    breaks = found("1")

    def owned() -> tuple[Any, ...]:
        (row,) = list_breaks(workspace, None, Chosen())[1].iter_rows(named=True)
        return row["state"], row["owner"], row["due"]

    reconcile(workspace, breaks)
    due = date(2026, 2, 15)
    decide(workspace, Decision(Choice.ASSIGN, "yours", "ann", until=due, owner="treasury"))
    assert owned() == ("NEW", "treasury", due)
    reconcile(workspace, breaks)
    assert owned() == ("OPEN", "treasury", due)
    decide(workspace, Decision(Choice.COMMENT, "late", "ann"))
    assert owned() == ("OPEN", "treasury", due)
    decide(workspace, Decision(Choice.ASSIGN, "yours", "ann", owner="bank"))
    assert owned() == ("OPEN", "bank", None)
    past = Decision(Choice.ASSIGN, "yours", "ann", until=date(2026, 1, 1), owner="bank")
    with pytest.raises(DecisionRefused, match="--due 2026-01-01 has passed"):
        decide(workspace, past)


def test_a_refusal_is_worded_for_whoever_asks(workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    page = dict.fromkeys(OPTIONS, "the field") | {"until": "Last day"}
    early = replace(ACCEPT, until=date(2026, 1, 1))
    with pytest.raises(DecisionRefused, match="--until 2026-01-01 has passed") as refused:
        decide_breaks(workspace, None, Chosen(code="AMOUNT"), early)
    assert refused.value.worded(page).startswith("Last day 2026-01-01 has passed")
    with pytest.raises(DecisionRefused) as refused:
        decide_breaks(workspace, None, Chosen(state="{until}"), ACCEPT)
    assert "no state '{until}'" in refused.value.worded(page), "what is typed is no field"


def _looked(workspace: Workspace, run: Reconciliation, chosen: Chosen) -> Looked:
    with workspace.database.connect() as connection:
        breaks = breaks_now(connection, run)
        meant = meant_by(breaks, run, chosen, Choice.ACCEPT)
        return Looked(digest_of(meant), run.decided_through, meant["id"].to_list())


OTHERS = [
    # what somebody else does after the look -> what the decision is then refused with
    ((ONE,), ACCEPT, "ann accepted 1 break at "),
    ((ONE,), ASSIGN, "ann assigned 1 break at "),
    ((TWO,), ACCEPT, None),
    ((ONE,), Decision(Choice.COMMENT, "asked", "bo"), None),
]


@pytest.mark.long(
    but=(
        "chosen0-about0-decision0-ann accepted 1 break at ",
        "chosen0-about1-decision1-ann assigned 1 break at ",
    )
)
@pytest.mark.parametrize(("about", "decision", "why"), OTHERS)
@pytest.mark.parametrize("chosen", [Chosen((ONE,)), Chosen(currency=1, state="open")])
def test_what_somebody_else_decided_since_one_looked_is_told(
    workspace: Workspace, chosen: Chosen, about: Any, decision: Decision, why: str | None
) -> None:
    run = reconcile(workspace, mixed())
    looked = _looked(workspace, run, chosen)
    assert looked.about == [ONE]
    decide_breaks(workspace, run.id, Chosen(about), decision)
    late = Decision(Choice.ACCEPT, "mine", "bo", until=UNTIL)
    if why is None:
        assert decide_breaks(workspace, run.id, chosen, late, looked).ids == (ONE,)
        return
    with pytest.raises(DecisionsMoved, match=why):
        decide_breaks(workspace, run.id, chosen, late, looked)


def test_a_decision_is_for_the_amounts_that_were_seen(workspace: Workspace) -> None:
    run = reconcile(workspace, mixed())
    amounts = Chosen(code="AMOUNT")
    looked = _looked(workspace, run, amounts)
    with pytest.raises(DecisionsMoved, match="there are 1 now"):
        decide_breaks(workspace, run.id, Chosen((ONE,)), ACCEPT, looked)
    reconcile(workspace, found("1", amount="11"))
    with pytest.raises(DecisionsMoved, match=f"{run.id} was followed by {run.id + 1}"):
        decide_breaks(workspace, run.id, amounts, ACCEPT, looked)
