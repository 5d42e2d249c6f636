"""Home: what is open in each scope, how that went from run to run, and what waits for whom."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.accounts.people import ANNA, BO, CLEO, add, logged_in
from tests.desk.browser import Browser
from tests.desk.test_run import figures, number
from tests.governance.runs import DAY, found, ids, reconcile

New = Callable[[], Browser]
MINE = "tenants 7"


@pytest.mark.long
def test_open_money_leads_to_its_breaks(workspace: Workspace, browser: New) -> None:
    run = reconcile(workspace, found("1", "2", amount="10.25"), scope=MINE)
    page = browser().open("/")
    assert "2 0 days nobody nobody" in page.text, "seen first that day, signed by nobody"
    there = dict(figures(page))
    path = f"/runs/{run.id}/breaks?state=open&currency=1&basis=difference"
    assert number(there[path]) == number("20.50")
    assert there[f"/runs/{run.id}/breaks?state=open"] == "2"
    assert there[path] in [told for _, told in figures(page.open(path))]


@pytest.mark.long
def test_a_break_that_is_accepted_is_not_open_any_more(workspace: Workspace, browser: New) -> None:
    breaks = found("1", "2")
    run = reconcile(workspace, breaks, scope=MINE)
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(workspace, run.id, Chosen(ids=(ids(breaks)[0],)), accept)
    assert dict(figures(browser().open("/")))[f"/runs/{run.id}/breaks?state=open"] == "1"


@pytest.mark.long
def test_the_trend_is_drawn_from_what_reports_said(workspace: Workspace, browser: New) -> None:
    for day, keys in enumerate((["1"], ["1", "2", "3"], ["3"])):
        run = reconcile(workspace, found(*keys), scope=MINE, as_of=DAY + timedelta(days=day))
    page = browser().open("/")
    text = page.answer.text
    bars = re.findall(r"<title>Run (\d+), as of ([^:]+): ([^<]+)</title>", text)
    assert [told for *_, told in bars] == [
        "1 open break", "3 open breaks", "1 open break",
        "10.00 currency 1", "30.00 currency 1", "10.00 currency 1",
    ]  # fmt: skip
    assert "style=" not in text
    assert f"Run {run.id}: 1 open break." in text
    (workspace.settings.reports / run.folder / "totals.json").write_text("{}")
    assert page.open("/").status == 200, "a report that cannot be read has no bar"


@pytest.mark.long
def test_what_waits_is_told_to_whom_it_waits_for(workspace: Workspace, browser: New) -> None:
    add(workspace, ANNA, BO, CLEO)
    other = reconcile(workspace, found("9"), scope="everything")
    run = reconcile(workspace, found(), scope=MINE)
    visits = {name: browser().log_in(name) for name in ("anna", "bo", "cleo")}

    def waiting() -> list[str]:
        return [name for name, page in visits.items() if "Waiting for you" in page.open("/").text]

    assert waiting() == ["anna"]
    assert "Nothing is open: it can be prepared." in visits["anna"].text
    anna = logged_in(workspace, ANNA)
    prepare(anna, run.id, by=None, comment="")
    assert waiting() == ["bo"], "whoever prepared it cannot approve it"
    assert "Prepared by anna: it can be approved." in visits["bo"].text
    approve(logged_in(workspace, BO), run.id, by=None, comment="")
    assert waiting() == []
    assign = Decision(Choice.ASSIGN, "look at it", owner="cleo")
    decide_breaks(anna, other.id, Chosen(code="AMOUNT"), assign)
    assert waiting() == ["cleo"]
    assert "1 open break is assigned to you." in visits["cleo"].text
    assert f"/runs/{other.id}/breaks?owner=cleo&amp;state=open" in visits["cleo"].answer.text


def test_an_approval_waits_for_nobody_who_accepted_what_it_shows(
    workspace: Workspace, browser: New
) -> None:
    dan = replace(BO, name="dan", full_name="Dan Gray")
    add(workspace, ANNA, BO, dan)
    first = reconcile(workspace, found("1"), scope=MINE)
    anna = browser().log_in("anna")
    told = "1 break is open. Resolve or accept each; then an operator reconciles the scope again."
    assert told in anna.open(f"/runs/{first.id}").text
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(logged_in(workspace, BO), first.id, Chosen(code="AMOUNT"), accept)
    told = "If its breaks were accepted since, have an operator reconcile the scope again"
    assert told in anna.open(f"/runs/{first.id}").text
    run = reconcile(workspace, found("1"), scope=MINE)
    prepare(logged_in(workspace, ANNA), run.id, by=None, comment="")
    told = "Prepared by anna: it can be approved."
    waits = {one: told in browser().log_in(one).open("/").text for one in ("bo", "dan")}
    assert waits == {"bo": False, "dan": True}


@pytest.mark.long
def test_an_acceptance_that_was_proposed_waits_for_somebody_else(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA, BO, CLEO)
    run = reconcile(workspace, found("1", "2", "3"), scope="everything")
    until = date(2026, 12, 31)
    breaks = ids(found("1", "2"))
    propose = Decision(Choice.PROPOSE, "bank charges", until=until)
    decide_breaks(logged_in(workspace, ANNA), run.id, Chosen(ids=tuple(breaks)), propose)
    told = "2 acceptances proposed by anna: somebody else has to accept."
    assert [told in browser().log_in(one).open("/").text for one in ("anna", "bo", "cleo")] == [
        False, True, False,
    ]  # fmt: skip
    path = f"/runs/{run.id}/breaks?proposed_by=anna&state=open"
    bo = browser().log_in("bo").open(path)
    assert bo.text.count("acceptance proposed by anna") == 2
    accept = Decision(Choice.ACCEPT, "so it is", until=until)
    decide_breaks(logged_in(workspace, BO), run.id, Chosen(ids=tuple(breaks[:1])), accept)
    assert bo.open(path).text.count("acceptance proposed by anna") == 1
