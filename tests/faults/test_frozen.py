"""A run whose process is frozen is taken over by another one, and does nothing when it thaws."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from connectors.errors import BatchHeldElsewhere, DatabaseLost, ScopeHeldElsewhere
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import verify
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.database import Database, open_database
from connectors.postgres.heartbeat import Heartbeat, take
from connectors.postgres.runs.reconciliations import hold_scope, keep_scope
from connectors.process import whoami
from connectors.settings import Limits, Settings
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.workspace import Workspace
from schemas.guards.leases import Held
from schemas.guards.roles import statements
from tests.faults.conftest import Fresh, named
from tests.faults.test_lost_server import until
from tests.governance.runs import found, reconcile
from tests.recon import Run
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
)


@pytest.fixture
def url(fresh: Fresh, server: str) -> Iterator[str]:
    with fresh("recon_template") as name:
        yield named(server, name)


def place(url: str, home: Path) -> Workspace:
    settings = Settings(home, url, Limits(lease_seconds=1))
    return Workspace(settings, open_database(settings))


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as owner:
        return owner.execute(statement).fetchall()  # type: ignore[call-overload]


class Frozen:
    """A run that was stopped inside of a transaction; the database has nothing to do for it."""

    def __init__(self, url: str, home: Path, delivery: str) -> None:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("SELECT pg_advisory_lock(1)")
            owner.execute(
                """CREATE FUNCTION recon.wait() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
                CREATE TRIGGER wait BEFORE INSERT ON recon.payment
                FOR EACH STATEMENT EXECUTE FUNCTION recon.wait()"""
            )
            self.run = Run(
                url, home, "import", delivery,
                RECON_LIMIT_LEASE_SECONDS="1", RECON_LIMIT_DATABASE_WAIT_SECONDS="2",
            )  # fmt: skip
            until(lambda: self.run.poll() is not None or bool(ask(url, WAITING)))
            assert self.run.poll() is None, self.run.communicate()
            os.kill(self.run.pid, signal.SIGSTOP)

    def thaw(self) -> tuple[int, str]:
        os.kill(self.run.pid, signal.SIGCONT)
        out, told = self.run.communicate()
        return self.run.wait(), out + told


def in_time(work: Callable[[], object]) -> object:
    """What is refused while the lease has not run out is tried again until it has."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return work()
        except (BatchHeldElsewhere, ScopeHeldElsewhere):
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)


@pytest.mark.long
def test_a_frozen_import_is_taken_over_and_writes_nothing_when_it_thaws(
    url: str, tmp_path: Path
) -> None:
    frozen = Frozen(url, tmp_path / "home", write(tmp_path / "a.csv", line(1), line(2)))
    ours = place(url, tmp_path / "home")
    with pytest.raises(BatchHeldElsewhere, match="can be taken over by the same command"):
        run_batch(ours, 1)
    ended = in_time(lambda: run_batch(ours, 1))
    assert ended.batch.state == "complete"  # type: ignore[attr-defined]
    written = "SELECT xmin, * FROM recon.payment"
    before = ask(url, written), ask(url, "TABLE recon.receipt")
    code, told = frozen.thaw()
    assert code in (0, 3), told
    assert before == (ask(url, written), ask(url, "TABLE recon.receipt"))
    ((detail,),) = ask(url, "SELECT detail FROM recon.event WHERE what = 'batch taken over'")
    assert f"pid {frozen.run.pid}" in str(detail)
    with ours.database.connect() as connection:
        assert verify(connection).broken is None


@pytest.mark.long
def test_another_batch_does_not_wait_for_a_frozen_one(url: str, tmp_path: Path) -> None:
    """It holds the target table; whoever waits for that ends its session."""
    frozen = Frozen(url, tmp_path / "home", write(tmp_path / "a.csv", line(1), line(2)))
    ours = place(url, tmp_path / "home")
    ended = import_delivery(ours, [write(tmp_path / "b.csv", line(1), line(3))], DEFAULT)
    assert ended.batch.state == "complete"
    code, told = frozen.thaw()
    assert code == 0, told
    assert "The connection to the database was lost" in told
    assert ask(url, "SELECT count(*) FROM recon.payment") == [(3,)]


@pytest.mark.long
def test_a_frozen_push_sends_nothing_when_it_thaws(url: str, tmp_path: Path) -> None:
    with FaultyServer() as server:
        ours = place(url, tmp_path / "home")
        lines = [line(number) for number in range(1, 60)]
        import_delivery(ours, [write(tmp_path / "a.csv", *lines)], DEFAULT)
        run = Run(
            url, tmp_path / "home", "push", "1",
            RECON_LIMIT_LEASE_SECONDS="1", RECON_LIMIT_DATABASE_WAIT_SECONDS="2",
            RECON_SERVICE_URL=server.url, RECON_SERVICE_RATE="20",
        )  # fmt: skip
        until(lambda: run.poll() is not None or len(server.requests) > 5)
        os.kill(run.pid, signal.SIGSTOP)
        seen: list[str] = []

        def taken() -> None:
            with ours.database.connect() as connection, hold_batch(connection, 1):
                seen.append(str(len(server.requests)))

        in_time(taken)
        at_stop = len(server.requests)
        with ours.database.connect() as connection, hold_batch(connection, 1):
            os.kill(run.pid, signal.SIGCONT)
            _, told = run.communicate()
            assert run.wait() == 3, told
            assert len(server.requests) == at_stop, "it sent what it had in hand"


@pytest.mark.long
def test_a_scope_is_taken_over_too(workspace: Workspace) -> None:
    """As the database sees a frozen process: a session that is there, and no renewal."""
    database = Database(workspace.database.url, 1, lease_seconds=1)

    def reconcile_elsewhere() -> None:
        with database.connect() as other, hold_scope(other, "s"):
            pass

    def freeze() -> None:
        with database.connect() as frozen, hold_scope(frozen, "s"):
            stop_beating()
            in_time(reconcile_elsewhere)
            frozen.execute("SELECT 1")

    with pytest.raises(DatabaseLost):
        freeze()


LOGINS = {
    # What the owner of the schema may, and whether another login takes a frozen batch over.
    "nothing": ((), False),
    "a member of the account": (("GRANT {worker} TO {owner}",), True),
    "signals": (("GRANT pg_signal_backend TO {owner}",), True),
}


@pytest.mark.long
@pytest.mark.parametrize("case", LOGINS)
def test_another_login_takes_over_or_is_told_who_can(
    workspace: Workspace, rows: Callable[[str], list[tuple[object, ...]]], tmp_path: Path, case: str
) -> None:
    """As in production: the owner of the schema is no superuser, and each worker has an account."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    url, mark = workspace.database.url, uuid.uuid4().hex[:8]
    names = {"worker": f"worker_{mark}", "next": f"next_{mark}", "owner": f"owner_{mark}"}
    granted, ends_well = LOGINS[case]
    with psycopg.connect(url, autocommit=True) as postgres:
        for statement in (
            *statements(),
            "CREATE ROLE {worker} LOGIN IN ROLE recon_merger",
            "CREATE ROLE {next} LOGIN IN ROLE recon_merger",
            "CREATE ROLE {owner}",
            "GRANT USAGE, CREATE ON SCHEMA recon TO {owner}",
            "GRANT SELECT ON recon.lease TO {owner}",
            "ALTER FUNCTION recon.end_holder(text) OWNER TO {owner}",
            *granted,
        ):
            postgres.execute(statement.format(**names))  # type: ignore[call-overload]
        try:
            of_worker, of_next = (
                Database(url.replace("//postgres:@", f"//{names[who]}@"), 1, lease_seconds=1)
                for who in ("worker", "next")
            )

            def take() -> None:
                with of_next.connect() as other, hold_batch(other, 1):
                    pass

            with suppress(DatabaseLost), of_worker.connect() as frozen, hold_batch(frozen, 1):
                stop_beating()
                with pytest.raises(BatchHeldElsewhere, match="can be taken over by the same"):
                    take()
                until(lambda: rows("SELECT 1 FROM lease WHERE expires_at < clock_timestamp()"))
                pid = frozen.info.backend_pid
                if not ends_well:
                    told = rf"run this as {names['worker']}, or let .*pg_terminate_backend\({pid}\)"
                    with pytest.raises(BatchHeldElsewhere, match=told):
                        take()
                    postgres.execute("SELECT pg_terminate_backend(%s)", [pid])
                    until(lambda: not rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"))
                take()
                frozen.execute("SELECT 1")
            assert rows("SELECT count(*) FROM lease") == [(0,)]
        finally:
            postgres.execute("ALTER FUNCTION recon.end_holder(text) OWNER TO postgres")
            for role in names.values():
                postgres.execute(f"DROP OWNED BY {role}")  # type: ignore[call-overload]
                postgres.execute(f"DROP ROLE {role}")  # type: ignore[call-overload]


@pytest.mark.long
def test_a_frozen_decision_keeps_nobody_from_reconciling(workspace: Workspace) -> None:
    """The server ends a transaction that does nothing for so long, whoever may end sessions."""
    database = Database(workspace.database.url, 1, lease_seconds=1)
    run = reconcile(workspace, found())

    def reconcile_elsewhere() -> None:
        with database.connect() as other, hold_scope(other, run.scope):
            pass

    def freeze() -> None:
        with database.connect() as frozen, keep_scope(frozen, run):
            with pytest.raises(ScopeHeldElsewhere) as told:
                reconcile_elsewhere()
            assert f"account {frozen.info.user}, session {frozen.info.backend_pid}" in str(
                told.value
            )
            assert run.scope in str(told.value)
            in_time(reconcile_elsewhere)
            frozen.execute("SELECT 1")

    with pytest.raises(ScopeHeldElsewhere, match="Nothing was decided") as told:
        freeze()
    assert f"about reconciliation {run.id} of {run.scope!r}, by {whoami()} since 20" in str(
        told.value
    )
    assert "lease of 1 second, and its session was ended" in str(told.value)


def stop_beating() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("lease of"):
            thread._target.__self__._ended.set()  # type: ignore[attr-defined]


def test_a_lease_is_asked_for_only_when_it_was_not_renewed_lately(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        taken = take(connection, Held.RECEIVE)
        assert taken is not None
        beat = Heartbeat(connection, taken)
        assert beat.holds()
        beat._renewed -= beat.seconds * 0.6
        assert beat.holds(), "it asked, and was told"
        connection.execute("UPDATE lease SET pid = -1")
        assert beat.holds(), "it was renewed a moment ago"
        assert Lease(connection, 1, 1, beat).why_not() is None
        beat._renewed -= beat.seconds * 0.6
        assert not beat.holds()
        assert "was frozen" in str(Lease(connection, 1, 1, beat).why_not())
        beat.end()


@pytest.mark.parametrize("seconds", [1, 2, 2**50])
def test_every_setting_of_the_lease(workspace: Workspace, seconds: int) -> None:
    database = Database(workspace.database.url, 1, lease_seconds=seconds)
    with database.connect() as connection, hold_scope(connection, "s"):
        assert connection.execute("SELECT count(*) FROM lease").fetchone() == (1,)
    with database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM lease").fetchone() == (0,)
