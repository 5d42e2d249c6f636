"""A database brought to the record kinds that this machine defines, where nothing is lost by it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from connectors.errors import DatabaseUnusable
from connectors.postgres.lease import worked_on
from connectors.postgres.ledger import NOTHING_APPLIED, TAKEN_BACK, State
from connectors.postgres.own_kinds import (
    CHANGED,
    MADE,
    REMOVED,
    THERE,
    KeptKind,
    hash_of,
    kept_of,
)
from connectors.postgres.trail import add_event
from schemas.derived.sql import METADATA, STAGED, STORAGE, TARGETS
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA, listed, staged_name
from schemas.derived.views import DOCUMENTED_VIEWS, ENDS, VIEWS, quoted
from schemas.field import Table
from schemas.guards.roles import LOADER, READER, grants_of
from schemas.guards.shown_rows import hidden_again, shown_rows
from schemas.guards.tenants import policies_of
from schemas.own_checks import INSERT_BATCH_DATA
from schemas.own_definition import Asks, Change, changes, definition_of, table_of
from schemas.own_tables import FOLDER
from schemas.tables import OWN

ROWS = "staged_row"
"""The one view whose text names the tables of record kinds."""
DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
_POSSIBLE = {
    Asks.NO_RECORDS: "that is possible while the database has no record of the kind",
    Asks.UNHELD: "that is possible while no row has a value of it",
    Asks.NO_ROWS: "rows are there by that. Define it so again, or give the new kind another name",
}


def follow_definitions(connection: sa.Connection, *, asked: bool) -> None:
    """Make what the definitions of this machine have and the database has not.

    Call it inside a transaction that keeps the schema. `asked`: somebody wants these definitions,
    so a kind without one is removed and one of before comes back; else they are taken for those of
    a machine that is behind. Raises DatabaseUnusable for what would lose something.
    """
    there = kept_of(connection.exec_driver_sql(THERE.replace("%", "%%")).fetchall())
    gone = sorted(there.keys() - OWN.tables.keys())
    # Who is refused waits for nobody. Rows that a run is writing are seen once it lets go of them.
    _refuse(_all_hindrances(connection, there, asked=asked))
    _lock_changed(connection, there)
    _refuse(_all_hindrances(connection, there, asked=asked))
    # The view would be in the way of what it names; who may read it goes on to.
    _run(connection, f"CREATE OR REPLACE VIEW {SCHEMA}.{ROWS} AS {DOCUMENTED_VIEWS[ROWS]}")
    for name in {*gone, *OWN.tables}:
        _run(connection, hidden_again(f"staged_{name}"))
    for name in gone:
        _drop(connection, name)
        _tell(connection, name, there[name].definition, None)
    for name, table in OWN.tables.items():
        definition, kept = definition_of(table), there.get(name)
        if kept and kept.definition == definition:
            continue
        if kept and _is_used(connection, name):
            _alter(connection, name)
        else:
            if kept:
                _drop(connection, name)
            _make(connection, name)
        now = kept.followed_by(definition) if kept else KeptKind(definition)
        comment = now.comment.replace("'", "''")
        _run(connection, f"COMMENT ON TABLE {SCHEMA}.{name} IS '{comment}'")
        staged = staged_name(table)
        _run(connection, f"ALTER TABLE {SCHEMA}.{staged} SET ({STORAGE[staged]})")
        _tell(connection, name, kept.definition if kept else None, definition)
    _run(connection, f"CREATE OR REPLACE VIEW {SCHEMA}.{ROWS} AS {VIEWS[ROWS]}")
    if OWN.tables and connection.exec_driver_sql(f"SELECT to_regrole('{READER}')").scalar():
        for statement in (*grants_of(OWN.tables), *policies_of(OWN.tables, READER, LOADER)):
            _run(connection, statement)
        if connection.exec_driver_sql(f"SELECT to_regnamespace('{SHOWN_SCHEMA}')").scalar():
            for statement in shown_rows(OWN.tables.values(), READER):
                _run(connection, statement)


def _tell(connection: sa.Connection, name: str, before: str | None, now: str | None) -> None:
    """Say in the trail what became of a kind: the reports of its records rest on it."""
    what = MADE if before is None else REMOVED if now is None else CHANGED
    said: dict[str, object] = {"record": name}
    said |= {
        key: json.loads(one) for key, one in (("before", before), ("now", now)) if one is not None
    }
    if before is not None and now is not None:
        said["changes"] = [one.told for one in changes(table_of(name, before), OWN.tables[name])]
    add_event(
        cast(psycopg.Connection, connection.connection.driver_connection),
        what,
        detail=said,
    )


def _refuse(hindrances: Iterable[str]) -> None:
    if told := [one for one in hindrances if one]:
        raise DatabaseUnusable("\n".join([*told, "Nothing was changed."]))


def _lock_changed(connection: sa.Connection, there: Mapping[str, KeptKind]) -> None:
    """Keep writers out of the tables of kinds that are gone, or defined otherwise."""
    for name, kept in there.items():
        if name not in OWN.tables or kept.definition != definition_of(OWN.tables[name]):
            tables = f"{SCHEMA}.{name}, {SCHEMA}.staged_{name}"
            _run(connection, f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def _all_hindrances(
    connection: sa.Connection, there: Mapping[str, KeptKind], *, asked: bool
) -> Iterator[str]:
    for name in sorted(there.keys() - OWN.tables.keys()):
        yield _no_file(connection, name, asked=asked)
    for name in sorted(there.keys() & OWN.tables.keys()):
        yield from _hindrances(connection, name, there[name], asked=asked)


def _no_file(connection: sa.Connection, name: str, *, asked: bool) -> str:
    """Why a kind cannot be without a file; empty: it can be removed."""
    if _is_used(connection, name):
        return (
            f"The database has the record kind {name}, which is not defined here, and batches have "
            f"rows of it. Set {FOLDER} to the folder with its definition, or write that with "
            "`recon records export`."
        )
    if asked:
        return ""
    return (
        f"The database has the record kind {name}, which is not defined here. Set {FOLDER} to the "
        "folder with its definition, write that with `recon records export`, or remove the kind "
        "with `recon records apply`: it was never delivered."
    )


def _hindrances(
    connection: sa.Connection, name: str, kept: KeptKind, *, asked: bool
) -> Iterator[str]:
    """Why the database cannot follow a definition."""
    definition = definition_of(OWN.tables[name])
    if kept.definition == definition:
        return
    if not asked and hash_of(definition) in kept.former:
        yield (
            f"The record kind {name} is defined here as it was before: the database has a newer "
            "definition. Write that with `recon records export`, or lead the database back with "
            "`recon records apply`, as the owner of the schema."
        )
        return
    if not _is_used(connection, name):
        return
    before = table_of(name, kept.definition)
    for change in changes(before, OWN.tables[name]):
        if why := _in_the_way(connection, before, change):
            yield (
                f"The record kind {name} is defined otherwise than in the database: {change.told}; "
                f"{why}."
            )


def _in_the_way(connection: sa.Connection, before: Table, change: Change) -> str:
    """What keeps a kind from being changed, and what to do; empty: nothing."""
    name = before.name
    match change.asks:
        case Asks.NOTHING:
            return ""
        case Asks.NONE_WAITING:
            return _waiting(connection, name)
        case Asks.NO_RECORDS:
            if _any(connection, name):
                return _POSSIBLE[change.asks]
            return _waiting(connection, name)
        case Asks.UNHELD:
            held = f"WHERE {quoted(change.field)} IS NOT NULL"
            there = any(_any(connection, of, held) for of in (name, f"staged_{name}"))
            return _POSSIBLE[change.asks] if there else ""
        case Asks.NO_LINES:
            return _delivered_as_lines(connection, name)
        case Asks.UNSENT:
            return _sent(connection, before)
        case Asks.NO_ROWS:
            return _POSSIBLE[change.asks]


def _waiting(connection: sa.Connection, name: str) -> str:
    """Which batch has rows of a kind that are to become records, checked as it was defined."""
    batch = connection.exec_driver_sql(
        f"SELECT min(b.id) FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id "
        f"WHERE b.state IN ({listed(NOTHING_APPLIED)}) AND EXISTS (SELECT FROM "
        f"{SCHEMA}.staged_{name} s WHERE s.extract_id = e.id AND s.error_data IS NULL)"
    ).scalar()
    if batch is None:
        return _being_read(connection, name)
    return (
        f"batch {batch} has rows that were checked by that and wait. Define it so again (`recon "
        "records export` writes it), end that batch or discard it, and change the definition then"
    )


def _being_read(connection: sa.Connection, name: str) -> str:
    """Which batch a run is reading whose files have rows of a kind, or may have them inside.

    That run began with the definition before, and checks all of its files by it.
    """
    asking = cast(psycopg.Connection, connection.connection.driver_connection)
    row = asking.execute(
        f"SELECT min(b.id) FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id "
        "WHERE b.id = ANY(%s) AND b.state = %s AND e.record = ANY(%s) AND e.refused IS NULL",
        [worked_on(asking), State.RECEIVED, [name, INSERT_BATCH_DATA]],
    ).fetchone()
    if row is None or row[0] is None:
        return ""
    return (
        f"a run is reading batch {row[0]}, and checks its rows by that. Wait for its end, and "
        "change the definition then"
    )


def _delivered_as_lines(connection: sa.Connection, name: str) -> str:
    """Which batch has records of a kind as lines without names, if any that was not taken back."""
    batch = connection.exec_driver_sql(
        f"SELECT min(id) FROM {SCHEMA}.batch WHERE profile::json ->> 'inner_record' = '{name}' "
        f"AND state NOT IN ({listed(TAKEN_BACK)})"
    ).scalar()
    if batch is None:
        return ""
    return (
        f"batch {batch}: its feed brings lines of it inside insert-batch data (inner_record), and "
        "their cells are told by the order of the fields alone. Leave the fields where they are, "
        "and put new ones behind them"
    )


def _sent(connection: sa.Connection, before: Table) -> str:
    """Which batch with rows of a kind goes to the service, and what to do; empty: none does.

    One that was taken back goes nowhere any more, but what was sent of it stays. What was planned
    and certainly never arrived was not sent, unless somebody has decided about it. Its files may
    hold records of other kinds, which were sent by operations of theirs.
    """
    name, operation = before.name, before.endpoint.name if before.endpoint else ""
    batch = connection.exec_driver_sql(
        f"""SELECT b.id, b.state,
            EXISTS (SELECT FROM {SCHEMA}.send x
                WHERE x.extract_id = e.id AND x.operation = '{operation}'
                    AND (x.state NOT IN ('unsent', 'superseded') OR x.carried_out IS NOT NULL
                        OR x.decision IS NOT NULL OR x.earlier > 0)) AS sent
        FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id
        WHERE b.service IS NOT NULL AND (e.record = '{name}' OR EXISTS (SELECT FROM
            {SCHEMA}.staged_{name} s WHERE s.extract_id = e.id))
        ORDER BY sent DESC, b.state IN ({listed(ENDS)}), b.id LIMIT 1"""
    ).one_or_none()
    if batch is None:
        return ""
    if batch.sent:
        return (
            f"what was sent of batch {batch.id} is kept by that. Define it so again, or give the "
            "new kind another name"
        )
    if batch.state in ENDS:
        return ""
    return (
        f"batch {batch.id}, which has rows of the kind, goes to the service. Define it so again, "
        "undo that batch, and deliver it behind the change"
    )


def _is_used(connection: sa.Connection, name: str) -> bool:
    """Whether anything of a kind was delivered; its rows may be gone, the extract is not."""
    return (
        _any(connection, name)
        or _any(connection, f"staged_{name}")
        or _any(connection, "extract", f"WHERE record = '{name}'")
    )


def _any(connection: sa.Connection, table: str, where: str = "") -> bool:
    return bool(
        connection.exec_driver_sql(f"SELECT EXISTS (SELECT FROM {SCHEMA}.{table} {where})").scalar()
    )


def _make(connection: sa.Connection, name: str) -> None:
    _refuse_word(connection, name)
    tables = (TARGETS[name], STAGED[name])
    names = [table.name for table in tables]
    names += [str(table.primary_key.name) for table in tables if table.primary_key]
    names += [str(index.name) for table in tables for index in table.indexes]
    listed = ", ".join(f"'{one}'" for one in names)
    taken = connection.exec_driver_sql(
        f"SELECT min(relname) FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') "
        f"AND relname IN ({listed})"
    ).scalar()
    if taken:
        raise DatabaseUnusable(
            f"The record kind {name} cannot be made: the schema {SCHEMA!r} has something named "
            f"{taken} already. Give the kind another name; nothing was changed."
        )
    METADATA.create_all(connection, tables, checkfirst=False)


def _refuse_word(connection: sa.Connection, name: str) -> None:
    """Refuse a name that the server takes for a word of its own where a table is named."""
    reserved = connection.exec_driver_sql(
        "SELECT EXISTS (SELECT FROM pg_get_keywords() "
        f"WHERE word = '{name}' AND catcode IN ('R', 'T'))"
    ).scalar()
    if reserved:
        raise DatabaseUnusable(
            f"The record kind {name} cannot be made: {name} is a word of SQL. Give the kind "
            "another name; nothing was changed."
        )


def _drop(connection: sa.Connection, name: str) -> None:
    for table in (name, f"staged_{name}"):
        _run(connection, f"DROP TABLE {SCHEMA}.{table}")


def _alter(connection: sa.Connection, name: str) -> None:
    """Add columns, take those away that are gone, and say which of them may be empty."""
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
            # It may look by this one; those that roles need are made anew behind all kinds.
            _run(connection, f"DROP POLICY IF EXISTS seen ON {SCHEMA}.{table.name}")
            _run(connection, f"{alter} DROP COLUMN {quoted(gone)}")


def _run(connection: sa.Connection, statement: str) -> None:
    # A percent sign is taken for a parameter only where there may be any.
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
