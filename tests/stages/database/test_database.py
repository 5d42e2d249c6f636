"""Derived SQL: migrations lead to the field tables, views write canonical JSON."""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote

import polars as pl
import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql

from connectors.addresses import check_database_address
from connectors.compare import table_side
from connectors.errors import (
    DatabaseUnusable,
    ReconError,
    SchemaReplaced,
    SettingsError,
    StatementRefused,
)
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres import database
from connectors.postgres.auditing.audit import verify
from connectors.postgres.batches.ledger import State
from connectors.postgres.bulk.copy_out import copied
from connectors.postgres.database import Database, analyse, libpq_address, open_database
from connectors.postgres.migrations import DERIVED_HASH
from connectors.postgres.migrations.revise import changed_keys
from connectors.postgres.schema.revisions import MIGRATIONS, revisions
from connectors.postgres.session import why_no_connection
from connectors.sandbox import Sandbox, SandboxOptions
from connectors.settings import Settings, read_settings
from flows.commands import inbox, jobs
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.derived.json_text import canonical_json
from schemas.derived.sql import METADATA, STAGED, TARGETS
from schemas.derived.sql_names import IDENTITY, SCHEMA
from schemas.field import Kind, Table
from schemas.kinds import OFFSET
from schemas.tables import EXTRACTS
from tests.stages.payments import line, write

SAMPLES = Path(__file__).parents[3] / "data_samples"


@pytest.mark.long
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
        assert changed_keys(connection) == [], "a key changed: run `make fields`, which says more"
    engine.dispose()


def test_a_key_that_a_database_has_otherwise_is_told(database_url: str) -> None:
    """Alembic does not look at keys, and no tool can tell the rows apart that are there."""
    engine = sa.create_engine(database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE recon.payment DROP CONSTRAINT payment_key"))
        connection.execute(
            sa.text('ALTER TABLE recon.payment ADD CONSTRAINT payment_key PRIMARY KEY ("Id")')
        )
        assert changed_keys(connection) == ["payment: its key was Id and is Id, TenantsId."]
    engine.dispose()


OF_LIMITED_LENGTH = {
    *("content_id", "sha256", "scope_hash", "break_id", "token_hash"),
    *("stage", "operation", "role"),  # Words of ours.
    *("name", "account", "field", "what", "currency"),
}


def test_no_index_has_texts_as_they_were_delivered() -> None:
    """These have no limit, and an entry of an index has: their hash is in it."""
    found = {
        column.name
        for table in METADATA.tables.values()
        if table.name not in TARGETS  # Their keys are hashed by `key_columns`.
        for index in (*table.indexes, table.primary_key)
        if index.dialect_kwargs.get("postgresql_using") != "hash"
        for column in index.columns
        if isinstance(column.type, sa.Text)
    }
    assert found == OF_LIMITED_LENGTH
    keys = {column for table in TARGETS.values() for column in table.primary_key}
    assert {one.name for one in keys if isinstance(one.type, sa.Text)} == {IDENTITY}


def test_what_a_server_does_not_take_is_not_to_be_given_again(workspace: Workspace) -> None:
    digits = "SELECT string_agg(random()::text, '') AS text FROM generate_series(1, 9999)"
    large = f"CREATE TEMP TABLE large AS {digits}; CREATE INDEX ON large (text)"
    with pytest.raises(StatementRefused) as refused, workspace.database.connect() as connection:
        connection.execute(large)
    assert "maximum size is 8191 (SQLSTATE 54000)" in str(refused.value)
    assert str(refused.value).endswith("such as shorter values: the same is refused again.")


def test_the_numbers_of_the_files_are_the_revisions() -> None:
    written = ScriptDirectory(MIGRATIONS).walk_revisions("base", "heads")
    assert revisions() == tuple(sorted(one.revision for one in written))


def test_the_newest_migration_brings_views_functions_and_triggers_along() -> None:
    """Else a database that is at the newest revision would keep those of before."""
    newest = ScriptDirectory(MIGRATIONS).get_revision("head").module
    assert newest.derived == DERIVED_HASH, "a view, function or trigger changed: run `make fields`"


@pytest.mark.long
@pytest.mark.parametrize("comment", ["recon derived of another form", None])
def test_guards_of_another_form_of_a_revision_are_made_anew(
    workspace: Workspace, rows: Any, comment: str | None
) -> None:
    """The number of a revision says nothing of guards that were edited with it."""
    of_guard = "SELECT pg_get_functiondef('recon.sees_all()'::regprocedure)"
    of_view = "SELECT pg_get_viewdef('recon.shown_row'::regclass)"
    guard, view = rows(of_guard), rows(of_view)
    with workspace.database.connect() as owner:
        owner.execute(
            "CREATE OR REPLACE FUNCTION sees_all() RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
        owner.execute("DROP VIEW shown_row; CREATE VIEW shown_row AS SELECT 1 AS record")
        owner.execute(
            sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(sql.Literal(comment))
        )
    open_database(workspace.settings)
    assert (rows(of_guard), rows(of_view)) == (guard, view)
    with workspace.database.connect() as owner:
        owner.execute("DROP VIEW shown_row; CREATE VIEW shown_row AS SELECT 1 AS record")
    open_database(workspace.settings)
    assert rows(of_view) != view, "nothing is made anew where the form is that of this version"


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


def test_the_planner_knows_what_became_of_rows_before_they_are_applied(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Where it expects none of very many repeats, it looks through all of them for each row."""
    path = write(tmp_path / "payments.csv", line(1), *[line(2)] * 4, line(3), line(3, amount="11"))
    ended = import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    assert ended.batch.state is State.HELD
    with workspace.database.connect() as connection:
        known = connection.execute(
            "SELECT reltuples FROM pg_class WHERE oid = 'outcome'::regclass"
        ).fetchall()
    assert known == [(5,)], "three repeats and two in conflict"


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


STANDING: Mapping[str, tuple[ModuleType, Callable[[Path], int]]] = {
    "watch": (inbox, lambda folder: inbox.watch_command(str(folder), settle=0)),
    "jobs --watch": (jobs, lambda _: jobs.jobs_command(watch=True)),
}


@pytest.mark.long(but=("jobs --watch",))
@pytest.mark.parametrize("command", STANDING)
def test_a_standing_command_ends_where_another_version_has_migrated(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It would go on in a schema that it does not know, and look again and again."""
    module, begin = STANDING[command]
    monkeypatch.setenv("RECON_DATABASE_URL", str(workspace.settings.database_url))
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
    delivered = Path(write(tmp_path / "inbox" / "a.csv", line(1)))
    looks: list[float] = []

    def migrated(seconds: float) -> None:
        looks.append(seconds)
        assert len(looks) == 1, "it looked once more"
        with workspace.database.connect() as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        write(delivered, line(2))

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=migrated))
    with pytest.raises(SchemaReplaced, match=f"revision 9999 now, and was at {revisions()[-1]}"):
        begin(delivered.parent)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [revisions()[-1]])
    # What it had taken in its hands is there for the version that is installed.
    assert inbox.watch_command(str(delivered.parent), settle=0, once=True) == 0
    with workspace.database.connect() as connection:
        row = connection.execute("SELECT count(*) FROM batch").fetchone()
    assert row == (2 if command == "watch" else 1,)


@pytest.mark.long
def test_who_opened_a_database_is_told_that_it_was_migrated_since(workspace: Workspace) -> None:
    opened = open_database(workspace.settings)
    for one in (opened, opened.as_login("nobody"), opened.for_job(1)):
        with one.connect() as connection, connection.transaction(force_rollback=True):
            connection.execute("SELECT count(*) FROM batch")
    with workspace.database.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for one in (opened, opened.as_login("nobody"), opened.for_job(1)):
        with pytest.raises(SchemaReplaced, match="start it again"), one.connect():
            pass


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


@pytest.mark.parametrize("named", ["RECON_DATABASE_URL", "the block target-database/target"])
def test_an_address_is_mended_where_it_is_named(tmp_path: Path, named: str) -> None:
    away = Settings(tmp_path, "postgresql://nobody@127.0.0.1:1/none", database_from=named)
    with pytest.raises(DatabaseUnusable, match=f"Check {named}, the server"):
        open_database(away)


def test_the_command_line_does_not_import_prefect() -> None:
    program = (
        "import sys, flows.__main__; "
        "sys.exit(int(any(name in sys.modules for name in ('prefect', 'polars', 'psycopg'))))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class Cancelled(BaseException):
    """As Prefect raises it in a run that somebody cancels on the pages."""


@pytest.mark.long
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


ADDRESSES = {
    "postgresql://recon:se%cret-pw@localhost/x": "write % itself as %25",
    "postgresql://recon:cret-pw@localhost:1/%00": "write % itself as %25",
    "postgresql://recon:cret-pw%@localhost:1/x": "write % itself as %25",
    "postgresql://recon:cret-pw@local host/x": "write a blank as %20",
    "postgresql://recon:cr et-pw@localhost/x": "write a blank as %20",
    "postgresql://recon:cret-pw\udcff@localhost/x": "write a blank as %20",
    "postgresql://recon:cret-pw@localhost/x?foo=bar": 'parameter: "foo"',
    "postgresql://recon:cret-pw@localhost/x?foo": 'parameter: "foo"',
    "postgresql://localhost/x?password=se%cret-pw": "is not shown",
    "postgresql://localhost/x?sslpassword=se%cret-pw&x=y": "is not shown",
    "postgresql://recon:cret-pw@.:1/x": "no name of a host",
    "postgresql://recon:cret-pw@a..b:1/x": "no name of a host",
    f"postgresql://recon:cret-pw@{'a' * 300}:1/x": "no name of a host",
    "postgresql://recon:cret-pw@localhost:1/x?port=abc": "localhost",
    "postgresql://recon:cret-pw@localhost:1/x?hostaddr=zz": "zz",
    "postgresql://recon:cret-pw@localhost:1/x?sslmode=zz": "zz",
    "postgresql://recon:cret-pw@[::1/x": "HOST:PORT",
    "postgresql://recon:cret-pw@localhost:99999/x": "HOST:PORT",
    "postgresql://recon:cret-pw@localhost:-1/x": "HOST:PORT",
    "postgresql+nothing": "does not name a PostgreSQL",
}


REFUSED = 'connection failed: FATAL:  password authentication failed for user "recon".'


@pytest.mark.parametrize("password", ["recon", "re", "e", "db.example", "5432", "x", "%72econ"])
def test_what_the_server_says_is_told_where_the_password_is_a_word_of_it(password: str) -> None:
    url = f"postgresql://recon:{password}@db.example:5432/x"
    told = why_no_connection(psycopg.OperationalError(REFUSED), url)
    assert told == REFUSED.rstrip(".")


@pytest.mark.parametrize("password", ["canary-7", "canary%2D7", "a"])
def test_a_password_that_a_server_repeats_is_not_told(password: str) -> None:
    meant = unquote(password)
    told = why_no_connection(
        psycopg.OperationalError(f'the login "{meant}" of recon is no good'),
        f"postgresql://recon:{password}@db.example:5432/x",
    )
    assert told == 'the login "***" of recon is no good'


@pytest.mark.parametrize(
    "hosts", ["h1:5432,h2:5433", "h1,h2:5433", "[::1]:5432,h2", "h1:5432,[::1]:5433"]
)
def test_an_address_may_name_a_server_and_its_standbys(hosts: str) -> None:
    of_all = f"postgresql://u:p@{hosts}/recon?target_session_attrs=primary"
    assert read_settings({"RECON_DATABASE_URL": of_all}).database_url == of_all
    with pytest.raises(SettingsError, match="HOST:PORT"):
        read_settings({"RECON_DATABASE_URL": of_all.replace("/recon", ",h3:x/recon")})


def test_an_address_may_hold_another() -> None:
    address = "postgresql+psycopg://u:p@h/recon?application_name=https://recon"
    assert libpq_address(address) == address.replace("+psycopg", "")


def test_options_of_an_address_count_beside_ours(database_url: str) -> None:
    given = "&options=-c%20lock_timeout%3D1234ms%20-c%20statement_timeout%3D1ms"
    with Database(libpq_address(database_url + given), 1).connect() as connection:
        asked = "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
        assert connection.execute(asked).fetchone() == ("1234ms", "15min")


@pytest.mark.parametrize("way", ["database", "sandbox", "compare"])
@pytest.mark.parametrize(("url", "told"), ADDRESSES.items(), ids=map(str, range(len(ADDRESSES))))
def test_an_address_that_cannot_be_read_is_told_without_its_password(
    tmp_path: Path, url: str, told: str, way: str
) -> None:
    if way == "compare" and "+" in url:
        pytest.skip("such a side is a file, or refused before")
    with pytest.raises(ReconError) as failure:
        _open(way, url, tmp_path)
    assert "cret-pw" not in str(failure.value)
    assert "cret-pw" not in repr(failure.value.__cause__)
    assert told in str(failure.value)


def _open(way: str, url: str, home: Path) -> None:
    if way == "compare":
        with table_side.opened(f"{url}{'&' if '?' in url else '?'}table=t", ["Id"]):
            pass
    elif way == "sandbox":
        check_database_address("--database", url, "leave it out")
        with Sandbox(SandboxOptions(), url).running():
            pass
    else:
        open_database(read_settings({"RECON_HOME": str(home), "RECON_DATABASE_URL": url}))


def test_values_are_read_as_they_are_whatever_a_database_is_set_to(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        for setting in ("extra_float_digits = 0", "standard_conforming_strings = off"):
            set_to = sql.SQL("ALTER DATABASE {} SET {}").format(name, sql.SQL(setting))
            connection.execute(set_to)
    asked: dict[str, tuple[str, Any]] = {
        "text": (r"U&'\FEFFé'", pl.String()),
        "pattern": (r"'\bé\d'", pl.String()),
        "double": ("0.1::float8 + 0.2", pl.Float64()),
        "json": ("to_json(0.1::float8 + 0.2)::text", pl.String()),
        "time": ("timestamptz '2026-01-02 03:04:05Z'", pl.String()),
    }
    with Database(libpq_address(database_url), 1).connect() as connection:
        row = copied(connection, asked, "(SELECT 1) one").row(0)
    double = 0.1 + 0.2
    assert row == ("\ufeffé", r"\bé\d", double, repr(double), "2026-01-02 03:04:05+00")


def test_the_schema_is_what_it_is_whatever_a_database_is_set_to(
    database_url: str, tmp_path: Path
) -> None:
    """A dump is restored without what its database is set to, into one that is set otherwise."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        for setting in ("quote_all_identifiers = on", "array_nulls = off", "search_path = ''"):
            set_to = sql.SQL("ALTER DATABASE {} SET {}").format(name, sql.SQL(setting))
            connection.execute(set_to)
    with open_database(Settings(tmp_path / "home", database_url)).connect() as connection:
        assert verify(connection).broken is None
        assert connection.execute("SELECT %s::int[]", [[1, None]]).fetchone() == ([1, None],)
