"""Database tables as sides of a comparison: their columns, and their rows by COPY."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, urlsplit

import polars as pl
import psycopg
from psycopg import IsolationLevel, sql

from connectors.addresses import address_problem
from connectors.compare.sides import Side, first_line, spill
from connectors.errors import SidesRefused
from connectors.files.disk.atomic import private_folder
from connectors.postgres.accounts import acting, sees_part
from connectors.postgres.bulk.copy_out import copied_blocks, parsed
from connectors.postgres.database import SILENT_CLIENT, STATEMENT_SECONDS, WORK_MEMORY
from connectors.postgres.one_moment import give_up
from connectors.postgres.session import (
    CONNECT_SECONDS,
    NO_CONNECTION,
    TEXTS_OF_VALUES,
    why_no_connection,
)
from schemas.cells.readings import Column, Reading, column
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA
from schemas.frame_types import Dtype

T = TypeVar("T")
_INTEGERS, _FLOATS = ("int2", "int4", "int8"), ("float4", "float8")
_TIMES = ("timestamptz", "timestamp")
_DTYPES: dict[str, Dtype] = {
    **dict.fromkeys(_INTEGERS, pl.Int64()),
    **dict.fromkeys(_FLOATS, pl.Float64()),
    "bool": pl.Boolean(),
    "timestamptz": pl.Datetime("us", "UTC"),
    "timestamp": pl.Datetime("us"),
    "date": pl.Date(),
}
"""Types that values are read as; all others are read as texts."""
_ORDERED = frozenset({*_INTEGERS, *_FLOATS, *_TIMES, "numeric", "date", "bool", "uuid", "bytea"})
"""Types whose values have the same order everywhere; texts follow a collation."""
_PART = r'(?:"((?:[^"\0]|"")+)"|([^".\0]+))'
"""One part of a dotted name."""
_FARTHEST_SECONDS = "9223372036854.775807"
"""Largest time from the epoch: microseconds in 64 bits."""
_SETTINGS = (
    f"{TEXTS_OF_VALUES}; SET statement_timeout = '{STATEMENT_SECONDS}s'; "
    # One side waits for the other, however long that takes.
    "SET idle_in_transaction_session_timeout = 0; "
    f"SET work_mem = '{WORK_MEMORY}'; {SILENT_CLIENT}"
)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: PostgreSQL's name of its type, and whether it may be null."""

    name: str
    type: str
    nullable: bool

    @property
    def reading(self) -> Column:
        if self.type == "numeric":
            return Column(self.name, pl.String(), Reading.NUMBER)
        return column(self.name, _DTYPES.get(self.type, pl.String()))

    def selected(self, alias: str) -> sql.Composable:
        """The column as COPY returns it: a text that polars reads as its type."""
        name = sql.Identifier(alias, self.name)
        if self.type in _TIMES:
            return sql.SQL("(extract(epoch FROM {}) * 1000000)::bigint").format(name)
        if self.type == "date":
            return sql.SQL("({} - date '1970-01-01')").format(name)
        if self.type == "numeric":
            return sql.SQL("trim_scale({})").format(name)
        # The cast of an inet would add the width of its network, which is otherwise omitted.
        as_is = self.type in (*_INTEGERS, *_FLOATS, "inet")
        return name if as_is else sql.SQL("{}::text").format(name)

    def too_far(self, alias: str) -> sql.Composable | None:
        """The condition for a time that `selected` cannot give: infinity, or too far away."""
        name = sql.Identifier(alias, self.name)
        if self.type in _TIMES:
            return sql.SQL(f"abs(extract(epoch FROM {{}})) > {_FARTHEST_SECONDS}").format(name)
        return sql.SQL("NOT isfinite({})").format(name) if self.type == "date" else None


@dataclass(frozen=True)
class SqlTable:
    """An open table, in a transaction that sees it at one moment."""

    name: str
    connection: psycopg.Connection
    identifier: sql.Identifier
    """Its name with the schema it was found in."""
    columns: Mapping[str, TableColumn]
    key: Sequence[str]
    """Columns given to tell its rows apart."""
    kind: str = "PostgreSQL"
    """Its kind in the report, which says if only a part of its rows may be visible."""

    @property
    def readings(self) -> Mapping[str, Column]:
        return {name: one.reading for name, one in self.columns.items()}

    @property
    def place(self) -> tuple[object, ...]:
        """What decides its name and visible rows: server, database, user and options."""
        info = self.connection.info
        at = (info.host, info.hostaddr, info.port, info.dbname)
        return (*at, info.user, info.options)

    @property
    def encoding(self) -> str | None:
        """The encoding of the texts that its database hashes."""
        return self.connection.info.parameter_status("server_encoding")

    def rows(
        self, statement: LiteralString | sql.SQL | sql.Composed, parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """The rows a statement returns; raises SidesRefused with the name of the table."""
        with refusals(self.name):
            return self.connection.execute(statement, parameters or None).fetchall()

    def count(self) -> int:
        return int(self.rows(sql.SQL("SELECT count(*) FROM {}").format(self.identifier))[0][0])

    def estimate(self) -> int:
        """About how many rows the table has."""
        found = self.rows(
            "SELECT greatest(reltuples, relpages)::bigint FROM pg_class WHERE oid = %s::regclass",
            [self.identifier.as_string(self.connection)],
        )
        return int(found[0][0])

    def check_rights(self, names: Sequence[str]) -> None:
        """Raise SidesRefused if the role may not read these columns."""
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        self.rows(sql.SQL("SELECT {} FROM {} LIMIT 0").format(columns, self.identifier))

    def order(self, names: Sequence[str], alias: str) -> list[sql.Composable]:
        """Columns to order by, with the same result in whichever database the rows are."""
        return [self._ordered(name, sql.Identifier(alias, name)) for name in names]

    def _ordered(self, name: str, identifier: sql.Identifier) -> sql.Composable:
        if self.columns[name].type in _ORDERED:
            return identifier
        return sql.SQL('{}::text COLLATE "C"').format(identifier)

    def unique(self, key: Sequence[str]) -> bool:
        """Whether the database itself guarantees that no key is empty or there twice."""
        if any(self.columns[name].nullable for name in key):
            return False
        found = self.rows(
            """SELECT array_agg(a.attname::text) FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
            JOIN pg_class c ON c.oid = i.indrelid
            WHERE i.indrelid = %s::regclass AND i.indisunique AND i.indisvalid AND i.indimmediate
                AND i.indpred IS NULL AND i.indexprs IS NULL
                -- It is of no table that inherits from this one; of partitions it is.
                AND (c.relkind = 'p' OR NOT c.relhassubclass)
            GROUP BY i.indexrelid, i.indnkeyatts HAVING count(*) = i.indnkeyatts""",
            [self.identifier.as_string(self.connection)],
        )
        return any(set(names) <= set(key) for (names,) in found)


@contextmanager
def opened(address: str, key: Sequence[str]) -> Iterator[SqlTable]:
    """Open the table an address names, in a read-only transaction; raises SidesRefused."""
    url, title, named = _parsed_address(address)
    parts = _parts(named)
    if not parts:
        raise SidesRefused(f"{title}: which table? Write postgresql://HOST/DB?table=SCHEMA.TABLE.")
    try:
        # The address's own options are kept: a search path may be among them.
        connection = psycopg.connect(
            url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="recon"
        )
    except NO_CONNECTION as error:
        why = why_no_connection(error, url)
        raise SidesRefused(f"{title}: no connection: {why}.") from None
    with closing(connection):
        with refusals(title):
            connection.execute(_SETTINGS)
            connection.autocommit, connection.read_only = False, True
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            identifier = _identifier(connection, title, parts)
            columns = _columns(connection, identifier)
            kind = _kind(connection, title, identifier)
        yield SqlTable(title, connection, identifier, columns, key, kind)


def _kind(connection: psycopg.Connection, title: str, identifier: sql.Identifier) -> str:
    """The table's kind in the report; raises SidesRefused if one of ours shows rows only to logins.

    Rows that a policy hides would be missing, perhaps from both sides unnoticed.
    """
    row = connection.execute(
        """SELECT row_security_active(c.oid), EXISTS (SELECT FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = %s
            WHERE p.proname = 'sees_all' AND c.relnamespace IN (n.oid, to_regnamespace(%s))
            AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
        FROM pg_class c WHERE c.oid = %s::regclass""",
        [SCHEMA, SHOWN_SCHEMA, identifier.as_string(connection)],
    ).fetchone()
    in_part, ours = row or (False, False)
    if ours:
        in_part = sees_part(connection)
        if in_part and acting(connection) is None:
            raise SidesRefused(
                f"{title}: the account {connection.info.user} of the database sees rows only after "
                "a login, and nobody is logged in here, so the table would seem empty. Connect as "
                "an account that loads or applies, or compare a file of its rows."
            )
    return f"PostgreSQL, the rows that {connection.info.user} is shown" if in_part else "PostgreSQL"


@contextmanager
def refusals(name: str) -> Iterator[None]:
    """Report a refusal of the database with the name of the table."""
    try:
        yield
    except psycopg.Error as error:
        raise SidesRefused(f"{name}: {first_line(error)}") from None


def in_parallel(works: Sequence[Callable[[], T]], *tables: SqlTable) -> list[T]:
    """Run all works, each in a thread; raises the first error without waiting for the others.

    On an error or a stop, queries still running on the tables are ended.
    """
    begin, left = Event(), Event()

    def worked(work: Callable[[], T]) -> T:
        begin.wait()
        if left.is_set():
            raise CancelledError
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        under_way: list[Future[T]] = []
        try:
            # A stop may come while the threads start, when not all of them are known yet.
            under_way.extend(threads.submit(worked, work) for work in works)
            begin.set()
            # A thread within polars takes Ctrl-C for itself, and nobody else learns of it.
            wait(under_way, return_when=FIRST_EXCEPTION)
            return [one.result() for one in under_way if one.done()]
        except BaseException:
            left.set()
            begin.set()
            give_up(
                lambda: [table.connection for table in tables],
                lambda seconds: not wait(under_way, timeout=seconds).not_done,
            )
            raise


class Spill:
    """Collects the frames of one side in files of a scratch folder."""

    def __init__(self, table: SqlTable, columns: Sequence[str], scratch: Path) -> None:
        private_folder(scratch)
        self.table, self.scratch = table, scratch
        readings = table.readings
        self.types = {name: readings[name] for name in columns}
        self.files: list[Path] = []
        self.rows = 0

    def add(self, frame: pl.DataFrame) -> None:
        self.files.append(spill(frame, self.scratch, len(self.files)))
        self.rows += frame.height

    def side(self) -> Side:
        if not self.files:
            schema = {name: one.dtype for name, one in self.types.items()}
            self.add(pl.DataFrame(schema=schema))
        return Side(
            self.table.name,
            self.table.kind,
            tuple(self.files),
            self.table.readings,
            self.rows,
            placed=False,
        )


def pulled(
    table: SqlTable, names: Sequence[str], scratch: Path, where: sql.Composable | None = None
) -> Side:
    """Pull columns of a table's rows in key order, block by block, into `scratch`."""
    kept = Spill(table, names, scratch)
    rows = sql.SQL("{} t WHERE ({})").format(table.identifier, where or sql.SQL("true"))
    statement = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(table.columns[name].selected("t") for name in names),
        rows,
        sql.SQL(", ").join(table.order(table.key, "t")),
    )
    with refusals(table.name), far_times_named({"t": table}, names, rows):
        for frame in copied(table.connection, statement, kept.types):
            kept.add(frame)
    return kept.side()


@dataclass(frozen=True, slots=True)
class TableSource:
    """An open table that is read as a whole."""

    table: SqlTable
    scratch: Path

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.table.readings

    def side(self, names: Sequence[str]) -> Side:
        return pulled(self.table, names, self.scratch)


@contextmanager
def far_times_named(
    tables: Mapping[str, SqlTable], names: Sequence[str], rows: sql.Composable
) -> Iterator[None]:
    """Name the time that cannot be read; the database only says that there is one.

    `rows` are the tables with their aliases and conditions, as written after FROM.
    """
    try:
        yield
    except (psycopg.DataError, psycopg.NotSupportedError):
        for alias, table in tables.items():
            for name in names:
                _refuse_far(table, table.columns[name], alias, rows)
        raise


def _refuse_far(table: SqlTable, one: TableColumn, alias: str, rows: sql.Composable) -> None:
    too_far = one.too_far(alias)
    if too_far is None:
        return
    key = [name for name in table.key if name in table.columns]
    texts = [sql.SQL("{}::text").format(sql.Identifier(alias, name)) for name in (one.name, *key)]
    order = [sql.Identifier(alias, name) for name in key] or texts
    # The failed statement has aborted its transaction.
    table.connection.rollback()
    found = table.rows(
        sql.SQL("SELECT {} FROM {} AND {} ORDER BY {} LIMIT 1").format(
            sql.SQL(", ").join(texts), rows, too_far, sql.SQL(", ").join(order)
        )
    )
    for value, *parts in found:
        row = ", ".join(f"{name} = {part}" for name, part in zip(key, parts, strict=True))
        raise SidesRefused(
            f"{table.name}: the row {row} has {value!r} in the column {one.name!r} "
            f"({one.type}), which is no moment that can be compared. Write a real time or NULL "
            "there, or name views that give the column as a text on both sides."
        )


def copied(
    connection: psycopg.Connection, select: sql.Composed, types: Mapping[str, Column]
) -> Iterator[pl.DataFrame]:
    """The rows of a SELECT of `TableColumn.selected` columns, in frames of bounded size."""
    days = [name for name, one in types.items() if one.reading is Reading.DATE]
    read = {name: pl.Int32() if name in days else one.dtype for name, one in types.items()}
    for block in copied_blocks(connection, sql.SQL("COPY ({}) TO STDOUT").format(select)):
        yield parsed(block, read).with_columns(pl.col(days).cast(pl.Date))


def _identifier(connection: psycopg.Connection, title: str, parts: Sequence[str]) -> sql.Identifier:
    row = connection.execute(
        """SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = to_regclass(%s)""",
        [sql.Identifier(*parts).as_string(connection)],
    ).fetchone()
    if row is None:
        raise SidesRefused(f"{title}: there is no such table, or this role may not see it.")
    return sql.Identifier(*row)


def _columns(connection: psycopg.Connection, identifier: sql.Identifier) -> dict[str, TableColumn]:
    rows = connection.execute(
        """SELECT a.attname, (
            WITH RECURSIVE base(name, under) AS (
                SELECT typname, typbasetype FROM pg_type WHERE oid = a.atttypid
                UNION ALL
                SELECT t.typname, t.typbasetype FROM pg_type t JOIN base ON t.oid = base.under)
            SELECT name FROM base WHERE under = 0), NOT a.attnotnull OR EXISTS (
            SELECT FROM pg_constraint c WHERE c.conrelid = a.attrelid AND c.contype = 'n'
                AND NOT c.convalidated AND a.attnum = ANY(c.conkey))
        FROM pg_attribute a
        WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum""",
        [identifier.as_string(connection)],
    ).fetchall()
    return {name: TableColumn(name, kind, nullable) for name, kind, nullable in rows}


def _parsed_address(address: str) -> tuple[str, str, str]:
    """The address for libpq, the address as it is shown, and the table it names."""
    if problem := address_problem(address):
        raise SidesRefused(f"An address of a table cannot be read: {problem}.")
    try:
        parts = urlsplit(address, allow_fragments=False)
        query = dict(parse_qsl(parts.query))
    except ValueError:
        raise SidesRefused("An address of a table cannot be read.") from None
    named = query.get("table", "")
    title = f"{parts.hostname or query.get('host', 'local')}{parts.path}?table={named}"
    # Encoded again, a blank in the options would become a +, which libpq does not decode.
    given = [one for one in parts.query.split("&") if one.partition("=")[0] != "table"]
    return f"postgresql://{parts.netloc}{parts.path}?{'&'.join(given)}", title, named


def _parts(named: str) -> list[str]:
    """The parts of `schema.table`, each quoted if need be; empty if the text is no such name."""
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", named):
        return []
    parts = re.findall(_PART, named)
    return [quoted.replace('""', '"') or plain.lower() for quoted, plain in parts]
