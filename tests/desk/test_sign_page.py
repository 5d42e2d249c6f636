"""Signing at the desk: who may, what is signed, and files that are not what was written."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ANNA, BO, CLEO, TESSA, add
from tests.desk.browser import Browser
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, reconcile

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
    assert "has no right to prepare" in cleo.open(SIGN).text
    assert "has no right to prepare" in bo.open(SIGN).text
    page = anna.open(SIGN)
    assert "Each file was hashed just now" in page.text
    page.send(SIGN, comment="month end")
    assert (page.status, "month end" in page.text) == (200, True)
    assert "Somebody else approves it. Nobody approves what they prepared" in page.text
    forged = {"csrf": bo.answer.text.partition('name="csrf" value="')[2][:64]}
    for form in ({}, {"role": "king"}, {"role": "approved"}):
        told = bo.client.post(SIGN, data=forged | form)
        assert told.status_code == 409
    bo.open(SIGN).send(SIGN, comment="agreed")
    assert "Approved. " in bo.text
    assert "a login agreed" in bo.text
    assert "Approve the report" not in bo.text


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


@pytest.mark.usefixtures("run")
def test_without_accounts_it_is_self_declared(browser: New) -> None:
    page = browser().open(SIGN)
    page.send(SIGN, comment="x")
    assert (page.status, "Name who signs" in page.text) == (409, True)
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
    assert (page.status, "not what was written" in page.text) == (400, True)
    page.open(SIGN)
    assert "is not what was written" in page.text
    assert "<button>Sign" not in page.answer.text
    (folder / "records.parquet").unlink()
    assert page.open("/runs/1/files/records.parquet").status == 400
    (folder / "manifest.json").unlink()
    assert page.open("/runs/1/files/totals.json").status == 400


@pytest.mark.usefixtures("run")
def test_a_run_of_other_tenants_is_not_there(workspace: Workspace, browser: New) -> None:
    add(workspace, TESSA)
    tessa = browser().log_in("tessa")
    for path in (SIGN, "/runs/1/files/totals.json", "/runs/99/sign", "/runs/99999999999/sign"):
        assert tessa.open(path).status == 404, path
    mark = tessa.open("/trail").answer.text.partition('name="csrf" value="')[2][:64]
    assert tessa.client.post(SIGN, data={"csrf": mark, "role": "prepared"}).status_code == 404
