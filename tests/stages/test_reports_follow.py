"""The kept report of a batch says what the batch is, whatever is done with it, or with another."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from connectors.files.profile import DEFAULT
from connectors.postgres import ledger
from connectors.postgres.batch_reports import note_removed
from flows.report.text import render_text
from flows.stages.archive import notes, verify_archive
from flows.stages.finish import build_report
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import discard_batch, import_delivery, push_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.push.conftest import Copy, deliver, towards
from tests.push.conftest import copied as copied  # noqa: PLC0414 -- the fixture.
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write

SAID: dict[str, Any] = {"by": "ann", "reason": "agreed"}
TIGHT = replace(DEFAULT, budget_errors=0)


def told(workspace: Workspace) -> dict[int, str]:
    """The verdict of each kept report, which the trail vouches for: a rerun says the same."""
    assert not verify_archive(workspace).mismatches
    with workspace.database.connect() as connection:
        batches = sorted(one.id for one in ledger.list_batches(connection, limit=9))
        for batch in batches:
            kept = page(workspace, batch)
            assert kept == render_text(build_report(workspace, connection, batch))
    return {batch: page(workspace, batch) for batch in batches}


def page(workspace: Workspace, batch: int) -> str:
    return (workspace.settings.reports / f"batch-{batch}" / "report.txt").read_text()


def verdicts(workspace: Workspace) -> dict[int, str]:
    found = {}
    for batch, text in told(workspace).items():
        (found[batch],) = re.findall(r"^Verdict +(.+?) *$", text, re.MULTILINE)
    return found


def test_a_report_says_that_its_batch_was_taken_back(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(2), line(3, amount="x"))], TIGHT)
    assert verdicts(workspace) == {1: "COMPLETE", 2: "HELD"}
    discard_batch(workspace, 2, **SAID)
    undo_batch(workspace, 1, **SAID)
    assert verdicts(workspace) == {1: "UNDONE", 2: "DISCARDED"}
    for batch, meaning in ((1, "What was applied has been taken back."), (2, "anything.")):
        assert f"{meaning} By ann: agreed." in page(workspace, batch)


def test_a_report_follows_what_corrects_its_rows(workspace: Workspace, tmp_path: Path) -> None:
    lines = line(1), line(2, amount="x"), line(3, amount="x")
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace(",x,", ",7,"))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert verdicts(workspace) == {1: "COMPLETE", 2: "COMPLETE"}
    undo_batch(workspace, 2, **SAID)
    assert verdicts(workspace) == {1: "COMPLETE WITH ERRORS", 2: "UNDONE"}


def test_a_report_follows_what_an_undo_lets_be_sent_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2)))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2)))
        undo_batch(place, 2, **SAID)
        said = " ".join(told(place)[2].split())
        assert "The service keeps what it was sent: 1 of " in said
        push_batch(place, 1)
        told(place)


def test_a_report_that_was_removed_stays_so(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, amount="x"))], DEFAULT)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    with workspace.database.connect() as connection:
        note_removed(connection, 1)
    shutil.rmtree(workspace.settings.reports / "batch-1")
    rejects.write_text(rejects.read_text().replace(",x,", ",7,"))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert not (workspace.settings.reports / "batch-1").exists()
    assert not verify_archive(workspace).mismatches


def test_the_report_of_a_batch_that_a_restored_database_lost_is_kept(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    """The next batch is given the same number; its report is written beside the one of before."""

    def bring(place: Workspace, number: int) -> None:
        import_delivery(place, [write(tmp_path / f"{number}.csv", line(number))], DEFAULT)

    bring(workspace, 1)
    restored = copied(workspace)
    bring(workspace, 2)
    folder = workspace.settings.reports / "batch-2"
    lost = {path.name: path.read_bytes() for path in folder.iterdir()}
    verified = verify_archive(restored)
    assert (verified.lost, verified.unhashed, verified.mismatches) == (("reports/batch-2",), 0, ())
    assert any("reports/batch-2: the report of a batch" in note for note in notes(verified))

    bring(restored, 3)
    assert "3.csv" in page(restored, 2)
    (aside,) = workspace.settings.reports.glob("batch-2-opened-*")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == lost
    verified = verify_archive(restored)
    assert (verified.lost, verified.unhashed, verified.mismatches) == ((), 0, ())
    # Its own report is written over by a rerun, as ever.
    run_batch(restored, 2)
    assert len([*workspace.settings.reports.glob("batch-2*")]) == 2
