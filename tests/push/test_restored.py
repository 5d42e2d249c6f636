"""A restored copy knows that it is one: pushes are held until somebody says from where to go on."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import PushHeld
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.count import note_window, windows_at_home
from connectors.postgres.push.gate import MARKER, held_text_for_sender, why_held
from connectors.postgres.push.sends import SendDecision
from flows.ops.laptop import show_held
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep.archive import verify_archive
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.push.conftest import Copy, deliver, towards
from tests.push.deliveries import applied, tones
from tests.recon import run
from tests.service.faulty_server import FaultyServer, Reply, at

ROWS, BEFORE = 6, 2


def at_home(place: Workspace, home: Path) -> Workspace:
    return replace(place, settings=replace(place.settings, home=home))


def backup(place: Workspace, to: Path) -> Path:
    shutil.copytree(place.settings.home, to, dirs_exist_ok=True)
    return to


def put_back(place: Workspace, folder: Path) -> Workspace:
    """The home as it was, over what is there."""
    shutil.copytree(folder, place.settings.home, dirs_exist_ok=True)
    return place


def dumped(place: Workspace) -> Workspace:
    """The same database after its rows were written again, as a restored dump does in place."""
    with psycopg.connect(str(place.settings.database_url)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM recon.push_epoch")
        connection.execute("DELETE FROM recon.push_epoch")
        connection.execute("INSERT INTO recon.push_epoch SELECT * FROM kept")
    return place


def half_a_marker(place: Workspace) -> Workspace:
    path = place.settings.home / MARKER
    path.write_bytes(path.read_bytes()[:9])
    return place


def half_a_count(place: Workspace) -> Workspace:
    (path,) = place.settings.home.glob("push-*.windows")
    path.write_bytes(b"half")
    return place


Restored = Callable[[Workspace, Workspace, Path, Path], Workspace]
CASES: dict[str, tuple[Restored, str]] = {
    # Given: the workspace, its database as it was before, its home as it was before, a new folder.
    "older database": (lambda now, old, home, new: old, "the database is older than this"),
    "older database, fresh home": (lambda now, old, home, new: at_home(old, new), "has no marker"),
    "older database and home": (
        lambda now, old, home, new: at_home(old, home),
        "the database is a copy",
    ),
    "older home": (lambda now, old, home, new: put_back(now, home), "is older than the database"),
    "fresh home": (lambda now, old, home, new: at_home(now, new), "has no marker"),
    "copy of the home": (
        lambda now, old, home, new: at_home(now, backup(now, new)),
        "marker was restored, copied",
    ),
    "a dump restored in place": (lambda now, old, home, new: dumped(now), "the database is a copy"),
    "half a marker": (
        lambda now, old, home, new: half_a_marker(now),
        "push-marker.json cannot be read: it is not whole",
    ),
    "half a count": (
        lambda now, old, home, new: half_a_count(now),
        "push-AddMessageTone.windows cannot be read: it is not whole",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_sent_twice_whatever_was_restored(
    workspace: Workspace, copied: Copy, tmp_path: Path, case: str
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url, concurrency=1)
        batch = import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT).batch.id
        push_batch(now, batch, most=BEFORE)
        home, old = backup(now, tmp_path / "backup"), copied(now)
        push_batch(now, batch, most=BEFORE)
        restore, why = CASES[case]
        place = restore(now, old, home, tmp_path / "new")
        told = run(
            str(place.settings.database_url),
            place.settings.home,
            "push",
            RECON_SERVICE_URL=server.url,
            RECON_SERVICE_USER="ops",
            RECON_SERVICE_PASSWORD="pw-canary",
        )
        assert told.returncode == 2, told.stdout
        assert why in told.stderr
        assert "recon restored --unsent" in told.stderr
        status = run(str(place.settings.database_url), place.settings.home, "status")
        assert "Pushes are held" in status.stdout
        if case in ("fresh home", "copy of the home"):
            with now.database.connect() as connection:
                assert why_held(connection, now.settings.home) is None
        assert len(applied(server)) == 2 * BEFORE
        go_on_after_restore(place, unsent="in_doubt", by="a", reason="restored")
        push_batch(place, batch)
        effects = applied(server)
        assert len(effects) == 2 * BEFORE
        assert {len(bodies) for bodies in effects.values()} == {1}
        with place.database.connect() as connection:
            assert why_held(connection, place.settings.home) is None


def test_every_place_where_an_operator_looks_says_that_pushes_are_held(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        batch = import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT).batch.id
        push_batch(now, batch, most=BEFORE)
        place = at_home(now, tmp_path / "new")
    url, home = str(place.settings.database_url), place.settings.home
    for asked, stream in (
        (("status",), "stdout"),
        (("sends", "1"), "stdout"),
        (("sends", "1", "--json"), "stdout"),
        (("audit", "list"), "stderr"),
        (("resolve", "1", "--as", "abandon", "--state", "refused", "--reason", "x"), "stderr"),
    ):
        told = run(url, home, *asked)
        texts = {"stdout": told.stdout, "stderr": told.stderr}
        assert texts[stream].count("has no marker, and rows were sent from another") == 1, asked
        assert (told.stdout + told.stderr).count("has no marker") == 1, asked
    assert "recon restored --unsent ..., then recon push 1" in run(url, home, "status").stdout
    said: list[str] = []
    show_held(place.settings, said.append)
    assert "Pushes are held" in said[0]
    said.clear()
    show_held(now.settings, said.append)
    assert said == []
    # What is no business of whoever may not send.
    with place.database.connect() as connection, connection.transaction(force_rollback=True):
        assert held_text_for_sender(connection, home) is not None
        connection.execute("CREATE ROLE looks_only")
        connection.execute("GRANT USAGE ON SCHEMA recon TO looks_only")
        connection.execute("SET LOCAL ROLE looks_only")
        assert held_text_for_sender(connection, home) is None


@pytest.mark.long
def test_one_home_that_finds_its_database_restored_holds_the_others(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The disk of the database is put back behind the push of another home than the next one's."""
    with FaultyServer(at({3: Reply(hold=lambda: kept(workspace))})) as server:
        one = towards(workspace, server.url, concurrency=1)
        other = at_home(one, tmp_path / "other")
        import_delivery(one, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        push_batch(one, 1, most=1)
        go_on_after_restore(other, unsent="unsent", by="a", reason="a second worker")
        push_batch(other, 1, most=1)
        push_batch(one, 1, most=1)
        push_batch(one, 1, most=1)
        physically_restored(one)
        with pytest.raises(PushHeld, match="older than this RECON_HOME"):
            push_batch(one, 1)
        for _ in range(2):
            with pytest.raises(PushHeld, match="older than another RECON_HOME"):
                push_batch(other, 1)
        go_on_after_restore(other, unsent="in_doubt", by="a", reason="restored")
        push_batch(other, 1)
        effects = applied(server)
        assert {len(bodies) for bodies in effects.values()} == {1}


@pytest.mark.long
def test_a_home_that_lacks_none_of_its_own_rows_is_not_told_of_those_of_another(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The limit that docs/push.md states: only the home that is ahead can tell, by its status."""
    with FaultyServer(at({2: Reply(hold=lambda: kept(workspace))})) as server:
        ahead = towards(workspace, server.url, concurrency=1)
        other = at_home(ahead, tmp_path / "other")
        import_delivery(ahead, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        push_batch(ahead, 1, most=1)
        go_on_after_restore(other, unsent="unsent", by="a", reason="a second worker")
        push_batch(ahead, 1, most=1)
        push_batch(ahead, 1, most=1)
        physically_restored(ahead)
        with other.database.connect() as connection:
            assert why_held(connection, other.settings.home) is None
            assert "older than this RECON_HOME" in str(why_held(connection, ahead.settings.home))
        push_batch(other, 1, most=1)
        assert max(len(bodies) for bodies in applied(server).values()) == 2


def test_whoever_knows_that_nothing_was_sent_says_so(
    workspace: Workspace, copied: Copy, tmp_path: Path, rows: Any
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        batch = import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT).batch.id
        push_batch(now, batch, most=BEFORE)
        moved = copied(now)
        with pytest.raises(PushHeld):
            push_batch(moved, batch)
        go_on_after_restore(moved, unsent="unsent", by="a", reason="moved to another server")
        push_batch(moved, batch)
        assert sorted(applied(server)) == list(range(1, ROWS + 1))
        # The one it was moved from is the copy now.
        with pytest.raises(PushHeld, match="the database is older"):
            push_batch(now, batch)
        assert {len(bodies) for bodies in applied(server).values()} == {1}
        with moved.database.connect() as connection:
            told = connection.execute(
                'SELECT "by", reason, detail FROM event WHERE what = %s', ["restored"]
            ).fetchall()
        assert [(by, reason) for by, reason, _ in told] == [("a", "moved to another server")]
        assert json.loads(told[0][2])["unsent"] == "unsent"


@pytest.mark.long(but=("and its list alone",))
@pytest.mark.parametrize("removed", [False, True], ids=["as it is", "and its list alone"])
def test_a_delivery_that_only_the_archive_knows_is_not_sent_again(
    workspace: Workspace, copied: Copy, tmp_path: Path, removed: bool
) -> None:
    """It came and was pushed after the backup; delivered again, its POSTs are in doubt.

    So they are where housekeeping has removed it since: the archive lists what went.
    """
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        old = copied(now)
        deliver(now, tones(tmp_path / "tones.csv", ROWS))
        if removed:
            later = datetime.now(UTC) + timedelta(days=100)
            sweep(now, Retention(archive_days=90, report_days=90), now=later, dry_run=False)
            assert not [*now.settings.archive.glob("??/*.csv")]
        went_on = go_on_after_restore(old, unsent="in_doubt", by=None, reason="restored")
        assert (len(went_on.lost), went_on.lost_removed) == (int(not removed), int(removed))
        deliver(old, tmp_path / "tones.csv")
        assert {len(bodies) for bodies in applied(server).values()} == {1}
        other = tmp_path / "other.csv"
        other.write_text("TenantsId,AvatarsId,Name\n7,3,tone 99\n")
        deliver(old, other)
        assert 99 in applied(server)


def test_an_archive_that_is_not_there_where_pushes_go_on_is_told(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    """Its disk is not mounted, say: what was lost is known only once it is back."""
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        import_delivery(now, [tones(tmp_path / "1.csv", 1)], DEFAULT)
        old = copied(now)
        deliver(now, tones(tmp_path / "tones.csv", ROWS))
        archive, away = now.settings.archive, tmp_path / "away"
        restored = ("restored", "--unsent", "in-doubt", "--reason", "restored")
        url, home = str(old.settings.database_url), old.settings.home
        archive.rename(away)
        told = run(url, home, *restored)
        assert "The archive lacks 1 content that batches brought" in told.stdout
        assert "run this command again" in told.stdout
        assert json.loads(run(url, home, *restored, "--json").stdout)["missing"] == 1
        shutil.rmtree(archive, ignore_errors=True)
        away.rename(archive)
        assert "lacks" not in run(url, home, *restored).stdout
        deliver(old, tmp_path / "tones.csv")
        assert {len(bodies) for bodies in applied(server).values()} == {1}


@pytest.mark.long
def test_what_a_restored_database_has_lost_is_named_and_kept_until_somebody_goes_on(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    """Housekeeping between the restore and `recon restored` removes nothing that tells of it."""
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        old = copied(now)
        path = Path(tones(tmp_path / "tones.csv", ROWS))
        deliver(now, path)
        name = f"inbox/archive/ab/{'ab' * 32}/tones.csv"
        (now.settings.home / name).parent.mkdir(parents=True)
        shutil.copy(path, now.settings.home / name)
        later = datetime.now(UTC) + timedelta(days=100)
        (contents, *_) = sweep(old, Retention(archive_days=90), now=later, dry_run=False)
        assert contents.number == 0
        url, home = str(old.settings.database_url), old.settings.home
        verified = run(url, home, "archive", "verify")
        assert verified.returncode == 0, verified.stdout
        assert "1 content that no batch knows" in verified.stdout
        told = run(url, home, "restored", "--unsent", "in-doubt", "--reason", "restored")
        assert "The archive holds 1 content that no batch knows." in told.stdout
        for output in (verified.stdout, told.stdout):
            assert f"  archive/{kept_name(old)}, " in output
            assert name in output
        deliver(old, path)
        assert {len(bodies) for bodies in applied(server).values()} == {1}
        assert verify_archive(old).unknown == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("again", "known"),
    [(False, False), (True, True), (True, False)],
    ids=["removed", "removed, then lost", "removed, then lost, and the home alone knows"],
)
def test_what_housekeeping_removed_since_the_backup_is_taken_over(
    workspace: Workspace, copied: Copy, tmp_path: Path, again: bool, known: bool
) -> None:
    """What was delivered after that, and is gone, was lost."""
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        path = tones(tmp_path / "tones.csv", ROWS)
        deliver(now, path)
        before = copied(now)
        later = datetime.now(UTC) + timedelta(days=100)
        sweep(now, Retention(archive_days=90, report_days=90), now=later, dry_run=False)
        old = before
        if again:
            deliver(now, path)
            old = copied(now) if known else before
            (now.settings.archive / kept_name(now)).unlink()
        url, home = str(old.settings.database_url), old.settings.home
        assert run(url, home, "archive", "verify").returncode == 1
        told = run(url, home, "restored", "--unsent", "in-doubt", "--reason", "restored")
        assert ("housekeeping removed 1 content; now" in told.stdout) == (not again)
        assert ("housekeeping removed 1 batch report; now" in told.stdout) == (not known)
        verified = run(url, home, "archive", "verify")
        assert verified.returncode == int(again), verified.stdout
        rerun = run(url, home, "rerun", "1")
        assert ("it is missing" in rerun.stderr) == again
        with old.database.connect() as connection:
            noted = "SELECT detail FROM event WHERE what = 'content removed' ORDER BY id DESC"
            details = [detail for (detail,) in connection.execute(noted)]
        assert ["listed_at" in json.loads(detail) for detail in details] == (
            [] if again and not known else [not again]
        )


def kept_name(place: Workspace) -> str:
    """The one content in the archive."""
    (path,) = place.settings.archive.glob("??/*.csv")
    return str(path.relative_to(place.settings.archive))


@pytest.mark.long
@pytest.mark.parametrize("undone", [False, True], ids=["delivered once more", "undone"])
def test_a_batch_that_was_pushed_after_the_backup_is_not_sent_by_another(
    workspace: Workspace, copied: Copy, tmp_path: Path, undone: bool
) -> None:
    """The restored database has it as one that nobody asked to push; nothing of it is planned."""
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        path = tones(tmp_path / "tones.csv", ROWS)
        import_delivery(now, [path], DEFAULT)
        old = copied(now)
        push_batch(now, 1)
        go_on_after_restore(old, unsent="in_doubt", by=None, reason="restored")
        if undone:
            undo_batch(old, 1, by=None, reason="wrong month")
            deliver(old, path)
        else:
            for more in (1, 2):
                deliver(old, tones(tmp_path / f"{more}.csv", ROWS + more))
            push_batch(old, 1)
        assert {len(bodies) for bodies in applied(server).values()} == {1}
        assert len(applied(server)) == (ROWS if undone else ROWS + 2)
        for batch in (2,) if undone else (3, 1, 2):
            chosen = ChosenSends(states=("in_doubt",))
            resolve(old, batch, chosen, SendDecision.RESEND, by=None, reason="not there")
        for batch in (2,) if undone else (1, 2, 3):
            push_batch(old, batch)
        assert {len(applied(server)[row]) for row in range(1, ROWS + 1)} == {2}


@pytest.mark.long
def test_a_database_restored_from_before_the_first_push_is_told(
    workspace: Workspace, copied: Copy, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        old = at_home(copied(now), tmp_path / "new")
        push_batch(now, 1)
        with pytest.raises(PushHeld, match="the database is a copy"):
            push_batch(old, 1)
        assert {len(bodies) for bodies in applied(server).values()} == {1}


@pytest.mark.long
def test_a_copy_of_the_disk_made_while_rows_were_sent_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Nothing but the rows of the push itself is older: the run and its epoch are known."""
    with FaultyServer(at({2: Reply(hold=lambda: kept(workspace))})) as server:
        now = towards(workspace, server.url, concurrency=1)
        import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        push_batch(now, 1)
        physically_restored(now)
        for _ in range(3):
            with pytest.raises(PushHeld, match="does not know of the last rows that were sent"):
                push_batch(now, 1)
        go_on_after_restore(now, unsent="in_doubt", by="a", reason="restored")
        push_batch(now, 1)
        effects = applied(server)
        assert sorted(effects) == list(range(1, ROWS + 1))
        assert {len(bodies) for bodies in effects.values()} == {1}


def physically_restored(place: Workspace) -> None:
    with psycopg.connect(str(place.settings.database_url)) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("send", "push_lane", "batch"):
            connection.execute(f"TRUNCATE recon.{table}")  # type: ignore[call-overload]
            connection.execute(f"INSERT INTO recon.{table} SELECT * FROM kept_{table}")  # type: ignore[call-overload]


def kept(place: Workspace) -> None:
    with psycopg.connect(str(place.settings.database_url)) as connection:
        for table in ("send", "push_lane", "batch"):
            connection.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM recon.{table}")  # type: ignore[call-overload]


@pytest.mark.long
@pytest.mark.parametrize("step", ["push-epoch", "push-sealed"])
def test_a_run_that_dies_at_the_gate_holds_nobody(
    workspace: Workspace, tmp_path: Path, step: str
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url)
        import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        service = {
            "RECON_SERVICE_URL": server.url,
            "RECON_SERVICE_USER": "ops",
            "RECON_SERVICE_PASSWORD": "pw-canary",
            "RECON_SERVICE_FORMAT": "json",
        }
        place = str(now.settings.database_url), now.settings.home
        for _ in range(2):
            assert run(*place, "push", "1", CRASH_AT=step, **service).returncode < 0
        assert run(*place, "push", "1", **service).returncode == 0
        assert sorted(applied(server)) == list(range(1, ROWS + 1))


def test_a_home_that_is_ahead_stays_so(tmp_path: Path) -> None:
    """Whatever a run of an older database counts, the next gate sees that windows are missing."""
    for count in (3, 5, 4):
        note_window(tmp_path, "AddMessageTone", count)
    assert windows_at_home(tmp_path) == {"AddMessageTone": 5}
