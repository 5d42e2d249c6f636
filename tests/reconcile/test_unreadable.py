"""An amount that is no number is shown as it was delivered, and no sum claims to hold it."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.runs.breaks import Decision
from flows.report.html import render_html
from flows.report.markdown import summary_markdown
from flows.report.reconciled.markdown import reconciliation_markdown
from flows.report.reconciled.words import amount_of
from flows.report.text import render_text
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.reconcile.totals import ProofLine
from flows.steps.rules.rules import Rules
from schemas.life import BreakState, Choice
from tests.recon import run
from tests.report.reconciliation.test_workbook import Book
from tests.stages.payments import line, write

DAY = date(2026, 1, 9)
ASKED = Asked(Scope(), DAY, Rules())
SECTIONS = ("chain", "ageing")
TORN = "3,7,1,2,2026-01-01T10"
CASES = [
    # the rejected row, what is told of it, its currency
    (line(3, amount='"12,50"'), 'PaidAmount is not readable: "12,50"', "1"),
    (line(3, amount="1e400"), 'PaidAmount is not readable: "1e400"', "1"),
    (line(3, amount="abc"), 'PaidAmount is not readable: "abc"', "1"),
    (line(3, amount="=1+1"), 'PaidAmount is not readable: "=1+1"', "1"),
    (line(3, amount=""), "PaidAmount is not readable: it is empty", "1"),
    (TORN, "PaidAmount is not readable: the row cannot be told apart", ""),
]


def reconciled(workspace: Workspace, tmp_path: Path, *lines: str) -> Reconciled:
    import_delivery(workspace, [write(tmp_path / "payments.csv", *lines)], DEFAULT)
    return reconcile(workspace, ASKED)


@pytest.mark.long
@pytest.mark.parametrize(("delivered", "told", "currency"), CASES)
def test_it_is_told_and_never_a_zero(
    workspace: Workspace, tmp_path: Path, delivered: str, told: str, currency: str
) -> None:
    done = reconciled(workspace, tmp_path, line(1, amount="10"), delivered)
    report, folder = done.report, done.written.folder
    (one,) = [one for one in report.breaks if one.code == "REJECTED"]
    assert one.note.startswith(told)
    assert (one.basis, one.amount, one.counted) == ("not readable", None, None)
    assert (one.currency, one.severity) == (currency, "high"), "as large as money may be"
    because = "Payment: 1 rejected row has no readable PaidAmount, so that no total holds what"
    assert any(text.startswith(because) for text in report.cover.because)
    proof = next(p for p in report.proofs if p.field == "PaidAmount" and p.currency == currency)
    unread = {part.text: part.unreadable for part in proof.lines}
    assert unread["total per extract"] == unread["- rejected"] == 1
    assert unread["counted in the target"] == 0
    closing = next(f for f in report.roll_forward if f.currency == currency).lines[-1]
    assert closing.unreadable == 1
    page = "".join((folder / "report.html").read_text(encoding="utf-8").split())
    text = (folder / "report.txt").read_text(encoding="utf-8")
    assert "amount not readable breaks 1" in text
    assert "- rejected (1 not readable)" in text
    assert "".join(told.split()) in "".join(text.split())
    rejected = next(part for part in text.splitlines() if "- rejected (1" in part)
    assert rejected.split()[-2:] == ["not", "readable"], "no zero stands for it"
    assert "openamountnotreadable" in page.replace(",", "")
    csv = pl.read_csv(folder / "breaks.csv", infer_schema=False).filter(code="REJECTED")
    assert csv["basis"].item() == "not readable"
    assert csv["amount"].item() is None
    assert told in csv["note"].item()
    artifact = reconciliation_markdown(report)
    assert "not readable" in artifact
    assert "rejected row has no readable PaidAmount" in artifact
    totals = json.loads((folder / "totals.json").read_text())
    assert any(line["unreadable"] for proof in totals["proofs"] for line in proof["lines"])
    book = Book((folder / "report.xlsx").read_bytes())
    names = book.column("Difference proof", "Line")
    assert ("text", "- rejected (1 not readable)") in names
    assert ("text", "unexplained, of the amounts that are readable") in names
    amounts = book.column("Difference proof", "Amount")
    assert amounts[names.index(("text", "- rejected (1 not readable)"))] is None
    assert ("text", "not readable") in book.column("Breaks", "Amount is")
    assert any(cell and str(cell[1]).startswith(told) for cell in book.column("Breaks", "Note"))


@pytest.mark.long
def test_no_table_has_a_zero_for_it(workspace: Workspace, tmp_path: Path) -> None:
    done = reconciled(workspace, tmp_path, line(1, amount='"12,50"'), line(2, day=12, amount="x"))
    book = Book((done.written.folder / "report.xlsx").read_bytes())
    figures = book.column("Control totals", "Figure")
    at = figures.index(("text", "PaidAmount (1 not readable)"))
    assert book.column("Control totals", "Extract")[at] is None
    stages = list(zip(book.column("Chain", "Figure"), book.column("Chain", "Stage"), strict=True))
    at = stages.index((("text", "PaidAmount"), ("text", "delivered (1 not readable)")))
    assert book.column("Chain", "Value")[at] is None
    late = book.column("After the cut-off", "Amount field").index(("text", "PaidAmount"))
    assert book.column("After the cut-off", "Amount")[late] is None
    page = (done.written.folder / "report.html").read_text(encoding="utf-8")
    chain, ageing = (page.split(f'id="{name}"')[1].split("</section>")[0] for name in SECTIONS)
    assert ">not readable<" in chain
    assert "REJECTED <small>not readable</small>" in ageing


READABLE = [
    # amount, rows, how many of these have none that can be read, what is told
    ("0", 1, 1, None),
    ("0", -1, 1, None),
    ("0", 3, 1, "0"),
    ("5", 2, 2, "5"),
    ("0", 0, 0, "0"),
    ("-7", -3, 2, "-7"),
]


@pytest.mark.parametrize(("amount", "rows", "unreadable", "told"), READABLE)
def test_a_sum_of_some_that_can_be_read_is_told(
    amount: str, rows: int, unreadable: int, told: str | None
) -> None:
    line = ProofLine("- rejected", rows, Decimal(amount), unreadable=unreadable)
    assert amount_of(line) == (None if told is None else Decimal(told))


@pytest.mark.long
def test_what_is_readable_beside_it_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    rows = [line(1, amount="abc"), line(2, amount="7").replace(",0.5,", ",x,"), line(3, amount="")]
    report = reconciled(workspace, tmp_path, *rows).report
    told = {one.key: (one.basis, one.amount, one.note) for one in report.breaks}
    assert told["2/7"] == ("difference", Decimal(7), 'DiscountAmount is not readable: "x"')
    lines = {
        proof.field: {part.text: (part.amount, part.unreadable) for part in proof.lines}
        for proof in report.proofs
    }
    assert lines["PaidAmount"]["- rejected"] == (Decimal(-7), 2)
    assert lines["DiscountAmount"]["- rejected"] == (Decimal(-1), 1)
    assert all(proof.unexplained == 0 for proof in report.proofs)
    (control,) = report.controls
    assert control.unreadable == {"PaidAmount": 2, "DiscountAmount": 1}


@pytest.mark.long
def test_an_optional_amount_that_is_not_there_is_none(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "plans.csv"
    path.write_text(
        "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId\n"
        "1,2026-01-02,,978,x,1\n2,2026-01-02,abc,978,,1\n"
    )
    import_delivery(workspace, [str(path)], DEFAULT)
    report = reconcile(workspace, ASKED).report
    notes = {one.note for one in report.breaks if one.code == "REJECTED"}
    assert notes == {"", 'PlannedAmount is not readable: "abc"'}
    (proof,) = report.proofs
    assert {part.unreadable for part in proof.lines if part.text == "- rejected"} == {1}


@pytest.mark.long
def test_an_acceptance_names_what_was_delivered(workspace: Workspace, tmp_path: Path) -> None:
    reconciled(workspace, tmp_path, line(1, amount='"12,50"'))
    place = workspace.database.url, workspace.settings.home
    until = ("--until", "2026-02-01", "--reason", "known", "--by", "anna")
    told = run(*place, "breaks", "accept", "--code", "REJECTED", *until)
    assert "1 break has an amount that is not readable, and in no sum." in told.stdout, told.stderr
    accepted = reconcile(workspace, ASKED).report
    assert accepted.cover.verdict == "RECONCILED_WITH_ACCEPTED"
    assert any("no readable PaidAmount" in because for because in accepted.cover.because)
    assert accepted.accepted_forward[0].lines[-1].unreadable == 1
    left = next(part for part in accepted.roll_forward[0].lines if part.text == "- accepted")
    assert (left.rows, left.unreadable, amount_of(left)) == (-1, 1, None), "no zero there either"


@pytest.mark.long
def test_another_text_in_its_place_is_not_what_was_accepted(
    workspace: Workspace, tmp_path: Path
) -> None:
    reconciled(workspace, tmp_path, line(1, amount='"12,50"'))
    accept = Decision(Choice.ACCEPT, reason="known", by="anna", until=date(2026, 2, 1))
    decide_breaks(workspace, None, Chosen(code="REJECTED"), accept)
    with workspace.database.connect() as connection:
        told = "replace(error_data, '12,50', '99,50')"
        connection.execute(f"UPDATE staged_payment SET error_data = {told}")
    (one,) = [one for one in reconcile(workspace, ASKED).report.breaks if one.code == "REJECTED"]
    assert one.state == BreakState.REOPENED
    assert '"12,50"' in one.note
    assert '"99,50"' in one.note


@pytest.mark.long
def test_the_report_of_the_batch_says_so(workspace: Workspace, tmp_path: Path) -> None:
    rows = [line(1, amount="10"), line(2, amount='"12,50"'), TORN]
    done = import_delivery(workspace, [write(tmp_path / "payments.csv", *rows)], DEFAULT)
    for text in (render_text(done.report), render_html(done.report), summary_markdown(done.report)):
        told = "2 rejected rows have no readable PaidAmount: what was delivered there"
        assert told in " ".join(text.split())
