"""Deciding on the pages: what was seen is what is decided, by whoever may, and once."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, BO, CLEO, OTTO, add
from tests.desk.browser import Browser, forms
from tests.governance.runs import DAY, found, ids, reconcile

New = Callable[[], Browser]
Rows = Callable[..., list[tuple[Any, ...]]]
UNTIL = str(DAY + timedelta(days=30))
TERMS = {"reason": "bank charges", "until": UNTIL}
DECISIONS = "SELECT what, by, reason, until, up_to, side, owner FROM decision ORDER BY id"
ONE, TWO = (ids(found(key))[0] for key in ("1/7", "2/7"))


@pytest.mark.long
def test_a_break_is_accepted_and_the_acceptance_undone(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    add(workspace, ANNA)
    run = reconcile(workspace, found("1/7", "2/7"))
    decide = f"/runs/{run.id}/decide"
    anna = browser().log_in("anna").open(decide, **{"break": ONE, "what": "accept"})
    assert "Accept 1 break?" in anna.text
    assert "currency 1 10.00" in anna.text
    assert "Your name" not in anna.text, "the account is who decides"
    anna.send(decide, **TERMS, up_to="12.50", by="somebody else")
    assert (anna.status, anna.answer.url.path) == (200, f"/runs/{run.id}/breaks/{ONE}")
    assert f"accepted anna bank charges until {UNTIL} up to 12.50" in anna.text
    assert rows(DECISIONS) == [("accept", "anna", "bank charges", UNTIL, "12.50", None, None)]
    anna.open(decide, **{"break": ONE, "what": "reopen"}).send(decide, reason="a mistake")
    assert "State Reopened" in anna.text
    assert rows(DECISIONS)[1][:3] == ("reopen", "anna", "a mistake")


def test_only_decisions_that_the_breaks_allow_are_offered(
    workspace: Workspace, browser: New
) -> None:
    """Nobody accepted them, so there is nothing to reopen; what is gone is not decided about."""
    add(workspace, ANNA)
    reconcile(workspace, found("1/7", "2/7"))
    last = reconcile(workspace, found("1/7"))
    decide, breaks = f"/runs/{last.id}/decide", f"/runs/{last.id}/breaks"
    anna = browser().log_in("anna")
    for asked in ({"break": ONE}, {"all": "1", "state": "open"}):
        offered = set(re.findall("what=([a-z]+)", anna.open(decide, **asked).answer.text))
        assert offered == {"accept", "propose", "resolve", "assign", "comment"}
    assert "Decide about all 1 that match" in anna.open(breaks, state="open").text
    anna.open(breaks, state="resolved")
    assert ("Decide about" in anna.text, "nothing to decide" in anna.text) == (False, True)
    every = anna.open(breaks)
    assert (every.answer.text.count('name="break"'), "2 breaks" in every.text) == (1, True)


BAD = [
    # what -> what is typed -> what is said
    ("accept", TERMS | {"reason": " "}, "A decision needs a reason: fill in Why."),
    ("accept", TERMS | {"until": ""}, "An acceptance needs its last day: fill in Last day."),
    ("accept", TERMS | {"until": "2026-01-01"}, "Last day 2026-01-01 has passed"),
    ("accept", TERMS | {"until": "31.12.2026"}, "Last day: '31.12.2026' is no day."),
    ("accept", TERMS | {"up_to": "ten"}, "Up to: 'ten' is no amount. Write it as 1250.00."),
    ("accept", TERMS | {"up_to": "9"}, "Up to 9 is less than what is there"),
    ("accept", TERMS | {"up_to": "-1"}, "Up to needs an amount above zero"),
    ("resolve", TERMS | {"side": "moon"}, "Where must be one of: source, service."),
    ("assign", TERMS | {"assignee": ""}, "An assignment needs an owner: fill in Owner."),
    ("assign", TERMS | {"assignee": "cleo", "due": "2026-01-01"}, "Due 2026-01-01 has passed"),
    ("accept", TERMS | {"by": ""}, "There are no accounts, so fill in Your name."),
    ("comment", {"reason": "a\0b"}, "cannot be kept"),
]


@pytest.mark.long
def test_bad_input_is_told_in_the_words_of_the_page_and_kept(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    run = reconcile(workspace, found("1/7"))
    decide = f"/runs/{run.id}/decide"
    page = browser()
    for what, typed, said in BAD:
        page.open(decide, **{"break": ONE, "what": what})
        page.send(decide, **{"by": "Anna", **typed})
        assert (page.status, said in page.text) == (400, True), (said, page.text)
        assert "--" not in page.text, "no option of the command line"
        if what == "accept" and typed["until"] in ("2026-01-01", UNTIL):
            assert f'value="{typed["until"]}"' in page.answer.text
    assert rows(DECISIONS) == []


@pytest.mark.long
def test_two_people_at_once_the_second_sees_who_decided(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    add(workspace, ANNA, BO)
    run = reconcile(workspace, found("1/7", "2/7"))
    decide = f"/runs/{run.id}/decide"
    anna, bo = browser().log_in("anna"), browser().log_in("bo")
    anna.open(decide, all="1", code="AMOUNT", state="open")
    bo.open(decide, **{"break": ONE, "what": "accept"}).send(decide, **TERMS)
    anna.send(decide, reason="my reason", until=UNTIL)
    assert anna.status == 409
    assert "Somebody has decided about these breaks since you looked: bo accepted 1 break at" in (
        anna.text
    )
    assert "(bank charges)" in anna.text
    assert "Accept 1 break?" in anna.text, "what is left"
    assert 'value="my reason"' in anna.answer.text
    assert len(rows(DECISIONS)) == 1
    # What she sees now she may decide.
    anna.send(decide)
    assert [row[:3] for row in rows(DECISIONS)] == [
        ("accept", "bo", "bank charges"),
        ("accept", "anna", "my reason"),
    ]
    # The same form sent twice is one decision.
    bo.open(decide, **{"break": TWO, "what": "comment"})
    again = browser().log_in("anna").open(decide, **{"break": TWO, "what": "reopen"})
    bo.send(decide, reason="seen")
    sent = again.answer
    again.send(decide, reason="no")
    again.answer = sent
    again.send(decide, reason="no")
    assert (again.status, "anna reopened 1 break at" in again.text) == (409, True)
    assert "What you typed no" in again.text
    assert [row[0] for row in rows(DECISIONS)] == ["accept", "accept", "comment", "reopen"]


@pytest.mark.long
def test_a_run_that_was_followed_is_not_decided_about(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    run = reconcile(workspace, found("1/7"))
    decide = f"/runs/{run.id}/decide"
    page = browser().open(decide, **{"break": ONE})
    last = reconcile(workspace, found("1/7", amount="1000"))
    page.send(decide, **TERMS, by="Anna")
    assert f"{run.id} was followed by {last.id}" in page.text
    assert rows(DECISIONS) == []


@pytest.mark.long
def test_many_are_looked_at_once_more(workspace: Workspace, browser: New, rows: Rows) -> None:
    breaks = found(*(f"{number}/7" for number in range(25)))
    others = found("99/7", amount="3", currency=2, code="RATE_MISSING", field="CurrencyRatesId")
    run = reconcile(workspace, breaks.vstack(others))
    decide = f"/runs/{run.id}/decide"
    page = browser().open(f"/runs/{run.id}/breaks", code="AMOUNT")
    page.send(decide, all="1")
    assert "Accept 25 breaks?" in page.text
    assert "currency 1 250.00" in page.text
    assert "currency 2" not in page.text
    assert "The 20 largest of 25 breaks" in page.text
    page.send(decide, **TERMS | {"until": "2026-01-01"}, by="Anna")
    assert "Last day 2026-01-01 has passed" in page.text
    other = browser().open(decide, **{"break": ONE, "what": "assign"})
    other.send(decide, reason="his", assignee="Bo", by="Otto")
    page.send(decide, **TERMS, by="Anna")
    assert (page.status, "Otto assigned 1 break at" in page.text) == (409, True)
    page.send(decide)
    assert "Accept 25 breaks on these terms?" in page.text
    assert len(rows(DECISIONS)) == 1, "nothing is accepted yet"
    looked = page.answer
    page.send(decide, step="done")
    assert "25 breaks accepted" in page.text
    assert "currency 1 250.00" in page.text
    assert page.answer.request.method == "GET", "loaded again, it is not sent again"
    page.answer = looked
    page.send(decide, step="done")
    told = "Somebody has decided about these breaks since you looked: Anna accepted 25 breaks at"
    assert (page.status, told in page.text) == (409, True), "a second click"
    accepted = rows(DECISIONS)[1:]
    assert {row[:4] for row in accepted} == {("accept", "Anna", "bank charges", UNTIL)}
    assert len(accepted) == 25


def test_every_look_says_whose_money_is_counted_with_another_break(
    workspace: Workspace, browser: New
) -> None:
    keys = [f"{number}/7" for number in range(11)]
    codes = ("RATE_MISSING", "RATE_STALE")
    run = reconcile(
        workspace, pl.concat([found(*keys, code=code, field="CurrencyRatesId") for code in codes])
    )
    decide = f"/runs/{run.id}/decide"
    told = "The money of 11 breaks is counted with another break of the same record."
    page = browser().open(decide, all="1", what="accept")
    assert told in page.text
    page.send(decide, **TERMS, by="Anna")
    assert "Accept 22 breaks on these terms?" in page.text
    assert told in page.text
    page.send(decide, step="done")
    assert told in page.text


@pytest.mark.long
def test_who_may_not_decide_is_not_asked_and_the_database_refuses(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    add(workspace, ANNA, CLEO, OTTO)
    run = reconcile(workspace, found("1/7"))
    decide = f"/runs/{run.id}/decide"
    anna = browser().log_in("anna").open(decide, **{"break": ONE, "what": "accept"})
    form = {name: value for name, value in _form(anna, decide).items() if name != "csrf"} | TERMS
    for name, role in (("cleo", "viewer"), ("otto", "operator")):
        page = browser().log_in(name).open(decide, **{"break": ONE, "what": "accept"})
        assert "Accepting a break takes the role preparer or approver. Ask" in page.text
        assert decide not in [one["action"] for one in _posts(page)]
        mark = page.answer.text.partition('name="csrf" value="')[2][:64]
        page.answer = page.client.post(decide, data=form | {"csrf": mark})
        assert page.status == 403
        assert f"{name.capitalize()} is {role}, and accepting a break takes preparer" in page.text
    assert rows(DECISIONS) == []
    otto = browser().log_in("otto").open(decide, **{"break": ONE, "what": "assign"})
    otto.send(decide, reason="hers", assignee="anna")
    assert rows(DECISIONS) == [("assign", "otto", "hers", None, None, None, "anna")]


def test_nothing_that_can_be_decided_is_said(workspace: Workspace, browser: New) -> None:
    run = reconcile(workspace, found("1/7"))
    decide = f"/runs/{run.id}/decide"
    page = browser()
    for asked, said in (
        ({}, "Name the breaks: ids, or all that fit a filter."),
        ({"break": "0" * 16}, "has no such break"),
        ({"break": ONE, "what": "reopen"}, f"You cannot reopen these: {ONE} is NEW"),
        ({"all": "1", "code": "VALUE"}, "Run 1 has no break that matches"),
        ({"all": "1", "state": "nonsense"}, "There is no state 'nonsense'."),
    ):
        page.open(decide, **asked)
        assert page.status == 400, asked
        assert said in page.text


def _form(page: Browser, action: str) -> dict[str, str]:
    fields: dict[str, str] = next(one for one in _posts(page) if one["action"] == action)["fields"]
    return fields


def _posts(page: Browser) -> list[dict[str, Any]]:
    return [one for one in forms(page.answer.text) if "csrf" in one["fields"]]
