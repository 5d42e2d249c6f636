"""The page of one batch: what became of every row, why, and what was done with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.desk_settings import DeskSettings
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import RUN_BEGAN
from connectors.postgres.trail import add_event
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, TESSA, add
from tests.desk.browser import Browser, desk_of
from tests.desk.test_batches import TIGHT, bring
from tests.stages.payments import line, write

New = Callable[[], Browser]


@pytest.mark.long
def test_a_batch_says_what_became_of_every_row(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2), line(3, amount="x"))
    text = browser().open("/batches/1").text
    for told in (
        "Complete with errors. The rows without errors are applied",
        "Next: Correct 1 reject recon rejects 1 --out FOLDER",
        "a.csv Payment 3 1",
        "3 read = 1 rejected + 2 inserted; every figure ties.",
        "PaidAmount, currency 1 21.00 0.00 21.00",
        "1 rejected row has no readable PaidAmount",
        "a.csv, line 4 x",
        "History",
    ):
        assert told in text, told


@pytest.mark.long
def test_what_is_not_accounted_for_is_a_number_as_others_of_the_page(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1, amount="2000.00"), line(2))
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 999.99 WHERE "Id" = 1')
    page = browser().open("/batches/1")
    assert "PaidAmount, currency 1: \u22121\u202f000.01" in page.answer.text


@pytest.mark.long
def test_a_batch_is_called_what_its_report_calls_it(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1))
    bring(workspace, tmp_path / "b.csv", line(2))
    undo_batch(workspace, 2, by="cy", reason="wrong month")
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 999.99 WHERE "Id" = 1')
    page = browser().open("/batches/1")
    assert "Does not tie. At least one figure does not add up" in page.text
    assert "Undone. What was applied has been taken back. By cy" in page.open("/batches/2").text


def test_a_file_that_was_refused_is_told_once_with_what_to_do(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("Colour,Shape\nred,round\n")
    import_delivery(workspace, [str(tmp_path / "a.csv")], DEFAULT)
    text = browser().open("/batches/1").text
    assert text.count("Add the columns, or map them in a feed profile.") == 1
    assert "Content none: no file was taken in" in text


@pytest.mark.long
def test_the_files_of_its_report_are_given_as_written_or_not_at_all(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    page = browser().open("/batches/1")
    folder = workspace.settings.reports / "batch-1"
    for name in ("report.html", "report.txt", "manifest.json"):
        assert f'href="/batches/1/files/{name}"' in page.open("/batches/1").answer.text
        told = page.open(f"/batches/1/files/{name}").answer
        assert (told.status_code, told.content) == (200, (folder / name).read_bytes())
        assert told.headers["content-security-policy"].startswith("sandbox")
        shown = told.headers["content-disposition"].partition(";")[0]
        assert shown == ("inline" if name == "report.html" else "attachment")
    for name in ("..%2fbatch-2%2freport.txt", "%2e%2e/x", "nothing.csv", "report.txt%00"):
        assert page.open(f"/batches/1/files/{name}").status == 404, name
    (folder / "report.txt").write_bytes(b"x")
    page.open("/batches/1/files/report.txt")
    assert (page.status, "not what was written" in page.text) == (409, True)
    (folder / "report.html").unlink()
    assert page.open("/batches/1/files/report.html").status == 409


@pytest.mark.long
def test_a_report_with_delivered_text_of_others_is_not_given_to_an_account_of_one_tenant(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    add(workspace, TESSA)
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, tenant=TESSA.tenants[0]))
    page = browser().log_in("tessa").open("/batches/1")
    assert page.status == 200
    assert "/batches/1/files/" not in page.answer.text
    assert page.open("/batches/1/files/report.html").status == 404


@pytest.mark.long
def test_an_account_of_one_tenant_sees_the_history_of_its_batch(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    add(workspace, TESSA)
    for tenant in (7, 8):
        path = write(tmp_path / f"{tenant}.csv", line(tenant, tenant=tenant))
        import_delivery(workspace, [path], replace(DEFAULT, tenant=tenant))
        with workspace.database.connect() as connection:
            add_event(connection, "looked at", batch_id=tenant - 6, by="ann", reason=f"of {tenant}")
    page = browser().log_in("tessa").open("/batches/1")
    assert "Looked at ann of 7" in page.text
    text = page.open("/trail").text
    assert ("of 7" in text, "of 8" in text) == (True, False)
    assert "looked at" in page.open("/trail", batch="1").text
    assert "looked at" not in page.open("/trail", batch="2").text


@pytest.mark.long
def test_it_leads_to_the_runs_of_prefect_that_worked_on_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1))
    number = "0f8fad5b-d9cb-469f-a165-70867728950e"
    with workspace.database.connect() as connection:
        for told in (number, "../../admin"):
            detail = {"run": told, "name": "import <b>"}
            add_event(connection, RUN_BEGAN, batch_id=1, detail=detail)
    with desk_of(workspace, DeskSettings(prefect_ui="https://prefect.example.com")) as url:
        page = Browser(url).open("/batches/1")
        assert f'href="https://prefect.example.com/runs/flow-run/{number}">import &lt;b&gt;' in (
            page.answer.text
        )
        assert "flow-run/.." not in page.answer.text
        page.client.close()


@pytest.mark.long
def test_a_held_batch_says_why_and_its_history_who(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"), terms=TIGHT)
    with workspace.database.connect() as connection:
        add_event(connection, "looked at", batch_id=1, by="ann", reason="<i>month end</i>")
    page = browser().open("/batches/1")
    assert "Nothing of this batch has been applied. 1 of 2 rows has errors;" in page.text
    assert "Next: Release or discard it" in page.text
    assert "2 read = 1 rejected + 1 pending" in page.text
    assert "Looked at ann <i>month end</i>" in page.text, "as text, not as a mark"


@pytest.mark.long
def test_a_correction_changes_the_page_of_what_it_corrects(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    page = browser().open("/batches/1")
    assert "2 read = 1 rejected + 1 inserted" in page.text
    path = write(tmp_path / "b.csv", line(2))
    import_delivery(workspace, [path], DEFAULT, corrects=1)
    assert "2 read = 1 corrected + 1 inserted" in page.open("/batches/1").text
    assert "Its reject repaired by batch 2." in page.text
    assert 'href="/batches/1"' in page.open("/batches/2").answer.text


def test_a_batch_that_was_not_read_to_its_end_has_no_totals(
    workspace: Workspace, browser: New
) -> None:
    with workspace.database.connect() as connection:
        connection.execute(
            "INSERT INTO batch (content_id, feed, profile, state, opened_at, lease_epoch) "
            "VALUES ('c', 'feed', '{}', 'received', now(), 0)"
        )
    text = browser().open("/batches/1").text
    assert "It is being worked on, or was stopped: run it again recon rerun 1" in text
    assert "are shown once that is done" in text


@pytest.mark.long
@pytest.mark.parametrize("number", [2, 99, 2**31, 10**30])
def test_a_batch_that_is_not_there_or_not_seen_is_not_found(
    workspace: Workspace, browser: New, tmp_path: Path, number: int
) -> None:
    add(workspace, TESSA)
    bring(workspace, tmp_path / "a.csv", line(1), terms=replace(DEFAULT, tenant=7))
    bring(workspace, tmp_path / "b.csv", line(2))
    page = browser().log_in("tessa")
    assert page.open("/batches/1").status == 200
    page.open(f"/batches/{number}")
    assert page.status == 404
    assert f"There is no batch {number} that you may see." in page.text


@pytest.mark.long
def test_text_of_another_tenant_is_not_shown_to_an_account_of_some(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    add(workspace, ANNA, TESSA)
    strangers = "31415926"
    other = line(2, tenant=8).replace("10.50", strangers + "x")
    bring(workspace, tmp_path / "a.csv", line(1), other, terms=replace(DEFAULT, tenant=7))
    seen = {name: browser().log_in(name).open("/batches/1") for name in ("anna", "tessa")}
    assert [strangers in page.text for page in seen.values()] == [True, False]
    assert all("1 rejected" in page.text for page in seen.values())
