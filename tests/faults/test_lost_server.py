"""The server ends a run's session, or is restarted at once: the run goes on, and applies once."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import DatabaseLost
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.postgres.schema.upgrade import migrate
from connectors.postgres.server.embedded import embedded_url
from connectors.postgres.server.postmaster import Postmaster
from connectors.settings import Limits, Settings
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.faults.commands import ended
from tests.faults.conftest import Fresh, named
from tests.recon import Run
from tests.stages.payments import line, write

ROWS = 3_000
FAULTS_PER_RUN = 2
"""The third attempt is the last one."""


@pytest.fixture
def delivery(tmp_path: Path) -> str:
    return write(tmp_path / "payments.csv", *(line(number) for number in range(1, ROWS + 1)))


def meanwhile(statement: str) -> str:
    """SQL of the trigger that runs this inside of a statement of the run, some times over."""
    return f"""
        CREATE SEQUENCE recon.faults;
        CREATE FUNCTION recon.fault() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('recon.faults') <= {FAULTS_PER_RUN} THEN {statement}; END IF;
            RETURN NULL;
        END $$;"""


PLACES = {
    "copy of staged rows": "AFTER INSERT ON recon.staged_payment",
    "receipt": "AFTER INSERT ON recon.receipt",
    "copy of target rows": "AFTER INSERT ON recon.payment",
    "state of the batch": "AFTER UPDATE ON recon.batch",
}


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_session_that_is_terminated(
    fresh: Fresh, server: str, tmp_path: Path, delivery: str, place: str
) -> None:
    with fresh("recon_template") as database:
        url = named(server, database)
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(meanwhile("PERFORM pg_terminate_backend(pg_backend_pid())"))
            owner.execute(
                f"CREATE TRIGGER fault {PLACES[place]} "
                "FOR EACH STATEMENT EXECUTE FUNCTION recon.fault()"
            )
        settings = Settings(tmp_path / "home", url, Limits(block_bytes=20_000, strict_bytes=0))
        ended = import_delivery(Workspace(settings, open_database(settings)), [delivery], DEFAULT)
        assert ended.batch.state == "complete"
        assert all(chain.ties for chain in ended.report.chains)
        with psycopg.connect(url) as owner:
            assert owner.execute("SELECT last_value FROM recon.faults").fetchone() != (1,)
            assert owner.execute("SELECT count(*) FROM recon.payment").fetchone() == (ROWS,)
            assert owner.execute("SELECT count(*) FROM recon.staged_payment").fetchone() == (ROWS,)


def test_lost_every_time_it_gives_up(
    fresh: Fresh, server: str, tmp_path: Path, delivery: str
) -> None:
    with fresh("recon_template") as database:
        url = named(server, database)
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(
                meanwhile("PERFORM pg_terminate_backend(pg_backend_pid())").replace(
                    f"<= {FAULTS_PER_RUN}", "> 0"
                )
            )
            owner.execute(
                "CREATE TRIGGER fault AFTER INSERT ON recon.payment "
                "FOR EACH STATEMENT EXECUTE FUNCTION recon.fault()"
            )
        settings = Settings(tmp_path / "home", url)
        place = Workspace(settings, open_database(settings))
        with pytest.raises(DatabaseLost, match="57P01"):
            import_delivery(place, [delivery], DEFAULT)
        with psycopg.connect(url, autocommit=True) as owner:
            assert owner.execute("SELECT state FROM recon.batch").fetchone() == ("checked",)
            assert owner.execute("SELECT count(*) FROM recon.payment").fetchone() == (0,)
            owner.execute("DROP TRIGGER fault ON recon.payment")
        assert import_delivery(place, [delivery], DEFAULT).batch.state == "complete"


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A server that may be restarted: its folder and the URL of a database with our schema."""
    import sqlalchemy as sa

    folder = tmp_path_factory.mktemp("restarted") / "postgres"
    url = embedded_url(folder, "recon")
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()
    return folder, url


def restart(folder: Path) -> None:
    """At once, as when it crashed: every session ends in the middle of its statement."""
    kill(folder, signal.SIGQUIT)
    embedded_url(folder)


def kill(folder: Path, number: signal.Signals) -> None:
    """Send a signal to the server of a data folder."""
    server = Postmaster(folder)
    pid = server.listener()
    assert pid is not None
    os.kill(pid, number)
    while server.listens():
        threading.Event().wait(0.01)


def waits(url: str, query: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone() is not None


def until(happened: Callable[[], bool]) -> None:
    """Asked over and over; the run is given up on by its own deadline."""
    for _ in range(3000):
        if happened():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")


@pytest.mark.long
@pytest.mark.parametrize("target", ["outcome", "payment"])
def test_a_server_that_is_restarted_while_rows_are_checked_and_applied(
    own_server: tuple[Path, str], tmp_path: Path, delivery: str, target: str
) -> None:
    folder, url = own_server
    with psycopg.connect(url, autocommit=True) as owner:
        # The run stops inside of its transaction, where it can be found.
        owner.execute("SELECT pg_advisory_lock(1)")
        owner.execute(
            f"""CREATE FUNCTION recon.wait() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
            CREATE TRIGGER wait BEFORE INSERT ON recon.{target}
            FOR EACH STATEMENT EXECUTE FUNCTION recon.wait()"""
        )
        twice = Path(delivery)
        twice.write_text(twice.read_text() + line(1) + "\n")
        run = Run(url, tmp_path / "home", "import", delivery)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"
        until(lambda: run.poll() is not None or waits(url, waiting))
        assert run.poll() is None, run.communicate()
        restart(folder)
    code, told = ended(run)
    assert code == 0, told
    assert "The connection to the database was lost" in told
    with psycopg.connect(url) as owner:
        found: Any = owner.execute("SELECT count(*) FROM recon.payment").fetchone()
        assert found == (ROWS,)
        assert owner.execute("SELECT state FROM recon.batch").fetchall() == [("complete",)]
