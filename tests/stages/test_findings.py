"""The reasons of a batch: as its chunks counted them, and as the database finds them by row."""

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches import ledger
from connectors.postgres.batches.findings import REASONS_OF, findings, notes
from connectors.settings import Limits
from flows.report.html import render_html
from flows.report.text import render_text
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.batch_report import MOST_NOTES
from tests.stages.payments import line, write

SAMPLES = Path(__file__).resolve().parents[2] / "data_samples"
ROWS = [
    line(1),
    line(2, amount="x"),
    "3,7",
    line(4, tenant=8),
    line(5).replace(",9", ',"9"x'),
    line(6, amount='"a ""quoted"" \\ é"'),
    line(7, amount=""),
    line(8),
    line(8, amount="3"),
    ",,,,,,,,",
    "x1,x2,x3,x4,x5,x6,x7,x8,x9",
    line(9, amount="0.30000000000000000001"),
]


@pytest.mark.long(but=("payments",))
@pytest.mark.parametrize("name", ["payments", "small chunks", "samples"])
def test_reasons_that_were_counted_are_those_that_are_found(
    name: str, workspace: Workspace, tmp_path: Path
) -> None:
    paths = [write(tmp_path / "in" / "a.csv", *ROWS), write(tmp_path / "in" / "b.csv", *ROWS[:5])]
    if name == "small chunks":
        limits = Limits(block_bytes=200, record_bytes=100, field_bytes=100)
        workspace = replace(workspace, settings=replace(workspace.settings, limits=limits))
    if name == "samples":
        paths = [str(SAMPLES / "dirty")]
    profile = replace(DEFAULT, tenant=None if name == "samples" else 7, reference="reject")
    batch = import_delivery(workspace, paths, profile).batch.id
    url = str(workspace.settings.database_url)
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = recon")
        receipts = ledger.list_receipts(connection, batch, "stage")
        assert any(REASONS_OF in clue for one in receipts for clue in one.clues.values())
        tables = ledger.tables_of(receipts)
        counted = findings(connection, tables, batch)
        connection.execute("UPDATE receipt SET clues = NULL")
        assert counted == findings(connection, tables, batch)
    assert sum(map(len, counted.values())) >= 10


@pytest.mark.long
def test_a_report_has_the_first_of_very_many_notes(workspace: Workspace, tmp_path: Path) -> None:
    many = MOST_NOTES + 3
    lines = [line(n).replace(",9", f",{n}") for n in range(1, many + 1)]
    report = import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT).report
    assert (len(report.notes), report.note_count) == (MOST_NOTES, many)
    assert {note.line - note.record_number for note in report.notes} == {1}
    assert "3 more notes are not listed" in render_html(report)
    assert "1 803 more are in the full report" in render_text(report)


@pytest.mark.long
def test_what_was_written_over_is_noted_before_any_number_of_values(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Each value that a reference names in vain has a note, here of a kind that stands first."""
    head = "TenantsId,PaymentActionsId,Name,RedirectUrl\n"
    folder, other = tmp_path / "in", tmp_path / "gateways.csv"
    other.write_text(f"{head}7,1,card,a\n")
    import_delivery(workspace, [str(other)], replace(DEFAULT, feed="bank"))
    lines = [line(n).replace(",9", f",{n}") for n in range(1, 4)]
    paths = [write(folder / "payments.csv", *lines), str(folder / "gateways.csv")]
    (folder / "gateways.csv").write_text(f"{head}7,1,card,b\n")
    batch = import_delivery(workspace, paths, DEFAULT).batch.id
    with workspace.database.connect() as connection:
        noted = [(one.record, one.code, one.value) for one in notes(connection, batch, 2)]
    assert noted == [("payment_gateway", "OtherFeed", "bank"), ("payment", "ReferenceMissing", "1")]


@pytest.mark.long
def test_bytes_that_another_feed_took_are_told_as_far_as_that_is_shown(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1))

    def told(feed: str, tenant: int | None) -> list[str]:
        ended = import_delivery(workspace, [path], replace(DEFAULT, feed=feed, tenant=tenant))
        return [one.partition(", and they are taken once more.")[0] for one in ended.messages]

    assert told("one", None) == []
    assert told("two", None) == ["a.csv: batch 1 took these bytes in feed one as a.csv"]
    # Who is bound to a tenant is told nothing of batches that are not.
    unshown = "a.csv: these bytes were taken in another feed (not shown)"
    assert told("three", 7) == [unshown]
    assert told("four", 7) == ["a.csv: batch 3 took these bytes in feed three as a.csv"]
    for batch in (4, 3, 2, 1):
        undo_batch(workspace, batch, by=None, reason="test")
    assert told("five", None) == []
    # A run that goes on with a batch says it too: the one that took it may have died before.
    for _ in range(2):
        terms = StatedTerms(replace(DEFAULT, feed="nine"))
        *_, again = receive(workspace, [path], terms).messages
        assert again.startswith("a.csv: batch 5 took these bytes in feed five as a.csv")
    # Nothing is there twice: of no records, or of what is only compared.
    for feed, compare_only in (("six", True), ("seven", False)):
        profile = replace(DEFAULT, feed=feed, compare_only=compare_only)
        for name in ("none.csv", "b.csv"):
            delivered = write(tmp_path / name, *([line(2)] if name == "b.csv" else []))
            assert import_delivery(workspace, [delivered], profile).messages == ()
    assert import_delivery(workspace, [write(tmp_path / "none.csv")], DEFAULT).messages == ()
    # Nor is what is refused.
    delivered = write(tmp_path / "other" / "b.csv", line(2))
    (tmp_path / "other" / "manifest.json").write_text('{"files": {"b.csv": {"bytes": 1}}}')
    refused = import_delivery(workspace, [str(tmp_path / "other")], replace(DEFAULT, feed="eight"))
    assert (refused.report.files[0].refused is None, refused.messages) == (False, ())
