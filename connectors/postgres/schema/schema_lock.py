"""Letting only one session at a time change a schema, by locks that only its owner can take.

Any role that may read a table can hold a lock on it that blocks only changes of the table, not
readers and writers. So a change of tables may have to wait for such a lock, for a bounded time.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import sqlalchemy as sa

from connectors.errors import DatabaseUnusable

_BUSY = """SELECT a.pid, a.usename, a.application_name, a.xact_start
    FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
    AND EXISTS (SELECT FROM pg_locks k JOIN pg_class c ON c.oid = k.relation
        WHERE k.pid = a.pid AND k.granted AND c.relnamespace = to_regnamespace(:schema)
        AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
    ORDER BY a.xact_start, a.pid"""


def lock_schema(
    connection: sa.Connection, schema: str, table: sa.Table, wait_seconds: float
) -> None:
    """Keep others from changing a schema until this transaction ends; creates it if missing.

    `table` is the table that everybody who changes the schema locks first. From now on, no lock is
    waited for longer than `wait_seconds`.
    """
    # Zero would mean no limit.
    milliseconds = max(1, min(round(wait_seconds * 1000), 2**31 - 1))
    connection.execute(sa.text(f"SET LOCAL lock_timeout = {milliseconds}"))
    there = connection.scalar(sa.text("SELECT to_regnamespace(:name)::text"), {"name": schema})
    make_schema = partial(connection.execute, sa.text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
    make_table = partial(table.create, connection, checkfirst=True)
    makes: list[Callable[[], object]] = [make_table] if there else [make_schema, make_table]
    for make in makes:
        # If two sessions create the same, one waits for the other and then learns that it exists.
        with suppress(sa.exc.IntegrityError), connection.begin_nested():
            make()
    connection.execute(sa.text(f"LOCK TABLE {schema}.{table.name} IN EXCLUSIVE MODE"))


def busy_schema(engine: sa.Engine, schema: str, wait_seconds: float) -> DatabaseUnusable:
    """An error that names who has held the schema for longer than the wait."""
    with engine.connect() as connection:
        found = connection.execute(sa.text(_BUSY), {"schema": schema}).fetchall()
    who = "; ".join(
        f"session {pid} of the account {account}"
        + (f", {program}" if program else "")
        + (f", in a transaction since {since:%Y-%m-%d %H:%M:%S %Z}" if since else "")
        for pid, account, program, since in found
    )
    ways = f" or SELECT pg_terminate_backend({found[0][0]}) as that account" if found else ""
    return DatabaseUnusable(
        f"The schema {schema!r} has to be changed for this version, and others kept tables of it "
        f"for {wait_seconds:g} s: {who or 'who it was has let go meanwhile'}. Let them end{ways}, "
        "and run the same command again. Nothing was changed."
    )
