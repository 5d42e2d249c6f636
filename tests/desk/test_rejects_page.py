"""Rows with errors at the desk: page by page, without secrets, and as files to correct."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.rows.reject_page import shown_rejects
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.secrets import HIDDEN
from schemas.reasons import REASONS
from tests.accounts.people import ANNA, TESSA, add
from tests.desk.browser import Browser
from tests.desk.test_batches import TIGHT, bring
from tests.stages.payments import line, write

New = Callable[[], Browser]


@pytest.mark.long
def test_rejects_are_read_page_by_page(workspace: Workspace, browser: New, tmp_path: Path) -> None:
    bring(workspace, tmp_path / "a.csv", *(line(n, amount="x") for n in range(1, 121)), line(121))
    page, seen = browser().open("/batches/1").open("/batches/1/rejects"), []
    while True:
        here = re.findall(r"a\.csv, line (\d+)", page.text)
        assert len(here) <= 50
        seen += here
        if 'rel="next"' not in page.answer.text:
            break
        page.open(page.answer.text.partition('rel="next" href="')[2].partition('"')[0])
    assert seen == [str(number) for number in range(2, 122)]
    assert line(120, amount="x") in page.text
    assert REASONS["Number"].remedy in page.text
    for nonsense in ("x", "1:", "9" * 30 + ":1", "9999999999:9999999999"):
        assert page.open("/batches/1/rejects", after=nonsense).status == 200


@pytest.mark.long
def test_only_a_batch_that_is_applied_offers_to_be_corrected(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    bring(workspace, tmp_path / "b.csv", line(3), line(4, amount="x"), terms=TIGHT)
    offers = "Upload corrected rows", "--corrects"
    applied = browser().open("/batches/1/rejects").text
    held = browser().open("/batches/2/rejects").text
    assert all(one in applied and one not in held for one in offers)
    assert "takes corrections, and this one is held" in held
    assert REASONS["Number"].remedy in held


def test_the_files_to_correct_are_a_delivery(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    page = browser().open("/batches/1/rejects.zip")
    with ZipFile(io.BytesIO(page.answer.content)) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path / "out")
    assert names == ["a-batch-1.csv", "what-is-wrong-batch-1.txt"]
    again = page.open("/batches/1/rejects.zip").answer.content
    with ZipFile(io.BytesIO(again)) as packed:
        assert packed.namelist() == names
    file = tmp_path / "out" / names[0]
    file.write_text(file.read_text().replace(",x,", ",10.50,"))
    assert import_delivery(workspace, [str(file)], DEFAULT, corrects=1).report.errors == 0
    page.open("/batches/1/rejects")
    assert "1 row not written: repaired by batch 2." in page.text
    assert page.open("/batches/1/rejects.zip").status == 404
    assert "no rows with errors left to correct" in page.text


@pytest.mark.long
def test_a_row_that_was_delivered_again_is_corrected_where_it_is_in_error(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1, amount="x"))
    (repair,) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False)
    import_delivery(workspace, [str(repair)], DEFAULT, corrects=1)
    page = browser().open("/batches/1/rejects")
    assert "Correct it in batch 2" in page.text
    assert "nothing is left to correct here" in page.text
    assert "/batches/1/rejects.zip" not in page.answer.text, "it has no row any more"
    assert REASONS["Number"].remedy not in page.text
    assert REASONS["Number"].remedy in page.open("/batches/2/rejects").text


@pytest.mark.long
def test_the_workbook_has_every_one_as_a_line_and_no_formula(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    rows = [line(n, amount="=1+1") for n in range(1, 601)]
    rows.append(line(601, amount="x" * 40_000))
    bring(workspace, tmp_path / "a.csv", *rows, line(700))
    page = browser().open("/batches/1/rejects")
    assert 'href="/batches/1/rejects.xlsx"' in page.answer.text
    content = page.open("/batches/1/rejects.xlsx").answer.content
    assert page.open("/batches/1/rejects.xlsx").answer.content == content
    with ZipFile(io.BytesIO(content)) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert (sheet.count("<row "), "<f>" in sheet) == (602, False)
    assert rows[-2] in sheet
    assert "x" * 30_000 in sheet, "what no cell can hold is cut, and not left out"
    assert REASONS["Number"].remedy in sheet


def test_a_workbook_is_of_one_moment_however_many_rows_it_has(
    workspace: Workspace, tmp_path: Path
) -> None:
    """One statement gives them all: page by page, each would look through all that follow."""
    bring(workspace, tmp_path / "a.csv", *(line(n, amount="x") for n in range(1, 1_202)))
    with workspace.database.connect() as connection, workspace.database.connect() as other:
        rows = shown_rejects(workspace, connection, 1, {})
        first = next(rows)
        other.execute("DELETE FROM staged_payment WHERE record_number > 1000")
        assert [first.line, *(row.line for row in rows)] == [*range(2, 1_203)]


ACCOUNT = "EMail,FirstName,LastName,Password,ConfirmPassword,Company"
SECRETS = [
    (ACCOUNT, "bad,a,b,canary-7,canary-7,c"),
    (ACCOUNT, "bad,\udcff,b,canary-7,c"),
    ("Data,HasError,Merged,BatchId,Jsondata,ErrorData", "{Password:canary-7,False,False,1,,"),
]


def test_no_secret_is_on_the_page_or_in_the_files(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    page, path = browser(), tmp_path / "a.csv"
    for batch, (header, record) in enumerate(SECRETS, 1):
        path.write_bytes(f"{header}\n{record}\n".encode(errors="surrogateescape"))
        import_delivery(workspace, [str(path)], DEFAULT)
        page.open(f"/batches/{batch}")
        assert "canary-7" not in page.text, record
        page.open(f"/batches/{batch}/rejects")
        assert (page.text.count(HIDDEN), "canary-7" in page.text) == (1, False), record
        assert b"canary-7".hex() not in page.text
        for kind in ("zip", "xlsx"):
            content = page.open(f"/batches/{batch}/rejects.{kind}").answer.content
            with ZipFile(io.BytesIO(content)) as packed:
                assert all(b"canary-7" not in packed.read(name) for name in packed.namelist())


@pytest.mark.long
def test_rejects_are_not_shown_to_an_account_of_some_tenants(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    add(workspace, ANNA, TESSA)
    terms = replace(DEFAULT, tenant=7)
    bring(workspace, tmp_path / "a.csv", line(1), line(2, tenant=8), terms=terms)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(3, amount="x"))], DEFAULT)
    anna, tessa = browser().log_in("anna"), browser().log_in("tessa")
    for name in ("rejects", "rejects.zip", "rejects.xlsx"):
        assert anna.open(f"/batches/1/{name}").status == 200
        assert (tessa.open(f"/batches/1/{name}").status, "2,8,1,2" in tessa.text) == (403, False)
        assert tessa.open(f"/batches/2/{name}").status == 404
    assert "/rejects" not in tessa.open("/batches/1").answer.text
