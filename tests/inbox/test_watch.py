"""Looking into an inbox: every delivery is imported once, wherever a look is killed."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.errors import BatchStateError, DatabaseUnusable, SettingsError
from connectors.files.incoming.inbox import Inbox, Waiting
from connectors.files.profiles.profile import DEFAULT
from flows.commands import inbox as command
from flows.stages.inbox import InboxLine, Started, Watch, import_here
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.recon import run
from tests.stages.payments import HEADER, line, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


@pytest.fixture
def look(workspace: Workspace, folder: Path) -> Callable[..., list[InboxLine]]:
    def look_once(start: Any = None, **clock: Any) -> list[InboxLine]:
        start = start or import_here(workspace, StatedTerms())
        watch = Watch(workspace, Inbox(folder), StatedTerms(), start, **clock)
        return watch.look(5, lambda _seconds: None)

    return look_once


def became(lines: list[InboxLine]) -> dict[str, str]:
    return {line.name: line.became for line in lines}


def archived(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archive").glob("*/*/*"))


def left(folder: Path) -> list[str]:
    ours = {"archive", "quarantine", ".recon"}
    return sorted(path.name for path in folder.iterdir() if path.name not in ours)


@pytest.mark.long
def test_a_delivery_is_imported_and_archived_by_its_content(
    folder: Path, look: Any, rows: Any
) -> None:
    write(folder / "a.csv", line(1), line(2, amount="x"))
    (found,) = look()
    assert found == InboxLine("a.csv", "started", "batch 1: complete with errors", 1)
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert rows("SELECT name FROM extract") == [("a.csv",)]
    ((content_id,),) = rows("SELECT content_id FROM batch")
    assert (folder / "archive" / content_id[:2] / content_id / "a.csv").is_file()
    assert left(folder) == []
    assert look() == []


@pytest.mark.long
def test_known_bytes_are_known_to_the_inbox_whatever_else_is_wrong_with_them(
    workspace: Workspace, folder: Path, look: Any
) -> None:
    write(folder / "a.csv", line(1))
    look()
    limits = replace(workspace.settings.limits, columns=2)
    narrow = replace(workspace, settings=replace(workspace.settings, limits=limits))
    write(folder / "a.csv", line(1))
    watch = Watch(narrow, Inbox(folder), StatedTerms(), import_here(narrow, StatedTerms()))
    assert became(watch.look(5, lambda _seconds: None)) == {"a.csv": "known"}


@pytest.mark.long
def test_files_of_a_manifest_are_one_delivery(folder: Path, look: Any, rows: Any) -> None:
    write(folder / "a.csv", line(1))
    write(folder / "b.csv", line(2), line(3))
    manifest = {"files": {"a.csv": {"rows": 1}, "b.csv": {"rows": 9}}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    write(folder / "c.csv", line(4))
    assert became(look()) == {"manifest.json": "started", "c.csv": "started"}
    assert rows("SELECT batch_id, name, refused FROM extract ORDER BY id") == [
        (1, "a.csv", None),
        (1, "b.csv", "incomplete_file"),
        (2, "c.csv", None),
    ]
    assert archived(folder) == ["a.csv", "b.csv", "c.csv", "manifest.json"]


@pytest.mark.long
def test_nothing_is_taken_in_without_the_control_it_came_with(
    folder: Path, look: Any, rows: Any
) -> None:
    write(folder / "a.csv", line(1))
    (folder / "manifest.json").write_text('{"files": {"a.csv": {"row": 1}}}')
    write(folder / "b.csv", line(2))
    assert became(look()) == {"manifest.json": "quarantined", "b.csv": "started"}
    aside = folder / "quarantine" / "manifest.json"
    assert {path.name for path in aside.iterdir()} == {
        *("a.csv", "manifest.json", "manifest.json.why.txt")
    }
    assert "did you mean rows" in (aside / "manifest.json.why.txt").read_text()
    # It may name any file that is there.
    write(folder / "a.csv", line(1))
    (folder / "manifest.json").write_text("{")
    failed, waits = look()
    assert (failed.name, failed.became) == ("manifest.json", "failed")
    assert "is no control manifest" in failed.detail
    assert waits == InboxLine("a.csv", "unfinished", "waits for manifest.json")
    (folder / "manifest.json").write_text('{"files": {"a.csv": {"rows": 1}}}')
    assert became(look()) == {"manifest.json": "started"}
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]


@pytest.mark.long
def test_members_of_a_zip_are_delivered_with_it(folder: Path, look: Any, rows: Any) -> None:
    write(folder / "a.csv", line(1))
    with zipfile.ZipFile(folder / "z.zip", "w") as packed:
        packed.write(folder / "a.csv", "a.csv")
        packed.writestr("unlisted.csv", f"{HEADER}\n{line(2)}\n")
    (folder / "a.csv").unlink()
    stated = {"files": {"z.zip/a.csv": {"rows": 1}, "z.zip/absent.csv": {}}}
    (folder / "manifest.json").write_text(json.dumps(stated))
    assert became(look()) == {"manifest.json": "started"}
    assert rows("SELECT name, refused FROM extract ORDER BY 1") == [
        ("z.zip/a.csv", None),
        ("z.zip/absent.csv", "incomplete_file"),
        ("z.zip/unlisted.csv", "incomplete_file"),
    ]


def test_the_same_content_again_is_known_and_taken_out_of_the_way(
    folder: Path, look: Any, rows: Any
) -> None:
    write(folder / "a.csv", line(1))
    look()
    for name in ("again.csv", "a.csv", "again.csv"):
        write(folder / name, line(1))
        (found,) = look()
        assert found == InboxLine(name, "known", "batch 1 took this content and is complete")
    assert rows("SELECT count(*) FROM batch") == [(1,)]
    asked = "SELECT detail::json ->> 'name' FROM event WHERE what = 'bytes delivered again'"
    assert rows(asked) == [("again.csv",)], "once, as by an import"


def test_a_file_of_repairs_is_put_aside_as_no_look_can_import_it(
    workspace: Workspace, folder: Path, look: Any
) -> None:
    write(folder / "a.csv", line(1), line(2, amount="x"))
    look()
    repairs = f"ReconRow,{HEADER}\n1:2,{line(2)}\n"
    (folder / "b.csv").write_text(repairs)
    (found,) = look()
    assert (found.name, found.became, found.exit_code) == ("b.csv", "quarantined", 1)
    assert "names rows that it repairs, and the delivery corrects no batch" in found.detail
    assert look() == []
    import_delivery(workspace, [str(folder / "quarantine" / "b.csv")], DEFAULT, corrects=1)
    (folder / "b.csv").write_text(repairs)
    (found,) = look()
    assert (found.became, found.detail) == ("known", "batch 2 took this content and is complete")


def test_known_content_that_would_be_read_otherwise_now_is_said_to_be(
    workspace: Workspace, folder: Path
) -> None:
    """As an import says it: nothing else says that the corrected profile had no effect."""
    for terms, told in (
        (StatedTerms(), "batch 1: complete"),
        (
            StatedTerms(replace(DEFAULT, unknown_columns="ignore")),
            "batch 1 took this content and is complete. It was read by the profile and settings "
            "of that time, which differ in unknown_columns: to have it read anew, `recon undo 1 "
            "--reason ...` and import it again.",
        ),
    ):
        write(folder / "a.csv", line(1))
        start = import_here(workspace, terms)
        (found,) = Watch(workspace, Inbox(folder), terms, start).look(5, lambda _seconds: None)
        assert (found.detail, found.exit_code) == (told, 0)
    assert archived(folder) == ["a.csv"]
    assert left(folder) == []


@pytest.mark.long(but=("altered-known",))
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
@pytest.mark.parametrize("cleared", [True, False], ids=["cleared", "altered"])
def test_a_kept_copy_that_a_delivery_puts_right_is_told_of(
    workspace: Workspace, folder: Path, look: Any, rows: Any, known: bool, cleared: bool
) -> None:
    """The copy is stored before the import looks, which finds it as it should be."""
    first = write(folder.parent / "first.csv", line(1))
    import_delivery(workspace, [first], DEFAULT if known else replace(DEFAULT, feed="other"))
    (kept,) = workspace.settings.archive.glob("??/*.csv")
    if cleared:
        later = datetime.now(UTC) + timedelta(days=100)
        sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    else:
        kept.write_bytes(kept.read_bytes().replace(b"10.50", b"99.50"))
    write(folder / "payments.csv", line(1))
    (told,) = look()
    assert ("was not what was delivered" in told.detail) is not cleared
    what = "content kept again" if cleared else "kept content put back"
    assert len(rows("SELECT 1 FROM event WHERE what = %s", [what])) == 1
    assert rows("SELECT count(*) FROM extract WHERE cleared_at IS NOT NULL") == [(0,)]


@pytest.mark.long
def test_what_was_undone_may_come_again(
    workspace: Workspace, folder: Path, look: Any, rows: Any
) -> None:
    keys = []
    start = import_here(workspace, StatedTerms())

    def note(waiting: Waiting) -> Started:
        keys.append(waiting.key)
        return start(waiting)

    write(folder / "a.csv", line(1))
    look(note)
    undo_batch(workspace, 1, by=None, reason="test")
    write(folder / "a.csv", line(1))
    look(note)
    assert rows("SELECT id, state FROM batch ORDER BY id") == [(1, "undone"), (2, "complete")]
    assert keys == [keys[0], f"{keys[0]}-1"]
    assert len(archived(folder)) == 2


@pytest.mark.long
def test_a_file_that_was_refused_for_its_manifest_is_imported_with_the_right_one(
    folder: Path, look: Any, rows: Any
) -> None:
    keys = []

    def deliver(stated: int | None, start: Any = None) -> InboxLine:
        write(folder / "a.csv", line(1))
        if stated is not None:
            manifest = {"files": {"a.csv": {"rows": stated}}}
            (folder / "a.csv.manifest.json").write_text(json.dumps(manifest))
        (found,) = look(start)
        return found

    def note(waiting: Waiting) -> Started:
        keys.append(waiting.key)
        return Started("a run that has not begun")

    assert deliver(99).became == "started"
    assert rows("SELECT refused FROM extract") == [("incomplete_file",)]
    # The same manifest, or none, says nothing new.
    for stated in (99, None):
        known = deliver(stated)
        assert known.became == "known"
        assert "It refused a.csv." in known.detail
        assert "`recon undo 1 --reason ...`" in known.detail
    assert rows('SELECT "Id" FROM payment') == []
    deliver(1, note)
    ((content_id,),) = rows("SELECT content_id FROM batch")
    assert keys == [f"{content_id}-1"]
    (folder / ".recon" / "waiting" / keys[0]).unlink(missing_ok=True)
    assert deliver(1) == InboxLine("a.csv", "started", "batch 2: complete")
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert deliver(1).detail == "batch 2 took this content and is complete"


@pytest.mark.long
def test_a_start_that_opens_no_batch_is_made_up_for_where_an_earlier_one_refused_the_file(
    folder: Path, look: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise BatchStateError("on fire")

    for stated in (99, 1):
        write(folder / "a.csv", line(1))
        manifest = {"files": {"a.csv": {"rows": stated}}}
        (folder / "a.csv.manifest.json").write_text(json.dumps(manifest))
        if stated == 99:
            look()
    with monkeypatch.context() as patched:
        patched.setattr("flows.stages.inbox.import_delivery", fail)
        assert look() == [InboxLine("a.csv", "failed", "on fire", 1)]
    assert look() == [InboxLine("a.csv", "started", "batch 2: complete")]


@pytest.mark.long
def test_a_start_that_opens_no_batch_is_made_up_for_where_an_earlier_one_is_open_still(
    workspace: Workspace, folder: Path, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = StatedTerms(replace(DEFAULT, budget_errors=0))
    watch = Watch(workspace, Inbox(folder), terms, import_here(workspace, terms))

    def deliver(*names: str) -> list[InboxLine]:
        for name in names:
            write(folder / name, line(ord(name[0]), amount="x" if name == "b.csv" else "1"))
        (folder / "manifest.json").write_text(json.dumps({"files": {name: {} for name in names}}))
        return watch.look(0, lambda _seconds: None)

    def fail(*_: Any, **__: Any) -> None:
        raise BatchStateError("on fire")

    deliver("a.csv")
    deliver("a.csv", "b.csv")
    assert rows("SELECT state FROM batch ORDER BY id") == [("complete",), ("held",)]
    undo_batch(workspace, 1, by=None, reason="test")
    with monkeypatch.context() as patched:
        patched.setattr("flows.stages.inbox.import_delivery", fail)
        assert deliver("a.csv", "b.csv") == [InboxLine("manifest.json", "failed", "on fire", 1)]
    (found,) = watch.look(0, lambda _seconds: None)
    assert found == InboxLine("manifest.json", "started", "batch 3: complete")
    assert rows("SELECT name FROM extract WHERE batch_id = 3") == [("a.csv",)]


@pytest.mark.long
def test_what_was_undone_before_its_note_was_gone_does_not_come_again_by_itself(
    workspace: Workspace, folder: Path, look: Any, rows: Any
) -> None:
    """As a look that is killed between an import and its note leaves it."""
    start = import_here(workspace, StatedTerms())

    def killed(waiting: Waiting) -> Started:
        start(waiting)
        raise KeyboardInterrupt

    for taken in (1, 2):
        write(folder / "a.csv", line(1))
        with pytest.raises(KeyboardInterrupt):
            look(killed)
        undo_batch(workspace, taken, by=None, reason="test")
        (found,) = look()
        assert (found.name, found.became) == ("a.csv", "known")
        assert "was undone or discarded" in found.detail
        assert look() == []
        assert rows("SELECT DISTINCT state FROM batch") == [("undone",)]
    write(folder / "a.csv", line(1))
    assert became(look()) == {"a.csv": "started"}
    assert rows("SELECT id, state FROM batch ORDER BY id")[-1] == (3, "complete")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("empty.csv", b"", "empty_file"),
        ("report.pdf", b"%PDF-1.7", "unsupported_format"),
        ("broken.zip", b"PK\x03\x04 no zip", "corrupt_archive"),
        ("book.csv", b"PK\x03\x04 a workbook", "unsupported_format"),
        ("unknown.csv", b"colour,shape\nred,round\n", "missing_column"),
    ],
)
def test_what_cannot_be_read_is_put_aside_with_the_reason(
    folder: Path, look: Any, rows: Any, name: str, content: bytes, why: str
) -> None:
    (folder / name).write_bytes(content)
    write(folder / "good.csv", line(1))
    assert became(look()) == {name: "quarantined", "good.csv": "started"}
    assert (folder / "quarantine" / name / name).read_bytes() == content
    told = (folder / "quarantine" / name / f"{name}.why.txt").read_text()
    assert why in told
    assert ".recon" not in told
    assert rows("SELECT count(*) FROM batch") == [(1,)]
    (folder / name).write_bytes(content)
    look()
    assert (folder / "quarantine" / f"{name}-2" / name).is_file()


@pytest.mark.long
def test_a_file_that_cannot_be_kept_now_stays_for_the_next_look(
    workspace: Workspace, folder: Path, look: Any, rows: Any
) -> None:
    archive = workspace.settings.archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_text("in the way")
    write(folder / "a.csv", line(1))
    (found,) = look()
    assert (found.name, found.became) == ("a.csv", "failed")
    assert str(archive) in found.detail
    assert (rows("SELECT count(*) FROM batch"), left(folder)) == ([(0,)], ["a.csv"])
    archive.unlink()
    assert became(look()) == {"a.csv": "started"}


@pytest.mark.long
def test_a_start_that_fails_is_made_up_for_at_the_next_look(
    folder: Path, look: Any, rows: Any
) -> None:
    def fail(_waiting: Waiting) -> Started:
        raise DatabaseUnusable("the service that starts imports is away")

    write(folder / "a.csv", line(1))
    assert became(look(fail)) == {"a.csv": "failed"}
    assert became(look(fail)) == {"a.csv": "failed"}
    assert (rows("SELECT count(*) FROM batch"), left(folder)) == ([(0,)], [])
    assert became(look()) == {"a.csv": "started"}
    assert look() == []


def test_an_import_that_opened_its_batch_is_the_ledger_s_to_go_on_with(
    workspace: Workspace, folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.stages import sequence

    def fail(*_: Any) -> None:
        raise BatchStateError("on fire")

    write(folder / "a.csv", line(1))
    with monkeypatch.context() as patched:
        patched.setattr(sequence, "check", fail)
        (found,) = look()
    assert found == InboxLine("a.csv", "failed", "batch 1 stopped as staged: on fire", 1)
    assert look() == []


INBOX = ("taken", "opened", "marked", "archived", "started", "quarantined")
POINTS = [*(f"inbox-{one}" for one in INBOX), "chunk", "check", "apply", "finish"]


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_and_run_again_each_delivery_is_imported_once(
    workspace: Workspace, database_url: str, folder: Path, rows: Any, point: str
) -> None:
    write(folder / "a.csv", line(1), line(2))
    write(folder / "b.csv", line(3))
    write(folder / "b.csv.done")
    (folder / "broken.csv").write_text("colour\nred\n")

    def watch(crash_at: str = "") -> int:
        asked = ("watch", str(folder), "--once", "--settle", "0")
        return run(database_url, workspace.settings.home, *asked, CRASH_AT=crash_at).returncode

    assert watch(point) == -signal.SIGKILL
    assert watch() in (0, 1)
    assert watch() == 0
    assert sorted(
        rows("SELECT e.name, b.state FROM extract e JOIN batch b ON b.id = e.batch_id")
    ) == [
        ("a.csv", "complete"),
        ("b.csv", "complete"),
    ]
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,), (3,)]
    assert archived(folder) == ["a.csv", "b.csv", "b.csv.done"]
    assert [path.name for path in folder.glob("quarantine/*/*.csv")] == ["broken.csv"]
    assert left(folder) == []
    assert [
        *(folder / ".recon" / "taking").iterdir(),
        *(folder / ".recon" / "waiting").iterdir(),
    ] == []


@pytest.mark.long
def test_the_command_tells_what_became_of_each_file(
    workspace: Workspace, database_url: str, folder: Path
) -> None:
    write(folder / "a.csv", line(1))
    (folder / "b.csv.part").write_text(HEADER)
    (folder / "c.csv").write_text("colour\nred\n")
    asked = ("watch", str(folder), "--once", "--settle", "0", "--json")
    watched = run(database_url, workspace.settings.home, *asked)
    assert watched.returncode == 1, watched.stderr
    told = {one["name"]: one["became"] for one in json.loads(watched.stdout)["deliveries"]}
    assert told == {"a.csv": "started", "b.csv.part": "unfinished", "c.csv": "quarantined"}


def folder_of_files(path: Path) -> None:
    path.mkdir()


def nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def half_a_delivery(path: Path) -> None:
    path.write_text(json.dumps({"files": {"a.csv": {"rows": 1}, "b.csv": {"rows": 1}}}))
    write(path.with_name("a.csv"), line(1))


NEVER_TAKEN: dict[str, tuple[Callable[[Path], Any], str, bool]] = {
    # What is made under a name, what it waits for, and whether it is late at once.
    "manifest.json": (half_a_delivery, "not there yet, or changing: b.csv", False),
    "monday.csv.part": (Path.touch, "is being written", False),
    ".payments.csv": (Path.touch, "is hidden: rename it", False),
    "b.csv.manifest.json": (
        lambda path: path.write_text('{"files": {"b.csv": {}}}'),
        "b.csv, which it is about, is not there",
        False,
    ),
    "x.csv/": (folder_of_files, "is a folder: put its files into the inbox itself", True),
    "link.csv": (nowhere, "is a link, and nothing is read through it", True),
    "work/": (folder_of_files, "", False),
    ".DS_Store": (Path.touch, "", False),
    "._payments.csv": (Path.touch, "", False),
}


@pytest.mark.parametrize("name", NEVER_TAKEN)
@pytest.mark.parametrize("days", [0, 9])
def test_what_is_never_imported_is_no_success_for_ever(
    folder: Path, look: Any, name: str, days: int
) -> None:
    """It waits from when it came, though it has the time of the file that it is a copy of."""
    make, why, at_once = NEVER_TAKEN[name]
    make(folder / name)
    for path in folder.iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    lines = look(clock=lambda: time.time() + days * 86_400)
    assert [one.name for one in lines] == ([name] if why or name.endswith("/") else [])
    for one in lines:
        assert one.detail.startswith(why)
        waits = bool(why) and not at_once and days == 9
        assert ("It has been so for 9 days" in one.detail) == waits
        assert one.exit_code == int(at_once or waits)


def test_what_has_just_arrived_waits_for_nothing_though_it_is_old(
    workspace: Workspace, folder: Path
) -> None:
    """A copy has the time of its original."""

    def arrive(_seconds: float) -> None:
        write(folder / "b.csv", line(2))
        os.utime(folder / "b.csv", (1, 1))

    write(folder / "a.csv", line(1))
    watch = Watch(workspace, Inbox(folder), StatedTerms(), lambda _waiting: Started("a run"))
    assert [(one.name, one.became, one.exit_code) for one in watch.look(5, arrive)] == [
        ("a.csv", "started", 0),
        ("b.csv", "unfinished", 0),
    ]


FORGED = "z.csv: started, batch 99: complete\ny.csv"


@pytest.mark.parametrize("suffix", ["", ".part"])
def test_no_name_of_a_file_is_a_line_of_another(
    folder: Path, look: Any, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    caplog.set_level("INFO", "recon.inbox")
    (folder / f"{FORGED}{suffix}").write_text("colour\nred\n")
    (found,) = look()
    assert found.name == FORGED + suffix
    own, *more = [*found.text.splitlines(), *caplog.messages[-1].splitlines()]
    assert own.startswith("z.csv: started, batch 99: complete\\ny.csv")
    assert all(one.startswith("  ") or one == own for one in more)


@pytest.mark.long
def test_each_look_of_a_standing_watch_is_a_line(
    workspace: Workspace, database_url: str, folder: Path
) -> None:
    """Who reads it as it comes reads line by line, and waits for none."""
    asked = ("watch", str(folder), "--every", "0", "--settle", "0", "--json")
    write(folder / "a.csv", line(1))
    told = []
    reading, writing = os.pipe()
    environment = {"RECON_DATABASE_URL": database_url}
    environment["RECON_HOME"] = str(workspace.settings.home)
    with (
        subprocess.Popen(
            [sys.executable, "-m", "flows", *asked],
            env=dict(os.environ) | environment,
            stdout=writing,
        ) as watch,
        os.fdopen(reading) as lines,
        ExitStack() as opened,
    ):
        opened.callback(watch.kill)
        os.close(writing)
        told.append(json.loads(lines.readline()))
        Path(write(folder.parent / "b.csv", line(2))).rename(folder / "b.csv")
        told.append(json.loads(lines.readline()))
        watch.terminate()
        assert lines.read() == ""
    assert [[one["name"] for one in look["deliveries"]] for look in told] == [["a.csv"], ["b.csv"]]


@pytest.mark.long
def test_the_command_ends_as_the_worst_of_its_imports(
    workspace: Workspace, database_url: str, folder: Path
) -> None:
    """Rejected rows and a batch that is held are no success of a look, nor when known again."""
    held = folder.parent / "held.toml"
    held.write_text('feed = "held"\n[budget]\nerrors = 0\n')
    asked = ("watch", str(folder), "--once", "--settle", "0")
    for name, lines, options, code in (
        ("clean.csv", [line(1)], (), 0),
        ("rejects.csv", [line(2), line(3, amount="x")], (), 1),
        ("again.csv", [line(2), line(3, amount="x")], (), 1),
        ("held.csv", [line(4), line(5, amount="x")], ("--profile", str(held)), 1),
    ):
        write(folder / name, *lines)
        watched = run(database_url, workspace.settings.home, *asked, *options)
        assert watched.returncode == code, (name, watched.stdout, watched.stderr)
        assert code != 1 or name != "held.csv" or "held" in watched.stdout


NAMES = {
    "long, read": "x" * 251 + ".csv",
    "long, refused": "y" * 251 + ".csv",
    "long, of wide letters": "é" * 125 + ".csv",
    "252 bytes": "z" * 248 + ".csv",
    "no UTF-8": "\udcff.csv",
    "no UTF-8, long": "\udcff" * 251 + ".csv",
}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_no_name_of_a_file_blocks_the_inbox(name: str, folder: Path, look: Any, rows: Any) -> None:
    refused = name[0] != "x"
    (folder / name).write_text("Nothing,we,know\n1,2,3\n")
    if not refused:
        write(folder / name, line(1))
    (folder / "directory.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "link.csv").symlink_to(folder / "nowhere")
    write(folder / "zz.csv", line(2))
    found = became(look())
    assert found["zz.csv"] == "started"
    assert found[name] == ("quarantined" if refused else "started")
    assert left(folder) == ["directory.csv", "link.csv", "pipe.csv"]
    # The same name again, refused again, and the next delivery still goes through.
    (folder / name).write_text("Nothing,we,know\n1,2,4\n")
    write(folder / "zz.csv", line(3))
    found = became(look())
    assert (found[name], found["zz.csv"]) == ("quarantined", "started")
    assert (3,) in rows('SELECT "Id" FROM payment')


@pytest.mark.long
def test_a_file_that_cannot_be_moved_costs_no_other(
    folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.csv", line(1))
    write(folder / "b.csv", line(2))
    rename = Path.rename

    def refuse(path: Path, target: Any) -> Path:
        if path == folder / "a.csv":
            raise PermissionError(1, "Operation not permitted", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    failed, _ = lines = look()
    assert became(lines) == {"a.csv": "failed", "b.csv": "started"}
    why = "Operation not permitted. Give the rights; it is left for the next look."
    assert failed.detail == f"{folder / 'a.csv'}: {why}"
    monkeypatch.undo()
    assert became(look()) == {"a.csv": "started"}


@pytest.mark.long(but=("24",))
@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE])
def test_what_is_nothing_about_the_file_puts_it_back(
    folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    write(folder / "a.csv", line(1))
    opened = Path.open

    def refuse(path: Path, *terms: Any, **named: Any) -> Any:
        if path.name == "a.csv":
            raise OSError(code, os.strerror(code), str(path))
        return opened(path, *terms, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        (found,) = look()
    assert found.became == "failed"
    assert "Check that it exists" not in found.detail
    assert (left(folder), list((folder / "quarantine").iterdir())) == (["a.csv"], [])
    assert became(look()) == {"a.csv": "started"}


@pytest.mark.long
def test_trouble_with_one_delivery_costs_no_other(
    workspace: Workspace, folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a start, a note, the quarantine or the ledger comes upon."""
    write(folder / "a.csv", line(1))
    write(folder / "b.csv", line(2))
    (folder / "c.csv").write_text("colour\nred\n")
    import_it = import_here(workspace, StatedTerms())

    def full_for_a(waiting: Waiting) -> Started:
        if waiting.names == ("a.csv",):
            raise OSError(28, "No space left on device")
        return import_it(waiting)

    def full(*_: Any) -> None:
        raise SettingsError("No space left on device: make room.")

    with monkeypatch.context() as patched:
        patched.setattr(Inbox, "put_aside", full)
        expected = {"a.csv": "failed", "b.csv": "started", "c.csv": "failed"}
        assert became(look(full_for_a)) == expected
    # A note is there now, and it is started before anything is taken in.
    (folder / "d.csv").write_text("")
    write(folder / "e.csv", line(3))
    expected = {"a.csv": "failed", "c.csv": "quarantined", "d.csv": "quarantined"}
    assert became(look(full_for_a)) == expected | {"e.csv": "started"}
    write(folder / "f.csv", line(4))
    with monkeypatch.context() as patched:
        patched.setattr(Inbox, "mark", full)
        assert became(look()) == {"a.csv": "started", "f.csv": "failed"}
    with monkeypatch.context() as patched:
        patched.setattr("flows.stages.inbox.taken_by", full)
        assert became(look()) == {"f.csv": "failed"}
    assert became(look()) == {"f.csv": "started"}


def test_a_delivered_file_is_put_back_whatever_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was on its way to quarantine, with the reason put beside it."""
    inbox = Inbox(folder)
    files = {"manifest.json": '{"files": {"a.csv": {}, "a.csv.why.txt": {}}}'}
    files |= {"a.csv": "delivered", "a.csv.why.txt": "delivered too"}
    files |= {"manifest.json.why.txt": "left alone"}

    def stop(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for name, text in files.items():
        (folder / name).write_text(text)
    with inbox.alone():
        found = inbox.look(0, lambda _seconds: None)
        (arrival,) = found.complete
        assert found.left_alone == ("manifest.json.why.txt",)
        taken = inbox.take(arrival)
        assert taken is not None
        with monkeypatch.context() as patched, suppress(OSError):
            patched.setattr(Path, "rename", stop)
            inbox.put_aside(taken, ["a.csv"], "it is no good")
        assert (taken / "a.csv-2.why.txt").read_text() == "it is no good\n"
        inbox.recover()
        assert {name: (folder / name).read_text() for name in left(folder)} == files
        (arrival,) = inbox.look(0, lambda _seconds: None).complete
        taken = inbox.take(arrival)
        assert taken is not None
        aside = inbox.put_aside(taken, ["a.csv"], "it is no good")
        assert inbox.recover() == []
        assert list(inbox.taking.iterdir()) == []
    assert (aside / "a.csv-2.why.txt").read_text() == "it is no good\n"
    assert (aside / "a.csv.why.txt").read_text() == "delivered too"


def interrupted(folder: Path, text: str, name: str = "a.csv") -> None:
    """As a look leaves it that was killed after it took a delivery."""
    with Inbox(folder).alone():
        taken = Inbox(folder).taking / "token"
        taken.mkdir()
    (taken / name).write_text(text)


def test_every_delivery_that_came_in_has_a_line_though_another_took_its_name(
    folder: Path, look: Any
) -> None:
    """It is not in the inbox any more, and somebody has to hear where it is."""
    interrupted(folder, "of monday")
    write(folder / "a.csv", line(1))
    lines = look(lambda _waiting: Started("a run"))
    assert sorted((one.name, one.became, one.exit_code) for one in lines) == [
        ("a.csv", "quarantined", 1),
        ("a.csv", "started", 0),
    ]
    (aside,) = [one for one in lines if one.became == "quarantined"]
    assert aside.detail.startswith(f"{folder / 'quarantine' / 'a.csv'}: Another file of this name")
    assert (folder / "quarantine" / "a.csv" / "a.csv").read_text() == "of monday"


def test_a_delivery_that_is_taken_and_displaced_by_the_next_has_a_line_too(
    folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark of it comes while another is imported, and the next one while it is put back."""
    for number, name in enumerate(("a.csv", "b.csv")):
        write(folder / name, line(number))
    put_back = Inbox.put_back

    def marked(_waiting: Waiting) -> Started:
        write(folder / "b.csv.done")
        return Started("a run")

    def arrived(inbox: Inbox, taken: Path) -> None:
        write(folder / "b.csv", line(2))
        put_back(inbox, taken)

    monkeypatch.setattr(Inbox, "put_back", arrived)
    assert [(one.name, one.became, one.exit_code) for one in look(marked)] == [
        ("a.csv", "started", 0),
        ("b.csv", "unfinished", 0),
        ("b.csv", "quarantined", 1),
    ]
    assert left(folder) == ["b.csv", "b.csv.done"]


def test_a_delivery_that_cannot_be_put_back_is_told_of_at_every_look(
    folder: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(folder, "of monday")
    write(folder / "a.csv", line(1))

    def full(path: Path, _content: bytes) -> None:
        raise SettingsError(f"{path}: No space left on device")

    monkeypatch.setattr("connectors.files.incoming.inbox.write_file", full)
    for _ in range(2):
        stuck = [one for one in look() if ".recon/taking/token" in one.detail]
        assert [(one.name, one.became, one.exit_code) for one in stuck] == [("a.csv", "failed", 1)]
        assert "not put back" in stuck[0].detail
        assert "No space left on device" in stuck[0].detail
        write(folder / "a.csv", line(1))
    monkeypatch.undo()
    found = look(lambda _waiting: Started("a run"))
    assert {one.became for one in found} == {"quarantined", "started"}


@pytest.mark.long
def test_a_file_that_grows_after_it_was_taken_is_put_aside(
    folder: Path, look: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender has it open still: what was read of it is not what is there."""
    write(folder / "a.csv", line(1))
    with (folder / "a.csv").open("a") as sender:

        def reached(point: str) -> None:
            if point == "inbox-opened":
                sender.write(f"{line(2)}\n")
                sender.flush()

        with monkeypatch.context() as patched:
            patched.setattr("flows.stages.inbox.reach", reached)
            assert became(look()) == {"a.csv": "quarantined"}
    assert (rows("SELECT count(*) FROM batch"), left(folder), look()) == ([(0,)], [], [])
    aside = folder / "quarantine" / "a.csv"
    assert "were changed after the inbox took them" in (aside / "a.csv.why.txt").read_text()
    (aside / "a.csv").rename(folder / "a.csv")
    assert became(look()) == {"a.csv": "started"}
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]


def test_what_waits_is_started_where_the_inbox_was_moved_to(
    folder: Path, look: Any, workspace: Workspace
) -> None:
    def fail(_waiting: Waiting) -> Started:
        raise DatabaseUnusable("the service that starts imports is away")

    write(folder / "a.csv", line(1))
    look(fail)
    moved = folder.rename(folder.with_name("moved"))
    watch = Watch(workspace, Inbox(moved), StatedTerms(), import_here(workspace, StatedTerms()))
    assert became(watch.look(0)) == {"a.csv": "started"}


def test_content_that_comes_again_with_other_marks_leaves_the_first_where_it_is(
    folder: Path, look: Any
) -> None:
    """A run that was started and has not begun reads the first by its names."""
    waiting: list[Waiting] = []

    def note(one: Waiting) -> Started:
        waiting.append(one)
        return Started("a run that has not begun")

    for name in ("a.csv", "b.csv", "a.csv"):
        write(folder / name, line(1))
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        told = f"{digest}  {name}\n" + "# again\n" * len(waiting)
        (folder / f"{name}.sha256").write_text(told)
        assert became(look(note)) == {name: "started"}
        assert archived(folder)[0] == "a.csv"
        # The newest word about a file of the same name is the one that holds.
        assert (waiting[-1].folder / f"{name}.sha256").read_text() == told
    assert {one.key for one in waiting} == {waiting[0].key}
    assert all(Path(path).is_file() for one in waiting for path in one.paths)
    assert archived(folder) == ["a.csv", "a.csv.sha256", "b.csv", "b.csv.sha256"]
    assert left(folder) == []


@pytest.mark.long(but=("True",))
@pytest.mark.parametrize("links", [True, False])
def test_content_that_comes_again_under_another_name_has_the_manifest_of_its_own(
    workspace: Workspace,
    folder: Path,
    look: Any,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
    links: bool,
) -> None:
    """The run of the first one is held to what was said of it; some places have no links."""
    waiting: list[Waiting] = []

    def note(one: Waiting) -> Started:
        waiting.append(one)
        return Started("a run that has not begun")

    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(95, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for name in ("a.csv", "b.csv", "b.csv", "a.csv"):
        write(folder / name, line(1))
        (folder / "manifest.json").write_text(json.dumps({"files": {name: {"rows": 2}}}))
        assert became(look(note)) == {"manifest.json": "started"}
    assert archived(folder) == ["a.csv", "b.csv", "manifest.json", "manifest.json"]
    assert len({one.key for one in waiting}) == 1
    for one in (waiting[0], waiting[1]):
        import_here(workspace, StatedTerms())(one)
    assert rows("SELECT name, refused FROM extract") == [("a.csv", "incomplete_file")]
    Inbox(folder).mark(waiting[1])
    with Inbox(folder).alone():
        assert Inbox(folder).recover() == [waiting[1]]


def test_a_note_that_was_being_written_hides_no_other(folder: Path) -> None:
    inbox = Inbox(folder)
    place = inbox.place_of("ab")
    place.mkdir(parents=True)
    waiting = Waiting("ab", place, ("a.csv",))
    inbox.mark(waiting)
    notes = folder / ".recon" / "waiting"
    (notes / ".half").write_bytes(b"{")
    with inbox.alone():
        assert inbox.recover() == [waiting]
    assert [path.name for path in notes.iterdir()] == ["ab"]


@pytest.mark.parametrize("note", [in_long(b""), b"{", in_long(b"[]"), b'{"names": 1}', None])
def test_a_note_that_cannot_be_read_blocks_no_other(
    folder: Path, look: Any, rows: Any, note: bytes | None
) -> None:
    """As a disk that failed or somebody at work there leaves it."""
    with Inbox(folder).alone():
        place = Inbox(folder).waiting / "ab"
    place.mkdir() if note is None else place.write_bytes(note)
    write(folder / "a.csv", line(1))
    for started in (["a.csv"], []):
        found = {one.name: one for one in look()}
        assert [name for name, one in found.items() if one.became == "started"] == started
        assert (found["ab"].became, found["ab"].exit_code) == ("failed", 1)
        todo = f"Put the files in {folder}/archive/ab/ab into the inbox again, and remove the note."
        assert found["ab"].detail.startswith(
            f"{place}: This note of a delivery that waits for its import cannot be read. "
            + (f"{place}: Is a directory. " if note is None else todo)
        )
    assert rows("SELECT name FROM extract") == [("a.csv",)]


def test_the_standing_command_outlives_another_watcher(
    workspace: Workspace,
    database_url: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RECON_DATABASE_URL", database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
    write(folder / "a.csv", line(1))
    with ExitStack() as other:
        other.enter_context(Inbox(folder).alone())

        def pause(_seconds: float) -> None:
            if not left(folder):
                raise KeyboardInterrupt
            other.close()

        monkeypatch.setattr(command, "time", SimpleNamespace(sleep=pause))
        with pytest.raises(KeyboardInterrupt):
            command.watch_command(folder, settle=0)
    told = capsys.readouterr()
    assert f"Looking into {folder} is done by one process at a time: " in told.err
    assert "a.csv: started" in told.out
