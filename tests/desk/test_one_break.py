"""The page of one break: what it is, what it was, and who decided what."""

from collections.abc import Callable
from datetime import timedelta

import polars as pl
import pytest

from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.accounts.people import ANNA, CLEO, TESSA, add, logged_in
from tests.desk.browser import Browser
from tests.governance.runs import DAY, found, ids, reconcile

New = Callable[[], Browser]
LATER = DAY + timedelta(days=30)


def accept(workspace: Workspace, run: int, *breaks: str, why: str = "bank charges") -> None:
    decision = Decision(Choice.ACCEPT, why, until=LATER)
    decide_breaks(workspace, run, Chosen(breaks), decision)


@pytest.mark.long
def test_a_break_says_what_it_is_what_to_do_and_by_how_much(
    workspace: Workspace, browser: New
) -> None:
    one = found("12/7", expected="100", found="110", delta=10)
    other = found("12/7", code="VALUE", field="ActionsId")
    debt = found("12/7", code="DEBT_UNDER", side="")
    run = reconcile(workspace, pl.concat([one, other, debt]))
    page = browser().open(f"/runs/{run.id}/breaks/{ids(one)[0]}")
    assert page.status == 200
    for told in (
        "Payment 12/7, PaidAmount: amounts differ",
        "Find which side is right; correct the other at its source.",
        "State New",
        "Amount, difference, currency 1 10.00",
        "Found minus expected +10.00",
        "Expected 100.00 Found 110.00",
        "Nobody has decided about it in this scope.",
    ):
        assert told in page.text, told
    assert f"/runs/{run.id}/breaks/{ids(other)[0]}" in page.answer.text
    # Debt 12 in currency 7 is told by the same key, and is no payment.
    assert f"/runs/{run.id}/breaks/{ids(debt)[0]}" not in page.answer.text


def test_a_break_tells_its_past_over_the_runs_of_its_scope(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA)
    anna = logged_in(workspace, ANNA)
    one = found("12/7")
    first = reconcile(workspace, one)
    accept(anna, first.id, *ids(one))
    second = reconcile(workspace, one, as_of=DAY + timedelta(days=1))
    third = reconcile(workspace, found("12/7", amount="25"), as_of=DAY + timedelta(days=2))
    page = browser().log_in("anna").open(f"/runs/{third.id}/breaks/{ids(one)[0]}")
    assert f"accepted anna bank charges until {LATER}" in page.text
    assert "Was accepted as amount 10, in currency 1 Is now amount 25, in currency 1" in page.text
    assert (
        f"{third.id} 2026-02-02 Reopened currency 1 25.00 {second.id} 2026-02-01 Accepted"
        in page.text
    )
    # On a run that was followed nothing is decided any more.
    page.open(f"/runs/{second.id}/breaks/{ids(one)[0]}")
    assert f"Run {third.id} followed this one." in page.text
    assert "decide?" not in page.answer.text


@pytest.mark.long
def test_a_break_said_to_be_resolved_names_the_place_as_its_state_will(
    workspace: Workspace, browser: New
) -> None:
    one = found("12/7")
    run = reconcile(workspace, one)
    address = f"/runs/{run.id}/breaks/{ids(one)[0]}"
    decide_breaks(
        workspace, run.id, Chosen(ids(one)), Decision(Choice.RESOLVE, "put right", side="service")
    )
    at = "at the target (database or service)"
    assert f"said to be resolved {at}; the next run checks" in browser().open(address).text
    reconcile(workspace, found("1"), as_of=DAY + timedelta(days=1))
    gone = browser().open(f"/runs/{run.id + 1}/breaks/{ids(one)[0]}").text
    assert f"Resolved {at}" in gone


@pytest.mark.long
def test_what_may_not_be_done_is_not_offered(workspace: Workspace, browser: New) -> None:
    add(workspace, ANNA, CLEO)
    one = found("12/7")
    run = reconcile(workspace, one)
    address = f"/runs/{run.id}/breaks/{ids(one)[0]}"
    assert "what=accept" in browser().log_in("anna").open(address).answer.text
    assert "decide?" not in browser().log_in("cleo").open(address).answer.text
    accept(logged_in(workspace, ANNA), run.id, *ids(one))
    assert "what=reopen" in browser().log_in("anna").open(address).answer.text
    assert "decide?" not in browser().log_in("cleo").open(address).answer.text


@pytest.mark.long
@pytest.mark.parametrize("name", ["tessa", "anna"])
def test_a_break_that_is_not_there_or_not_seen_is_not_found(
    workspace: Workspace, browser: New, name: str
) -> None:
    add(workspace, ANNA, TESSA)
    one = found("12/8", tenant=8)
    run = reconcile(workspace, one, scope="tenants 8")
    page = browser().log_in(name)
    for text in ("0" * 16, "nonsense", "%00", "%2e%2e%2f" * 30):
        assert page.open(f"/runs/{run.id}/breaks/{text}").status == 404
    assert page.open(f"/runs/{run.id}/breaks/{ids(one)[0]}").status == (
        404 if name == "tessa" else 200
    )


@pytest.mark.long
def test_delivered_text_is_shown_and_never_run(workspace: Workspace, browser: New) -> None:
    evil = found("12/7", code="VALUE", field="ActionsId", expected="<script>alert(1)</script>",
                 found="a\u202eb", note="=1+1")  # fmt: skip
    bare = found("12/9", code="VALUE", field="ActionsId", expected="", found=None)
    run = reconcile(workspace, pl.concat([evil, bare]))
    page = browser().open(f"/runs/{run.id}/breaks/{ids(evil)[0]}").answer.text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "a\\u202eb" in page
    # A text that is there and empty is no text that is not there.
    text = browser().open(f"/runs/{run.id}/breaks/{ids(bare)[0]}").text
    assert ("Expected empty text" in text, "Found" in text) == (True, False)
