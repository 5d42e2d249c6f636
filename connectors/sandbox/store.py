"""The records the sandbox keeps in PostgreSQL: inserting, replacing and listing them."""

import queue
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.errors import LockNotAvailable
from psycopg.rows import DictRow, dict_row

from connectors.errors import DatabaseUnusable
from connectors.postgres.schema.schema_lock import busy_schema, lock_schema
from connectors.postgres.schema.upgrade import engine_on
from connectors.postgres.session import NO_CONNECTION, plain_session, why_no_connection
from connectors.sandbox.moments import Time
from connectors.sandbox.shapes import (
    METADATA,
    NUMBERED,
    POSITION,
    RECORDS,
    SCHEMA,
    SQL_TABLES,
    key_of,
    read_record,
    stored_names,
    stored_texts,
)
from connectors.sandbox.values import Record, Value
from schemas.field import Field, Kind, Table
from schemas.kinds import OFFSET
from schemas.tables import OWN

Connection = psycopg.Connection[DictRow]

MOST_CONNECTIONS = 8
OPEN_SECONDS = 60
"""How long another sandbox on the same database may take to create its tables."""
# Answers need not survive a crash of the database server; no other guarantee is weakened.
_OPTIONS = "-c synchronous_commit=off -c application_name=sandbox"
_USED = sql.SQL(" UNION ALL ").join(
    sql.SQL("SELECT {} AS name FROM {} WHERE is_called").format(
        sql.Literal(name), sql.Identifier(SCHEMA, f"{name}_{POSITION}_seq")
    )
    for name in SQL_TABLES
)
"""The tables ever written to, recognised by their used position sequences."""


class Store:
    """The records of one sandbox."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        self._opened = False
        self._writes = {name: _write(table) for name, table in RECORDS.items()}

    def open(self) -> None:
        """Create what is missing in the schema; raises DatabaseUnusable."""
        engine = engine_on(self._url)
        try:
            with engine.begin() as connection:
                lock_schema(connection, SCHEMA, METADATA.sorted_tables[0], OPEN_SECONDS)
                _follow_own_kinds(connection)
                METADATA.create_all(connection)
        except (sa.exc.DBAPIError, *NO_CONNECTION) as error:
            cause = (error.orig if isinstance(error, sa.exc.DBAPIError) else None) or error
            if isinstance(cause, LockNotAvailable):
                raise busy_schema(engine, SCHEMA, OPEN_SECONDS) from None
            raise self._unusable(cause) from None
        finally:
            engine.dispose()
        for _ in range(MOST_CONNECTIONS):
            self._free.put(None)
        self._opened = True

    def close(self) -> None:
        """Close every idle connection."""
        self._opened = False
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                connection.close()

    def clear(self) -> None:
        """Delete every record; numbering starts again at 1."""
        with self.connection() as connection:
            # Truncating an empty table costs as much as truncating a full one.
            used = [
                sql.Identifier(SCHEMA, row["name"]) for row in connection.execute(_USED).fetchall()
            ]
            if used:
                names = sql.SQL(", ").join(used)
                connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(names))

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection outside any transaction; waits while all are in use."""
        if not self._opened:
            raise RuntimeError("the sandbox is not running; use it inside `with sandbox.running()`")
        connection = self._free.get()
        try:
            if connection is None or connection.closed:
                connection = cast("Connection", plain_session(self._url, _OPTIONS))
                connection.row_factory = dict_row
            yield connection
        finally:
            if connection is not None and connection.broken:
                connection.close()
            self._free.put(connection)

    @contextmanager
    def filling(self) -> Iterator[Connection]:
        """A connection for loading data outside of requests; raises DatabaseUnusable."""
        try:
            with self.connection() as connection:
                yield connection
        except psycopg.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: BaseException) -> DatabaseUnusable:
        return DatabaseUnusable(
            f"The sandbox cannot use the database: {why_no_connection(error, self._url)}. "
            "Check its address, the server and the role's rights."
        )

    def save(self, connection: Connection, table: Table, record: Record) -> int | None:
        """Add the record, or replace the one with its key; returns the Id it got, if any."""
        given = _texts(_given_fields(table), record)
        done = connection.execute(self._writes[table.name], given, prepare=True)
        row = done.fetchone() if done.description else None
        return None if row is None else int(row["Id"])

    def append(self, table: Table, records: Iterable[Record]) -> int:
        """Add many records at once; returns how many."""
        fields = _given_fields(table)
        names = [name for field in fields for name in stored_names(field)]
        copy = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(SCHEMA, table.name), _identifiers(names)
        )
        count = 0
        with (
            self.filling() as connection,
            connection.cursor() as cursor,
            cursor.copy(copy) as rows,
        ):
            for record in records:
                rows.write_row(_texts(fields, record))
                count += 1
        return count

    def listed(self, table: Table, wanted: Record) -> list[Record]:
        """Every record whose fields equal those in `wanted`, in order of arrival."""
        conditions, given = _conditions(table, wanted)
        query = sql.SQL("SELECT * FROM {} WHERE {} ORDER BY {}").format(
            sql.Identifier(SCHEMA, table.name), conditions, sql.Identifier(POSITION)
        )
        with self.connection() as connection:
            return [read_record(table, row) for row in connection.execute(query, given)]


def _follow_own_kinds(connection: sa.Connection) -> None:
    """Bring tables of own records to their current definitions.

    A new or retyped field begins empty; a table whose key changed is dropped and begins empty too.
    """
    there = sa.inspect(connection)
    for name in OWN.tables.keys() & SQL_TABLES.keys():
        if not there.has_table(name, SCHEMA):
            continue
        table, key = SQL_TABLES[name], [*key_of(RECORDS[name])]
        wanted = {one.name: one.type.compile(connection.dialect) for one in table.columns}
        kept = {
            one["name"]: one["type"].compile(connection.dialect)
            for one in there.get_columns(name, SCHEMA)
        }
        other = {column for column, kind in wanted.items() if kept.get(column) != kind}
        keys = [one["column_names"] for one in there.get_indexes(name, SCHEMA)]
        if keys != [key] * len(table.indexes) or other & {*key}:
            table.drop(connection)
            continue
        for column in sorted(other):
            of = f'ALTER TABLE {SCHEMA}.{name} {{}} "{column}" {{}}'
            connection.exec_driver_sql(of.format("DROP COLUMN IF EXISTS", ""))
            connection.exec_driver_sql(of.format("ADD COLUMN", wanted[column]))


def _given_fields(table: Table) -> Sequence[Field]:
    fields = table.delivered
    return [field for field in fields if not (table.name in NUMBERED and field.name == "Id")]


def _texts(fields: Sequence[Field], record: Record) -> list[str | None]:
    return [text for field in fields for text in stored_texts(field, record.get(field.name))]


def _write(table: Table) -> str:
    names = [name for field in _given_fields(table) for name in stored_names(field)]
    key = key_of(table)
    replace: sql.Composable = sql.SQL("")
    if key:
        # All columns, keys included: a record may consist of its key alone.
        replace = sql.SQL(" ON CONFLICT ({}) DO UPDATE SET {}").format(
            _identifiers(key),
            sql.SQL(", ").join(
                sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in names
            ),
        )
    returning = sql.SQL(' RETURNING "Id"' if table.name in NUMBERED else "")
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}){}{}").format(
        sql.Identifier(SCHEMA, table.name),
        _identifiers(names),
        sql.SQL(", ").join(sql.Placeholder() for _ in names),
        replace,
        returning,
    )
    return statement.as_string()


def _conditions(table: Table, wanted: Record) -> tuple[sql.Composable, list[str]]:
    conditions: list[sql.Composable] = [sql.SQL("true")]
    given: list[str] = []
    for field in table.fields:
        value = wanted.get(field.name)
        if value is None:
            continue
        conditions.append(_condition(field))
        given.append(_comparable(field, value))
    return sql.SQL(" AND ").join(conditions), given


def _condition(field: Field) -> sql.Composable:
    column = sql.Identifier(field.name)
    if field.kind is Kind.DATETIME:
        # Datetimes are compared as instants, whatever zone they are written in.
        return sql.SQL("{} - {} * interval '1 minute' = {}").format(
            column, sql.Identifier(field.name + OFFSET), sql.Placeholder()
        )
    return sql.SQL("{} = {}").format(column, sql.Placeholder())


def _comparable(field: Field, value: Value) -> str:
    if isinstance(value, Time) and field.kind is Kind.DATETIME:
        return value.instant.isoformat()
    text = stored_texts(field, value)[0]
    assert text is not None
    return text


def _identifiers(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
