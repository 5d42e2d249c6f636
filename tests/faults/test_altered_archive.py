"""A kept file that is not what was delivered: noticed before a value of it is used, everywhere."""

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import polars as pl
import pytest

from connectors.errors import CorrectionError, EvidenceBroken
from connectors.files.archived import archive
from connectors.files.profiles.profile import DEFAULT
from flows.stages import finish, receive
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.texts import RowTexts
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep import archive as stages_archive
from flows.stages.upkeep import retention
from flows.stages.upkeep.archive import VerifiedArchive, notes, remedy, verify_archive
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests import recon as processes
from tests.stages.payments import HEADER, line, write

Recon = Callable[..., "CompletedProcess[str]"]
BATCH_ROWS = "BatchId,Data,HasError,Merged\n5,1,false,true\n5,2,false,true\n"
OTHER = "\n".join([HEADER, line(8, amount="99.00"), ""])


@pytest.fixture
def recon(workspace: Workspace) -> Recon:
    def ask(*arguments: str, **environment: str) -> "CompletedProcess[str]":
        url, home = workspace.settings.database_url, workspace.settings.home
        assert url is not None
        return processes.run(url, home, *arguments, **environment)

    return ask


def kept(workspace: Workspace) -> Path:
    """The one content in the archive."""
    (path,) = workspace.settings.archive.glob("??/*.csv")
    return path


def altered(path: Path) -> None:
    """The amount of the second record, one digit, same size and time."""
    status = path.stat()
    text = path.read_bytes()
    path.write_bytes(text.replace(b"20.50", b"29.50", 1))
    assert path.read_bytes() != text
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(line(3).encode() + b"\n")


def swapped(path: Path) -> None:
    path.write_text(OTHER)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def linked(path: Path) -> None:
    """The right bytes, behind a link that anybody may turn to others."""
    there = path.with_name("elsewhere")
    path.rename(there)
    path.symlink_to(there)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").touch()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


FAULTS: dict[str, Callable[[Path], object]] = {
    "altered": altered,
    "cut": cut,
    "longer": longer,
    "swapped": swapped,
    "emptied": emptied,
    "removed": Path.unlink,
    "link": linked,
    "folder": folder,
    "pipe": pipe,
}


def deliver(folder: Path) -> str:
    """Two good rows, and one with an error."""
    return write(folder / "payments.csv", line(1), line(2, amount="20.50"), line(3, amount="x"))


USES: dict[str, tuple[str, ...]] = {
    "rerun": ("rerun", "1"),
    "row": ("row", "1", "payments.csv", "--record", "2"),
    "rejects": ("rejects", "1", "--out", "{out}"),
}


@pytest.fixture(params=["text", "reference"])
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """A feed that keeps the text of clean rows, and one that reads it from the archive."""
    path = tmp_path / "feed.toml"
    path.write_text(f'feed = "payments"\nkeep = "{request.param}"\n')
    return ["--profile", str(path)]


@pytest.mark.long(but=("text-rejects",))
@pytest.mark.parametrize("use", USES)
def test_an_altered_byte_is_noticed_by_every_command(
    workspace: Workspace, recon: Recon, tmp_path: Path, profile: list[str], use: str
) -> None:
    assert recon("import", deliver(tmp_path), *profile).returncode == 1
    command = [part.format(out=tmp_path / "out") for part in USES[use]]
    before = recon(*command)
    assert before.returncode in (0, 1), before.stderr
    altered(kept(workspace))
    after = recon(*command)
    assert after.returncode == 2, after.stdout
    assert "payments.csv of batch 1" in after.stderr
    assert "Import the same file again" in after.stderr
    assert "Traceback" not in after.stderr
    assert "29.50" not in after.stdout + after.stderr
    again = recon("import", deliver(tmp_path), *profile)
    assert "is not what was delivered" not in again.stderr
    assert "was not what was delivered" in again.stdout + again.stderr
    assert recon(*command).returncode == before.returncode


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_staged_of_what_is_not_as_delivered(
    workspace: Workspace, recon: Recon, rows: Any, tmp_path: Path, fault: str
) -> None:
    path = deliver(tmp_path)
    assert recon("import", path, CRASH_AT="copy").returncode < 0
    FAULTS[fault](kept(workspace))
    for _ in range(2):
        after = recon("rerun", "1")
        assert after.returncode == 2, after.stdout
        assert "payments.csv of batch 1" in after.stderr
        assert "Traceback" not in after.stderr
    assert rows("SELECT count(*) FROM staged_payment") == [(0,)]
    # The good bytes put it right, and the batch goes on to where it would have been.
    again = recon("import", path)
    assert again.returncode == 1, again.stderr
    assert rows('SELECT "Id", "PaidAmount" FROM payment ORDER BY 1') == [(1, 10.5), (2, 20.5)]
    found = rows("SELECT batch_id, detail FROM event WHERE what = 'kept content put back'")
    assert [(batch, json.loads(detail)["name"]) for batch, detail in found] == [(1, "payments.csv")]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_keeping_puts_good_bytes_in_the_place_of_others(
    workspace: Workspace, rows: Any, tmp_path: Path, fault: str
) -> None:
    """Another feed delivers the same bytes: what is imported is what it delivered."""
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    good = kept(workspace).read_bytes()
    FAULTS[fault](kept(workspace))
    second = import_delivery(workspace, [deliver(tmp_path)], replace(DEFAULT, feed="second"))
    assert any("was not what was delivered" in one for one in second.messages)
    assert kept(workspace).read_bytes() == good
    assert rows('SELECT "Id", "PaidAmount" FROM payment ORDER BY 1') == [(1, 10.5), (2, 20.5)]
    put_back = "SELECT 1 FROM event WHERE what = 'kept content put back'"
    assert len(rows(put_back)) == 1
    copy = kept(workspace)
    other = import_delivery(workspace, [write(tmp_path / "other.csv", line(7))], DEFAULT)
    FAULTS[fault](copy)
    with pytest.raises(CorrectionError, match="that batch corrects none"):
        import_delivery(workspace, [deliver(tmp_path)], DEFAULT, corrects=other.batch.id)
    assert copy.read_bytes() == good
    assert len(rows(put_back)) == 2, "also where nothing is imported"


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_the_whole_archive_is_hashed_again(
    workspace: Workspace, tmp_path: Path, fault: str
) -> None:
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    path = kept(workspace)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(7))], DEFAULT)
    assert verify_archive(workspace).mismatches == ()
    FAULTS[fault](path)
    found = verify_archive(workspace)
    assert found.contents == 2
    mine = [one.files for one in found.mismatches if one.batches]
    assert mine == [("payments.csv of batch 1",)]


def test_the_commands_that_hash_the_archive_tell_by_their_exit_code(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    commands = (
        ("archive", "verify"),
        ("archive", "verify", "--json"),
        ("housekeeping", "--verify"),
    )
    assert [recon(*command).returncode for command in commands] == [0, 0, 0]
    altered(kept(workspace))
    for command in commands:
        told = recon(*command)
        assert told.returncode == 1
        assert "payments.csv of batch 1" in told.stdout


@pytest.mark.long
@pytest.mark.parametrize("fault", ["altered", "pipe"])
def test_a_reconciliation_says_what_is_not_kept_and_resolves_nothing_on_it(
    workspace: Workspace, recon: Recon, tmp_path: Path, profile: list[str], fault: str
) -> None:
    """It is INCOMPLETE until the same file is delivered again, and then it is as it would be."""

    def states() -> dict[str, str]:
        path = max(workspace.settings.reports.glob("reconciliation-*"))
        found = pl.read_parquet(path / "breaks.parquet").filter(pl.col("code") == "AMOUNT")
        return {key.partition("/")[0]: state for key, state in found.select("key", "state").rows()}

    def set_amounts(amount: str) -> None:
        with workspace.database.connect() as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute('UPDATE payment SET "PaidAmount" = %s', [amount])

    recon("import", deliver(tmp_path), *profile)
    bad = kept(workspace)
    recon("import", write(tmp_path / "other.csv", line(7)), *profile)
    set_amounts("11")
    assert recon("reconcile").returncode == 1
    assert states() == {"1": "NEW", "2": "NEW", "7": "NEW"}
    FAULTS[fault](bad)
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute('UPDATE payment SET "PaidAmount" = 10.5 WHERE "Id" IN (1, 7)')
    after = recon("reconcile")
    assert after.returncode == 1, after.stderr
    assert "Incomplete:" in after.stdout
    assert "payments.csv of batch 1" in after.stdout
    assert "Import the same file again" in after.stdout
    assert "29.50" not in after.stdout + after.stderr
    assert states() == {"1": "NOT_LOOKED_AT", "2": "OPEN"}, (
        "Id 7 is of the other file, and resolved"
    )
    (corrected,) = workspace.settings.reports.glob("reconciliation-2/corrections/*")
    assert [one.partition(":")[0] for one in corrected.read_text().splitlines()[1:]] == ["2"]
    again = recon("import", deliver(tmp_path), *profile)
    assert "was not what was delivered" in again.stdout + again.stderr
    last = recon("reconcile")
    assert "cannot be proven" not in last.stdout
    assert states() == {"2": "OPEN"}, "Id 1 is resolved now"


@pytest.mark.long
@pytest.mark.parametrize("keep", ["text", "reference"])
@pytest.mark.parametrize("fault", ["altered", "removed", "cleared"])
def test_rows_by_reference_that_cannot_be_shown_match_nothing(
    workspace: Workspace, tmp_path: Path, keep: str, fault: str
) -> None:
    """The text of the others is in the database: hashed, and evidence by itself."""

    def told() -> tuple[str, dict[str, int], str]:
        report = reconcile(workspace, Asked(Scope(), date(2026, 1, 31), Rules())).report
        statuses = {one.status: one.rows for one in report.statuses}
        return "\n".join(report.cover.because), statuses, report.cover.verdict

    feed = replace(DEFAULT, keep=keep)
    import_delivery(workspace, [deliver(tmp_path)], feed)
    bad = kept(workspace)
    import_delivery(workspace, [write(tmp_path / "other.csv", line(7))], feed)
    _, whole, _ = told()
    assert whole == {"MATCHED_EXACT": 3, "REJECTED": 1}
    if fault == "cleared":
        later = datetime.now(UTC) + timedelta(days=100)
        sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    else:
        FAULTS[fault](bad)
    because, statuses, verdict = told()
    assert (verdict == "INCOMPLETE") == (fault != "cleared")
    if fault == "cleared" or keep == "text":
        assert statuses == whole, "what housekeeping removed is told of, and its removal as well"
        assert "kept by reference" not in because
        return
    assert statuses == {"MATCHED_EXACT": 1, "REJECTED": 1, "UNPROVEN": 2}
    assert (
        "payments.csv of batch 1, payment: 2 rows are kept by reference to it and prove nothing "
        "(PaidAmount 31.00 in currency 1; DiscountAmount 1.00 in currency 1)"
    ) in because
    import_delivery(workspace, [deliver(tmp_path)], feed)
    assert told()[1] == whole


@pytest.mark.long
@pytest.mark.parametrize("lost", ["altered", "removed", "cleared"])
def test_insert_batch_data_that_cannot_be_read_again_is_not_looked_at(
    workspace: Workspace, recon: Recon, tmp_path: Path, lost: str
) -> None:
    source = tmp_path / "insert_batch_data.csv"
    source.write_text(BATCH_ROWS)
    assert recon("import", str(source)).returncode in (0, 1)
    assert recon("reconcile").returncode in (0, 1)
    path = kept(workspace)
    if lost == "altered":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    else:
        path.unlink()
    if lost == "cleared":
        # Housekeeping of an earlier version did that.
        with workspace.database.connect() as connection:
            connection.execute("UPDATE extract SET cleared_at = now()")
    after = recon("reconcile")
    assert after.returncode == 1, after.stderr
    assert "Incomplete:" in after.stdout
    assert "insert_batch_data.csv of batch 1" in after.stdout


@pytest.mark.long
def test_insert_batch_data_is_reconciled_after_housekeeping_as_before(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    source = tmp_path / "insert_batch_data.csv"
    source.write_text(BATCH_ROWS)
    assert recon("import", str(source)).returncode in (0, 1)
    before = recon("reconcile")
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    after = recon("reconcile")
    assert "Incomplete:" not in after.stdout
    assert after.returncode == before.returncode


@pytest.mark.long
def test_a_report_that_was_changed_is_found(workspace: Workspace, recon: Recon) -> None:
    recon("reconcile")
    assert recon("archive", "verify").returncode == 0
    (page,) = workspace.settings.reports.glob("reconciliation-*/*.html")
    page.write_bytes(page.read_bytes().replace(b"0", b"1", 1))
    told = recon("archive", "verify")
    assert told.returncode == 1
    assert page.name in told.stdout


@pytest.mark.long
def test_what_lies_among_the_reports_and_is_none_of_ours_is_named(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A run that died leaves its folder, so it fails nothing; it could be taken for a report."""
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    reconcile(workspace, Asked(Scope(), date(2026, 7, 1), Rules()))
    reports = workspace.settings.reports
    assert (verify_archive(workspace).strange, reports.is_dir()) == ((), True)
    forged = ("batch-1/final.html", "reconciliation-2/report.html", "report.pdf")
    for name in (*forged, "batch-1/.draft", "batch-1/~$report.html", ".draft"):
        (reports / name).parent.mkdir(exist_ok=True)
        (reports / name).touch()
    found = verify_archive(workspace)
    named = ("reports/batch-1/final.html", "reports/reconciliation-2", "reports/report.pdf")
    assert (found.strange, found.mismatches) == (named, ())
    assert any(", ".join(named) + ": of no report" in note for note in notes(found))


def flipped(path: Path) -> None:
    """One bit of a byte in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.long
@pytest.mark.parametrize("name", ["report.html", "report.txt", "manifest.json"])
def test_the_report_of_a_batch_that_was_changed_is_found(
    workspace: Workspace, rows: Any, tmp_path: Path, name: str
) -> None:
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(7))], DEFAULT)
    found = verify_archive(workspace)
    assert (found.mismatches, found.reports) == ((), 2)
    path = workspace.settings.reports / "batch-1" / name
    good = path.read_bytes()
    for fault in (cut, longer, emptied, flipped, Path.unlink):
        fault(path)
        (one,) = verify_archive(workspace).mismatches
        assert (one.path, one.batches) == (f"reports/batch-1/{name}", (1,))
        assert "recon rerun 1" in remedy(verify_archive(workspace))
        path.write_bytes(good)
    shutil.rmtree(path.parent)
    assert len(verify_archive(workspace).mismatches) == 3
    assert rows("SELECT DISTINCT batch_id FROM event WHERE what = 'report differs'") == [(1,)]
    run_batch(workspace, 1)
    assert path.read_bytes() == good
    assert verify_archive(workspace).mismatches == ()
    # Written once, and once more only where it is another one.
    assert rows("SELECT count(*) FROM event WHERE what = 'report written'") == [(2,)]
    later = datetime.now(UTC) + timedelta(days=1000)
    undo_batch(workspace, 2, by=None, reason="test")
    sweep(workspace, Retention(report_days=1, archive_days=1), now=later, dry_run=False)
    assert not (path.parents[1] / "batch-2").exists()
    assert verify_archive(workspace).mismatches == ()
    assert rows("SELECT batch_id FROM event WHERE what = 'report removed'") == [(2,)]


@pytest.mark.long
@pytest.mark.parametrize("when", ["noted", "written", "written first"])
def test_a_report_that_is_written_again_meanwhile_is_not_said_to_be_altered(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """After the trail was read, or its files are there and the trail says nothing of them yet."""
    found: list[VerifiedArchive] = []
    look = threading.Thread(target=lambda: found.append(verify_archive(workspace)))

    def before(module: Any, name: str, do: Callable[[], object]) -> None:
        step = getattr(module, name)

        def meanwhile(*arguments: Any) -> Any:
            monkeypatch.setattr(module, name, step)
            do()
            return step(*arguments)

        monkeypatch.setattr(module, name, meanwhile)

    def looked_at() -> None:
        look.start()
        # Until it has ended, or waits for the run that writes.
        look.join(3)

    if when == "written first":
        before(finish, "note_written", looked_at)
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    repair = tmp_path / "repair.csv"
    repair.write_text(f"ReconRow,{HEADER}\n1:3,{line(3)}\n")
    if when != "written first":
        import_delivery(workspace, [str(repair)], DEFAULT, corrects=1)
    if when == "noted":
        before(stages_archive, "_altered_reports", lambda: run_batch(workspace, 1))
        look.start()
    elif when == "written":
        before(finish, "note_written", looked_at)
        run_batch(workspace, 1)
    look.join()
    assert found[0].mismatches == ()
    assert found[0].unhashed == 0
    assert rows("SELECT count(*) FROM event WHERE what = 'report differs'") == [(0,)]


@pytest.mark.long
def test_reports_of_an_earlier_version_are_counted_and_fail_nothing(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    """One wrote no hash at all, and a later one none of the manifest."""
    for number in (1, 2, 3):
        import_delivery(workspace, [write(tmp_path / f"{number}.csv", line(number))], DEFAULT)
    assert verify_archive(workspace).unhashed == 0
    hashes = {"report.html": "", "report.txt": ""}
    for name in hashes:
        content = (workspace.settings.reports / "batch-2" / name).read_bytes()
        hashes[name] = hashlib.sha256(content).hexdigest()
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM event WHERE what = 'report written' AND batch_id = 1")
        connection.execute(
            "UPDATE event SET detail = %s WHERE what = 'report written' AND batch_id = 2",
            [json.dumps({"sha256": hashes})],
        )
    flipped(workspace.settings.reports / "batch-1" / "report.txt")
    flipped(workspace.settings.reports / "batch-2" / "manifest.json")
    found = verify_archive(workspace)
    assert (found.mismatches, found.reports, found.unhashed) == ((), 2, 4)
    told = recon("archive", "verify")
    assert told.returncode == 0
    assert "4 files of batch reports have no hash in the audit trail" in told.stdout
    run_batch(workspace, 1)
    assert verify_archive(workspace).unhashed == 1
    flipped(workspace.settings.reports / "batch-2" / "report.txt")
    assert len(verify_archive(workspace).mismatches) == 1


@pytest.mark.long
def test_any_file_of_a_reconciliation_that_is_changed_or_gone_is_found(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    recon("reconcile")
    folder = workspace.settings.reports / "reconciliation-1"
    gone = tmp_path / "gone"
    names = [path.name for path in folder.iterdir() if path.is_file()]
    assert {"report.xlsx", "records.parquet", "manifest.json"} < {*names}
    for name in ["", *names]:
        (folder / name).rename(gone)
        (one,) = verify_archive(workspace).mismatches
        assert one.path == "reports/reconciliation-1"
        gone.rename(folder / name)
    for name in {*names} - {"manifest.json"}:
        flipped(folder / name)
        (one,) = verify_archive(workspace).mismatches
        assert name in one.found
        flipped(folder / name)
    assert verify_archive(workspace).mismatches == ()


@pytest.mark.long
def test_the_only_thing_that_may_be_gone_is_what_housekeeping_removed(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    import_delivery(
        workspace, [write(tmp_path / "a.csv", line(1))], replace(DEFAULT, keep="reference")
    )
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    assert recon("row", "1", "a.csv", "--record", "1").returncode == 0
    assert recon("rerun", "1").returncode == 0
    assert recon("archive", "verify").returncode == 0
    assert recon("reconcile").returncode in (0, 1)


@pytest.mark.long
def test_what_was_delivered_again_after_housekeeping_is_missed_when_it_is_gone(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1))
    import_delivery(workspace, [path], DEFAULT)
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    import_delivery(workspace, [path], DEFAULT)
    assert verify_archive(workspace).mismatches == ()
    kept(workspace).unlink()
    (found,) = verify_archive(workspace).mismatches
    assert (found.found, found.files) == ("it is missing", ("a.csv of batch 1",))
    for command in (("row", "1", "a.csv", "--record", "1"), ("rerun", "1")):
        assert "it is missing" in recon(*command).stderr, command


def removed_by_hand(workspace: Workspace) -> None:
    """The file is taken away, and the mark of housekeeping set, as any account that loads may."""
    kept(workspace).unlink()
    with workspace.database.connect() as connection:
        connection.execute("UPDATE extract SET cleared_at = now() WHERE cleared_at IS NULL")


@pytest.mark.long
@pytest.mark.parametrize("swept", [False, True], ids=["never removed", "removed and kept again"])
def test_the_mark_of_housekeeping_alone_hides_no_loss(
    workspace: Workspace, recon: Recon, tmp_path: Path, swept: bool
) -> None:
    path = write(tmp_path / "a.csv", line(1))
    import_delivery(workspace, [path], DEFAULT)
    if swept:
        later = datetime.now(UTC) + timedelta(days=100)
        sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
        import_delivery(workspace, [path], DEFAULT)
    removed_by_hand(workspace)
    told = recon("archive", "verify")
    assert (told.returncode, "(a.csv of batch 1): it is missing" in told.stdout) == (1, True)
    rerun = recon("rerun", "1")
    assert (rerun.returncode, "it is missing" in rerun.stderr) == (2, True)
    assert "Import the same file again" in rerun.stderr
    assert recon("reconcile").returncode == 1
    report = (workspace.settings.reports / "reconciliation-1/report.txt").read_text()
    assert "is not what was delivered: it is missing" in " ".join(report.split())
    import_delivery(workspace, [path], DEFAULT)
    assert verify_archive(workspace).mismatches == ()


@pytest.mark.long
def test_what_an_earlier_version_removed_cannot_be_checked_and_fails_nothing(
    workspace: Workspace, recon: Recon, rows: Any, tmp_path: Path
) -> None:
    """It only counted contents. What goes once this version has looked is named, or was lost."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    assert verify_archive(workspace).unnamed == 0
    ((detail,),) = rows("SELECT detail FROM event WHERE what = 'content removed' AND batch_id = 1")
    assert len(json.loads(detail)["sha256"]) == 64
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "DELETE FROM event WHERE what IN ('content removed', 'archive verified')"
        )
        connection.execute("UPDATE event SET detail = NULL WHERE what LIKE 'housekeeping%'")
    for _ in range(2):
        told = recon("archive", "verify")
        assert told.returncode == 0
        assert "1 content that housekeeping of an earlier version may have removed" in told.stdout
    assert recon("rerun", "1").returncode == 0
    import_delivery(workspace, [write(tmp_path / "b.csv", line(2))], DEFAULT)
    removed_by_hand(workspace)
    (found,) = verify_archive(workspace).mismatches
    assert found.files == ("b.csv of batch 2",)


def is_there(workspace: Workspace) -> bool:
    """Whether the one content is kept, and nobody says that it was removed."""
    with workspace.database.connect() as connection:
        told = connection.execute("SELECT bool_or(cleared_at IS NOT NULL) FROM extract").fetchone()
    return kept(workspace).exists() and told == (False,)


@pytest.mark.long
@pytest.mark.parametrize("delivered", ["found", "held"])
def test_what_is_delivered_while_housekeeping_is_at_work_stays(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered: str
) -> None:
    """Between finding a content that nobody needs and removing it, the same bytes are delivered."""
    path = write(tmp_path / "a.csv", line(1))
    import_delivery(workspace, [path], DEFAULT)
    os.utime(kept(workspace), (0, 0))
    name = {"found": "_removed", "held": "hold_archive"}[delivered]
    remove = getattr(retention, name)

    def meanwhile(*arguments: Any) -> Any:
        # The delivery lets go of the archive before housekeeping takes it.
        import_delivery(workspace, [path], DEFAULT)
        return remove(*arguments)

    monkeypatch.setattr(retention, name, meanwhile)
    later = datetime.now(UTC) + timedelta(days=1)
    swept = sweep(workspace, Retention(archive_days=1), now=later, dry_run=False)
    assert [one.number for one in swept if one.what == retention.CONTENTS] == [0]
    assert is_there(workspace)


@pytest.mark.long
@pytest.mark.parametrize("swept", ["difference", "find_extracts"])
def test_what_is_removed_while_it_is_delivered_is_kept_anew(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swept: str
) -> None:
    """Housekeeping comes before the kept copy is looked at, or while it is."""
    path = write(tmp_path / "a.csv", line(1))
    import_delivery(workspace, [path], DEFAULT)
    os.utime(kept(workspace), (0, 0))
    module = {"difference": archive, "find_extracts": receive}[swept]
    look = getattr(module, swept)

    def meanwhile(*arguments: Any) -> Any:
        later = datetime.now(UTC) + timedelta(days=1)
        sweep(workspace, Retention(archive_days=1), now=later, dry_run=False)
        return look(*arguments)

    monkeypatch.setattr(module, swept, meanwhile)
    import_delivery(workspace, [path], DEFAULT)
    assert is_there(workspace)
    assert verify_archive(workspace).mismatches == ()


def test_an_undo_uses_nothing_of_it_and_says_so(
    workspace: Workspace, recon: Recon, rows: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [deliver(tmp_path)], DEFAULT)
    altered(kept(workspace))
    told = recon("undo", "1", "--reason", "test")
    assert told.returncode == 1
    assert "payments.csv of batch 1" in told.stdout
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    ((detail,),) = rows("SELECT detail FROM event WHERE what = 'undo'")
    assert "not what was delivered" in json.loads(detail)["kept_files"][0]


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("recorded", [True, False])
def test_every_byte_of_a_file_of_pieces_is_proven(
    workspace: Workspace, tmp_path: Path, encoding: str, recorded: bool
) -> None:
    """Pieces of a MiB, with hashes of the ledger or, of an earlier version, of the whole."""
    path = tmp_path / "payments.csv"
    lines = [line(number) for number in range(1, 30_001)]
    path.write_bytes("\n".join([HEADER, *lines, ""]).encode(encoding))
    batch = import_delivery(workspace, [str(path)], replace(DEFAULT, keep="reference")).batch.id
    with workspace.database.connect() as connection:
        if not recorded:
            connection.execute("UPDATE extract SET pieces = NULL")
        place = connection.execute(
            "SELECT extract_id, byte_start, byte_end FROM staged_row WHERE record_number = 29999"
        ).fetchone()
        assert place is not None
        assert RowTexts(workspace, connection, [batch]).at(*place) == lines[29_998]
        file = kept(workspace)
        content = bytearray(file.read_bytes())
        assert len(content) > 2 << 20 or encoding != "utf-16"
        content[-40] ^= 1
        file.write_bytes(content)
        with pytest.raises(EvidenceBroken, match=r"payments\.csv of batch 1"):
            RowTexts(workspace, connection, [batch]).at(*place)


def test_verifying_says_which_file_nobody_knows(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    archive = workspace.settings.archive
    (archive / "removed.jsonl").touch()  # What the archive itself writes there.
    places = (kept(workspace).parent, archive, archive / "more", archive / kept(workspace).stem)
    for folder in places:
        folder.mkdir(exist_ok=True)
        stranger = folder / "note.txt"
        stranger.touch()
        found = verify_archive(workspace)
        (one,) = found.mismatches
        assert one.path == str(stranger.relative_to(workspace.settings.home))
        assert "look at it and remove it" in remedy(found)
        stranger.unlink()
    shutil.rmtree(workspace.settings.archive)
    (found,) = verify_archive(workspace).mismatches
    assert found.found == "it is missing"


@pytest.mark.long
def test_what_comes_and_goes_while_the_archive_is_hashed_is_no_mismatch(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It may take an hour: deliveries are taken in meanwhile, and housekeeping removes contents."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)

    def meanwhile(_: str, done: int, total: int) -> None:
        if done == 0 and total:
            later = datetime.now(UTC) + timedelta(days=100)
            sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
            import_delivery(workspace, [write(tmp_path / "b.csv", line(2))], DEFAULT)

    found = verify_archive(replace(workspace, progress=meanwhile))
    assert found.mismatches == ()
    assert len(list(workspace.settings.archive.glob("??/*.csv"))) == 1
