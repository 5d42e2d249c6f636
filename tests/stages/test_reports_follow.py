"""The kept report of a batch says what the batch is, whatever is done with it, or with another."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, BatchUnknown, ReconError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.batch_reports import note_removed
from connectors.postgres.database import open_database
from connectors.settings import Limits
from flows.report.text import render_text
from flows.stages.finish import build_report
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    push_batch,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch
from flows.stages.upkeep.archive import notes, verify_archive
from flows.stages.workspace import Workspace
from tests.faults.waits import until
from tests.push.conftest import Copy, written_over
from tests.push.conftest import copied as copied  # noqa: PLC0414 -- the fixture.
from tests.recon import run
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write

SAID: dict[str, Any] = {"by": "ann", "reason": "agreed"}
TIGHT = replace(DEFAULT, budget_errors=0)


def told(workspace: Workspace) -> dict[int, str]:
    """The verdict of each kept report, which the trail vouches for: a rerun says the same."""
    assert not verify_archive(workspace).mismatches
    with workspace.database.connect() as connection:
        batches = [one for (one,) in connection.execute("SELECT id FROM batch ORDER BY id")]
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


@pytest.mark.long
def test_the_report_of_the_last_number_there_is_is_no_stranger(
    workspace: Workspace, tmp_path: Path
) -> None:
    with workspace.database.connect() as connection:
        last = "SELECT setval(pg_get_serial_sequence('recon.batch', 'id'), 2147483646)"
        connection.execute(last)
        connection.commit()
    path = write(tmp_path / "a.csv", line(1))
    assert import_delivery(workspace, [path], DEFAULT).batch.id == 2**31 - 1
    assert verify_archive(workspace).strange == ()
    shutil.rmtree(workspace.settings.reports / f"batch-{2**31 - 1}")
    beyond = workspace.settings.reports / f"batch-{2**31}"
    beyond.mkdir()
    (beyond / "report.txt").touch()
    assert verify_archive(workspace).strange == (f"reports/{beyond.name}",)


@pytest.mark.long
def test_a_report_says_that_its_batch_was_taken_back(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(2), line(3, amount="x"))], TIGHT)
    assert verdicts(workspace) == {1: "COMPLETE", 2: "HELD"}
    discard_batch(workspace, 2, **SAID)
    undo_batch(workspace, 1, **SAID)
    assert verdicts(workspace) == {1: "UNDONE", 2: "DISCARDED"}
    for batch, meaning in ((1, "What was applied has been taken back."), (2, "anything.")):
        assert f"{meaning} By ann: agreed." in page(workspace, batch)
        assert "RESIDUAL" not in page(workspace, batch)
    import_delivery(workspace, [write(tmp_path / "c.csv", line(1), line(2))], DEFAULT)
    assert verdicts(workspace)[1] == "UNDONE"


def corrected_in(workspace: Workspace, tmp_path: Path, most: int = 1) -> Path:
    """Batch 1 with two rows in error, and the file that repairs so many of them."""
    lines = line(1), line(2, amount="x"), line(3, amount="x")
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace(",x,", ",7,", most))
    return rejects


@pytest.mark.long
def test_a_report_follows_what_corrects_its_rows(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [str(corrected_in(workspace, tmp_path, 2))], DEFAULT, corrects=1)
    assert verdicts(workspace) == {1: "COMPLETE", 2: "COMPLETE"}
    undo_batch(workspace, 2, **SAID)
    assert verdicts(workspace) == {1: "COMPLETE WITH ERRORS", 2: "UNDONE"}


@pytest.mark.long
@pytest.mark.parametrize("amount", ["7", "z"], ids=["repaired", "in error again"])
def test_a_report_follows_another_correction_of_the_same_row(
    workspace: Workspace, tmp_path: Path, amount: str
) -> None:
    """It told of a row to correct that another batch had repaired, or had in error again."""
    rejects = corrected_in(workspace, tmp_path)
    rejects.write_text(rejects.read_text().replace(",7,", ",y,"))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    before = told(workspace)[2]
    assert "Correct what is listed under rejects" in before
    rejects.write_text(re.sub(",[xy],", f",{amount},", rejects.read_text()))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert "What is listed under rejects was delivered again" in told(workspace)[2]
    undo_batch(workspace, 3, **SAID)
    assert told(workspace)[2] == before


@pytest.mark.long
def test_a_correction_writes_no_report_of_another_one_that_is_complete(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Else each of many corrections of a delivery would recount all the others, and say so."""
    lines = [line(number, amount="x") for number in range(1, 6)]
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    top, *each = rejects.read_text().splitlines(keepends=True)
    # The first one repairs nothing, and counts with the last one from then on.
    for row in (each[0].replace(",x,", ",y,"), *(one.replace(",x,", ",7,") for one in each[::-1])):
        rejects.write_text(top + row)
        import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert set(verdicts(workspace).values()) == {"COMPLETE", "COMPLETE WITH ERRORS"}
    written = "SELECT batch_id, count(*)::int FROM event WHERE what = 'report written' GROUP BY 1"
    assert sorted(rows(written)) == [(1, 7), (2, 6), *((one, 1) for one in range(3, 8))]


LOCKED = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"


@pytest.mark.long
def test_a_run_that_counts_meanwhile_writes_no_older_report(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """It had counted before a correction was undone, and wrote that over the report of the undo."""
    import_delivery(workspace, [str(corrected_in(workspace, tmp_path, 2))], DEFAULT, corrects=1)
    ((database,),) = rows("SELECT current_database()")
    codes = tmp_path / "codes.csv"
    os.mkfifo(codes)
    slow = replace(workspace, settings=replace(workspace.settings, currencies=codes))
    with ThreadPoolExecutor(2) as pool:
        rerun = pool.submit(run_batch, slow, 1)
        with codes.open("w") as pipe:  # Opens once the rerun reads it, in the middle of its count.
            undo = pool.submit(undo_batch, workspace, 2, **SAID)
            until(lambda: undo.done() or bool(rows(LOCKED, [database])))
            pipe.write("CurrenciesId,Code\n")
        rerun.result()
        undo.result()
    assert verdicts(workspace) == {1: "COMPLETE WITH ERRORS", 2: "UNDONE"}


@pytest.mark.long
def test_a_run_that_is_frozen_in_the_middle_of_its_count_keeps_no_undo_waiting(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [str(corrected_in(workspace, tmp_path, 2))], DEFAULT, corrects=1)
    codes = tmp_path / "codes.csv"
    os.mkfifo(codes)
    settings = replace(workspace.settings, currencies=codes, limits=Limits(lease_seconds=1))
    frozen = Workspace(settings, open_database(settings))
    with ThreadPoolExecutor(2) as pool:
        rerun = pool.submit(run_batch, frozen, 1)
        with codes.open("w") as pipe:
            undo = pool.submit(undo_batch, workspace, 2, **SAID)
            try:
                until(undo.done)
            finally:
                codes.unlink()
                codes.write_text("CurrenciesId,Code\n")
                pipe.write("CurrenciesId,Code\n")
        # Its session was ended, so it counts once more.
        rerun.result()
        undo.result()
    assert verdicts(workspace) == {1: "COMPLETE WITH ERRORS", 2: "UNDONE"}


@pytest.mark.long
def test_a_report_follows_what_an_undo_lets_be_sent_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = written_over(workspace, server.url, tmp_path)
        undo_batch(place, 2, **SAID)
        said = " ".join(told(place)[2].split())
        assert "The service keeps what it was sent: 1 of " in said
        push_batch(place, 1)
        told(place)


COMMANDS: dict[str, tuple[str, ...]] = {
    "undo": ("undo", "2", "--reason", "agreed", "--by", "ann"),
    "discard": ("discard", "2", "--reason", "agreed", "--by", "ann"),
    "import": ("import", "REJECTS", "--corrects", "1"),
}
DEATHS = {
    f"{command}, {file}:{number}": (command, f"{file}:{number}")
    for command in COMMANDS
    for file in ("file-written", "file-renamed")
    for number in range(1, 7)
}
"""Three files of its own report, and three of that of the batch that it corrects."""


@pytest.mark.long
@pytest.mark.parametrize("case", DEATHS)
def test_the_same_command_writes_what_a_run_that_died_left_unwritten(
    workspace: Workspace, tmp_path: Path, case: str
) -> None:
    command, point = DEATHS[case]
    rejects = corrected_in(workspace, tmp_path)
    if command != "import":
        # One row is still in error: over a budget of none it is held.
        terms = TIGHT if command == "discard" else DEFAULT
        import_delivery(workspace, [str(rejects)], terms, corrects=1)
    place = str(workspace.settings.database_url), workspace.settings.home
    words = [str(rejects) if word == "REJECTS" else word for word in COMMANDS[command]]
    assert run(*place, *words, CRASH_AT=point).returncode < 0
    again = run(*place, *words)
    assert again.returncode == int(command == "import"), again.stderr
    told(workspace)


@pytest.mark.long
def test_an_undo_that_died_writes_the_reports_of_those_it_reopened(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        written_over(workspace, server.url, tmp_path)
    undo = (str(workspace.settings.database_url), workspace.settings.home, "undo", "2")
    assert run(*undo, "--reason", "agreed", CRASH_AT="file-written:4").returncode < 0
    (left,) = verify_archive(workspace).mismatches
    assert (left.path, left.batches) == ("reports/batch-1", (1,))
    again = run(*undo, "--reason", "agreed")
    assert (again.returncode, again.stdout.split(".")[0]) == (0, "Batch 2 is undone: 1 restored")
    told(workspace)


def test_an_undo_that_could_not_write_a_report_is_finished_by_the_same_command(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [str(corrected_in(workspace, tmp_path))], DEFAULT, corrects=1)
    folder = workspace.settings.reports / "batch-1"
    folder.rename(tmp_path / "aside")
    folder.write_text("in the way")
    with pytest.raises(ReconError, match="run the command again"):
        undo_batch(workspace, 2, **SAID)
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    (left,) = verify_archive(workspace).mismatches
    assert (left.path, left.batches) == ("reports/batch-1", (1,))
    assert undo_batch(workspace, 2, **SAID) == {"deleted": 1, "restored": 0}
    told(workspace)
    with pytest.raises(BatchStateError, match="undone already"):
        undo_batch(workspace, 2, **SAID)


def test_a_report_that_a_run_died_over_is_named(workspace: Workspace, tmp_path: Path) -> None:
    """Nobody can tell whether it was altered; it is no earlier version's."""
    path, place = write(tmp_path / "a.csv", line(1)), workspace.settings.home
    url = str(workspace.settings.database_url)
    assert run(url, place, "import", path, CRASH_AT="file-renamed").returncode < 0
    verified = run(url, place, "archive", "verify")
    assert verified.returncode == 1, verified.stdout
    assert "reports/batch-1/report.html: the run that wrote it ended" in verified.stdout
    assert "`recon rerun 1` goes on with batch 1" in " ".join(verified.stdout.split())
    assert "earlier version" not in verified.stdout
    run_batch(workspace, 1)
    assert verdicts(workspace) == {1: "COMPLETE"}


@pytest.mark.long
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


def test_no_report_is_named_that_is_not_there(workspace: Workspace, tmp_path: Path) -> None:
    """As after housekeeping, or in a RECON_HOME that has lost it."""
    path = write(tmp_path / "a.csv", line(1))
    home, page = workspace.settings.home, workspace.settings.reports / "batch-1" / "report.html"
    for removed, command, there in (
        (False, ("import", path), f"report: {page}"),
        (True, ("import", path), "report: none is kept; `recon rerun 1` writes it again"),
        (False, ("rerun", "1"), f"report: {page}"),
    ):
        if removed:
            shutil.rmtree(page.parent)
        told = run(str(workspace.settings.database_url), home, *command)
        assert there in told.stdout.splitlines()
    assert page.is_file()


def test_a_release_whose_report_could_not_be_written_says_how_to_go_on(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It is released all the same, and nobody releases it a second time."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, amount="x"), line(2))], TIGHT)
    blocked = workspace.settings.reports / "batch-1" / "report.html"
    blocked.unlink()
    blocked.mkdir()
    with pytest.raises(ReconError, match="could not be written"):
        release_batch(workspace, 1, **SAID)
    with pytest.raises(BatchStateError, match=r"not held; .* `recon rerun 1`"):
        release_batch(workspace, 1, **SAID)
    blocked.rmdir()
    assert run_batch(workspace, 1).batch.state == "complete_with_errors"
    assert not verify_archive(workspace).mismatches


def test_no_other_batch_has_the_number_of_one_that_a_restored_database_lost(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    """Its report stays, and a file of its rows to correct is no repair of another batch's rows."""
    restored = copied(workspace)
    import_delivery(workspace, [write(tmp_path / "1.csv", line(1, amount="x"))], DEFAULT)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace(",x,", ",7,"))
    folder = workspace.settings.reports / "batch-1"
    lost = {path.name: path.read_bytes() for path in folder.iterdir()}
    verified = verify_archive(restored)
    assert (verified.lost, verified.unhashed, verified.mismatches) == (("reports/batch-1",), 0, ())
    assert any("reports/batch-1: the report of a batch" in note for note in notes(verified))

    other = write(tmp_path / "2.csv", line(2, amount="y"))
    assert import_delivery(restored, [other], DEFAULT).batch.id == 2
    with pytest.raises(BatchUnknown, match="no batch 1"):
        import_delivery(restored, [str(rejects)], DEFAULT, corrects=1)
    assert "2.csv" in page(restored, 2)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == lost
    assert verify_archive(restored).lost == ("reports/batch-1",)


def test_a_report_that_is_brought_back_after_its_number_was_given_again_is_kept(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    """The batch was opened from a home that did not have it."""
    restored = copied(workspace)
    import_delivery(workspace, [write(tmp_path / "1.csv", line(1))], DEFAULT)
    reports = workspace.settings.reports
    lost = {path.name: path.read_bytes() for path in (reports / "batch-1").iterdir()}
    away = reports.rename(tmp_path / "away")
    import_delivery(restored, [write(tmp_path / "2.csv", line(2))], DEFAULT)
    shutil.rmtree(reports)
    away.rename(reports)

    run_batch(restored, 1)
    assert "2.csv" in page(restored, 1)
    (aside,) = reports.glob("batch-1-opened-*")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == lost
    verified = verify_archive(restored)
    assert (verified.lost, verified.unhashed, verified.mismatches) == ((), 0, ())
    # Its own report is written over by a rerun, as ever; so is one whose manifest nobody can read.
    run_batch(restored, 1)
    (reports / "batch-1" / "manifest.json").write_text("[" * 100_000)
    run_batch(restored, 1)
    assert len([*reports.glob("batch-1*")]) == 2
