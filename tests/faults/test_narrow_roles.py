"""A role that is let do little at a time: one connection has to do, and a timeout is named."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from connectors.errors import StatementRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import Database, open_database
from connectors.postgres.heartbeat import take
from connectors.postgres.schema.upgrade import _first
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.guards.leases import Held
from schemas.guards.roles import LOADER, MERGER
from tests.recon import run
from tests.stages.payments import line, write

NEW = "transaction_timeout"
"""Of PostgreSQL 17 and later."""
TIMEOUTS = ("idle_in_transaction_session_timeout", "idle_session_timeout")


@pytest.fixture
def role(workspace: Workspace, with_roles: str) -> Iterator[str]:
    """A role that loads and reconciles, and may be set by its owner."""
    user = f"narrow_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(str(workspace.settings.database_url), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {user} LOGIN IN ROLE {LOADER}, {MERGER}")
        yield user
        owner.execute(f"DROP ROLE {user}")


def set_to(workspace: Workspace, role: str, what: str) -> None:
    with psycopg.connect(str(workspace.settings.database_url), autocommit=True) as owner:
        owner.execute(f"ALTER ROLE {role} {what}")


def narrow(workspace: Workspace, role: str) -> str:
    return str(workspace.settings.database_url).replace("//postgres:@", f"//{role}@")


def idle_until_it_is_ended(database: Database, rows: Any, *, within: bool) -> None:
    """Do nothing, `within` a transaction or not, until the server has had enough of it."""
    with database.connect() as connection:
        pid = connection.info.backend_pid
        if within:
            connection.execute("BEGIN")
        while rows("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]) == [(1,)]:
            pass
        connection.execute("SELECT 1")


@pytest.mark.parametrize(
    "setting",
    [pytest.param(NEW, marks=pytest.mark.own_release), *TIMEOUTS],
)
def test_a_timeout_that_ends_a_session_is_named(
    workspace: Workspace, role: str, rows: Any, setting: str
) -> None:
    set_to(workspace, role, f"SET {setting} = '100ms'")
    database = Database(narrow(workspace, role), 2)
    with pytest.raises(StatementRefused, match=f"setting {setting}: .* SET {setting} = 0") as told:
        idle_until_it_is_ended(database, rows, within=setting != "idle_session_timeout")
    assert told.value.exit_code == 2


@pytest.mark.own_release
@pytest.mark.long
def test_a_migration_takes_as_long_as_it_does_and_names_what_ended_it(
    workspace: Workspace,
) -> None:
    """A statement of it may write a large table anew.

    Another session holds it up: one that ends between two statements may lose the server's words.
    """
    database = Database(str(workspace.settings.database_url), 2)
    with psycopg.connect(database.url) as other:
        with database.connect() as owner:
            name = owner.info.dbname
            owner.execute("DROP SCHEMA recon CASCADE")
            owner.execute(f"ALTER DATABASE {name} SET transaction_timeout = '500ms'")
        other.execute("CREATE SCHEMA recon")
        with pytest.raises(StatementRefused, match="setting transaction_timeout: ") as told:
            open_database(workspace.settings)
        other.rollback()
    assert "RECON_DATABASE_URL" not in str(told.value)
    with psycopg.connect(database.url, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {name} RESET transaction_timeout")
        owner.execute(f"ALTER DATABASE {name} SET statement_timeout = '1ms'")
    open_database(workspace.settings)


def test_what_ended_a_migration_is_told_and_not_that_undoing_it_failed_too() -> None:
    undone = psycopg.OperationalError("the connection is lost")
    undone.__context__ = ended = psycopg.errors.TransactionTimeout("it took too long")
    told = sa.exc.OperationalError("ROLLBACK", None, undone)
    told.__cause__ = undone
    assert _first(told) is ended


@pytest.mark.long(but=("row_security = off",))
@pytest.mark.parametrize("setting", [f"role = {MERGER}", "row_security = off"])
def test_a_role_that_is_set_to_act_otherwise_does_all_the_same(
    workspace: Workspace, role: str, tmp_path: Path, setting: str
) -> None:
    set_to(workspace, role, f"SET {setting}")
    acting = replace(workspace, database=Database(narrow(workspace, role), 2))
    assert import_delivery(acting, [write(tmp_path / "a.csv", line(1))], DEFAULT).exit_code == 0
    with acting.database.connect() as connection:
        held = [take(connection, kind, 1) for kind in (Held.BATCH, Held.PUSH)]
        # One heartbeat renews all that a session holds.
        assert len({one.session for one in held if one}) == 1


@pytest.mark.own_release
@pytest.mark.long
def test_what_a_role_was_not_let_do_is_done_when_it_may(
    workspace: Workspace, role: str, rows: Any, tmp_path: Path
) -> None:
    url, home = narrow(workspace, role), workspace.settings.home
    path = write(tmp_path / "a.csv", *map(line, range(1, 41)))
    for setting in (NEW, *TIMEOUTS):
        set_to(workspace, role, f"SET {setting} = '1ms'")
        ended = run(url, home, "import", path, RECON_LIMIT_DATABASE_WAIT_SECONDS="2")
        # Now and then the run is quicker than the timeout, or than one of its attempts.
        assert ended.returncode in (0, 2), ended.stderr
        assert "Traceback" not in ended.stderr
        set_to(workspace, role, "RESET ALL")
    assert run(url, home, "import", path).returncode == 0
    assert rows("SELECT count(*) FROM payment") == [(40,)]


@pytest.mark.long
def test_one_connection_does_for_all_that_several_read_where_they_may(
    workspace: Workspace, role: str, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", *map(line, range(1, 41)))], DEFAULT)
    asked = Asked(Scope(), date(2026, 1, 31), Rules(references=()))
    several = reconcile(workspace, asked)
    set_to(workspace, role, "CONNECTION LIMIT 1")
    alone = replace(workspace, database=Database(narrow(workspace, role), 2))
    one = reconcile(alone, asked)
    assert one.run.id == several.run.id + 1
    assert one.report.breaks.frame["id"].to_list() == several.report.breaks.frame["id"].to_list()
