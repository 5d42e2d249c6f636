"""Housekeeping removes what no batch needs, and nothing that one still does."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import DatabaseUnusable
from connectors.files.disk.spool import spool_path
from connectors.files.incoming.inbox import Inbox, Waiting
from connectors.files.incoming.uploads import Upload, uploads_folder
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches import retention
from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.jobs import order_job
from flows.commands import inbox as commands
from flows.report.next_step import next_step
from flows.stages.inbox import Started, Watch, import_here
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import discard_batch, import_delivery, push_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep import retention as sweeping
from flows.stages.upkeep.archive import remedy, verify_archive
from flows.stages.upkeep.retention import Retention, Swept, not_removed, sweep
from flows.stages.workspace import Workspace
from schemas.jobs import JobKind
from tests.conftest import Databases, workspace_of
from tests.faults.test_full_disks import small_disk
from tests.governance.runs import found, reconcile
from tests.push.conftest import towards
from tests.recon import run
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import HEADER, line, write

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=100)
RETENTION = Retention(archive_days=90, report_days=90, result_days=30)


@pytest.fixture
def swept(workspace: Workspace) -> Callable[..., dict[str, int]]:
    def run(now: datetime = LATER, **terms: Any) -> dict[str, int]:
        found = sweep(workspace, RETENTION, now=now, dry_run=False, **terms)
        return {one.what: one.number for one in found}

    return run


def contents(workspace: Workspace) -> int:
    return len(list(workspace.settings.archive.glob("??/*.csv")))


def reports(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.settings.reports.iterdir())


def take(workspace: Workspace, path: Path, *lines: str, **terms: Any) -> Any:
    corrects = terms.pop("corrects", None)
    profile = replace(DEFAULT, **terms)
    return import_delivery(workspace, [write(path, *lines)], profile, corrects=corrects).batch


def crashed(workspace: Workspace, path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("flows.stages.sequence.check", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            take(workspace, path, line(1))


def undone(workspace: Workspace, path: Path) -> None:
    undo_batch(workspace, take(workspace, path, line(1)).id, by=None, reason="test")


def corrected(workspace: Workspace, path: Path) -> None:
    batch = take(workspace, path, line(1), line(2, amount="x"))
    repair = path.with_name("repair.csv")
    repair.write_text(f"ReconRow,{HEADER}\n1:2,{line(2)}\n")
    import_delivery(workspace, [str(repair)], DEFAULT, corrects=batch.id)


def tried_twice(workspace: Workspace, path: Path, *amounts: str) -> None:
    """A row in error, and a correction of the same batch with each amount for it."""
    batch = take(workspace, path, line(1), line(2, amount="x"))
    for number, amount in enumerate(amounts):
        repair = path.with_name(f"repair-{number}.csv")
        repair.write_text(f"ReconRow,{HEADER}\n1:2,{line(2, amount=amount)}\n")
        import_delivery(workspace, [str(repair)], DEFAULT, corrects=batch.id)


def correction_undone(workspace: Workspace, path: Path) -> None:
    """It ended as complete, since its push came to its end while the row in error was corrected."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        corrected(place, path)
        assert push_batch(place, 1).batch.state is State.COMPLETE
        undo_batch(place, 2, by=None, reason="test")


def to_send_again(workspace: Workspace, path: Path) -> None:
    """It ended as complete, and a later batch that wrote over its record was undone."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        for number in (1, 2):
            delivery = path.with_name(f"{number}.csv")
            take(place, delivery, line(1, amount=str(number)))
            assert push_batch(place, number).batch.state is State.COMPLETE
        undo_batch(place, 2, by=None, reason="test")


def refused(workspace: Workspace, path: Path, *again: int) -> None:
    """A file of two rows with a manifest of three; and again, with one of so many."""
    write(path, line(1), line(2))
    for rows in (3, *again):
        path.with_name("a.csv.manifest.json").write_text(
            f'{{"files": {{"a.csv": {{"rows": {rows}}}}}}}'
        )
        import_delivery(workspace, [str(path)], DEFAULT)


def refused_beside_a_good_one(workspace: Workspace, path: Path) -> None:
    bad = path.with_name("b.csv")
    bad.write_text("colour\nred\n")
    import_delivery(workspace, [write(path, line(1)), str(bad)], DEFAULT)


def taken_again_and_undone(workspace: Workspace, path: Path) -> None:
    refused(workspace, path, 2)
    undo_batch(workspace, 2, by=None, reason="test")


def batch_rows(workspace: Workspace, path: Path, *, undo: bool = False) -> None:
    delivery = path.with_name("insert_batch_data.csv")
    delivery.write_text("BatchId,Data,HasError,Merged\n5,1,false,true\n")
    batch = import_delivery(workspace, [str(delivery)], DEFAULT).batch
    assert batch.state is State.COMPLETE
    if undo:
        undo_batch(workspace, batch.id, by=None, reason="test")


CASES: dict[str, tuple[Callable[[Workspace, Path], Any], int, list[str]]] = {
    # What became of a delivery, contents kept after 100 days, reports kept.
    "complete": (lambda place, path: take(place, path, line(1)), 0, []),
    "with errors": (
        lambda place, path: take(place, path, line(1), line(2, amount="x")),
        1,
        ["batch-1"],
    ),
    "held": (
        lambda place, path: take(place, path, line(1, amount="x"), budget_errors=0),
        1,
        ["batch-1"],
    ),
    "in conflict": (
        lambda place, path: take(place, path, line(1), line(1, amount="2")),
        1,
        ["batch-1"],
    ),
    "every error corrected": (corrected, 0, []),
    "corrected at the second try": (
        lambda place, path: tried_twice(place, path, "y", "10.50"),
        0,
        [],
    ),
    "in error at the second try too": (
        lambda place, path: tried_twice(place, path, "y", "z"),
        3,
        ["batch-1", "batch-2", "batch-3"],
    ),
    "its correction undone": (correction_undone, 1, ["batch-1"]),
    "to be sent again": (to_send_again, 1, ["batch-1"]),
    "undone": (undone, 0, []),
    "insert-batch data": (batch_rows, 1, []),
    "insert-batch data, undone": (partial(batch_rows, undo=True), 0, []),
    "never ended": (crashed, 1, []),
    "refused for its manifest": (refused, 1, ["batch-1"]),
    "refused for its manifest, then delivered with the right one": (
        lambda place, path: refused(place, path, 2),
        0,
        [],
    ),
    "refused for its manifest, taken with the right one, and that undone": (
        taken_again_and_undone,
        1,
        ["batch-1"],
    ),
    "refused beside a good file": (refused_beside_a_good_one, 2, ["batch-1"]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_batch_keeps_what_it_may_still_need(
    workspace: Workspace, tmp_path: Path, swept: Any, name: str
) -> None:
    deliver, kept, kept_reports = CASES[name]
    workspace.settings.reports.mkdir(parents=True)
    deliver(workspace, tmp_path / "a.csv")
    before = contents(workspace), reports(workspace)
    swept(NOW + timedelta(days=80))
    assert (contents(workspace), reports(workspace)) == before
    swept()
    assert (contents(workspace), reports(workspace)) == (kept, kept_reports)


def test_what_stands_behind_a_break_is_kept_until_it_is_gone(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    """The report of a run offers such rows for correction, and reads them for that."""
    take(workspace, tmp_path / "a.csv", line(1))
    behind = found("1/7", batch_id=1)
    for breaks, kept in ((behind, 1), (behind, 1), (behind.clear(), 0)):
        reconcile(workspace, breaks)
        swept()
        assert (contents(workspace), "batch-1" in reports(workspace)) == (kept, bool(kept))


def next_steps(workspace: Workspace) -> dict[int, str]:
    with workspace.database.connect() as connection:
        return {one.id: next_step(one) for one in list_overview(connection, 9)}


@pytest.mark.long
@pytest.mark.parametrize("right", [3, 2])
def test_what_recon_status_asks_for_is_kept_in_the_inbox_too(
    workspace: Workspace, tmp_path: Path, swept: Any, right: int
) -> None:
    """The batch asks for the refused file, until one took it."""
    inbox = Inbox(tmp_path / "inbox")
    inbox.folder.mkdir()
    watch = Watch(workspace, inbox, StatedTerms(), import_here(workspace, StatedTerms()))
    for rows in dict.fromkeys((3, right)):
        write(inbox.folder / "a.csv", line(1), line(2))
        stated = json.dumps({"files": {"a.csv": {"rows": rows}}})
        (inbox.folder / "a.csv.manifest.json").write_text(stated)
        watch.look(0)
    left = right != 2
    assert next_steps(workspace)[1] == ("recon import FILE --corrects 1" if left else "")
    swept(inbox=inbox.folder)
    assert contents(workspace) == int(left)
    kept = [path.name for path in sorted(inbox.archive.glob("*/*/*"))]
    assert kept == (["a.csv", "a.csv.manifest.json"] if left else [])


def repaired_lately(workspace: Workspace, path: Path) -> datetime:
    """A batch of long ago, and a correction that closed it today; when the first one did end."""
    corrected(workspace, path)
    with workspace.database.connect() as connection:
        found = connection.execute("SELECT ended_at FROM batch WHERE id = 1").fetchone()
        connection.execute("UPDATE batch SET ended_at = '2020-01-01' WHERE id = 1")
    for old in workspace.settings.archive.glob("??/*.csv"):
        os.utime(old, (1, 1))
    assert found is not None
    ended: datetime = found[0]
    return ended


@pytest.mark.long
def test_a_batch_is_closed_for_as_long_as_its_last_correction(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    ended = repaired_lately(workspace, tmp_path / "a.csv")
    assert swept(NOW)["archived contents"] == 0
    undo_batch(workspace, 2, by=None, reason="wrong repair")
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET ended_at = %s WHERE id = 1", [ended])
    assert write_rejects(workspace, 1, tmp_path / "out", with_secrets=False)


@pytest.mark.long
@pytest.mark.parametrize("sort", ["contents", "deliveries"])
def test_what_an_undo_needs_again_while_a_sweep_is_at_work_is_spared(
    workspace: Workspace,
    tmp_path: Path,
    swept: Any,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
    sort: str,
) -> None:
    corrected(workspace, tmp_path / "a.csv")
    ((key,),) = rows("SELECT content_id FROM batch WHERE id = 1")
    (tmp_path / "inbox" / "archive" / key[:2] / key).mkdir(parents=True)
    find = getattr(sweeping, f"unneeded_{sort}")

    def found(*terms: Any) -> Any:
        """The undo comes after everything was listed, and before the first is removed."""
        listed = [*find(*terms)]
        undo_batch(workspace, 2, by=None, reason="wrong repair")
        return iter(listed)

    monkeypatch.setattr(sweeping, f"unneeded_{sort}", found)
    swept(inbox=tmp_path / "inbox")
    kept = len([*tmp_path.glob("inbox/archive/??/*")])
    assert (contents(workspace), kept) == (int(sort == "contents"), 1)


@pytest.mark.long
def test_a_dry_run_counts_and_removes_nothing(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    size = sum(path.stat().st_size for path in workspace.settings.archive.glob("??/*.csv"))
    found = sweep(workspace, RETENTION, now=LATER)
    # Rows are spooled where compiled loops read them; small files are read without, unless these
    # are loaded.
    contents_line, reports_line, *spool_lines = found
    assert contents_line.oldest is not None
    assert contents_line == Swept("archived contents", 1, size, contents_line.oldest)
    assert (reports_line.what, reports_line.number) == ("batch reports", 1)
    assert [(one.what, one.number) for one in spool_lines] in (
        [],
        [("spooled rows of ended batches", 0)],
    )
    assert contents(workspace) == 1
    assert rows("SELECT count(*) FROM event WHERE what = 'housekeeping'") == [(0,)]


@pytest.mark.long
def test_a_content_two_batches_have_is_kept_for_the_one_that_needs_it(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    undo_batch(workspace, 1, by=None, reason="test")
    take(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    assert swept()["archived contents"] == 0
    assert write_rejects(workspace, 2, tmp_path / "out", with_secrets=False)


@pytest.mark.long
def test_content_delivered_again_lately_is_spared(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    (path,) = workspace.settings.archive.glob("??/*.csv")
    os.utime(path, (1, 1))
    import_delivery(workspace, [str(tmp_path / "a.csv")], DEFAULT)
    assert path.stat().st_mtime > NOW.timestamp() - 60
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET ended_at = '2020-01-01'")
    assert swept(NOW)["archived contents"] == 0


@pytest.mark.long
def test_a_batch_whose_content_is_gone_is_recounted_and_delivered_again_all_the_same(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    found = swept()
    assert (found["archived contents"], found["batch reports"]) == (1, 1)
    assert run_batch(workspace, 1).report.verdict == "complete"
    again = import_delivery(workspace, [str(tmp_path / "a.csv")], DEFAULT)
    assert (again.new, again.exit_code, contents(workspace)) == (False, 0, 1)


@pytest.mark.long
def test_an_inbox_loses_old_deliveries_of_closed_batches_only(
    workspace: Workspace, tmp_path: Path, swept: Any, rows: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    take(workspace, tmp_path / "b.csv", line(2, amount="x"))
    (done,), (erroneous,) = rows("SELECT content_id FROM batch ORDER BY id")
    archive = tmp_path / "inbox" / "archive"
    for key in (done, f"{done}-1", erroneous, "ff" * 32):
        (archive / key[:2] / key).mkdir(parents=True)
        (archive / key[:2] / key / "a.csv").touch()
    assert swept(inbox=tmp_path / "inbox")["deliveries of the inbox"] == 2
    assert {path.name for path in archive.glob("??/*")} == {erroneous, "ff" * 32}


def test_a_delivery_that_no_batch_has_yet_is_none_of_the_closed_ones_of_its_content(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    """It comes again after an undo, and whatever starts its import is away for long."""
    undone(workspace, tmp_path / "a.csv")
    inbox = Inbox(tmp_path / "inbox")
    write(inbox.folder / "a.csv", line(1))

    def fail(_: Waiting) -> Started:
        raise DatabaseUnusable("the service that starts imports is away")

    for start in (fail, import_here(workspace, StatedTerms())):
        (found,) = Watch(workspace, inbox, StatedTerms(), start).look(0)
        swept(inbox=inbox.folder)
    assert (found.became, found.detail) == ("started", "batch 2: complete")
    assert not [*inbox.archive.glob("??/*")]


def test_results_of_runs_go_by_their_age(tmp_path: Path, workspace: Workspace, swept: Any) -> None:
    results = tmp_path / "results" / "receive"
    results.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (results / "linked").symlink_to(elsewhere)
    os.mkfifo(results / "pipe")
    for name in ("new", "old"):
        (results / name).touch()
    for name in ("linked", "pipe", "old"):
        os.utime(results / name, (1, 1))
        os.utime(results / name, (1, 1), follow_symlinks=False)
    assert swept(NOW, results=tmp_path / "results")["results of runs"] == 1
    assert {path.name for path in results.iterdir()} == {"new", "linked", "pipe"}


@pytest.mark.long
def test_killed_in_the_middle_and_run_again_it_ends_the_same(
    workspace: Workspace, database_url: str, tmp_path: Path, rows: Any
) -> None:
    for number in (1, 2, 3):
        take(workspace, tmp_path / f"{number}.csv", line(number))
    take(workspace, tmp_path / "4.csv", line(4, amount="x"))
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET ended_at = '2020-01-01'")
    home = workspace.settings.home
    for path in [*home.rglob("*.csv"), *workspace.settings.reports.iterdir()]:
        os.utime(path, (1, 1))
    (workspace.settings.reports / ".removing-batch-9").mkdir()

    def clean(crash_at: str = "") -> int:
        asked = ("housekeeping", "--report-days", "90", "--remove")
        return run(database_url, home, *asked, CRASH_AT=crash_at).returncode

    assert clean("housekeeping:2") == -signal.SIGKILL
    assert contents(workspace) == 2
    assert clean() == 0
    assert (contents(workspace), reports(workspace)) == (1, ["batch-4"])
    assert rows("SELECT count(*) FROM event WHERE what = 'housekeeping'") == [(1,)]


def test_an_upload_that_no_job_took_in_goes(
    workspace: Workspace, swept: Callable[..., dict[str, int]]
) -> None:
    upload = Upload.begin(workspace.settings)
    upload.open("a.csv")
    upload.write(b"x" * 10)
    upload.close()
    elsewhere = workspace.settings.home / "elsewhere"
    elsewhere.mkdir()
    (uploads_folder(workspace.settings) / "linked").symlink_to(elsewhere)
    waiting = Upload.begin(workspace.settings)
    with workspace.database.connect() as connection:
        order_job(connection, JobKind.IMPORT, {"upload": waiting.token, "tenant": 7}, "ann")
    assert swept(NOW)["uploads that no job took in"] == 0
    assert swept()["uploads that no job took in"] == 2
    assert [*uploads_folder(workspace.settings).iterdir()] == [waiting.folder]
    assert elsewhere.is_dir(), "of a link nothing else goes"


def aged(workspace: Workspace) -> None:
    """As if everything was delivered and written long ago."""
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET ended_at = '2020-01-01'")
    for path in [*workspace.settings.home.rglob("*.csv"), *workspace.settings.reports.iterdir()]:
        os.utime(path, (1, 1))


def test_what_cannot_be_removed_costs_nothing_else_and_fails_the_run(
    workspace: Workspace, database_url: str, tmp_path: Path, rows: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    home = workspace.settings.home
    ((key,),) = rows("SELECT content_id FROM batch")
    # With the name that it has while it is removed, this one's is too long for a file system.
    stays, goes = f"{key}-{'1' * 186}", f"{key}-2"
    for name in (stays, goes):
        (home / "inbox" / "archive" / key[:2] / name).mkdir(parents=True)
    aged(workspace)
    for path in home.glob("inbox/archive/??/*"):
        os.utime(path, (1, 1))
    for _ in range(2):
        told = run(database_url, home, "housekeeping", "--report-days", "90", "--remove")
        assert told.returncode == 1, told.stderr
        assert "1 item could not be looked at or removed" in told.stdout
        assert f"{stays}: File name too long" in told.stdout.replace("\n", "")
        assert (contents(workspace), reports(workspace)) == (0, [])
        assert [path.name for path in home.glob("inbox/archive/??/*")] == [stays]
    details = rows("SELECT detail FROM event WHERE what = 'housekeeping'")
    told_of = [json.loads(one)["deliveries of the inbox"] for (one,) in details]
    assert [one["not_removed"] for one in told_of] == [1, 1]


def test_what_cannot_be_removed_is_not_said_to_be_gone(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    """What was lost later, or altered, would not be missed."""
    take(workspace, tmp_path / "a.csv", line(1))
    (content,) = workspace.settings.archive.glob("??/*.csv")
    folders = (content.parent, workspace.settings.reports / "batch-1")
    aside = [folder.rename(tmp_path / folder.name) for folder in folders]
    with ExitStack() as disks:
        for folder, files in zip(folders, aside, strict=True):
            disk = disks.enter_context(small_disk(folder, 1 << 20))
            shutil.copytree(files, disk, dirs_exist_ok=True)
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        found = sweep(workspace, RETENTION, now=LATER, dry_run=False)
        assert [len(one.faults) for one in found[:2]] == [1, 1]
        assert rows("SELECT cleared_at FROM extract") == [(None,)]
        proof = verify_archive(workspace)
        assert (proof.mismatches, proof.unhashed) == ((), 0)
    missing = {one.path.split("/")[0] for one in verify_archive(workspace).mismatches}
    assert missing == {"archive", "reports"}


def loop(path: Path) -> None:
    """A folder that not even root can look into."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.name)


def test_a_folder_that_cannot_be_read_is_told_of_and_hides_no_other(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    take(workspace, tmp_path / "a.csv", line(1))
    ((key,),) = rows("SELECT content_id FROM batch")
    settings, results = workspace.settings, tmp_path / "results"
    delivery = tmp_path / "inbox" / "archive" / key[:2] / key
    delivery.mkdir(parents=True)
    first, second = (settings.archive / "00", tmp_path / "inbox" / "archive" / "00")
    for path in (first, second):
        loop(path)
    loop(results)
    terms = {"now": LATER, "inbox": tmp_path / "inbox", "results": results}
    for dry_run in (True, False):
        found = {one.what: one for one in sweep(workspace, RETENTION, dry_run=dry_run, **terms)}
        for what, path, number in (
            ("archived contents", first, 1),
            ("deliveries of the inbox", second, 1),
            ("results of runs", results, 0),
        ):
            assert found[what].number == number, what
            (fault,) = found[what].faults
            assert fault == f"{path}: Too many levels of symbolic links"
        assert not_removed(found.values()).startswith("3 items could not be looked at")
        assert delivery.exists() == dry_run
    proof = verify_archive(workspace)
    (told,) = proof.mismatches
    assert remedy(proof) == "Give this account the right to read what it cannot."
    assert (told.path, told.found) == (
        "archive/00",
        "it cannot be read: Too many levels of symbolic links",
    )


@pytest.mark.parametrize("command", [("watch", "--once"), ("housekeeping",)])
def test_the_home_itself_is_no_inbox(
    command: tuple[str, ...], workspace: Workspace, database_url: str, tmp_path: Path
) -> None:
    """What recon keeps there of a push would be taken for a delivery, and be moved."""
    home = workspace.settings.home
    home.mkdir(exist_ok=True)
    kept = home / "push-EditPayment.windows"
    kept.touch()
    (tmp_path / "link").symlink_to(home)
    told = run(database_url, home, *command, "--inbox", str(tmp_path / "link"))
    assert (told.returncode, told.stdout) == (2, "")
    assert "is RECON_HOME itself" in told.stderr.replace("\n", " ")
    assert kept.is_file()


def test_an_inbox_that_is_named_and_not_there_is_refused(
    workspace: Workspace, database_url: str, tmp_path: Path
) -> None:
    """A typing error would count nothing in it, week after week."""
    asked = ("housekeeping", "--inbox", str(tmp_path / "typo"), "--remove")
    told = run(database_url, workspace.settings.home, *asked)
    assert (told.returncode, told.stdout) == (2, "")
    assert "typo: there is no such inbox" in told.stderr.replace("\n", "")


@pytest.mark.long
def test_what_a_killed_sweep_left_is_no_obstacle(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    """The report was written again meanwhile."""
    take(workspace, tmp_path / "a.csv", line(1))
    report = workspace.settings.reports / "batch-1"
    shutil.copytree(report, report.with_name(".removing-batch-1"))
    assert swept()["batch reports"] == 2
    assert reports(workspace) == []


def test_what_another_database_has_brought_stays(
    workspace: Workspace, tmp_path: Path, swept: Any, databases: Databases
) -> None:
    """An address that was left out or mistaken: of no batch there is known what it needs."""
    take(workspace, tmp_path / "a.csv", line(1))
    stray = workspace.settings.archive / "ab" / f"{'ab' * 32}.csv"
    stray.parent.mkdir(parents=True)
    stray.touch()
    before = contents(workspace), reports(workspace)
    with databases.new() as url:
        other = workspace_of(replace(workspace.settings, database_url=url))
        assert {one.number for one in sweep(other, RETENTION, now=LATER, dry_run=False)} == {0}
        # Its own batch has the same number, and another home.
        elsewhere = replace(other.settings, home=tmp_path / "elsewhere")
        take(workspace_of(elsewhere), tmp_path / "b.csv", line(2))
        assert {one.number for one in sweep(other, RETENTION, now=LATER, dry_run=False)} == {0}
    assert (contents(workspace), reports(workspace)) == before
    gone = swept()
    assert gone["archived contents"] == gone["batch reports"] == 1
    assert stray.exists(), "nor is what no database knows"


def test_what_another_sweep_removes_meanwhile_is_gone(
    workspace: Workspace, tmp_path: Path, swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = workspace.settings.reports / ".removing-batch-1"
    (left / "deep").mkdir(parents=True)
    (left / "report.html").touch()
    size = retention._folder_bytes

    def meanwhile(folder: Path) -> int:
        shutil.rmtree(folder)
        return size(folder)

    monkeypatch.setattr(retention, "_folder_bytes", meanwhile)
    assert swept()["batch reports"] == 0


@pytest.mark.long
def test_the_spool_of_a_batch_that_has_ended_goes(
    workspace: Workspace, tmp_path: Path, swept: Any
) -> None:
    """A discard or an undo that is killed behind its commit leaves it, and refuses to run again."""
    undone(workspace, tmp_path / "a.csv")
    take(workspace, tmp_path / "b.csv", line(2, amount="x"), budget_errors=0)
    take(workspace, tmp_path / "c.csv", line(3, amount="x"), budget_errors=0)
    discard_batch(workspace, 2, by=None, reason="test")
    for batch in (1, 2, 3, 99):
        waits = spool_path(workspace.settings, batch, batch, 0)
        waits.parent.mkdir(parents=True, exist_ok=True)
        waits.touch()
    assert swept(NOW)["spooled rows of ended batches"] == 2
    left = {path.name for path in workspace.settings.spool.iterdir()}
    assert left == {"batch-3", "batch-99"}, "held, and one that this database does not know"


@pytest.mark.parametrize("written", [0, -200])
def test_a_clock_that_is_ahead_removes_nothing_early(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """`written`: by how many days the clock was off where the files were written."""
    settings = workspace.settings
    take(workspace, tmp_path / "a.csv", line(1))
    for path in [*settings.archive.glob("??/*.csv"), *settings.reports.iterdir()]:
        moved = path.stat().st_mtime + written * 86_400
        os.utime(path, (moved, moved))

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=1000)

    for module in (sweeping, commands):
        monkeypatch.setattr(module, "datetime", Ahead, raising=False)
    monkeypatch.setenv("RECON_HOME", str(settings.home))
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.database.url)
    assert commands.housekeeping_command(remove=True) == 0
    assert (contents(workspace), len(reports(workspace))) == (1, 1)
