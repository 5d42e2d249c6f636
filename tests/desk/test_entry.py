"""Who may open the desk: logins, their end, and forms of other sites."""

import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from connectors.postgres.accounts import keep_account, log_out
from connectors.postgres.database import Database
from flows.commands.console import show_warnings
from flows.desk.app import NO_DATABASE, Address, Desk, _page
from flows.desk.pages.entry import SECRETS, _ours
from flows.desk.visit import Visit
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, PASSWORD, add
from tests.desk.browser import Browser
from tests.governance.runs import found, ids, reconcile

New = Callable[[], Browser]
Rows = Callable[..., list[tuple[Any, ...]]]


@pytest.mark.long
def test_without_accounts_the_desk_is_open_and_says_self_declared(
    workspace: Workspace, browser: New
) -> None:
    reconcile(workspace, found())
    page = browser().open("/")
    assert (page.status, "Self-declared" in page.text) == (200, True)
    assert "Reconciled" in page.text


@pytest.mark.long
def test_with_accounts_nothing_is_shown_before_a_login(workspace: Workspace, browser: New) -> None:
    add(workspace, ANNA)
    reconcile(workspace, found())
    anna = browser().open("/")
    assert (anna.status, "Reconciled" in anna.text) == (200, False)
    anna.send("/login", name="anna", password="guess")
    assert (anna.status, "Name or password is wrong" in anna.text) == (401, True)
    assert 'value="anna"' in anna.answer.text, "what was typed is kept"
    anna.send("/login", password=PASSWORD)
    assert (anna.status, "Anna Meyer preparer" in anna.text) == (200, True)
    assert "Reconciled" in anna.text
    anna.send("/logout")
    assert "Password" in anna.open("/").text


@pytest.mark.long
def test_an_account_that_is_disabled_is_out_with_its_next_click(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA)
    anna = browser().log_in("anna")
    with workspace.database.connect() as connection:
        keep_account(connection, replace(ANNA, disabled=True))
    assert "Password" in anna.open("/").text


@pytest.mark.long
@pytest.mark.parametrize(
    ("wanted", "comes_to"),
    [
        ("/?x=1", "/?x=1"),
        ("//evil.example.com/", "/"),
        ("https://evil.example.com/", "/"),
        ("/\\evil.example.com", "/"),
        ("javascript:alert(1)", "/"),
        ("/\r\nSet-Cookie: a=b", "/"),
    ],
)
def test_a_login_goes_on_to_a_page_of_the_desk_alone(
    workspace: Workspace, browser: New, wanted: str, comes_to: str
) -> None:
    add(workspace, ANNA)
    anna = browser().open("/login", next=wanted)
    anna.client.follow_redirects = False
    anna.send("/login", name="anna", password=PASSWORD)
    assert anna.answer.headers["location"] == comes_to
    assert anna.open("/login", next=wanted).answer.headers["location"] == comes_to


@pytest.mark.long
def test_a_form_of_another_site_is_refused(workspace: Workspace, browser: New) -> None:
    add(workspace, ANNA)
    anna = browser().log_in("anna")
    form = {"name": "anna", "password": PASSWORD}
    for headers, data in (
        ({}, form),
        ({}, form | {"csrf": "0" * 64}),
        ({"X-CSRF": "é".encode()}, form),
        ({"Origin": "https://evil.example.com"}, form | {"csrf": "0" * 64}),
    ):
        told = anna.client.post("/logout", data=data, headers=headers)
        assert (told.status_code, "did not come from" in told.text) == (403, True)
    other = browser().open("/login")
    mark = other.answer.text.partition('name="csrf" value="')[2][:64]
    assert anna.client.post("/logout", data={"csrf": mark}).status_code == 403
    assert "Anna Meyer" in anna.open("/").text


def its_login_ends(workspace: Workspace, page: Browser) -> None:
    token = page.client.cookies["recon_login"]
    with workspace.as_login(token).database.connect() as connection:
        log_out(connection)


@pytest.mark.long
def test_a_login_that_ends_while_somebody_types_costs_them_nothing(
    workspace: Workspace, browser: New, desk: str, rows: Rows
) -> None:
    add(workspace, ANNA)
    breaks = found("1")
    run = reconcile(workspace, breaks)
    path, why = f"/runs/{run.id}/decide", 'Bank "charges" of <January>'
    anna = browser().log_in("anna")
    anna.client.headers["Origin"] = desk
    anna.open(path, **{"break": ids(breaks), "what": "accept"})
    its_login_ends(workspace, anna)
    anna.send(path, reason=why, until="2026-12-31")
    assert (anna.status, "Your login has ended, so nothing was changed" in anna.text) == (401, True)
    assert why in anna.text
    anna.send("/login", name="anna", password="guess")
    assert (anna.status, why in anna.text) == (401, True)
    anna.send("/login", password=PASSWORD)
    assert (anna.status, "Not sent yet" in anna.text, why in anna.text) == (200, True, True)
    told = anna.text.partition("What you typed")[2]
    assert "What accept" in told
    assert [name for name in ("Digest", "Through", "Step") if name in told] == []
    assert rows("SELECT * FROM decision") == [], "nothing is sent before they say so"
    anna.send(path)
    told = rows('SELECT what, "by", reason FROM decision')
    assert told == [("accept", "anna", why)]


def test_only_what_a_page_of_the_desk_sent_is_kept_and_no_secret(
    workspace: Workspace, browser: New, desk: str
) -> None:
    add(workspace, ANNA)
    typed = {"reason": "typed", "password": "secret-1", "old": "secret-2", "csrf": "0" * 64}
    for headers, kept in (({}, False), ({"Origin": desk}, True)):
        told = browser().client.post("/runs/1/decide", data=typed, headers=headers)
        assert (told.status_code, "typed" in told.text) == (401, kept)
        assert "secret" not in told.text
    assert browser().client.post("/logout", data={"csrf": "0"}).status_code == 401


def test_a_field_for_a_password_is_never_kept() -> None:
    templates = (files("flows.desk") / "templates").iterdir()
    html = "".join(one.read_text() for one in templates if one.is_file())
    fields = re.findall(r'<input[^>]*type="password"[^>]*>', html)
    names = {re.search(r' name="(\w+)"', one)[1] for one in fields}
    assert "password" in names
    assert names <= {*SECRETS}


@pytest.mark.long
def test_every_answer_keeps_a_browser_from_being_talked_into_things(
    workspace: Workspace, browser: New, desk: str
) -> None:
    page = browser()
    for path in ("/", "/login", "/nowhere", "/static/desk.css"):
        headers = page.open(path).answer.headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    for path in ("/nowhere", f"/runs/{'9' * 41}", f"/batches/{'9' * 5_000}/rejects.zip"):
        assert page.open(path).status == 404
        assert "There is no such page" in page.text
    told = page.client.get("/", headers={"Host": "evil.example.com"})
    assert told.status_code == 400
    add(workspace, ANNA)
    cookies = page.open("/").log_in("anna").answer.history[-1].headers["set-cookie"]
    assert "HttpOnly" in cookies
    assert "SameSite=lax" in cookies


@pytest.mark.long
def test_why_there_is_no_database_is_told_in_the_log_alone(
    desk_as: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows who asks; whoever runs the desk reads it where they started it."""
    with show_warnings():
        page = Browser(desk_as("postgresql://keeper@127.0.0.1:9/ledger")).open("/")
    page.client.close()
    assert (page.status, "The desk cannot use its database now" in page.text) == (503, True)
    for told in ("127.0.0.1", "keeper", "ledger"):
        assert told not in page.text
    assert "recon: GET /: The database" in (told := capsys.readouterr().err)
    assert "127.0.0.1" in told


def test_a_fault_of_the_program_leaves_its_places_in_the_log(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(_visit: Visit) -> Response:
        raise ZeroDivisionError("a\x1b[2J")

    place = Address("/login", wrong, open_to_all=True)
    asked = {"type": "http", "method": "GET", "path": "/login", "headers": [], "query_string": b""}
    with show_warnings():
        page = _page(Desk(workspace), place, Request(asked), FormData())
    assert (page.status_code, b"its log says where" in page.body) == (500, True)
    told = capsys.readouterr().err
    assert told.startswith("recon: GET /login\nTraceback (most recent call last):\n")
    assert told.endswith("ZeroDivisionError: a\\x1b[2J\n")


def test_nor_is_it_told_to_whoever_has_not_logged_in_yet_where_it_goes_meanwhile(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(_visit: Visit) -> Response:
        with Database("postgresql://keeper@127.0.0.1:9/ledger", 10).connect():
            raise AssertionError("There is none.")

    add(workspace, ANNA)
    place = Address("/login", gone, open_to_all=True)
    asked = {"type": "http", "method": "GET", "path": "/login", "headers": [], "query_string": b""}
    page = _page(Desk(workspace), place, Request(asked), FormData())
    assert (page.status_code, page.body.decode()) == (503, NO_DATABASE)
    assert "127.0.0.1" in caplog.text


@pytest.mark.parametrize("there", ["http://[", "//[", "//evil.example", "/\\evil", "/\t/evil", "x"])
def test_a_login_leads_to_no_other_place(there: str) -> None:
    assert _ours(there) == "/"
    assert _ours("/runs/1?code=AMOUNT") == "/runs/1?code=AMOUNT"
