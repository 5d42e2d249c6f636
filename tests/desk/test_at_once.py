"""Two people at the same moment: one of them is done, and the other is told."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import httpx
import pytest

from connectors.errors import AccountRefused
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.acceptance_rules import RuleTerms
from flows.stages.reconcile.acceptance_rules import approve_rule, propose_rule, withdraw_rule
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ANNA, add, logged_in
from tests.desk.browser import Browser, forms
from tests.governance.runs import found, ids, reconcile

BOTH = (AccountRole.PREPARER, AccountRole.APPROVER)
PEOPLE = [replace(ANNA, name=name, roles=BOTH) for name in ("ann", "bob", "cid", "dan")]


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What came of each, all begun in the same moment."""
    together = threading.Barrier(len(acts))
    came: dict[int, Any] = {}

    def do(number: int, act: Callable[[], Any]) -> None:
        together.wait()
        try:
            came[number] = act()
        except AccountRefused as refused:
            came[number] = refused

    threads = [threading.Thread(target=do, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [came[number] for number in range(len(acts))]


def test_one_decision_is_taken(
    workspace: Workspace, browser: Callable[[], Browser], rows: Any
) -> None:
    add(workspace, *PEOPLE[:2])
    breaks = found("1")
    (one,) = ids(breaks)
    reconcile(workspace, breaks)
    pages = [browser().log_in(person.name) for person in PEOPLE[:2]]

    def sent(page: Browser) -> Callable[[], httpx.Response]:
        text = page.open("/runs/1/decide", **{"break": one, "what": "accept"}).answer
        assert text is not None
        (form,) = (form for form in forms(text.text) if "digest" in form["fields"])
        terms = {"break": one, "what": "accept", "step": "done", "until": "2026-12-31"}
        filled = form["fields"] | terms | {"reason": "agreed"}
        return lambda: page.client.post("/runs/1/decide", data=filled)

    came = at_once(*map(sent, pages))
    told = sorted(one.status_code for one in came)
    assert told == [200, 409]
    assert rows("SELECT count(*) FROM decision") == [(1,)]


def test_who_comes_second_is_shown_the_signature_that_came_first(
    workspace: Workspace, browser: Callable[[], Browser], rows: Any
) -> None:
    """Both have read that nobody stands for the report."""
    add(workspace, *PEOPLE[:2])
    reconcile(workspace, found())
    pages = [browser().log_in(person.name) for person in PEOPLE[:2]]

    def sent(page: Browser) -> Callable[[], httpx.Response]:
        text = page.open("/runs/1/sign").answer
        assert text is not None
        (form,) = (form["fields"] for form in forms(text.text) if "role" in form["fields"])
        return lambda: page.client.post("/runs/1/sign", data=form)

    came = at_once(*map(sent, pages))
    told = {one.status_code: one.text for one in came}
    assert sorted(told) == [200, 409]
    assert rows("SELECT count(*) FROM signature") == [(1,)]
    assert "a signature stays" in told[409]
    assert "Nobody has signed it yet." not in told[409]
    assert "Sign as the one who prepared it" not in told[409]


@pytest.mark.long
def test_a_rule_is_approved_once_and_never_after_it_was_withdrawn(
    workspace: Workspace, rows: Any
) -> None:
    add(workspace, *PEOPLE)
    reconcile(workspace, found("1"))
    ann, *others = (logged_in(workspace, person) for person in PEOPLE)
    terms = RuleTerms("", "AMOUNT", 1, Decimal(10), Decimal(25), date(2026, 12, 31), "charges")
    for _ in range(3):
        number = propose_rule(ann, None, terms, None)
        acts = [partial(approve_rule, one, number, by=None, reason="") for one in others[:2]]
        acts += [
            partial(withdraw_rule, one, number, by=None, reason="") for one in (others[2], ann)
        ]
        came = at_once(*acts)
        events = rows(
            "SELECT what FROM event WHERE what LIKE 'acceptance rule %%' AND id > %s ORDER BY id",
            [number],
        )
        assert [what.split()[-1] for (what,) in events] in (
            ["approved", "withdrawn"],
            ["withdrawn"],
        )
        assert len([one for one in came if isinstance(one, AccountRefused)]) == 4 - len(events)
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
