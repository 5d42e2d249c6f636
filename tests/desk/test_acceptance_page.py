"""Rules of acceptance at the desk: proposed, approved by another, withdrawn."""

from collections.abc import Callable
from typing import Any

import pytest

from connectors.postgres.jobs import hold_job, order_job
from connectors.postgres.runs.acceptance_rules import accept_by_rules
from connectors.postgres.trail import add_event
from flows.stages.workspace import Workspace
from schemas.jobs import JobKind
from tests.accounts.people import ANNA, BO, CLEO, TESSA, add
from tests.desk.browser import Browser, forms
from tests.governance.runs import found, reconcile

New = Callable[[], Browser]
PAGE = "/acceptance"
TERMS = {
    "code": "AMOUNT",
    "currency": "1",
    "each": "10",
    "total": "25.50",
    "until": "2026-12-31",
    "reason": "bank charges",
}


def propose(page: Browser, run: int, **typed: Any) -> Browser:
    """Fill in the form under the list: it is the last one that goes to this page."""
    page.open(PAGE)
    page.send(PAGE, what="propose", run=str(run), **(TERMS | typed))
    return page


@pytest.mark.long
def test_a_rule_is_proposed_by_one_and_approved_by_another(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    add(workspace, ANNA, BO, CLEO, TESSA)
    run = reconcile(workspace, found("1"))
    anna, bo, cleo = (browser().log_in(one) for one in ("anna", "bo", "cleo"))
    assert propose(anna, run.id).status == 200
    ((number,),) = rows("SELECT id FROM event WHERE what = 'acceptance rule proposed'")
    assert f"{number} Proposed" in anna.text
    assert "10.00 25.50" in anna.text
    assert 'value="approve"' not in anna.answer.text, "whoever proposed it does not approve it"
    assert anna.send(PAGE, what="approve", rule=str(number)).status == 403
    assert "anna is preparer" in anna.text.lower()
    assert 'action="/acceptance"' not in cleo.open(PAGE).answer.text
    waits = f"Rule {number} of acceptance : Proposed by anna"
    assert (waits in bo.open("/").text, waits in anna.open("/").text) == (True, False)
    assert bo.open(PAGE).send(PAGE, what="approve", rule=str(number)).status == 200
    assert f"{number} In force" in bo.text
    assert "approved by bo" in bo.text
    with workspace.database.connect() as connection:
        assert accept_by_rules(connection, run.id)[0].accepted
    assert f'href="/trail?who=rule+{number}"' in bo.answer.text
    assert "breaks accepted" in cleo.open(f"/trail?who=rule+{number}").text
    assert "breaks accepted" in cleo.open("/trail", run=str(run.id)).text
    assert bo.send(PAGE, what="withdraw", rule=str(number)).status == 400
    assert "Fill in Reason" in bo.text
    assert bo.send(PAGE, what="withdraw", rule=str(number), reason="booked now").status == 200
    assert f"{number} Withdrawn" in bo.text
    assert str(number) not in browser().log_in("tessa").open(PAGE).text, "it is of all tenants"


@pytest.mark.long
def test_the_trail_of_a_rule_is_what_was_done_with_it_and_by_it(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    """Also in a run that somebody ordered; and nothing of a rule whose number begins alike."""
    run, page = reconcile(workspace, found("1", "2")), browser()
    propose(page, run.id, by="Ann")
    page.send(PAGE, what="approve", rule="2", by="Bo")
    trail = "/trail?who=rule+2"
    assert f'href="{trail}"' in page.answer.text
    with workspace.database.connect() as connection:
        for _ in range(20):
            add_event(connection, "housekeeping", by="ann")
        job = order_job(connection, JobKind.RECONCILE, {"run": run.id}, "Olga")
        at_work = workspace.database.for_job(job)
        with hold_job(connection, job), at_work.connect() as working:
            assert accept_by_rules(working, run.id)[0].accepted
    propose(page, run.id, by="Cleo")
    ((first, second),) = rows("SELECT min(id), max(id) FROM event WHERE what LIKE '%rule proposed'")
    assert (first, str(second)[0]) == (2, "2")
    text = page.open(trail).text
    events = ("acceptance rule proposed Ann", "acceptance rule approved Bo",
              "breaks accepted rule 2 in a run of Olga")  # fmt: skip
    assert [text.count(one) for one in events] == [1, 1, 1], text
    assert "Cleo" not in text
    assert "breaks accepted" in page.open("/trail?who=olga").text, "who it was done for as well"
    assert "No event matches." in page.open("/trail?who=rule+1").text


@pytest.mark.long
def test_what_was_typed_is_kept_where_it_is_refused(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    run = reconcile(workspace, found("1"))
    for typed, told in (
        ({}, "Fill in Your name"),
        ({"each": "ten"}, "'ten' is no amount"),
        ({"currency": "EUR"}, "'EUR' is no number of the currency"),
        ({"until": "soon"}, "Last day is no day"),
        ({"until": "2025-01-01"}, "Last day 2025-01-01 is before the day of the run"),
        ({"each": "30"}, "above the ceiling of all, 25.5"),
        ({"code": "X"}, "no break code"),
    ):
        page = propose(browser(), run.id, **({"by": "Ann"} if typed else {}), **typed)
        assert (page.status, told in page.text) == (400, True), page.text
        assert 'value="bank charges"' in page.answer.text or typed.get("code"), typed
    assert propose(browser(), 99, by="Ann").status == 404
    assert "no reconciliation 99" in propose(browser(), 99, by="Ann").text
    assert rows("SELECT count(*) FROM event WHERE what LIKE 'acceptance%'") == [(0,)]


def test_what_was_typed_about_a_rule_is_kept_where_it_is_refused(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    run, page = reconcile(workspace, found("1")), browser()
    for _ in range(2):
        propose(page, run.id, by="Ann")
    ((number,),) = rows("SELECT max(id) FROM event WHERE what = 'acceptance rule proposed'")
    page.send(PAGE, what="approve", rule=str(number), by="Ann", reason="small enough")
    assert page.status == 403, page.text
    of_rules = [one["fields"] for one in forms(page.answer.text) if "rule" in one["fields"]]
    kept = {one["rule"]: (one["by"], one["reason"]) for one in of_rules}
    assert kept[str(number)] == ("Ann", "small enough")
    assert [*kept.values()].count(("", "")) == 1, "of the other rule nothing was typed"
    assert page.answer.text.count("<details open>") == 1


@pytest.mark.long
def test_a_rule_is_of_any_tenant_that_an_account_can_have(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    add(workspace, ANNA)
    run = reconcile(workspace, found("1"))
    page = browser().log_in("anna")
    for tenant in ("-3", str(2**62)):
        assert propose(page, run.id, tenant=tenant).status == 200, page.text
    for tenant in ("٣", "1e3", str(2**63)):
        assert propose(page, run.id, tenant=tenant).status == 400, page.text
    told = rows("SELECT detail::json ->> 'tenant' FROM event WHERE what LIKE '%proposed'")
    assert told == [("-3",), (str(2**62),)]
