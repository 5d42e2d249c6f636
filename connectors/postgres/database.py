"""The one PostgreSQL database: its address, whether it can be used, and connections to it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from connectors.errors import DatabaseUnusable, SchemaReplaced, StatementRefused
from connectors.postgres.accounts import act_as
from connectors.postgres.heartbeat import DEFAULT_SECONDS
from connectors.postgres.query import one_value
from connectors.postgres.refusals import as_recon_error
from connectors.postgres.schema.completeness import (
    SWITCHED_OFF,
    refuse_if_off,
    refuse_incomplete,
    refuse_remains,
    what_is_there,
)
from connectors.postgres.schema.own_kinds import STATE, kept_kinds, state_as_defined
from connectors.postgres.schema.revisions import (
    VERSION_TABLE,
    Way,
    is_behind,
    revision_of,
    revisions,
)
from connectors.postgres.server.embedded import answers, embedded_url, is_made
from connectors.postgres.session import (
    NO_CONNECTION,
    TEXTS_OF_VALUES,
    Session,
    no_connection,
    open_session,
)
from connectors.settings import DATABASE, MIB, Settings
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA, staged_name
from schemas.field import Table
from schemas.tables import PAYMENT

OLDEST_SERVER = 150000
"""PostgreSQL 15: unique indexes can treat nulls as equal, MERGE exists."""
ROOM_SECONDS = (0.1, 0.3, 0.6)
"""Pauses before another try when no connection is free; closed sessions go soon after."""
STATEMENT_SECONDS = 900
"""No statement may wait for ever; even a chunk takes only seconds."""
_STAGED = staged_name(PAYMENT)
"""Staged rows of one record kind; a role that loads may read those of every kind."""
COPY_BYTES = MIB
"""Size of a COPY piece, and of the send buffer for it; the system may grant less."""
SILENT_CLIENT = (
    "SELECT set_config('client_connection_check_interval', '1s', FALSE) "
    "WHERE version() !~ 'windows|Visual C'"
)
"""Ends a statement whose client has died, which would hold its batch; not on Windows servers."""


def database_url(settings: Settings) -> str:
    """Give the libpq URL of the database, starting the embedded server if that is configured."""
    if settings.database_url is None:
        return embedded_url(embedded_folder(settings))
    return libpq_address(settings.database_url)


def libpq_address(url: str) -> str:
    """An address as libpq reads it: without the driver that other programs add to the scheme."""
    return "postgresql://" + url.split("://", 1)[1]


def embedded_folder(settings: Settings) -> Path:
    return settings.home / "postgres"


WORK_MEMORY = "256MB"
"""Enough to join and check a million rows in the server's memory instead of on its disk."""


@dataclass(eq=False, repr=False)
class Database:
    """Connections to one database whose schema is known to be ours and current."""

    url: str
    wait_seconds: int
    """How long to wait for the server after a lost connection."""
    embedded: Path | None = None
    """Data folder of the embedded server, which is started again if killed; None for others."""
    lease_seconds: int = DEFAULT_SECONDS
    login: str | None = None
    """Token of the login that its connections act by; None if they act by no login."""
    job: int | None = None
    """Number of the job being worked on, so that the trail says who asked for it."""
    revision: str | None = None
    """Schema revision when it was opened; a connection that finds another one is refused."""
    kinds: str | None = None
    """State of our own record kinds when it was opened (`own_kinds`); checked like `revision`."""
    loads: bool | None = None
    """Whether its role may read the staged rows themselves; None until somebody has asked."""
    guarded: bool = True
    """Whether a connection is refused while a trigger is switched off."""
    named_by: str = DATABASE
    """The setting or block that names the database, for messages."""

    def as_login(self, token: str | None) -> "Database":
        """The same database, acting by the login of this token."""
        return replace(self, login=token)

    def for_job(self, number: int) -> "Database":
        """The same database, worked on for a job, by nobody's login."""
        return replace(self, login=None, job=number)

    @contextmanager
    def connect(self, *, patient: bool = True) -> Iterator[psycopg.Connection]:
        """One connection outside any transaction; transactions are opened explicitly.

        With `patient`, a role or server at its limit of connections is tried again, since sessions
        just closed take a moment to go. Raises DatabaseUnusable, DatabaseLost if the connection is
        lost meanwhile, and StatementRefused for a statement's error that nobody has dealt with.
        """
        try:
            connection = self._with_room() if patient else self._open()
        except NO_CONNECTION as error:
            raise DatabaseUnusable(no_connection(error, self.url, self.named_by)) from None
        with connection, errors_reported(connection):
            _refuse_too_old(connection.info.server_version)
            _refuse_other_encoding(connection, self.named_by)
            self._begin(connection)
            if self.login is not None:
                act_as(connection, self.login)
            self._see_shown_rows(connection)
            _widen(connection)
            yield connection

    def _begin(self, connection: psycopg.Connection) -> None:
        """Set up the session and check the revision, in one round trip."""
        statements = [TEXTS_OF_VALUES, SILENT_CLIENT]
        if self.revision is not None:
            statements.append(
                f"SELECT version_num, {STATE}, {SWITCHED_OFF} FROM {SCHEMA}.{VERSION_TABLE}"
            )
        cursor = connection.execute("; ".join(statements))
        while cursor.nextset():
            pass
        if self.revision is None:
            return
        revision, kinds, off = cursor.fetchone() or (None, None, None)
        if revision != self.revision:
            there = f"at revision {revision}" if revision else "not there"
            raise SchemaReplaced(
                f"The schema {SCHEMA!r} is {there} now, and was at {self.revision} when this "
                "program began. Stop it, and start it again in the version that is installed. "
                "Nothing was changed."
            )
        if kinds != self.kinds:
            raise SchemaReplaced(
                "The database has other definitions of record kinds now than when this program "
                "began. Stop it, and start it again with the files that `recon records export` "
                "writes. Nothing was changed."
            )
        if self.guarded:
            refuse_if_off(off)

    def _see_shown_rows(self, connection: psycopg.Connection) -> None:
        """Let a role that may not read staged rows find the views that show them instead."""
        if self.loads is None:
            asked = f"SELECT has_table_privilege(to_regclass('{SCHEMA}.{_STAGED}'), 'SELECT')"
            self.loads = one_value(connection.execute(asked))
        if self.loads is False:
            connection.execute(f"SET search_path = {SHOWN_SCHEMA}, {SCHEMA}")

    def _with_room(self) -> psycopg.Connection:
        for seconds in ROOM_SECONDS:
            try:
                return self._open()
            except psycopg.OperationalError as error:
                # The client gives no SQLSTATE for an error before there is a session.
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
        return open_session(
            self.url,
            f"-c statement_timeout={STATEMENT_SECONDS}s "
            f"-c search_path={SCHEMA} -c work_mem={WORK_MEMORY} -c jit=off "
            f"-c application_name=recon -c recon.lease_seconds={self.lease_seconds} "
            f"{'' if self.job is None else f'-c recon.job={self.job} '}"
            # Our statements need only counts and distinct keys; a small sample tells those.
            "-c default_statistics_target=10 "
            # Notice within a minute that a client's machine is gone.
            "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
        )


def _widen(connection: psycopg.Connection) -> None:
    """Let a piece of COPY wait in the socket of a local server; TCP sizes its buffer itself."""
    with socket.socket(fileno=os.dup(connection.fileno())) as shared:
        if shared.family == socket.AF_UNIX:
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, COPY_BYTES)


@contextmanager
def planned(connection: psycopg.Connection, setting: str, *, on: bool) -> Iterator[None]:
    """Switch a planner method (`enable_...`) until the block or its transaction ends."""
    ((before, _),) = connection.execute(
        "SELECT current_setting(%(of)s), set_config(%(of)s, %(to)s, TRUE)",
        {"of": setting, "to": "on" if on else "off"},
    )
    yield
    connection.execute(f"SET LOCAL {setting} = {before}")


def nested_loops(connection: psycopg.Connection, *, on: bool) -> AbstractContextManager[None]:
    """Allow or forbid joining rows one by one until the block ends or its transaction fails.

    A batch's rows have no index but that of their place, and no statistics just after they were
    written. The planner expects a condition to leave few of them, and would read all of one side
    for every row of the other.
    """
    return planned(connection, "enable_nestloop", on=on)


@contextmanager
def errors_reported(connection: psycopg.Connection) -> Iterator[None]:
    """Raise DatabaseLost or StatementRefused for an error of the database."""
    try:
        yield
    except psycopg.Error as error:
        if (ended := _ended_by(error)) is not None:
            raise ended from None
        # `from None`: the original error quotes rows in its details, and Prefect keeps them.
        last_words = connection.last_words if isinstance(connection, Session) else None
        raise as_recon_error(
            error, lost=connection.broken, user=connection.info.user, last_words=last_words
        ) from None
    except UnicodeEncodeError:
        raise StatementRefused(
            "A text that was given, such as a reason or a name, is not UTF-8 and cannot be kept. "
            "Give it in UTF-8; nothing was changed."
        ) from None


def _ended_by(error: BaseException) -> BaseException | None:
    """Find what ended the process in the middle of a statement, such as a Cancel on the pages.

    On the way out the client refuses further statements, because the first is still under way.
    That refusal is not why the run ended.
    """
    cause: BaseException | None = error
    while cause is not None and isinstance(cause, Exception):
        cause = cause.__context__
    return cause


def analyse(connection: psycopg.Connection, *tables: str) -> None:
    """Tell the planner about rows just written; otherwise it expects only a handful.

    A table the server itself is busy with is skipped: waiting would make it abandon its vacuum.
    """
    connection.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}")


def summarise(connection: psycopg.Connection, *tables: str) -> None:
    """Bring the block range indexes up to date, so that a range is found without the whole table.

    The server does this by itself only when it vacuums.
    """
    connection.execute(
        "SELECT brin_summarize_new_values(i.indexrelid) FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
        "WHERE a.amname = 'brin' AND i.indrelid = ANY(%s::regclass[]) "
        # Only the owner may; for a lesser role the server's own pass has to do.
        "AND pg_has_role(c.relowner, 'USAGE')",
        [list(tables)],
    )


def open_database(
    settings: Settings,
    ask: Callable[[psycopg.Connection], object] = lambda _: None,
    *,
    guarded: bool = True,
) -> Database:
    """Open the database, migrated to this version's schema; raises DatabaseUnusable.

    `ask` is called with the connection that checks the schema, which saves it one of its own.
    `guarded` is passed on to the Database.
    """
    database = replace(_named(settings), guarded=guarded)
    with database.connect() as connection:
        _refuse_read_only(connection)
        if is_behind(connection, revision_of(connection)):
            _bring_up_to_date(database, "migrate")
        kinds = state_as_defined(connection)
        if kinds is None:
            _bring_up_to_date(database, "follow")
            kinds = state_as_defined(connection)
        # After the revision, so that what somebody else adds meanwhile does not count as missing.
        there = what_is_there(connection)
        refuse_incomplete(there)
        if guarded:
            refuse_if_off(there["(off)"])
        with connection.transaction():
            ask(connection)
    # `kinds` is None if somebody has changed them since: then every connection is refused.
    database.revision, database.kinds = revisions()[-1], kinds
    return database


def is_empty(settings: Settings) -> bool:
    """Whether the database has no schema of ours yet; unlike opening it, this creates none."""
    if settings.database_url is None and not is_made(embedded_folder(settings)):
        return True
    with _named(settings).connect() as connection:
        if revision_of(connection) is not None:
            return False
        refuse_remains(connection, None)
        return True


def kinds_there(settings: Settings) -> dict[str, Table]:
    """The record kinds of our own that the database works with, whatever this machine defines."""
    with _named(settings).connect() as connection:
        return kept_kinds(connection)


def apply_definitions(settings: Settings) -> None:
    """Make the database follow the definitions of this machine, at somebody's request."""
    _bring_up_to_date(_named(settings), "migrate", "follow", asked=True)


def _bring_up_to_date(database: Database, *ways: Way, asked: bool = False) -> None:
    # Rarely needed, and it imports SQLAlchemy and Alembic: longer than many a command takes.
    from connectors.postgres.schema.upgrade import bring_up_to_date  # noqa: PLC0415

    for way in ways:
        bring_up_to_date(
            database.url, database.wait_seconds, way, asked=asked, named_by=database.named_by
        )


def _named(settings: Settings) -> Database:
    return Database(
        database_url(settings),
        settings.limits.database_wait_seconds,
        None if settings.database_url else embedded_folder(settings),
        settings.limits.lease_seconds,
        named_by=settings.database_from,
    )


def _refuse_too_old(version: int) -> None:
    if version < OLDEST_SERVER:
        raise DatabaseUnusable(
            f"PostgreSQL {version // 10000} is too old; version {OLDEST_SERVER // 10000} or newer "
            "is needed."
        )


def _refuse_other_encoding(connection: psycopg.Connection, named_by: str) -> None:
    """Other encodings lack characters that deliveries have, and a batch would stop at one."""
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise DatabaseUnusable(
            f"The database is encoded in {encoding}, and texts of deliveries need UTF8. Make one "
            "with `CREATE DATABASE NAME ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0` and "
            f"have {named_by} name it. Nothing was changed."
        )


def _refuse_read_only(connection: psycopg.Connection) -> None:
    if one_value(connection.execute("SELECT pg_is_in_recovery()")):
        raise DatabaseUnusable("The database server is read-only. Connect to the primary.")
    if one_value(connection.execute("SHOW transaction_read_only")) == "on":
        user = connection.info.user
        raise DatabaseUnusable(
            f"The database lets {user} only read: default_transaction_read_only is on. Make room "
            f"where it was switched on for a full disk; else `ALTER ROLE {user} SET "
            "default_transaction_read_only = off` lets this role write. Nothing was changed."
        )
