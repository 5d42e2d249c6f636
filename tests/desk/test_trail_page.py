"""The trail at the desk: searched, proven, exported; an account of some tenants sees theirs."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from starlette.datastructures import FormData
from starlette.requests import Request

from connectors.errors import LoginRefused
from connectors.postgres.accounts import acting, keep_account
from connectors.postgres.trail import add_event
from flows.desk.pages.trail import export
from flows.desk.visit import Visit
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, TESSA, add, logged_in
from tests.desk.browser import Browser
from tests.governance.runs import found, ids, reconcile, tamper

New = Callable[[], Browser]
FORMULA = '=HYPERLINK("http://evil.example.com")'


@pytest.mark.long
def test_events_are_searched_page_by_page(workspace: Workspace, browser: New) -> None:
    reconcile(workspace, found())
    with workspace.database.connect() as connection:
        for number in range(120):
            add_event(connection, "housekeeping", by="ann", reason=f"note {number}")
        add_event(connection, "rewound", by="bo", reason="<b>other</b>", detail={"x": FORMULA})
    page = browser().open("/trail")
    assert "<b>other</b>" in page.text, "as text, not as a mark"
    assert page.text.count("housekeeping") == 49
    seen = page.open("/trail", who="ann").text.count("housekeeping")
    while "Earlier ones" in page.text:
        later = page.answer.text.rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
        seen += page.open(later).text.count("housekeeping")
    assert seen == 120
    for asked, number in (
        ({"what": "HOUSE", "text": "note 7"}, 11),
        ({"text": "note 119"}, 1),
        ({"run": "1"}, 0),
        ({"since": "2999-01-01"}, 0),
        ({"until": "2000-01-01"}, 0),
    ):
        assert page.open("/trail", **asked).text.count("housekeeping") == number, asked
    assert "reconciled" in page.open("/trail", run="1").text


NOT_LOOKED_FOR = [
    ("batch", "x"),
    ("run", "1e3"),
    ("run", "9" * 30),
    ("before", "-1"),
    ("since", "31.1.2026"),
    ("until", "2026-02-30"),
]


def test_what_cannot_be_looked_for_is_told(browser: New) -> None:
    page = browser()
    for name, value in NOT_LOOKED_FOR:
        page.open("/trail", **{name: value})
        assert (page.status, repr(value) in page.text) == (400, True), name
        if name != "before":
            assert f'value="{value}"' in page.answer.text, "what was typed is kept"
            assert page.open("/trail.csv", **{name: value}).status == 400, name


def test_nobody_passes_for_a_rule_by_what_they_say_of_their_own_acceptance(
    workspace: Workspace, browser: New
) -> None:
    """The detail is a text of whoever decides, with whatever program."""
    add(workspace, ANNA)
    breaks = found("1")
    run = reconcile(workspace, breaks)
    with logged_in(workspace, ANNA).database.connect() as one, one.transaction():
        one.execute("SELECT draft('decision')")
        one.execute(
            "INSERT INTO draft_decision (reconciliation_id, break_id, what, by, reason, until) "
            "VALUES (%s, %s, 'accept', 'anna', 'mine', '2026-12-31')",
            [run.id, *ids(breaks)],
        )
        one.execute(
            "SELECT decide('breaks accepted', 'anna', 'mine', json_build_object("
            "'reconciliation', %s::int, 'rule', 12, 'sha256', drafted_digest())::text)",
            [run.id],
        )
    page = browser().log_in("anna").open("/trail", what="breaks accepted")
    assert ("breaks accepted anna" in page.text, "rule 12" in page.text) == (True, False)
    assert "No event matches." in page.open("/trail", who="rule 12").text


def test_it_is_exported_as_text(workspace: Workspace, browser: New) -> None:
    with workspace.database.connect() as connection:
        add_event(connection, "rewound", by="bo", reason=FORMULA)
        add_event(connection, "rewound", by="ann", reason='two\n"lines"')
    answer = browser().open("/trail.csv").answer
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["by"] for row in rows] == ["ann", "bo"]
    assert not any(value.startswith("=") for row in rows for value in row.values())
    assert "attachment" in answer.headers["content-disposition"]


@pytest.mark.long
def test_it_is_proven_by_a_click(workspace: Workspace, browser: New) -> None:
    with workspace.database.connect() as connection:
        add_event(connection, "rewound", by="bo", reason="once")
    page = browser().open("/trail").send("/trail/verify")
    assert "The audit trail holds: 1 event" in page.text
    assert "nobody witnesses this trail" in page.text
    tamper(workspace, "event", "UPDATE event SET reason = 'never'")
    page.open("/trail").send("/trail/verify")
    assert "The audit trail does not hold:" in page.text
    assert "was changed after it was written" in page.text


@pytest.mark.long
def test_an_account_of_some_tenants_sees_what_is_theirs(workspace: Workspace, browser: New) -> None:
    with workspace.database.connect() as connection:
        add_event(connection, "housekeeping", by="ann", reason="of all")
    add(workspace, ANNA, TESSA)
    reconcile(workspace, found(), scope="tenants 8")
    reconcile(workspace, found(), scope="tenants 7")
    text = browser().log_in("tessa").open("/trail").text
    assert text.count("reconciled") == 1
    assert "of all" not in text
    assert "account added" not in text
    assert "of all" in browser().log_in("anna").open("/trail").text


def test_an_export_for_a_login_that_ended_meanwhile_is_refused(workspace: Workspace) -> None:
    """It is read behind the page that asked who is logged in."""
    add(workspace, TESSA)
    place = logged_in(workspace, TESSA)
    with place.database.connect() as connection:
        person = acting(connection)
    asked = {"type": "http", "method": "GET", "path": "/trail.csv", "query_string": b""}
    visit = Visit(Request(asked), place, person, True, "", False, FormData())
    assert export(visit).status_code == 200
    with workspace.database.connect() as connection:
        keep_account(connection, replace(TESSA, disabled=True))
    with pytest.raises(LoginRefused, match="has ended while this was read"):
        export(visit)
