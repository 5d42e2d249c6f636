"""Derived SQL: migrations lead to the field tables, views write canonical JSON."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql

from connectors.errors import DatabaseUnusable
from connectors.files.profile import DEFAULT
from connectors.postgres import database
from connectors.postgres.database import MIGRATIONS, analyse, open_database, revisions
from connectors.postgres.migrations import DERIVED_HASH
from connectors.settings import Settings
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.derived.json_text import canonical_json
from schemas.derived.sql import METADATA, SCHEMA, STAGED
from schemas.field import Kind, Table
from schemas.kinds import OFFSET
from schemas.tables import EXTRACTS

SAMPLES = Path(__file__).parents[2] / "data_samples"


def test_migrations_lead_to_the_field_tables(database_url: str) -> None:
    engine = sa.create_engine(database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "version_table_schema": SCHEMA,
                "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            },
        )
        differing = compare_metadata(context, METADATA)
        assert differing == [], "the field tables say more than the migrations: run `make fields`"
    engine.dispose()


def test_the_numbers_of_the_files_are_the_revisions() -> None:
    written = ScriptDirectory(MIGRATIONS).walk_revisions("base", "heads")
    assert revisions() == tuple(sorted(one.revision for one in written))


def test_the_newest_migration_brings_views_functions_and_triggers_along() -> None:
    """Else a database that is at the newest revision would keep those of before."""
    newest = ScriptDirectory(MIGRATIONS).get_revision("head").module
    assert newest.derived == DERIVED_HASH, "a view, function or trigger changed: run `make fields`"


def test_an_old_database_is_summarised_once_a_batch(database_url: str, rows: Any) -> None:
    """The server logs every request to summarise that it has no room for: thousands a load."""
    indexes = dict(
        rows(
            "SELECT c.relname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
            "WHERE a.amname = 'brin'"
        )
    )
    assert {"staged_payment_range", "outcome_range", "before_image_range"} <= indexes.keys()
    for name, options in indexes.items():
        assert "autosummarize=off" in options, name


def test_statistics_do_not_wait_for_a_vacuum(workspace: Workspace) -> None:
    """Who waits for one makes the server give it up, and a large table is never vacuumed."""
    with workspace.database.connect() as vacuum, workspace.database.connect() as connection:
        connection.execute("SET lock_timeout = '1s'")
        with vacuum.transaction():
            vacuum.execute("LOCK TABLE staged_payment IN SHARE UPDATE EXCLUSIVE MODE")
            analyse(connection, "staged_payment", "payment")
        done = connection.execute(
            "SELECT relname FROM pg_class WHERE oid = 'payment'::regclass AND reltuples = 0"
        )
        assert done.fetchall() == [("payment",)]


@pytest.mark.long
def test_jsondata_is_the_canonical_json(workspace: Workspace, rows: Any) -> None:
    """The view's SQL and the Python writer give the same bytes for every clean sample row."""
    import_delivery(workspace, [str(SAMPLES / "clean")], DEFAULT)
    compared = 0
    for name in STAGED:
        table = EXTRACTS[name]
        with workspace.database.connect() as connection:
            cursor = connection.execute(
                f"SELECT s.*, r.jsondata FROM staged_{name} s JOIN staged_row r "
                "USING (extract_id, record_number) WHERE s.error_data IS NULL"
            )
            names = [column.name for column in cursor.description or ()]
            for row in cursor:
                record = dict(zip(names, row, strict=True))
                assert record["jsondata"] == canonical_json(table, values(table, record))
                compared += 1
    assert compared > 6000


def values(table: Table, record: dict[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {}
    for field in table.delivered:
        value = record[field.name]
        if value is not None and field.kind in (Kind.DATETIME, Kind.DATETIME_OFFSET):
            value = (value, record[field.name + OFFSET])
        found[field.name] = value
    return found


def test_a_schema_of_a_newer_version_is_refused(workspace: Workspace, rows: Any) -> None:
    with workspace.database.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseUnusable, match="revision 9999, which this version does not know"):
        open_database(workspace.settings)


def test_a_schema_that_somebody_else_migrates_meanwhile_lacks_nothing(workspace: Workspace) -> None:
    url = str(workspace.settings.database_url)
    rename = sql.SQL("ALTER TABLE recon.avatar RENAME COLUMN {} TO {}")
    now, before = sql.Identifier("ImageUrl"), sql.Identifier("Picture")
    waits = (
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'recon.alembic_version'::regclass"
    )
    with psycopg.connect(url) as migrating, ThreadPoolExecutor(1) as opening:
        migrating.execute(rename.format(now, before))
        migrating.commit()
        migrating.execute("LOCK TABLE recon.alembic_version IN ACCESS EXCLUSIVE MODE")
        opened = opening.submit(open_database, workspace.settings)
        while migrating.execute(waits).fetchone() is None:
            assert not opened.done(), opened.result()
        migrating.execute(rename.format(before, now))
        migrating.commit()
        assert opened.result().url == workspace.database.url


def test_a_server_that_is_too_old_is_told_so(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "OLDEST_SERVER", 990000)
    with pytest.raises(DatabaseUnusable, match="is too old; version 99 or newer is needed"):
        open_database(workspace.settings)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://nobody:pw-canary@127.0.0.1:1/none", "Check RECON_DATABASE_URL"),
        ("postgresql://127.0.0.1:1/none?connect_timeout=1", "cannot be used"),
    ],
)
def test_no_connection_is_told_without_the_password(tmp_path: Path, url: str, told: str) -> None:
    with pytest.raises(DatabaseUnusable, match=told) as failure:
        open_database(Settings(tmp_path, url))
    assert "pw-canary" not in str(failure.value)


def test_the_command_line_does_not_import_prefect() -> None:
    program = (
        "import sys, flows.__main__; "
        "sys.exit(int(any(name in sys.modules for name in ('prefect', 'polars', 'psycopg'))))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class Cancelled(BaseException):
    """As Prefect raises it in a run that somebody cancels on the pages."""


def test_what_ends_a_run_in_the_middle_of_a_statement_is_no_refusal(workspace: Workspace) -> None:
    """What is asked of the connection on the way out is refused, and is not why the run ended."""

    def cancel(*_: object) -> None:
        raise Cancelled

    def sleep() -> None:
        with workspace.database.connect() as connection:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                connection.execute("SELECT pg_sleep(20)")
            finally:
                connection.execute("SELECT 1")

    before = signal.signal(signal.SIGALRM, cancel)
    try:
        with pytest.raises(Cancelled):
            sleep()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
