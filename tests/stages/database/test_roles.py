"""The database roles, granted to a real PostgreSQL: what each can do, and what not."""

import subprocess
import sys
import uuid
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from connectors.errors import DatabaseUnusable, ReconError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.postgres.push.gate import pass_gate, why_held
from connectors.postgres.trail import add_event
from connectors.settings import Settings
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import prepare
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.derived.sql import LEDGER_TABLES, METADATA, STAGED, TARGETS
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA
from schemas.derived.views import SHOWN, VIEWS, quoted
from schemas.guards.leases import LEASES_OF
from schemas.guards.roles import (
    ADDED_TO,
    CONTROLLER,
    DESK,
    LOADER,
    LOCK_WAIT,
    MAY_CALL,
    MERGER,
    OWNER,
    READER,
    TRAIL,
    role_for,
    statements,
)
from schemas.guards.trail_functions import FUNCTIONS_OF
from schemas.guards.trail_rules import APPEND_ONLY
from tests.stages.conftest import As
from tests.stages.payments import line, write

CANARY, NUMBER = "canary-secret", 47114711
"""A secret is any text: one of digits is a number where a cell before it was lost."""
SAMPLES = Path(__file__).parents[3] / "data_samples"


def refused(workspace: Workspace, statement: str) -> bool:
    """Whether the database denies this user the right; any other error is a bug of the test."""
    with workspace.database.connect() as connection:
        try:
            connection.execute(statement)  # type: ignore[call-overload]
        except psycopg.errors.InsufficientPrivilege:
            return True
        return False


@pytest.mark.long
def test_a_loader_stages_and_a_merger_finishes(acting: As, tmp_path: Path, rows: Any) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    with pytest.raises((ReconError, psycopg.errors.InsufficientPrivilege)):
        import_delivery(acting(LOADER), [path], DEFAULT)
    assert rows("SELECT state FROM batch") == [("checked",)]
    assert rows("SELECT count(*) FROM staged_payment") == [(2,)]
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    ended = run_batch(acting(MERGER), 1)
    assert ended.batch.state == "complete_with_errors"
    assert rows("SELECT count(*) FROM payment") == [(1,)]


@pytest.mark.long
def test_a_merger_takes_deliveries_through_and_back(acting: As, rows: Any) -> None:
    merger = acting(MERGER)
    dirty = import_delivery(merger, [str(SAMPLES / "dirty")], DEFAULT)
    assert all(chain.ties for chain in dirty.report.chains)
    correction = import_delivery(
        merger, [str(SAMPLES / "correction")], DEFAULT, corrects=dirty.batch.id
    )
    assert correction.batch.state == "complete"
    undo_batch(merger, correction.batch.id, by="a", reason="b")
    undo_batch(merger, dirty.batch.id, by="a", reason="b")
    assert rows("SELECT count(*) FROM payment") == [(0,)]


@pytest.mark.long(but=("payment",))
@pytest.mark.parametrize("table", sorted(TARGETS))
def test_a_loader_writes_no_target(acting: As, table: str) -> None:
    loader = acting(LOADER)
    column = quoted(TARGETS[table].columns[0].name)
    for statement in (
        f"INSERT INTO {table} DEFAULT VALUES",
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
    ):
        assert refused(loader, statement), statement
    assert not refused(loader, f"SELECT * FROM {table}")


@pytest.mark.long
def test_who_lacks_a_right_is_told_the_least_role_that_has_it(acting: As, rows: Any) -> None:
    acting(READER)
    roles = (READER, LOADER, MERGER, CONTROLLER, DESK)

    def least(kind: str, name: str, right: str) -> str:
        at = f"'{SCHEMA}.{name}'::{'regclass' if kind == 'table' else 'regproc'}"
        asked = (f"has_{kind}_privilege('{role}', {at}, '{right}')" for role in roles)
        (held,) = rows(f"SELECT {', '.join(asked)}")
        return next((role for role, may in zip(roles, held, strict=True) if may), OWNER)

    for name in (*TARGETS, *LEDGER_TABLES, *(table.name for table in STAGED.values())):
        assert role_for("table", name) == least("table", name, "INSERT"), name
    for head in (*FUNCTIONS_OF, *LEASES_OF):
        name = head.partition("(")[0]
        assert role_for("function", name) == least("function", name, "EXECUTE"), name
    assert role_for("view", SHOWN) == LOADER
    assert role_for("table", "pg_authid") is None


@pytest.mark.long
@pytest.mark.parametrize("role", [LOADER, MERGER, READER, CONTROLLER])
def test_nobody_changes_the_trail_or_the_tables(acting: As, role: str) -> None:
    user = acting(role)
    for table in {*TRAIL, *APPEND_ONLY}:
        column = quoted(METADATA.tables[f"{SCHEMA}.{table}"].columns[0].name)
        assert refused(user, f"UPDATE {table} SET {column} = {column}")
        assert refused(user, f"DELETE FROM {table}")
        assert table in ADDED_TO or refused(user, f"INSERT INTO {table} DEFAULT VALUES")
        assert refused(user, f"TRUNCATE {table}")
        assert refused(user, f"SELECT FROM {table} FOR UPDATE")
    assert refused(user, "DROP TABLE payment")
    assert refused(user, "ALTER TABLE payment ADD COLUMN x int")
    assert refused(user, f"CREATE TABLE {SCHEMA}.x (y int)")


@pytest.mark.long
def test_a_reader_reads_results_and_no_secret(acting: As, tmp_path: Path) -> None:
    registrations = tmp_path / "registrations.csv"
    head = "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
    good = f"a@example.com,Ann,Lee,{CANARY},{CANARY},Acme\n"
    short = f"b@example.com,Bo,Lee,{CANARY}\n"
    stray = f'c@example.com,Cy,Lee,"{CANARY}"x,{CANARY},Acme\n'
    nobody = f"nobody,Dee,Lee,{CANARY},{CANARY},Acme\n"
    twice = f"e@example.com,Eve,Lee,{CANARY},{CANARY},Acme\n"
    other = f"e@example.com,Eve,Lee,{CANARY}2,{CANARY}2,Acme\n"
    registrations.write_text(head + good + short + stray + nobody + twice + other)
    gateways = tmp_path / "payment_gateways.csv"
    gateways.write_text(
        "TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl\n"
        f"7,1,Gate,{CANARY},https://example.com/n,https://example.com/r\n"
    )
    shifted = tmp_path / "shifted.csv"
    shifted.write_text(
        "Name,PaymentActionsId,ServiceKey,TenantsId,NotifyUrl,RedirectUrl\n"
        f"Gate,{NUMBER},7,https://example.com/n,https://example.com/r,x\n"
        f"Gate,x,y,{NUMBER},https://example.com/n,https://example.com/r\n"
    )
    inside = tmp_path / "insert_batch_data.csv"
    inside.write_text(f'Data,HasError,Merged,BatchId,Jsondata,ErrorData\n"{CANARY}",,,,,\n')
    merger = acting(MERGER)
    ended = import_delivery(
        merger, [*map(str, (registrations, gateways, shifted, inside))], DEFAULT
    )
    assert ended.batch.state == "complete_with_errors"
    update = gateways.read_text().replace("Gate", "Gate 2")
    gateways.write_text(update)
    import_delivery(merger, [str(gateways)], DEFAULT)  # Leaves an image of the row before.

    reader = acting(READER)
    everything = []
    with reader.database.connect() as connection:
        granted = connection.execute(
            "SELECT table_schema || '.' || table_name, string_agg(quote_ident(column_name), ', ') "
            "FROM information_schema.column_privileges WHERE table_schema = ANY(%s) "
            "AND grantee = %s AND privilege_type = 'SELECT' GROUP BY 1",
            [[SCHEMA, SHOWN_SCHEMA], READER],
        ).fetchall()
        names = [f"{SCHEMA}.{one}" for one in ("payment_gateway", "client_registration", SHOWN)]
        names += [f"{SHOWN_SCHEMA}.{table.name}" for table in STAGED.values()]
        assert {*names} <= {name for name, _ in granted}
        for name, columns in granted:
            found = connection.execute(f"SELECT {columns} FROM {name}").fetchall()  # type: ignore[arg-type]
            everything += [(name, row) for row in found]
    assert any("Gate 2" in str(row) for _, row in everything)
    assert any("StrayQuote" in str(row) for _, row in everything)
    secrets = (CANARY, str(NUMBER))
    assert [told for told in everything if any(one in str(told[1]) for one in secrets)] == []
    for statement in (
        "SELECT * FROM client_registration",
        'SELECT "ServiceKey" FROM payment_gateway',
        "SELECT * FROM staged_row",
        "SELECT * FROM insert_batch_data",
        "SELECT image FROM before_image",
        *(f"SELECT * FROM {SCHEMA}.{table.name}" for table in STAGED.values()),
        "UPDATE batch SET state = 'complete'",
    ):
        assert refused(reader, statement), statement


VALUES = {"text": "NULL::text", "integer": "NULL::integer", "bigint": "NULL::bigint"}
VALUES |= {
    one: f"NULL::{one}" for one in ("timestamptz", "boolean", "text[]", "integer[]", "jsonb")
}
MEMBERS = {LOADER: {LOADER}, MERGER: {LOADER, MERGER}, READER: {READER}}
MEMBERS |= {CONTROLLER: {READER, CONTROLLER}, DESK: {READER, CONTROLLER, DESK}}


@pytest.mark.long
@pytest.mark.parametrize("role", MEMBERS)
def test_the_trail_is_written_by_those_who_may(acting: As, role: str) -> None:
    user = acting(role)
    for head in (*FUNCTIONS_OF, *LEASES_OF):
        name, _, parameters = head.removesuffix(")").partition("(")
        if name == "chain_inserted":
            continue  # Of a trigger: nobody can call it.
        given = [VALUES[one.split()[-1]] for one in parameters.split(", ") if one]
        statement = f"SELECT {SCHEMA}.{name}({', '.join(given)})"
        may = bool(MEMBERS[role] & set(MAY_CALL.get(name, ())))
        with user.database.connect() as connection:
            try:
                connection.execute(statement)  # type: ignore[call-overload]
            except psycopg.errors.InsufficientPrivilege:
                assert not may, statement
            except psycopg.Error:
                assert may, statement  # What was given is nonsense, but it was let in.
            else:
                assert may, statement


def test_an_event_names_who_was_signed_in_and_when(acting: As, rows: Any) -> None:
    loader = acting(LOADER)
    with loader.database.connect() as connection:
        add_event(connection, "housekeeping", by="A. Meyer")
        for what in ("report approved", "report prepared", "reconciled", "breaks accepted"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                add_event(connection, what, by="A. Meyer")
        user = connection.info.user
    assert rows("SELECT by, account, at > now() - interval '1 min' FROM event") == [
        ("A. Meyer", user, True)
    ]


def test_nothing_of_the_caller_runs_with_the_rights_of_the_owner(acting: As, rows: Any) -> None:
    """A view in the place of a draft would run its functions as the owner who reads it."""
    controller = acting(CONTROLLER)
    with controller.database.connect() as connection, connection.transaction():
        connection.execute(
            "CREATE FUNCTION pg_temp.evil() RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'ran as %', current_user; END $$"
        )
        connection.execute(
            "CREATE TEMP VIEW draft_decision AS "
            "SELECT 1 AS reconciliation_id, pg_temp.evil() AS break_id"
        )
        with pytest.raises(psycopg.errors.RaiseException, match="there is no draft of decision"):
            connection.execute("SELECT decide('breaks accepted', 'a', 'b', '{}')")
    assert rows("SELECT count(*) FROM event") == [(0,)]


def test_a_run_keeps_only_its_own_breaks(acting: As) -> None:
    merger = acting(MERGER)
    with merger.database.connect() as connection, connection.transaction():
        connection.execute("SELECT draft('reconciliation'), draft('break_state')")
        connection.execute(
            "INSERT INTO draft_reconciliation (id, scope, scope_hash, as_of, rules_hash, verdict, "
            "report_hash, chain_hash, decided_through, folder) "
            "VALUES (1, '', '', '2026-01-31', '', '', '', '', 0, '')"
        )
        connection.execute(
            "INSERT INTO draft_break_state (reconciliation_id, break_id, state, first_seen, code, "
            "record, facts) VALUES (2, '', '', '', '', '', '')"
        )
        with pytest.raises(psycopg.errors.RaiseException, match="of another reconciliation"):
            connection.execute("SELECT conclude('a', '{}')")


@pytest.mark.long
def test_the_owner_of_the_schema_needs_no_more_than_the_database(
    server: str, tmp_path: Path
) -> None:
    """As on a hosted server: nobody there is a superuser or sees the sessions of others."""
    tag = uuid.uuid4().hex[:8]
    names = {"owner": f"owner_{tag}", "database": f"plain_{tag}"}
    names |= {role: f"{role}_{tag}" for role in (MERGER, CONTROLLER)}

    def of(user: str) -> Workspace:
        url = server.replace("/postgres?", f"/{names['database']}?")
        url = url.replace("//postgres:@", f"//{names[user]}@")
        settings = Settings((tmp_path / "home").resolve(), url)
        return Workspace(settings, open_database(settings))

    with psycopg.connect(server, autocommit=True) as administrator:
        for role in ("owner", MERGER, CONTROLLER):
            administrator.execute(
                sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(names[role]))
            )
        administrator.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(
                sql.Identifier(names["database"]), sql.Identifier(names["owner"])
            )
        )
    try:
        of("owner")
        place = server.replace("/postgres?", f"/{names['database']}?")
        with psycopg.connect(place, autocommit=True) as administrator:
            for statement in statements():
                administrator.execute(statement)  # type: ignore[call-overload]
            for role in (MERGER, CONTROLLER):
                administrator.execute(
                    sql.SQL("GRANT {} TO {}").format(
                        sql.Identifier(role), sql.Identifier(names[role])
                    )
                )
        for user, number in (("owner", 1), (MERGER, 2)):
            path = write(tmp_path / f"{number}.csv", line(number))
            assert import_delivery(of(user), [path], DEFAULT).batch.state == "complete"
        asked = Asked(Scope(), date(2026, 1, 31), Rules(references=()))
        assert reconcile(of(MERGER), asked).run.id == 1
        with of(MERGER).database.connect() as connection:
            pass_gate(connection, tmp_path / "home", 1)
            assert why_held(connection, tmp_path / "home") is None
        prepare(of(CONTROLLER), 1, by="ann", comment="")
        # As an earlier version left it: who granted the roles is not who migrates.
        with psycopg.connect(place, autocommit=True) as administrator:
            administrator.execute(f"ALTER SCHEMA {SHOWN_SCHEMA} OWNER TO postgres")
            administrator.execute(f"COMMENT ON TABLE {SCHEMA}.alembic_version IS NULL")
        with pytest.raises(DatabaseUnusable, match=r"'recon_shown' .* belongs to postgres") as told:
            of("owner")
        with psycopg.connect(place, autocommit=True) as administrator:
            administrator.execute(str(told.value).split("`")[1])  # type: ignore[call-overload]
        of("owner")
    finally:
        with psycopg.connect(server, autocommit=True) as administrator:
            administrator.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(names["database"]))
            )
            for role in (MERGER, CONTROLLER, "owner"):
                administrator.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(names[role])))


@pytest.mark.long
def test_nobody_reads_a_view_before_it_says_whose_rows_are_seen(workspace: Workspace) -> None:
    with psycopg.connect(str(workspace.settings.database_url), autocommit=True) as owner:
        for statement in statements():
            owner.execute(statement)  # type: ignore[call-overload]
        # As a migration leaves it.
        owner.execute(f"DROP VIEW {SCHEMA}.{SHOWN}")
        owner.execute(f"CREATE VIEW {SCHEMA}.{SHOWN} AS {VIEWS[SHOWN]}")  # type: ignore[call-overload]
        asked = (
            f"SELECT has_table_privilege('{READER}', '{SCHEMA}.{SHOWN}', 'SELECT') "
            f"AND pg_get_viewdef('{SCHEMA}.{SHOWN}'::regclass) !~ 'sees_all'"
        )
        for statement in statements():
            owner.execute(statement)  # type: ignore[call-overload]
            assert owner.execute(asked).fetchone() == (False,), statement  # type: ignore[call-overload]


@pytest.mark.long
def test_roles_are_granted_as_a_whole_or_not_at_all(workspace: Workspace) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "schemas.guards.roles"], capture_output=True, text=True, check=True
    ).stdout
    head, _, script = printed.partition("\n")
    assert head == r"\set ON_ERROR_STOP on"
    url = str(workspace.settings.database_url)
    with psycopg.connect(url) as reading, psycopg.connect(url, autocommit=True) as owner:
        reading.execute("SELECT count(*) FROM recon.report_mail")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.execute(script.replace(f"'{LOCK_WAIT}'", "'100ms'"))  # type: ignore[call-overload]
        owner.rollback()
        granted = "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a, pg_roles r "
        granted += "WHERE r.oid = a.grantee AND r.rolname ~ '^recon_'"
        assert owner.execute(granted).fetchone() == (0,)  # type: ignore[call-overload]
        reading.rollback()
        owner.execute(script)  # type: ignore[call-overload]
        assert owner.execute(granted).fetchone() != (0,)  # type: ignore[call-overload]
