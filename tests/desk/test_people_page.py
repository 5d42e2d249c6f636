"""Accounts at the desk: kept by administrators, and one's own password."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from connectors.postgres.accounts import Account
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ADA, ANNA, BO, PASSWORD, TESSA, add
from tests.desk.browser import Browser, forms
from tests.governance.runs import found, reconcile

New = Callable[[], Browser]
NEW = "another pass phrase"


def mark(browser: Browser) -> str:
    """What forms of this browser carry."""
    return str(forms(browser.open("/account").answer.text)[0]["fields"]["csrf"])


def post(browser: Browser, path: str, **fields: object) -> Browser:
    browser.answer = browser.client.post(path, data={"csrf": mark(browser)} | fields)
    return browser


def change(browser: Browser, name: str, **typed: object) -> Browser:
    """Send the form of an account as the page that is open has it, but for what is typed."""
    (form,) = (
        one["fields"]
        for one in forms(browser.answer.text)
        if one["fields"].get("name") == name and "seen" in one["fields"]
    )
    browser.answer = browser.client.post("/people", data=form | typed)
    return browser


@pytest.mark.long
def test_an_administrator_keeps_accounts(workspace: Workspace, browser: New) -> None:
    add(workspace, ADA)
    ada = browser().log_in("ada")
    bo = {"what": "add", "name": "bo", "full_name": "Bo <i>Osei</i>", "role": ["approver"]}
    post(ada, "/people", **bo, tenants="7, 12", password=PASSWORD)
    assert "Bo <i>Osei</i> approver 7, 12 a password" in ada.text
    their = browser().log_in("bo")
    assert "Bo <i>Osei</i>" in their.text
    post(ada, "/people", **bo, password=PASSWORD)
    assert (ada.status, "There is an account bo already" in ada.text) == (400, True)
    assert 'value="Bo &lt;i&gt;Osei&lt;/i&gt;"' in ada.answer.text, "what was typed is kept"
    change(ada.open("/people"), "bo", what="change", full_name="Bo Osei-Bonsu", tenants="x")
    (kept,) = (one["fields"] for one in forms(ada.answer.text) if one["fields"].get("name") == "bo")
    assert (ada.status, kept["full_name"], kept["tenants"]) == (400, "Bo Osei-Bonsu", "x")
    change(ada.open("/people"), "bo", what="disable")
    assert "disabled" in ada.text
    assert "Password" in their.open("/").text
    change(ada, "bo", what="enable")
    change(ada, "bo", what="change", full_name="Bo Osei", role=["viewer"], tenants="")
    assert "Bo Osei viewer all" in ada.text


def test_who_nobody_can_show_to_be_keeps_the_password(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    """Taken as it was typed, it would log Bo out, and nobody could log in as Bo again."""
    add(workspace, ADA, BO)
    ada = browser().log_in("ada")
    change(ada.open("/people"), "bo", what="change", subject="bo@example.com")
    assert (ada.status, "shows nobody: write" in ada.text) == (400, True)
    (kept,) = (one["fields"] for one in forms(ada.answer.text) if one["fields"].get("name") == "bo")
    assert kept["subject"] == "bo@example.com"
    assert rows("SELECT subject, verifier IS NULL FROM account WHERE name = 'bo'") == [
        (None, False)
    ]
    change(ada.open("/people"), "bo", what="change", subject="proxy bo@example.com")
    assert rows("SELECT subject FROM account WHERE name = 'bo'") == [("proxy bo@example.com",)]


@pytest.mark.long
@pytest.mark.parametrize("what", ["change", "disable", "add"])
def test_what_another_administrator_has_changed_meanwhile_is_not_taken_back(
    workspace: Workspace, browser: New, what: str
) -> None:
    eve = Account("eve", "Eve Moss", (AccountRole.ADMINISTRATOR,))
    add(workspace, ADA, eve, BO)
    ada, late = (browser().log_in(name).open("/people") for name in ("ada", "eve"))
    change(ada, "bo", what="change", role=["viewer"])
    assert "Bo Osei viewer all" in ada.text
    change(late, "bo", what=what, full_name="Bo Osei-Bonsu", role=["approver"])
    assert late.status in (400, 403)
    assert ("omebody else has changed the account 'bo'" in late.text) == (what != "add")
    assert "Bo Osei viewer all" in late.text, "the page shows it as it is"
    change(late, "bo", what="change", full_name="Bo Osei-Bonsu")
    assert "Bo Osei-Bonsu viewer all" in late.text, "and so does its form"


CANNOT_BE: list[tuple[dict[str, object], str]] = [
    ({"what": "add", "name": "Bo"}, "No account can be 'Bo'"),
    ({"what": "add", "name": "bo", "role": []}, "with the roles ''"),
    ({"what": "add", "name": "bo", "role": ["king"]}, "no such role"),
    ({"what": "add", "name": "bo", "tenants": "x"}, "no numbers of tenants"),
    ({"what": "add", "name": "bo", "password": "short"}, "12 to 1024 characters"),
    ({"what": "change", "name": "nobody"}, "There is no account 'nobody'"),
    ({"what": "disable", "name": ""}, "There is no account ''"),
]


@pytest.mark.long
def test_what_cannot_be_is_told(workspace: Workspace, browser: New) -> None:
    add(workspace, ADA)
    ada = browser().log_in("ada")
    for fields, told in CANNOT_BE:
        post(ada, "/people", **{"full_name": "Bo", "role": ["viewer"]} | fields)
        assert (ada.status in (400, 403), told in ada.text) == (True, True), ada.text


@pytest.mark.long
def test_the_first_account_is_not_added_by_whoever_opens_the_desk(
    workspace: Workspace, browser: New
) -> None:
    page = browser().open("/people")
    assert "Add an account" not in page.text
    csrf = page.open("/trail").answer.text.partition('name="csrf" value="')[2][:64]
    eve = {"what": "add", "name": "eve", "full_name": "Eve", "role": ["administrator"]}
    told = page.client.post("/people", data={"csrf": csrf} | eve)
    assert (told.status_code, "is added by" in told.text) == (403, True)


@pytest.mark.long
def test_an_account_of_some_tenants_is_told_of_no_other(workspace: Workspace, browser: New) -> None:
    """As in the trail: accounts name the tenants of others."""
    add(workspace, ANNA, BO, replace(TESSA, roles=(AccountRole.ADMINISTRATOR,)))
    tessa = browser().log_in("tessa")
    assert "Nothing that you may see has been reconciled yet." in tessa.text
    tessa.open("/people")
    assert "Accounts are shown to people who act for all tenants." in tessa.text
    assert [name for name in ("Anna", "Bo Osei", "Add an account") if name in tessa.text] == []
    assert "Anna Meyer" in browser().log_in("bo").open("/people").text


@pytest.mark.long
@pytest.mark.parametrize("owner", [True, False])
def test_nobody_else_keeps_accounts(
    workspace: Workspace, desk: str, controller: str, desk_as: Callable[[str], str], owner: bool
) -> None:
    """What the page offers is not what decides, nor whose connection the desk has."""
    add(workspace, ANNA, BO)
    anna = Browser(desk if owner else desk_as(controller)).log_in("anna")
    assert "Add an account" not in anna.open("/people").text
    fields = {"name": "bo", "full_name": "Bo", "role": ["administrator"]}
    for what in ("add", "change", "disable"):
        post(anna, "/people", what=what, **fields | ({"name": "x"} if what == "add" else {}))
        assert (anna.status, "takes administrator" in anna.text) == (403, True), what
    anna.client.close()


def test_everybody_changes_their_own_password(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    add(workspace, ANNA)
    anna, elsewhere = browser().log_in("anna"), browser().log_in("anna")
    for old, new, again, told in (
        ("guess", NEW, NEW, "This is not the password of anna"),
        (PASSWORD, NEW, "other", "are not the same"),
        (PASSWORD, "short", "short", "12 to 1024"),
    ):
        anna.open("/account").send("/account/password", old=old, new=new, again=again)
        assert (anna.status in (400, 403), told in anna.text) == (True, True)
    assert rows("SELECT by FROM event WHERE what = 'login refused'") == [("anna",)]
    anna.open("/account").send("/account/password", old=PASSWORD, new=NEW, again=NEW)
    assert "The password is set" in anna.text
    assert "Password" in elsewhere.open("/").text
    assert "Anna Meyer" in anna.open("/").text


def test_an_administrator_gives_the_password_before_for_their_own(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ADA)
    ada = browser().log_in("ada").open("/people")
    change(ada, "ada", what="change", full_name="Ada Lund", password=NEW)
    assert (ada.status, "the page under your name" in ada.text) == (400, True)
    assert "Ada Lund" not in ada.text


@pytest.mark.long
def test_reports_are_subscribed_to_on_ones_own_page(workspace: Workspace, browser: New) -> None:
    add(workspace, ANNA, TESSA)
    reconcile(workspace, found(), scope="tenants 7")
    reconcile(workspace, found(), scope="tenants 8; <i>x")
    anna = browser().log_in("anna")
    assert "No report is sent to you." in anna.open("/account").text
    sent = {"what": "subscribe", "scope": "tenants 8; <i>x"}
    post(anna, "/account/reports", **sent, address="anna@<b>")
    assert (anna.status, "no address of e-mail" in anna.text) == (403, True)
    assert "such as anna@example.com. Nothing was changed." in anna.text
    assert 'value="anna@&lt;b&gt;"' in anna.answer.text, "what was typed is kept"
    post(anna, "/account/reports", **sent, address="anna@example.com")
    assert "tenant 8; <i>x is sent to anna@example.com." in anna.text
    post(anna, "/account/reports", what="unsubscribe", scope="tenants 8; <i>x")
    assert "No report is sent to you." in anna.text

    tessa = browser().log_in("tessa").open("/account")
    assert "tenant 8" not in tessa.text
    post(tessa, "/account/reports", **sent, address="tessa@example.com")
    assert (tessa.status, "no reconciliation of a scope" in tessa.text) == (403, True)
    post(
        tessa, "/account/reports", what="subscribe", scope="tenants 7", address="tessa@example.com"
    )
    assert "tenant 7 is sent to tessa@example.com." in tessa.text
