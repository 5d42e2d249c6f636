"""Bringing a schema to this version: by Alembic to the newest revision, and to its record kinds.

Nearly all commands find it there already and do not import this module.
"""

from collections.abc import Callable
from typing import cast

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

from connectors.errors import DatabaseUnusable
from connectors.postgres.heartbeat import DEFAULT_SECONDS
from connectors.postgres.refusals import LIMIT, as_recon_error
from connectors.postgres.schema.completeness import refuse_remains
from connectors.postgres.schema.follow_kinds import follow_definitions
from connectors.postgres.schema.revisions import (
    MIGRATIONS,
    TAKEN_OVER,
    Way,
    is_behind,
    revision_of,
    revisions,
)
from connectors.postgres.schema.schema_lock import busy_schema, lock_schema
from connectors.postgres.schema.schema_owner import act_as_owner
from connectors.postgres.session import Session, no_connection, plain_session
from connectors.settings import DATABASE
from schemas.derived.sql_names import SCHEMA

_AS_OWNER = (
    "Run any command, `recon status` for one, once as the owner of the schema, or as a superuser "
    "where something in it belongs to another account; nothing was changed."
)
_KINDS_OF_OWNER = (
    "The database does not have the record kinds that are defined here, or has others, and the "
    f"role that connected may not make them. {_AS_OWNER}"
)


def bring_up_to_date(
    url: str, wait_seconds: float, way: Way, *, asked: bool = False, named_by: str = DATABASE
) -> None:
    """Bring the schema to its newest revision, or to all record kinds; raises DatabaseUnusable."""
    sessions: list[tuple[Session, str]] = []
    engine = engine_on(url, lambda one: sessions.append((one, one.info.user)))
    try:
        with engine.begin() as connection:
            {"migrate": migrate, "follow": follow}[way](connection, wait_seconds, asked=asked)
    except (sa.exc.DBAPIError, psycopg.Error) as error:
        first = _first(error)
        if isinstance(first, psycopg.errors.LockNotAvailable):
            raise busy_schema(engine, SCHEMA, wait_seconds) from None
        if not sessions or first is None:
            raise DatabaseUnusable(no_connection(first or error, url, named_by)) from None
        if way == "migrate" and (first.sqlstate or "").startswith(LIMIT):
            raise _over_limit(first) from None
        session, user = sessions[-1]
        last_words = session.last_words
        raise as_recon_error(first, lost=session.closed, user=user, last_words=last_words) from None
    finally:
        engine.dispose()


def _first(error: BaseException) -> psycopg.Error | None:
    """The database's first error; rolling back on a lost session fails as well."""
    found: psycopg.Error | None = None
    one: BaseException | None = error
    while one is not None and (found is None or found.sqlstate is None):
        if isinstance(one, psycopg.Error):
            found = one
        one = one.__cause__ or one.__context__
    return found


def engine_on(url: str, opened: Callable[[Session], object] | None = None) -> sa.Engine:
    """An engine whose connections libpq alone opens, so that addresses are read in only one way.

    Statements have no time limit, whatever a role sets, since large tables are rewritten. The
    code that takes locks limits the wait for them. `opened` is called with each session.
    """

    def session() -> Session:
        one = plain_session(url, "-c statement_timeout=0")
        one.autocommit = False
        if opened is not None:
            opened(one)
        return one

    return sa.create_engine("postgresql+psycopg://", creator=session, hide_parameters=True)


def migrate(
    connection: sa.Connection, wait_seconds: float = DEFAULT_SECONDS, *, asked: bool = False
) -> None:
    """Bring the schema to the newest form of the newest revision; does nothing if it is there.

    No lock is waited for longer than `wait_seconds`. Our own record kinds follow after it
    (`follow_definitions`, which explains `asked`).
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes |= {"connection": connection, "asked": asked}
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    asking = cast(psycopg.Connection, connection.connection.driver_connection)
    current = revision_of(asking)
    if not is_behind(asking, current):
        return
    try:
        lock_schema(connection, SCHEMA, context._version, wait_seconds)
        if not act_as_owner(connection):
            raise _not_the_owner(current)
        # Somebody else may have upgraded it meanwhile.
        current = revision_of(asking)
        if not is_behind(asking, current):
            return
        refuse_remains(asking, current)
        if current == TAKEN_OVER:
            connection.execute(context._version.update().values(version_num=revisions()[0]))
        command.upgrade(config, "head")
    except sa.exc.ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise _not_the_owner(current, error.orig.diag.message_primary) from None


def follow(
    connection: sa.Connection, wait_seconds: float = DEFAULT_SECONDS, *, asked: bool = False
) -> None:
    """Bring the tables of our own record kinds to their definitions; see `follow_definitions`."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    try:
        lock_schema(connection, SCHEMA, context._version, wait_seconds)
        if not act_as_owner(connection):
            raise DatabaseUnusable(_KINDS_OF_OWNER)
        follow_definitions(connection, asked=asked)
    except sa.exc.ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise DatabaseUnusable(_KINDS_OF_OWNER) from None


def _over_limit(error: psycopg.Error) -> DatabaseUnusable:
    """The error if existing contents, not input, exceed a limit of the server in a step."""
    return DatabaseUnusable(
        f"The schema {SCHEMA!r} cannot be brought to this version: what it holds meets a limit of "
        f"the database server, {error.diag.message_primary} (SQLSTATE {error.sqlstate}). Nothing "
        "was changed: the version that it was used with so far goes on with it. The server's log "
        "has the statement, and so names the table. Where somebody added to that table by hand, "
        "take it away and run the same command again."
    )


def _not_the_owner(current: str | None, message: str | None = None) -> DatabaseUnusable:
    there = f"at revision {current}" if current else "not there"
    if current == revisions()[-1]:
        there += " with views and functions of another form of it"
    return DatabaseUnusable(
        f"The schema {SCHEMA!r} is {there}, "
        f"this version needs revision {revisions()[-1]}, and the role that connected "
        f"may not bring it there{f': {message}' if message else ''}. {_AS_OWNER}"
    )
