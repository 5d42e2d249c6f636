"""Bringing a database to the record kinds of this machine, unless that would lose something."""

import json
from collections.abc import Iterable, Mapping
from typing import cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from connectors.errors import DatabaseUnusable
from connectors.postgres.schema.kind_hindrances import all_hindrances, is_used
from connectors.postgres.schema.own_kinds import THERE, KeptKind, kept_of
from connectors.postgres.trail import add_event
from schemas.derived.sql import METADATA, STAGED, STORAGE, TARGETS
from schemas.derived.sql_names import READER, SCHEMA, SHOWN_SCHEMA, listed, staged_name
from schemas.derived.views import DOCUMENTED_VIEWS, VIEWS, quoted
from schemas.guards.roles import grants_of
from schemas.guards.shown_rows import hidden_again, shown_rows
from schemas.guards.tenants import SHOWN_VIEW, policies_of
from schemas.own_definition import CHANGED, MADE, REMOVED, changes, definition_of, table_of
from schemas.tables import OWN

ROWS = "staged_row"
"""The only view whose text names the tables of record kinds."""
DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def follow_definitions(connection: sa.Connection, *, asked: bool) -> None:
    """Create or change what the definitions of this machine have and the database has not.

    Call it inside a transaction that locks the schema. `asked` says that somebody wants just these
    definitions: a kind without one is then removed, and a former one comes back. Otherwise these
    are taken for definitions of a machine that is behind. Raises DatabaseUnusable if anything would
    be lost.
    """
    asking = _asking(connection)
    there = kept_of(connection.exec_driver_sql(THERE.replace("%", "%%")).fetchall())
    gone = sorted(there.keys() - OWN.tables.keys())
    defined = {name: definition_of(table) for name, table in OWN.tables.items()}
    # Only changed kinds are locked, so nobody who works with another kind delays this.
    changed = [
        name for name, of in defined.items() if name not in there or there[name].definition != of
    ]
    # Check before locking, so that a refusal waits for nobody, then again for new rows.
    _refuse(all_hindrances(asking, there, asked=asked))
    _lock_changed(connection, there)
    _refuse(all_hindrances(asking, there, asked=asked))
    # The view would block changes to the tables that it names. Replacing it keeps its grants.
    _run(connection, f"CREATE OR REPLACE VIEW {SCHEMA}.{ROWS} AS {DOCUMENTED_VIEWS[ROWS]}")
    for name in (*gone, *changed):
        _run(connection, hidden_again(f"staged_{name}"))
    for name in gone:
        _drop(connection, name)
        _add_event(connection, name, there[name].definition, None)
    for name in changed:
        definition, kept = defined[name], there.get(name)
        if kept and is_used(asking, name):
            _alter(connection, name)
        else:
            if kept:
                _drop(connection, name)
            _make(connection, name)
        now = kept.followed_by(definition) if kept else KeptKind(definition)
        comment = now.comment.replace("'", "''")
        _run(connection, f"COMMENT ON TABLE {SCHEMA}.{name} IS '{comment}'")
        staged = staged_name(OWN.tables[name])
        _run(connection, f"ALTER TABLE {SCHEMA}.{staged} SET ({STORAGE[staged]})")
        _add_event(connection, name, kept.definition if kept else None, definition)
    _run(connection, f"CREATE OR REPLACE VIEW {SCHEMA}.{ROWS} AS {VIEWS[ROWS]}")
    if OWN.tables:
        _run(connection, SHOWN_VIEW)
    if connection.exec_driver_sql(f"SELECT to_regrole('{READER}')").scalar():
        _grant(connection, changed)


def _grant(connection: sa.Connection, changed: Iterable[str]) -> None:
    """Grant the roles the changed kinds, and those whose shown rows a migration has dropped."""
    of_schema = f"FROM pg_class WHERE relnamespace = to_regnamespace('{SHOWN_SCHEMA}')"
    shown = {*connection.exec_driver_sql(f"SELECT relname {of_schema}").scalars()}
    there = connection.exec_driver_sql(f"SELECT to_regnamespace('{SHOWN_SCHEMA}')").scalar()
    dropped = (name for name in OWN.tables if there and f"staged_{name}" not in shown)
    if not (names := list(dict.fromkeys((*changed, *dropped)))):
        return
    for statement in (*grants_of(names), *policies_of(names)):
        _run(connection, statement)
    if there:
        for statement in shown_rows(OWN.tables[name] for name in names):
            _run(connection, statement)


def _add_event(connection: sa.Connection, name: str, before: str | None, now: str | None) -> None:
    """Note in the trail what became of a kind, since reports of its records depend on it."""
    what = MADE if before is None else REMOVED if now is None else CHANGED
    definitions = {"before": before, "now": now}
    detail: dict[str, object] = {"record": name}
    detail |= {key: json.loads(text) for key, text in definitions.items() if text is not None}
    if before is not None and now is not None:
        detail["changes"] = [one.text for one in changes(table_of(name, before), OWN.tables[name])]
    add_event(_asking(connection), what, detail=detail)


def _asking(connection: sa.Connection) -> psycopg.Connection:
    """The psycopg connection beneath, for statements with parameters."""
    return cast(psycopg.Connection, connection.connection.driver_connection)


def _refuse(hindrances: Iterable[str]) -> None:
    if reasons := [one for one in hindrances if one]:
        raise DatabaseUnusable(*reasons, "Nothing was changed.")


def _lock_changed(connection: sa.Connection, there: Mapping[str, KeptKind]) -> None:
    """Keep writers out of the tables of kinds that are gone, or defined differently."""
    for name, kept in there.items():
        if name not in OWN.tables or kept.definition != definition_of(OWN.tables[name]):
            tables = f"{SCHEMA}.{name}, {SCHEMA}.staged_{name}"
            _run(connection, f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def _make(connection: sa.Connection, name: str) -> None:
    tables = (TARGETS[name], STAGED[name])
    names = [table.name for table in tables]
    names += [str(table.primary_key.name) for table in tables if table.primary_key]
    names += [str(index.name) for table in tables for index in table.indexes]
    taken = connection.exec_driver_sql(
        f"SELECT min(relname) FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') "
        f"AND relname IN ({listed(names)})"
    ).scalar()
    if taken:
        raise DatabaseUnusable(
            f"{OWN.about(name)} cannot be made: the schema {SCHEMA!r} has something named "
            f"{taken} already. Give the kind another name; nothing was changed."
        )
    METADATA.create_all(connection, tables, checkfirst=False)


def _drop(connection: sa.Connection, name: str) -> None:
    for table in (name, f"staged_{name}"):
        _run(connection, f"DROP TABLE {SCHEMA}.{table}")


def _alter(connection: sa.Connection, name: str) -> None:
    """Add new columns, remove those that are gone, and set which may be empty."""
    for table in (TARGETS[name], STAGED[name]):
        there = {one["name"]: one for one in sa.inspect(connection).get_columns(table.name, SCHEMA)}
        alter = f"ALTER TABLE {SCHEMA}.{table.name}"
        for column in table.columns:
            of = quoted(column.name)
            if column.name not in there:
                null = "" if column.nullable else " NOT NULL"
                _run(connection, f"{alter} ADD {of} {column.type.compile(dialect=DIALECT)}{null}")
            elif there[column.name]["nullable"] != column.nullable:
                turn = "DROP" if column.nullable else "SET"
                _run(connection, f"{alter} ALTER {of} {turn} NOT NULL")
        for gone in sorted(there.keys() - {column.name for column in table.columns}):
            # The policy may use this column; policies for roles are created again after all kinds.
            _run(connection, f"DROP POLICY IF EXISTS seen ON {SCHEMA}.{table.name}")
            _run(connection, f"{alter} DROP COLUMN {quoted(gone)}")


def _run(connection: sa.Connection, statement: str) -> None:
    # Without this, a percent sign would be taken for a parameter.
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
