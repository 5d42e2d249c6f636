"""Signing at the desk: who may, what is signed, and files that are not what was written."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import polars as pl
import pytest

from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.signatures import look_at
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.life import Choice
from tests.accounts.people import ANNA, BO, CLEO, TESSA, add, logged_in
from tests.desk.browser import Browser, forms
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, ids, reconcile

New = Callable[[], Browser]
SIGN = "/runs/1/sign"


@pytest.fixture
def run(workspace: Workspace) -> None:
    """A reconciliation with nothing open."""
    folder = workspace.settings.reports / reconcile(workspace, found()).folder
    assert folder.name == "reconciliation-1"


@pytest.mark.usefixtures("run")
def test_one_prepares_and_another_approves(workspace: Workspace, browser: New) -> None:
    both = replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER))
    add(workspace, both, BO, CLEO)
    anna, bo, cleo = (browser().log_in(name) for name in ("anna", "bo", "cleo"))
    takes = "Preparing a report takes the role preparer. Ask somebody who has it"
    assert takes in cleo.open(SIGN).text
    assert takes in bo.open(SIGN).text
    page = anna.open(SIGN)
    assert "Each file was hashed just now" in page.text
    page.send(SIGN, comment="month end")
    assert (page.status, "month end" in page.text) == (200, True)
    assert "Somebody else approves it. Nobody approves what they prepared" in page.text
    forged = {"csrf": bo.answer.text.partition('name="csrf" value="')[2][:64]}
    hers = next(one["fields"] for one in forms(bo.open(SIGN).answer.text) if one["action"] == SIGN)
    for form, status in (
        ({}, 400),
        ({"role": "king"}, 400),
        ({"role": "approved"}, 409),
        (hers | {"accept_restated": "x"}, 400),
        (hers | {"accept_restated": "2026-01-31"}, 409),
    ):
        told = bo.client.post(SIGN, data=forged | form)
        assert told.status_code == status
    bo.open(SIGN).send(SIGN, comment="agreed")
    assert "Approved. " in bo.text
    assert "a login agreed" in bo.text
    assert "Approve the report" not in bo.text


@pytest.mark.long
@pytest.mark.usefixtures("run")
def test_both_sign_by_the_one_account_of_the_database_that_the_desk_has(
    workspace: Workspace, controller: str, desk_as: Callable[[str], str]
) -> None:
    add(workspace, ANNA, BO)
    url = desk_as(controller)
    for name, done in (("anna", "a login"), ("bo", "Approved. ")):
        page = Browser(url).log_in(name).open(SIGN).send(SIGN)
        assert (page.status, done in page.text) == (200, True), page.text
        page.client.close()


@pytest.mark.long
@pytest.mark.usefixtures("run")
def test_without_accounts_it_is_self_declared(browser: New) -> None:
    page = browser().open(SIGN)
    page.send(SIGN, comment="x")
    assert (page.status, "Fill in Your name" in page.text) == (400, True)
    assert 'value="x"' in page.answer.text, "what was typed is kept"
    page.send(SIGN, by="Ann Meyer", comment="<script>alert(1)</script>")
    page.send(SIGN, by="ann meyer")
    assert (page.status, "somebody else has to approve it" in page.text) == (409, True)
    page.send(SIGN, by="Bo Osei")
    assert "Approved self declared." in page.text
    assert "<script>alert" not in page.answer.text


@pytest.mark.usefixtures("run")
def test_files_are_given_as_they_were_written_or_not_at_all(
    workspace: Workspace, browser: New
) -> None:
    page = browser().open(SIGN)
    folder = workspace.settings.reports / "reconciliation-1"
    for name in ("totals.json", "records.parquet", "manifest.json"):
        told = page.open(f"/runs/1/files/{name}").answer
        if name == "manifest.json":
            assert told.status_code == 404, "it names the others, and is not among them"
            continue
        assert (told.status_code, told.content) == (200, (folder / name).read_bytes())
        assert told.headers["content-security-policy"].startswith("sandbox")
    for name in (
        "..%2f..%2fpush-marker.json",
        "%2e%2e/records.parquet",
        "nothing.csv",
        "totals.json%00",
    ):
        assert page.open(f"/runs/1/files/{name}").status == 404, name
    (folder / "records.parquet").write_bytes(b"x")
    page.open("/runs/1/files/records.parquet")
    assert (page.status, "not what was written" in page.text) == (409, True)
    page.open(SIGN)
    assert "is not what was written" in page.text
    assert "<button>Sign" not in page.answer.text
    (folder / "records.parquet").unlink()
    assert page.open("/runs/1/files/records.parquet").status == 409
    (folder / "manifest.json").unlink()
    assert page.open("/runs/1/files/totals.json").status == 409


@pytest.mark.long
@pytest.mark.usefixtures("run")
def test_a_run_of_other_tenants_is_not_there(workspace: Workspace, browser: New) -> None:
    add(workspace, TESSA)
    tessa = browser().log_in("tessa")
    for path in (SIGN, "/runs/1/files/totals.json", "/runs/99/sign", "/runs/99999999999/sign"):
        assert tessa.open(path).status == 404, path
    mark = tessa.open("/trail").answer.text.partition('name="csrf" value="')[2][:64]
    assert tessa.client.post(SIGN, data={"csrf": mark, "role": "prepared"}).status_code == 404


@pytest.mark.long
def test_whoever_signs_is_told_what_they_have_not_opened_and_so_is_the_trail(
    workspace: Workspace, browser: New
) -> None:
    pia = replace(ANNA, name="pia")
    add(workspace, ANNA, BO, pia)
    breaks = pl.concat([found("1", "2", amount="20000"), found("3", amount="9999.99")])
    first = reconcile(workspace, breaks)
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(logged_in(workspace, pia), first.id, Chosen(ids(breaks)), accept)
    run = reconcile(workspace, breaks)
    one, two, three = ids(breaks)
    anna, bo = browser().log_in("anna"), browser().log_in("bo")
    sign, at = f"/runs/{run.id}/sign", f"/runs/{run.id}/breaks"

    page = anna.open(sign)
    assert "2 of the 2 breaks of 10 000.00 or more in their currency" in page.text
    assert "others accepted 3" in page.text
    assert "the report , in any of its forms" in page.text
    for path in (f"{at}/{one}", f"{at}/{one}", f"{at}/{three}", f"{at}?state=open"):
        anna.open(path)
    assert (
        f"1 of the 2 breaks of 10 000.00 or more in their currency: {two}" in anna.open(sign).text
    )
    for path in (f"{at}?state=accepted", f"/runs/{run.id}/files/report.html"):
        anna.open(path)
    assert "You can still sign" in anna.open(sign).text
    anna.send(sign)
    anna.open(f"{at}/{two}")
    assert "2 of the 2 breaks" in bo.open(sign).text, "each account looks for itself"
    for path in (f"{at}/{one}", f"{at}/{two}", f"{at}?state=accepted&page=2",
                 f"/runs/{run.id}/files/report.html"):  # fmt: skip
        bo.open(path)
    assert "You have opened the report, every break of 10 000.00 or more" in bo.open(sign).text
    bo.send(sign)
    with workspace.database.connect() as connection:
        told = connection.execute(
            "SELECT detail::json -> 'not_opened' FROM event WHERE what LIKE 'report %' ORDER BY id"
        ).fetchall()
        kept = connection.execute("SELECT account, count(*) FROM look GROUP BY 1 ORDER BY 1")
        assert kept.fetchall() == [("anna", 5), ("bo", 4)], "each thing once"
    figures = {"of": 2, "at_least": "10000", "accepted_by_others": 0, "report": False}
    assert [of for (of,) in told] == [figures | {"breaks": 1}, figures | {"breaks": 0}]


@pytest.mark.long
def test_a_page_that_was_kept_says_that_an_acceptance_was_taken_back_on_a_later_run(
    workspace: Workspace, browser: New
) -> None:
    breaks, until = found("1"), date(2026, 12, 31)
    first = reconcile(workspace, breaks)
    decide_breaks(
        workspace, first.id, Chosen(ids(breaks)), Decision(Choice.ACCEPT, "charges", until=until)
    )
    run, page = reconcile(workspace, breaks), browser()
    sign, waits = f"/runs/{run.id}/sign", "1 break is accepted here, and was reopened since"
    page.open(sign).send(sign, by="Ann")
    later = reconcile(workspace, breaks)
    assert "Approve the report" in page.open(sign).text
    decide_breaks(workspace, later.id, Chosen(ids(breaks)), Decision(Choice.REOPEN, "not paid"))
    page.send(sign, by="Bo")
    assert (page.status, "shows 1 break as accepted that was reopened" in page.text) == (409, True)
    assert waits in page.open(sign).text
    assert "Approve the report" not in page.text
    assert waits in page.open(f"/runs/{run.id}").text


@pytest.mark.long
def test_nobody_says_for_another_what_they_have_opened(workspace: Workspace) -> None:
    add(workspace, ANNA, TESSA)
    run = reconcile(workspace, found("1"), scope="everything")
    (one,) = ids(found("1"))
    for place, what in (
        (workspace, "report"),
        (logged_in(workspace, TESSA), "report"),
        (logged_in(workspace, ANNA), "0" * 16),
        (logged_in(workspace, ANNA), one),
    ):
        with place.database.connect() as connection:
            look_at(connection, run.id, what)
    with workspace.database.connect() as connection:
        rows = connection.execute("SELECT account, what FROM look").fetchall()
    assert rows == [("anna", one)], "not without a login, nor of what one does not see or is not"
