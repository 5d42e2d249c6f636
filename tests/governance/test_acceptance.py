"""An acceptance covers what was seen: what a break becomes is another matter, and shown as such."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.errors import DecisionRefused
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.before_approval import waits_in_full
from flows.stages.reconcile.breaks import Chosen, breaks_now, decide_breaks, list_breaks
from flows.stages.reconcile.decision_rules import refuse_ceiling
from flows.stages.workspace import Workspace
from flows.steps.breaks.acceptance import BOUND, holds
from schemas.life import Choice
from tests.governance.runs import DAY, found, ids, names, reconcile, tamper

UNTIL = date(2026, 12, 31)


def accept(workspace: Workspace, up_to: str | None = None, **chosen: Any) -> None:
    ceiling = None if up_to is None else Decimal(up_to)
    until = chosen.pop("until", UNTIL)
    decision = Decision(Choice.ACCEPT, "agreed", "ann", until=until, up_to=ceiling)
    run = chosen.pop("run", None)
    decide_breaks(workspace, run, Chosen(**(chosen or {"state": "open"})), decision)


def states(workspace: Workspace) -> list[str]:
    return list_breaks(workspace, None, Chosen())[1].sort("key")["state"].to_list()


SEEN = {"amount": "10", "expected": "100", "found": "90", "delta": Decimal(-10)}
OUTGROWN: list[dict[str, Any]] = [
    {"amount": "1000", "found": "-900", "delta": Decimal(-1000)},
    {"amount": "10.000000000000000001", "delta": Decimal("-10.000000000000000001")},
    {"amount": "9.99", "found": "90.01", "delta": Decimal("-9.99")},
    {"found": "110", "delta": Decimal(10)},
    {"amount": "1000"},
    {"expected": "200", "found": "190"},
    {"found": None},
    {"expected": None},
    {"delta": None},
    {"currency": 2},
    {"currency": None},
    {"note": "another rate"},
]


def many(facts: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One break per line, under keys 10, 11 ..."""
    return pl.concat([found(str(key), **one) for key, one in enumerate(facts, 10)])


@pytest.mark.long
def test_a_break_that_becomes_another_is_open_again(workspace: Workspace) -> None:
    reconcile(workspace, many(SEEN for _ in OUTGROWN))
    accept(workspace)
    reconcile(workspace, many(SEEN for _ in OUTGROWN))
    assert set(states(workspace)) == {"ACCEPTED"}
    run = reconcile(workspace, many(SEEN | becomes for becomes in OUTGROWN))
    now = dict(zip(map(str, OUTGROWN), states(workspace), strict=True))
    assert now == dict.fromkeys(now, "REOPENED")
    assert run.verdict == "NOT_RECONCILED"
    # What it was accepted as is told until somebody decides, and does not make it accepted again.
    reconcile(workspace, many(SEEN for _ in OUTGROWN))
    lines = list_breaks(workspace, None, Chosen())[1].rows(named=True)
    assert {(line["state"], line["outgrown"], line["accepted_as"]) for line in lines} == {
        ("REOPENED", True, "expected 100, found 90, difference -10, amount 10, in currency 1")
    }


@pytest.mark.long
def test_it_is_bound_to_the_run_it_was_decided_on(workspace: Workspace) -> None:
    """Decided on 10.00; the next run finds 1000.00, before any run has told of the acceptance."""
    reconcile(workspace, found("1", amount="10"))
    accept(workspace)
    reconcile(workspace, found("1", amount="1000"))
    assert states(workspace) == ["REOPENED"]


CEILINGS = [
    # the ceiling, what the break becomes, what becomes of it
    ("25", {"amount": "25", "delta": Decimal(-25)}, "ACCEPTED"),
    ("25", {"amount": "25.01", "delta": Decimal("-25.01")}, "REOPENED"),
    ("25", {"amount": "1", "delta": Decimal(-1)}, "ACCEPTED"),
    ("25", {"amount": "10", "delta": Decimal(10)}, "REOPENED"),
    ("25", {"amount": "0", "delta": Decimal(0)}, "REOPENED"),
    ("25", {"delta": None, "amount": None}, "REOPENED"),
    ("25", {"amount": "11", "delta": Decimal(-11), "currency": 2}, "REOPENED"),
    ("10", {}, "ACCEPTED"),
]


WITHIN: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    # what was accepted up to 25, what the break becomes, whether the acceptance holds
    (SEEN, {"found": "80", "delta": Decimal(-20), "amount": "20"}, True),
    ({"field": ""}, {"amount": "20"}, True),
    ({"code": "ECHO", "expected": "9", "found": "7"}, {"found": "6", "amount": "20"}, True),
    ({"code": "TOLERANCE_BUDGET", "found": "10"}, {"found": "20", "amount": "20"}, True),
    # An amount in another currency, whose own size nobody held against anything.
    ({"code": "VALUE", "expected": "10", "found": "12"}, {"found": "1000000"}, False),
    ({"code": "VALUE", "field": "DebtsId", "expected": "5", "found": "7"}, {"found": "9"}, False),
    ({"code": "ECHO", "field": "DebtsId", "expected": "5", "found": "7"}, {"found": "9"}, False),
    ({"code": "RATE_STALE", "found": "2026-01-02"}, {"found": "2020-01-02"}, False),
    ({"code": "CHANGED_AFTER_SIGNOFF", "found": "12"}, {"found": "1000000"}, False),
]


@pytest.mark.parametrize(("seen", "becomes", "held"), WITHIN)
def test_a_ceiling_is_for_amounts_and_for_nothing_else(
    seen: dict[str, Any], becomes: dict[str, Any], *, held: bool
) -> None:
    then = found("1", **seen).select(pl.col(BOUND).name.prefix("seen_"))
    both = found("1", **(seen | becomes)).hstack(then).with_columns(up_to=Decimal(25))
    assert both.select(holds("seen_", "up_to")).item() is held


@pytest.mark.long
def test_a_ceiling_holds_in_its_direction(workspace: Workspace) -> None:
    reconcile(workspace, many(SEEN for _ in CEILINGS))
    for place, (up_to, *_) in enumerate(CEILINGS):
        accept(workspace, up_to, ids=(ids(found(str(place + 10)))[0],))
    reconcile(workspace, many(SEEN | becomes for _, becomes, _ in CEILINGS))
    told = zip(CEILINGS, states(workspace), strict=True)
    assert [(case, state) for case, state in told if state != case[2]] == []


@pytest.mark.long
def test_a_ceiling_is_held_against_what_was_accepted_however_often_it_changed(
    workspace: Workspace,
) -> None:
    reconcile(workspace, found("1", amount="10"))
    accept(workspace, "25")
    for amount, state in (("20", "ACCEPTED"), ("25", "ACCEPTED"), ("26", "REOPENED")):
        reconcile(workspace, found("1", amount=amount))
        assert states(workspace) == [state]
    (line,) = list_breaks(workspace, None, Chosen())[1].rows(named=True)
    assert (line["accepted_as"], line["is_now"]) == (
        "amount 10, in currency 1",
        "amount 26, in currency 1",
    )


def test_what_was_accepted_and_what_is_now_name_currencies_as_reports_do(
    workspace: Workspace, tmp_path: Path
) -> None:
    place = names(workspace, tmp_path / "currencies.csv", "1,EUR\n")
    reconcile(place, found("1", amount="10"))
    accept(place)
    now = reconcile(place, found("1", amount="11"))
    (line,) = list_breaks(place, None, Chosen())[1].rows(named=True)
    both = ("amount 10, in 1 EUR", "amount 11, in 1 EUR")
    assert (line["accepted_as"], line["is_now"]) == both
    with place.database.connect() as connection:
        waits = waits_in_full(place, connection, now, breaks_now(connection, now))
        assert "accepted as amount 10, in 1 EUR, and now amount 11, in 1 EUR" in str(waits)
    with pytest.raises(DecisionRefused, match="was amount 10, in 1 EUR; it is now amount 11, in 1"):
        accept(place)


def test_a_ceiling_may_be_what_is_there() -> None:
    ceiling = Decision(Choice.ACCEPT, "agreed", "ann", until=UNTIL, up_to=Decimal(10))
    refuse_ceiling(found("1", amount="10"), ceiling)
    with pytest.raises(DecisionRefused, match="less than what is there"):
        refuse_ceiling(found("1", amount="10.000000000000000001"), ceiling)


REFUSED = [
    ("9.99", {}, "--up-to 9.99 is less than what is there"),
    ("0", {}, "above zero"),
    ("-20", {}, "above zero"),
    ("NaN", {}, "above zero"),
    ("1e20", {}, "above zero"),
    ("1e-19", {}, "above zero"),
    ("20", {"amount": "0"}, "have none"),
    ("20", {"currency": None, "key": "2"}, "in several"),
]


@pytest.mark.long(
    but=(
        "9.99-other0---up-to 9.99 is less than what is there",
        "20-other7-in several",
    )
)
@pytest.mark.parametrize(("up_to", "other", "why"), REFUSED)
def test_a_ceiling_that_cannot_be_one_is_refused(
    workspace: Workspace, rows: Any, up_to: str, other: dict[str, Any], why: str
) -> None:
    breaks = found("1", amount="10")
    if other:
        breaks = breaks.vstack(found("2", **{"amount": "10"} | other)) if "key" in other else (
            found("1", **other)
        )  # fmt: skip
    reconcile(workspace, breaks)
    with pytest.raises(DecisionRefused, match=re.escape(why)):
        accept(workspace, up_to)
    assert rows("SELECT count(*) FROM decision") == [(0,)]


@pytest.mark.long
def test_many_are_accepted_each_as_it_is(workspace: Workspace) -> None:
    breaks = [found(str(number), amount=str(number)) for number in range(1, 6)]
    whole = breaks[0].vstack(breaks[1]).vstack(breaks[2]).vstack(breaks[3]).vstack(breaks[4])
    cause = pl.Series("cause", ["C1"] * 4 + [None], dtype=pl.String)
    reconcile(workspace, whole.with_columns(cause))
    accept(workspace, cause="C1")
    assert states(workspace) == ["ACCEPTED"] * 4 + ["NEW"]
    # Two exchange their amounts: each was accepted for its own.
    grown = found("1", amount="2").vstack(found("2", amount="1"))
    reconcile(workspace, grown.vstack(breaks[2]).vstack(breaks[3]).vstack(breaks[4]))
    assert states(workspace) == ["REOPENED", "REOPENED", "ACCEPTED", "ACCEPTED", "OPEN"]


@pytest.mark.long
def test_what_changed_between_the_list_and_the_acceptance_needs_the_number_of_the_run(
    workspace: Workspace, rows: Any
) -> None:
    reconcile(workspace, found("1", amount="10"))
    run = reconcile(workspace, found("1", amount="1000").vstack(found("2")))
    with pytest.raises(DecisionRefused, match=r"was amount 10, .*it is now amount 1000, .*--run 2"):
        accept(workspace)
    with pytest.raises(DecisionRefused, match="was followed by 2"):
        accept(workspace, run=1, state="open")
    assert rows("SELECT count(*) FROM decision") == [(0,)]
    accept(workspace, ids=(ids(found("2"))[0],))
    accept(workspace, run=run.id, state="open")
    reconcile(workspace, found("1", amount="1000").vstack(found("2")))
    assert states(workspace) == ["ACCEPTED", "ACCEPTED"]


@pytest.mark.long
def test_what_is_new_since_the_list_needs_the_number_of_the_run(workspace: Workspace) -> None:
    """A filter takes what fits, seen or not; an id is named by somebody who has seen it."""
    reconcile(workspace, found("1", amount="10"))
    run = reconcile(workspace, found("1", amount="10").vstack(found("2", amount="40")))
    with pytest.raises(DecisionRefused, match=r"is new, .*amount 40.*--run 2"):
        accept(workspace, up_to="50", code="AMOUNT")
    assert states(workspace) == ["OPEN", "NEW"]
    accept(workspace, ids=tuple(ids(found("2"))))
    accept(workspace, run=run.id, up_to="50", code="AMOUNT")
    assert states(workspace) == ["ACCEPTED", "ACCEPTED"]


@pytest.mark.long
@pytest.mark.parametrize("was", ["RESOLVED_SERVICE", "ACCEPTED"])
def test_what_is_open_again_since_the_list_needs_the_number_of_the_run(
    workspace: Workspace, was: str
) -> None:
    """Whoever saw the run before saw it resolved or accepted: no filter meant it there."""
    both = found("1", "2", amount="10")
    reconcile(workspace, both)
    if was == "ACCEPTED":
        accept(workspace, until=DAY, ids=tuple(ids(found("2"))))
    reconcile(workspace, both if was == "ACCEPTED" else found("1", amount="10"))
    assert states(workspace)[1] == was
    run = reconcile(workspace, both, as_of=DAY + timedelta(1))
    with pytest.raises(DecisionRefused, match=f"was {was}, and is open now, .*--run 3"):
        accept(workspace, code="AMOUNT")
    accept(workspace, ids=tuple(ids(found("2"))))
    accept(workspace, run=run.id, code="AMOUNT")
    assert states(workspace) == ["ACCEPTED", "ACCEPTED"]


def test_an_acceptance_of_an_earlier_version_covers_what_its_run_says(
    workspace: Workspace,
) -> None:
    """It kept an acceptance whatever the break became; what was seen is what its run says."""
    reconcile(workspace, found("1", "2", amount="10"))
    accept(workspace)
    reconcile(workspace, found("1", amount="1000").vstack(found("2", amount="10")))
    for change in ("state = 'ACCEPTED', accepted_by = 'ann', accepted_until = '2026-12-31'",
                   "facts = (facts::jsonb - array(SELECT k FROM jsonb_object_keys(facts::jsonb) k "
                   "WHERE k LIKE 'seen%' OR k = 'up_to' OR k = 'cause'))::text"):  # fmt: skip
        tamper(workspace, "break_state", f"UPDATE break_state SET {change} "
               "WHERE reconciliation_id = 2")  # fmt: skip
    reconcile(workspace, found("1", amount="1000").vstack(found("2", amount="10")))
    assert states(workspace) == ["REOPENED", "ACCEPTED"]


SAID_BEFORE = [
    # code, the note as an earlier version wrote it, the note now, what becomes of the acceptance
    ("PLAN_LATE", "1 days", "1 day", "ACCEPTED"),
    ("PLAN_EARLY", "1 days", "1 day", "ACCEPTED"),
    ("PLAN_LATE", "2 days", "2 days", "ACCEPTED"),
    ("PLAN_LATE", "1 days", "2 days", "REOPENED"),
    ("PLAN_LATE", "11 days", "1 day", "REOPENED"),
    ("INSTANT", "-1296000 s later", "15 days earlier", "ACCEPTED"),
    ("INSTANT", "0.000001 s later", "0.000001 s later", "ACCEPTED"),
    ("INSTANT", "3600 s later", "1 h earlier", "REOPENED"),
    ("VALUE", "3600 s later", "1 h later", "REOPENED"),
]


@pytest.mark.long
def test_an_acceptance_outlives_the_wording_of_what_was_seen(workspace: Workspace) -> None:
    reconcile(workspace, many({"code": code, "note": was} for code, was, *_ in SAID_BEFORE))
    accept(workspace)
    now = many({"code": code, "note": note} for code, _, note, _ in SAID_BEFORE)
    run = reconcile(workspace, now)  # It was decided on the run before ...
    assert states(workspace) == [state for *_, state in SAID_BEFORE]
    facts = 'replace(facts, \'"seen_note":"1 day"\', \'"seen_note":"1 days"\')'
    tamper(workspace, "break_state", f"UPDATE break_state SET facts = {facts} "
           f"WHERE reconciliation_id = {run.id}")  # fmt: skip
    reconcile(workspace, now)  # ... and here a run carried it.
    assert states(workspace) == [state for *_, state in SAID_BEFORE]


@pytest.mark.long
def test_the_trail_holds_the_ceiling(workspace: Workspace) -> None:
    reconcile(workspace, found("1", "2"))
    accept(workspace, "25", ids=(ids(found("1"))[0],))
    accept(workspace, ids=(ids(found("2"))[0],))
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
    tamper(workspace, "decision", "UPDATE decision SET up_to = '26' WHERE up_to = '25'")
    with workspace.database.connect() as connection:
        assert "decisions of event" in (verify(connection).broken or "")


def test_both_values_are_listed(workspace: Workspace, recon: Callable[..., Any]) -> None:
    reconcile(workspace, found("1", amount="10", expected="=1+1\x1b[2J"))
    one = ids(found("1"))[0]
    accepted = recon("breaks", "accept", one, "--reason", "ok", "--until", "2026-12-31",
                     "--up-to", "12.5", "--by", "Ann")  # fmt: skip
    assert accepted.returncode == 0, accepted.stderr
    assert "accepted until 2026-12-31, up to 12.50: 10.00 in currency 1." in accepted.stdout
    reconcile(workspace, found("1", amount="13", expected="2"))
    listed = recon("breaks", "list")
    for word in ("REOPENED", "As it was accepted", "amount 10", "expected 2, amount 13"):
        assert word in listed.stdout, word
    assert "\x1b" not in listed.stdout
    (line,) = json.loads(recon("breaks", "list", "--json").stdout)["breaks"]
    assert (line["seen_amount"], line["up_to"], line["amount"]) == ("10", "12.5", "13")
    assert recon("breaks", "accept", one, "--reason", "r", "--until", "2026-12-31",
                 "--up-to", "much").returncode == 2  # fmt: skip
