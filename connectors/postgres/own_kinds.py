"""Record kinds of our own in a database: their tables, and the definition that it works with.

The definition stands in the comment of the target table, so it changes with the table in one
transaction and goes wherever a backup goes. What is added is made here; what would lose something
is refused.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from connectors.errors import DatabaseUnusable
from schemas.derived.sql import SCHEMA, STAGED, STORAGE, TARGETS, staged_name
from schemas.derived.views import VIEWS, quoted
from schemas.field import Field, Table
from schemas.guards.roles import LOADER, READER, grants_of
from schemas.guards.tenants import policies_of
from schemas.guards.trail_rules import TRIGGERS
from schemas.kinds import sql_columns
from schemas.own_tables import FOLDER, definition_of
from schemas.tables import OWN

MARK = "recon record kind "
_THERE = f"""SELECT c.relname::text, obj_description(c.oid, 'pg_class') FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND c.relkind = 'r'
    AND obj_description(c.oid, 'pg_class') LIKE '{MARK}%'"""


def are_as_defined(connection: psycopg.Connection) -> bool:
    """Whether the database works with the definitions of this machine."""
    return _definitions(connection.execute(_THERE.replace("%", "%%")).fetchall()) == _ours()


def follow_definitions(connection: sa.Connection) -> None:
    """Make what the definitions of this machine have and the database has not.

    Call it inside a transaction that keeps the schema. Raises DatabaseUnusable for a definition
    that would lose something, and where the database knows a kind that this machine does not.
    """
    there = _definitions(connection.exec_driver_sql(_THERE.replace("%", "%%")).fetchall())
    if unknown := sorted(there.keys() - OWN.tables.keys()):
        raise DatabaseUnusable(
            f"The database has the record kind {unknown[0]}, which is not defined here. Set "
            f"{FOLDER} to the folder with its definition; a kind that a database knows stays."
        )
    statements: list[str] = []
    for name, table in OWN.tables.items():
        if name not in there:
            TARGETS[name].create(connection)
            STAGED[name].create(connection)
        elif there[name] != definition_of(table):
            rows = connection.exec_driver_sql(
                f"SELECT EXISTS (SELECT FROM {SCHEMA}.{staged_name(table)})"
            )
            before = json.loads(there[name])
            statements += _changes(table, before, has_rows=bool(rows.scalar()))
        else:
            continue
        comment = f"{MARK}{definition_of(table)}".replace("'", "''")
        statements.append(f"COMMENT ON TABLE {SCHEMA}.{name} IS '{comment}'")
        statements.append(f"ALTER TABLE {SCHEMA}.{staged_name(table)} SET ({_storage(table)})")
    if OWN.tables:
        statements.append(f"CREATE OR REPLACE VIEW {SCHEMA}.staged_row AS {VIEWS['staged_row']}")
        statements += TRIGGERS
        roles = connection.exec_driver_sql(f"SELECT to_regrole('{READER}') IS NOT NULL").scalar()
        if roles:
            statements += grants_of(OWN.tables)
            statements += policies_of(OWN.tables, READER, LOADER)
    for statement in statements:
        # A percent sign is taken for a parameter only where there may be any.
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def _definitions(rows: Any) -> dict[str, str]:
    return {name: told.removeprefix(MARK) for name, told in rows}


def _ours() -> dict[str, str]:
    return {name: definition_of(table) for name, table in OWN.tables.items()}


def _storage(table: Table) -> str:
    return STORAGE[staged_name(table)]


def _changes(table: Table, before: Mapping[str, Any], *, has_rows: bool) -> Iterator[str]:
    """The statements that lead from one definition to another."""
    fields = {one["name"]: one for one in before["fields"]}
    if [*table.key] != before["key"]:
        raise _refused(table, f"its key was {', '.join(before['key'])}")
    for name, told in fields.items():
        if name not in table.by_name:
            raise _refused(table, f"it had the field {name}")
        if told["type"] != table.by_name[name].kind:
            raise _refused(table, f"{name} was of type {told['type']}")
    target = f"{SCHEMA}.{table.name}"
    for of in table.fields:
        needed = of.name in fields and fields[of.name]["required"]
        if of.required and not needed and has_rows:
            raise _refused(table, f"{of.name} was not required, and there are rows without it")
        if of.name not in fields:
            yield from _added(table, of)
        if of.required != needed:
            change = "SET NOT NULL" if of.required else "DROP NOT NULL"
            yield f"ALTER TABLE {target} ALTER COLUMN {quoted(of.name)} {change}"


def _added(table: Table, of: Field) -> Iterator[str]:
    for column, kind in sql_columns(of).items():
        written = kind.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
        for name in (table.name, staged_name(table)):
            yield f"ALTER TABLE {SCHEMA}.{name} ADD COLUMN {quoted(column)} {written}"


def _refused(table: Table, was: str) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"The record kind {table.name} is defined otherwise than in the database: {was}. Rows are "
        "there by that; define it so again, or give the new kind another name. Nothing was changed."
    )
