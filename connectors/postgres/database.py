"""The one PostgreSQL: which it is, whether it can be used, and connections to it."""

import os
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

from connectors.errors import DatabaseUnusable, StatementRefused
from connectors.postgres.accounts import act_as
from connectors.postgres.addresses import NO_CONNECTION, why_no_connection
from connectors.postgres.heartbeat import DEFAULT_SECONDS
from connectors.postgres.own_kinds import are_as_defined, follow_definitions, kept_kinds
from connectors.postgres.refusals import told
from connectors.postgres.schema_lock import busy_schema, lock_schema
from connectors.postgres.server.embedded import answers, embedded_url
from connectors.settings import MIB, Settings
from schemas.derived.sql import METADATA, SCHEMA
from schemas.derived.views import VIEWS
from schemas.field import Table

MIGRATIONS = Path(__file__).parent / "migrations"
TAKEN_OVER, THROUGH = "0018", "2098088"
"""The last revision before the first of ours, with its tables, and a commit that leads to it."""
VERSION_TABLE = "alembic_version"
OLDEST_SERVER = 150000
"""PostgreSQL 15: unique indexes can treat nulls as equal, MERGE exists."""
CONNECT_SECONDS = 10
ROOM_SECONDS = (0.1, 0.3, 0.6)
"""Waits for room where as many are connected as may be: closed sessions go soon after."""
STATEMENT_SECONDS = 900
"""No statement may wait for ever; a chunk takes seconds."""
MISSING_SHOWN = 5
COPY_BYTES = MIB
"""A piece in which rows are sent, and the room for one on its way; the system may have less."""
SILENT_PEER: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""A server that vanished without a word is noticed within a minute."""
SILENT_CLIENT = (
    "SELECT set_config('client_connection_check_interval', '1s', FALSE) "
    "WHERE version() !~ 'windows|Visual C'"
)
"""A run that died in a long statement must not hold its batch until that ends; Windows cannot."""


def database_url(settings: Settings) -> str:
    """The libpq URL of the database, the embedded server started where it is the one."""
    if settings.database_url is None:
        return embedded_url(embedded_folder(settings))
    return libpq_address(settings.database_url)


def libpq_address(url: str) -> str:
    """An address as libpq reads it: without the driver that other programs have in its scheme."""
    return "postgresql://" + url.split("://", 1)[1]


def embedded_folder(settings: Settings) -> Path:
    """Data folder of the embedded server."""
    return settings.home / "postgres"


WORK_MEMORY = "256MB"
"""A million rows are joined and judged in the server's memory instead of on its disk."""


class Database:
    """Connections to one database whose schema is known to be ours and current."""

    def __init__(
        self,
        url: str,
        wait_seconds: int,
        embedded: Path | None = None,
        lease_seconds: int = DEFAULT_SECONDS,
        login: str | None = None,
        job: int | None = None,
    ) -> None:
        self.url = url
        self.job = job
        """Number of the job that is worked on, so that the trail says who asked for it."""
        self.login = login
        """Token of the login that its connections act by; None: of nobody's."""
        self.lease_seconds = lease_seconds
        self.embedded = embedded
        """Data folder of the embedded server, if it is one: killed, it is started again."""
        self.wait_seconds = wait_seconds
        """How long a lost connection is waited for."""

    def as_login(self, token: str | None) -> "Database":
        """The same database for whoever has this token."""
        return Database(
            self.url, self.wait_seconds, self.embedded, self.lease_seconds, token, self.job
        )

    def for_job(self, number: int) -> "Database":
        """The same database, worked on for a job, by nobody's login."""
        return Database(self.url, self.wait_seconds, self.embedded, self.lease_seconds, job=number)

    @contextmanager
    def connect(self, *, patient: bool = True) -> Iterator[psycopg.Connection]:
        """One connection outside any transaction; transactions are opened explicitly.

        `patient`: where the role or the server is at its limit of connections, those that have just
        been closed are given a moment to go. Raises DatabaseUnusable, DatabaseLost when it is lost
        meanwhile, and StatementRefused for what the database says to a statement and nobody has
        dealt with.
        """
        try:
            connection = self._with_room() if patient else self._open()
        except NO_CONNECTION as error:
            raise DatabaseUnusable(_no_connection(error, self.url)) from None
        with connection, errors_reported(connection):
            _refuse_too_old(connection.info.server_version)
            connection.execute(SILENT_CLIENT)
            if self.login is not None:
                act_as(connection, self.login)
            _widen(connection)
            yield connection

    def _with_room(self) -> psycopg.Connection:
        for seconds in ROOM_SECONDS:
            try:
                return self._open()
            except psycopg.OperationalError as error:
                # The client gives no SQLSTATE for what is said before there is a session.
                if "too many" not in str(error):
                    raise
            time.sleep(seconds)
        return self._open()

    def _open(self) -> psycopg.Connection:
        try:
            return self._connected()
        except psycopg.OperationalError:
            if self.embedded is None or answers(self.embedded):
                raise
        embedded_url(self.embedded)
        return self._connected()

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(
            self.url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            options=f"-c timezone=UTC -c statement_timeout={STATEMENT_SECONDS}s "
            f"-c search_path={SCHEMA} -c work_mem={WORK_MEMORY} -c jit=off "
            f"-c application_name=recon -c recon.lease_seconds={self.lease_seconds} "
            f"{'' if self.job is None else f'-c recon.job={self.job} '}"
            # Counts and distinct keys are all our statements need; a small sample tells those.
            "-c default_statistics_target=10 "
            # A client whose machine is gone is noticed within a minute.
            "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
            **SILENT_PEER,
        )


def _widen(connection: psycopg.Connection) -> None:
    """Let a piece of COPY wait for a local server, not the client; TCP sees to it by itself."""
    with socket.socket(fileno=os.dup(connection.fileno())) as shared:
        if shared.family == socket.AF_UNIX:
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, COPY_BYTES)


@contextmanager
def errors_reported(connection: psycopg.Connection) -> Iterator[None]:
    """Raise DatabaseLost and StatementRefused for what the database says."""
    try:
        yield
    except psycopg.Error as error:
        if (ended := _ended_by(error)) is not None:
            raise ended from None
        # Without the error itself: its details quote rows, and Prefect keeps them.
        raise told(error, lost=connection.broken, user=connection.info.user) from None
    except UnicodeEncodeError:
        raise StatementRefused(
            "A text that was given, such as a reason or a name, is not UTF-8 and cannot be kept. "
            "Give it in UTF-8; nothing was changed."
        ) from None


def _ended_by(error: BaseException) -> BaseException | None:
    """What ended the process in the middle of a statement, such as a Cancel on the pages.

    What is still asked of that connection on the way out is refused by the client: the statement
    is under way. That refusal is not why the run ended.
    """
    told: BaseException | None = error
    while told is not None and isinstance(told, Exception):
        told = told.__context__
    return told


def analyse(connection: psycopg.Connection, *tables: str) -> None:
    """Let the planner know rows that were just written; without, it expects a handful of them.

    A table the server itself is busy with is left out: waiting would make it give up its vacuum.
    """
    connection.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}")


def summarise(connection: psycopg.Connection, *tables: str) -> None:
    """Bring the block range indexes up to date, so that a range is found without the whole table.

    The server does it by itself only when it vacuums.
    """
    connection.execute(
        "SELECT brin_summarize_new_values(i.indexrelid) FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
        "WHERE a.amname = 'brin' AND i.indrelid = ANY(%s::regclass[]) "
        # Only the owner may; for a lesser role the server's own pass has to do.
        "AND pg_has_role(c.relowner, 'USAGE')",
        [list(tables)],
    )


def _nothing(_: psycopg.Connection) -> None:
    """What is asked of most databases when they are opened."""


def open_database(
    settings: Settings, ask: Callable[[psycopg.Connection], None] = _nothing
) -> Database:
    """The database, migrated to this version's schema; raises DatabaseUnusable.

    `ask` gets the connection that looked whether it is, which saves one of its own.
    """
    database = _named(settings)
    with database.connect() as connection:
        _refuse_read_only(connection)
        if _is_behind(_revision(connection)):
            _bring_up_to_date(database, migrate)
        if not are_as_defined(connection):
            _bring_up_to_date(database, follow)
        # After the revision, so that what somebody else adds meanwhile is no column that lacks.
        _refuse_incomplete(_columns(connection))
        with connection.transaction():
            ask(connection)
    return database


def kinds_there(settings: Settings) -> dict[str, Table]:
    """The record kinds of our own that the database works with, whatever this machine defines."""
    with _named(settings).connect() as connection:
        return kept_kinds(connection)


def apply_definitions(settings: Settings) -> None:
    """Make the database follow the definitions of this machine, as somebody asked for."""
    database = _named(settings)
    for way in (migrate, follow):
        _bring_up_to_date(database, partial(way, asked=True))


def _named(settings: Settings) -> Database:
    limits = settings.limits
    embedded = None if settings.database_url else embedded_folder(settings)
    url = database_url(settings)
    return Database(url, limits.database_wait_seconds, embedded, limits.lease_seconds)


@cache
def revisions() -> tuple[str, ...]:
    """The revisions of the schema that this version knows, which are the numbers of their files.

    Alembic would run every file of a revision to tell: longer than many a command takes.
    """
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(path.name.partition("_")[0] for path in files))


def _bring_up_to_date(database: Database, way: Callable[[sa.Connection, float], None]) -> None:
    """The schema in its newest revision, or with all record kinds; raises DatabaseUnusable."""
    engine = engine_on(database.url)
    try:
        with engine.begin() as connection:
            way(connection, database.wait_seconds)
    except sa.exc.DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise busy_schema(engine, SCHEMA, database.wait_seconds) from None
        raise DatabaseUnusable(_no_connection(error.orig or error, database.url)) from None
    finally:
        engine.dispose()


def engine_on(url: str) -> sa.Engine:
    """An engine whose connections are opened by libpq alone: an address is read in one way."""
    return sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, connect_timeout=CONNECT_SECONDS),
        hide_parameters=True,
    )


def migrate(
    connection: sa.Connection, wait_seconds: float = DEFAULT_SECONDS, *, asked: bool = False
) -> None:
    """Bring the schema to the newest revision; nothing happens when it is there already.

    No lock is waited for longer than `wait_seconds`. Behind it follow the record kinds of our own
    (`follow_definitions`, which says what `asked` is).
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes |= {"connection": connection, "asked": asked}
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    current = context.get_current_revision()
    if not _is_behind(current):
        return
    try:
        lock_schema(connection, SCHEMA, context._version, wait_seconds)
        # Somebody else may have brought it there meanwhile.
        current = context.get_current_revision()
        if not _is_behind(current):
            return
        if current == TAKEN_OVER:
            connection.execute(context._version.update().values(version_num=revisions()[0]))
        command.upgrade(config, "head")
    except sa.exc.ProgrammingError as error:
        raise _not_allowed(error, current) from None


def follow(
    connection: sa.Connection, wait_seconds: float = DEFAULT_SECONDS, *, asked: bool = False
) -> None:
    """Bring the tables of our own record kinds to their definitions (`follow_definitions`)."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    try:
        lock_schema(connection, SCHEMA, context._version, wait_seconds)
        follow_definitions(connection, asked=asked)
    except sa.exc.ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise DatabaseUnusable(
            "The database does not have the record kinds that are defined here, or has others, and "
            "the role of RECON_DATABASE_URL may not make them. Run any command, `recon status` for "
            "one, once as the owner of the schema; nothing was changed."
        ) from None


def _is_behind(current: str | None) -> bool:
    """Whether a schema has to be brought on from there; raises DatabaseUnusable if it cannot be."""
    first, newest = revisions()[0], revisions()[-1]
    if current in (None, TAKEN_OVER):
        return True
    if current < first:
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} is at revision {current}, and this version goes on from "
            f"revision {TAKEN_OVER} at the earliest. Go through commit {THROUGH} of recon: install "
            "it, run any command, `recon status` for one, once as the owner of the schema, then "
            "install this version again. Nothing was changed."
        )
    if current > newest:
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} is at revision {current}, which this version does not know. "
            "It was migrated by a newer version; use that one."
        )
    return current != newest


def _not_allowed(error: sa.exc.ProgrammingError, current: str | None) -> Exception:
    """The same as text where a right is missing; what else is wrong stays what it is."""
    if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
        return error
    return DatabaseUnusable(
        f"The schema {SCHEMA!r} is {f'at revision {current}' if current else 'not there'}, "
        f"this version needs revision {revisions()[-1]}, and the role of RECON_DATABASE_URL "
        "may not bring it there. Run any command, `recon status` for one, once as the owner of the "
        "schema; nothing was changed."
    )


def _columns(connection: psycopg.Connection) -> dict[str, list[str]]:
    """The columns of each table and view of the schema."""
    found = connection.execute(
        "SELECT c.relname, array_agg(a.attname::text) "
        "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = to_regnamespace(%s) AND a.attnum > 0 AND NOT a.attisdropped "
        "GROUP BY 1",
        [SCHEMA],
    )
    return dict(found.fetchall())


def _revision(connection: psycopg.Connection) -> str | None:
    """The revision of the schema; None where there is none."""
    there = "SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = %s"
    if connection.execute(there, [SCHEMA, VERSION_TABLE]).fetchone() is None:
        return None
    found = connection.execute(f"SELECT version_num FROM {SCHEMA}.{VERSION_TABLE}").fetchone()
    return found[0] if found else None


def _refuse_incomplete(there: Mapping[str, Collection[str]]) -> None:
    """A table or column that somebody took away is told before any row is touched."""
    missing = [
        f"{table.name}.{column.name}"
        for table in METADATA.tables.values()
        for column in table.columns
        if column.name not in there.get(table.name, ())
    ]
    missing += [view for view in VIEWS if view not in there]
    if missing:
        shown = ", ".join(missing[:MISSING_SHOWN])
        more = f" and {len(missing) - MISSING_SHOWN} more" if len(missing) > MISSING_SHOWN else ""
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} lacks {shown}{more}. It was changed by hand or restored in "
            "part: restore it from a backup, or name an empty database. Nothing was changed."
        )


def _refuse_too_old(version: int) -> None:
    if version < OLDEST_SERVER:
        raise DatabaseUnusable(
            f"PostgreSQL {version // 10000} is too old; version {OLDEST_SERVER // 10000} or newer "
            "is needed."
        )


def _refuse_read_only(connection: psycopg.Connection) -> None:
    asked = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
    if connection.execute(asked).fetchone() == (True,):
        raise DatabaseUnusable("The database server is read-only. Connect to the primary.")


def _no_connection(error: BaseException, url: str) -> str:
    return (
        f"The database cannot be used: {why_no_connection(error, url)}. "
        "Check RECON_DATABASE_URL, the server and the role's rights."
    )
