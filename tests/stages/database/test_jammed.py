"""Who only reads keeps nobody from working, whatever locks a login can take by itself."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from connectors.errors import BatchHeldElsewhere, DatabaseUnusable, TurnNotGiven
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.database import open_database
from connectors.postgres.heartbeat import in_turn, take
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import hold_scope, scope_hash
from connectors.postgres.schema.revisions import revisions
from connectors.postgres.schema.schema_lock import lock_schema
from connectors.sandbox.store import Store
from connectors.settings import Limits
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import prepare
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import SHOWN
from schemas.guards.leases import Held
from schemas.guards.roles import CONTROLLER, LOADER, MERGER, READER
from schemas.life import Choice
from tests.governance.runs import SCOPE, found, reconcile
from tests.push.conftest import towards
from tests.service.faulty_server import FaultyServer
from tests.stages.conftest import As
from tests.stages.payments import line, write
from tests.upgrade.steps import brought_to

ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2099, 12, 31))
SOURCES = Path(__file__).parents[3]
# What each of our locks was once taken under.
NUMBERS = (
    "hashtext('recon receive')",
    "hashtext('recon push epoch')",
    "hashtext('recon migration')",
    "hashtext('sandbox')",
    "hashtext('recon push'), hashtext('PostMessageTone')",
    *(f"hashtext('recon batch'), {number}" for number in range(1, 5)),
    *(f"hashtext('recon corrections'), {number}" for number in range(1, 5)),
    *(
        f"hashtext('recon {kind}'), hashtext('{scope_hash(SCOPE)}')"
        for kind in ("scope", "decision")
    ),
)


@pytest.fixture
def jam(acting: As) -> Iterator[Callable[[], None]]:
    """A reader that takes every lock it can: all of those numbers, and the tables it may read."""
    with ExitStack() as opened:

        def all_of_it() -> None:
            for session in ("numbers", "tables"):
                reader = opened.enter_context(acting(READER).database.connect())
                if session == "numbers":
                    for number in NUMBERS:
                        reader.execute(f"SELECT pg_advisory_lock({number})")  # type: ignore[call-overload]
                else:
                    opened.enter_context(reader.transaction())
                    for table in (SHOWN, "payment", "lease", "batch", "push_epoch", "event"):
                        reader.execute(f"SELECT count(*) FROM {table}")  # type: ignore[call-overload]

        yield all_of_it


@pytest.mark.long
def test_who_only_reads_keeps_nobody_from_working(
    acting: As, jam: Callable[[], None], tmp_path: Path, rows: Any
) -> None:
    merger, first, second = acting(MERGER), acting(CONTROLLER), acting(CONTROLLER)
    jam()
    done = import_delivery(
        merger, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], DEFAULT
    )
    assert done.batch.state in ("complete", "complete_with_errors")
    with FaultyServer() as server:
        place = towards(merger, server.url, turn_seconds=1)
        pushed = import_delivery(
            place, [write(tmp_path / "b.csv", line(3))], replace(DEFAULT, push=True)
        )
        assert pushed.batch.state == "complete"
        assert len(server.effects) == 1
    corrects = import_delivery(
        merger, [write(tmp_path / "c.csv", line(2))], DEFAULT, corrects=done.batch.id
    )
    assert corrects.batch.state == "complete"
    undo_batch(merger, corrects.batch.id, by="a", reason="b")
    run = reconcile(merger, found("1"))
    assert decide_breaks(first, run.id, Chosen(code="AMOUNT"), ACCEPT).ids
    assert decide_breaks(
        second, run.id, Chosen(state="ACCEPTED"), replace(ACCEPT, what=Choice.REOPEN, until=None)
    ).ids
    prepare(first, run.id, by="ann", comment="")
    assert rows("SELECT count(*) FROM lease") == [(0,)]


@pytest.mark.long
def test_numbers_that_are_seen_keep_nobody_from_the_next_lease(acting: As, tmp_path: Path) -> None:
    """Everybody can see which locks a session has."""
    merger, reader = acting(MERGER), acting(READER)
    import_delivery(merger, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with reader.database.connect() as other, merger.database.connect() as ours:
        with hold_batch(ours, 1), hold_scope(ours, "s"):
            seen = other.execute(
                "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks "
                "WHERE locktype = 'advisory' AND granted AND pid = %s",
                [ours.info.backend_pid],
            ).fetchall()
            assert len(seen) == 2
        for (number,) in seen:
            other.execute("SELECT pg_advisory_lock(%s)", [number])
        with hold_batch(ours, 1), hold_scope(ours, "s"):
            pass


def test_no_lock_is_taken_under_a_number_that_can_be_known() -> None:
    taking = re.compile(r"pg_(try_)?advisory_(xact_)?lock")
    found = {
        str(path.relative_to(SOURCES))
        for folder in ("connectors", "flows", "schemas")
        for path in (SOURCES / folder).rglob("*.py")
        if taking.search(path.read_text())
    }
    assert found == {"schemas/guards/leases.py"}


@pytest.mark.long
def test_a_lease_is_free_once_its_session_is_gone_and_no_row_of_it_stays(
    acting: As, tmp_path: Path, rows: Any
) -> None:
    merger = acting(MERGER)
    import_delivery(merger, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with merger.database.connect() as lost:
        for kind in (Held.BATCH, Held.RECEIVE, Held.PUSH, Held.SCOPE, Held.EPOCH):
            assert take(lost, kind, 1 if kind is Held.BATCH else "")
        assert rows("SELECT count(*) FROM lease") == [(5,)]
        with (
            merger.database.connect() as other,
            pytest.raises(BatchHeldElsewhere),
            hold_batch(other, 1),
        ):
            pass
    until(lambda: not rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"))
    with merger.database.connect() as other, hold_batch(other, 1):
        assert rows("SELECT name FROM lease") == [("batch 1",)]


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, 120), ("", 120), ("7", 7), ("2000000000", 86_400)]
)
def test_a_lease_lasts_as_the_session_says_or_as_long_as_any(
    workspace: Workspace, said: str | None, seconds: int
) -> None:
    with psycopg.connect(workspace.database.url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")  # type: ignore[call-overload]
        if said is not None:
            connection.execute("SELECT set_config('recon.lease_seconds', %s, FALSE)", [said])
        taken = take(connection, Held.RECEIVE)
        assert taken is not None
        assert taken.seconds == seconds
        (left,) = connection.execute(
            "SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM lease"
        ).fetchall()
        assert 0 <= seconds - left[0] < 60


@pytest.mark.long
def test_who_has_the_turn_is_named(acting: As, workspace: Workspace) -> None:
    hasty = open_database(replace(workspace.settings, limits=Limits(lease_seconds=1)))
    loader = acting(LOADER)
    with (
        loader.database.connect() as holder,
        in_turn(holder, Held.RECEIVE, "It"),
        hasty.connect() as other,
    ):
        # It renews its lease, so it is never ended: whoever waits gives up after 1 s and some.
        taken = take(other, Held.RECEIVE)
        assert taken is None
        other.execute("SET recon.lease_seconds = '-9'")
        with pytest.raises(TurnNotGiven) as told, in_turn(other, Held.RECEIVE, "To receive"):
            pass
        assert told.value.exit_code == 2
        for part in (
            "To receive is done by one run at a time",
            f"account {holder.info.user}",
            f"session {holder.info.backend_pid}",
            " since 20",
            "pg_terminate_backend",
        ):
            assert part in str(told.value)


@pytest.mark.long
def test_a_change_of_tables_waits_for_a_reader_and_names_it(
    acting: As, workspace: Workspace
) -> None:
    reader = acting(READER)
    with workspace.database.connect() as owner:
        owner.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        brought_to(workspace.database.url, revisions()[0])
        owner.execute(
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO {READER}; GRANT SELECT ON event TO {READER}"
        )
    hasty = replace(workspace.settings, limits=Limits(database_wait_seconds=1))
    # Another program's: what is installed here would refuse a schema of before.
    with psycopg.connect(str(reader.settings.database_url)) as connection:
        connection.execute(f"SELECT count(*) FROM {SCHEMA}.event")
        with pytest.raises(DatabaseUnusable) as told:
            open_database(hasty)
        assert f"session {connection.info.backend_pid} of the account" in str(told.value)
    open_database(hasty)


@pytest.mark.long
def test_nobody_but_its_owner_locks_the_schema(acting: As, workspace: Workspace) -> None:
    """Two that set it up at once take turns, and neither is refused."""
    with workspace.database.connect() as owner:
        owner.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    begin, ends = threading.Barrier(4), []

    def set_up() -> None:
        begin.wait(timeout=30)
        open_database(workspace.settings)
        ends.append(True)

    several = [threading.Thread(target=set_up) for _ in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert ends == [True] * 4
    engine = sa.create_engine(workspace.database.url.replace("://", "+psycopg://", 1))
    with engine.begin() as connection, workspace.database.connect() as other:
        table = sa.Table("alembic_version", sa.MetaData(), schema=SCHEMA)
        lock_schema(connection, SCHEMA, table, 1)
        assert other.execute("SELECT version_num FROM alembic_version").fetchall()
    engine.dispose()


@pytest.mark.long
def test_sandboxes_that_start_at_once_take_turns(workspace: Workspace) -> None:
    begin, opened = threading.Barrier(3), []

    def start() -> None:
        store = Store(workspace.database.url)
        begin.wait(timeout=30)
        store.open()
        store.close()
        opened.append(True)

    several = [threading.Thread(target=start) for _ in range(3)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert opened == [True] * 3


@pytest.mark.long
def test_a_controller_keeps_no_batch_and_a_loader_no_scope(acting: As, tmp_path: Path) -> None:
    refused = {CONTROLLER: ("batch", "push", "receive", "epoch"), LOADER: ("scope", "decision")}
    refused[READER] = (*refused[CONTROLLER], *refused[LOADER])
    for role, kinds in refused.items():
        with acting(role).database.connect() as connection:
            for kind in kinds:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"SELECT keep_{kind}('1', 'x', 9, now())")  # type: ignore[call-overload]


def until(done: Callable[[], bool]) -> None:
    """Ask again until it is so; a session goes within moments."""
    pause = threading.Event()
    for _ in range(500):
        if done():
            return
        pause.wait(0.02)
    raise AssertionError("it never happened")
