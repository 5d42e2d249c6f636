"""Everything as of one moment, read by several connections at the same time."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

import psycopg

from connectors.errors import DatabaseUnusable, StatementRefused
from connectors.postgres.database import Database, errors_reported
from connectors.postgres.query import one_value
from schemas.derived.sql_names import SCHEMA

CANCEL_SECONDS = 1
"""Pause between cancel requests; a request that arrives between two statements has no effect."""
_PATIENCE = "1s"
"""How long a further connection waits for the tables before it is given up."""
_AT_WORK: WeakKeyDictionary[psycopg.Connection, threading.Lock] = WeakKeyDictionary()
"""A lock per connection, held while a thread is to read by it. Closing the connection meanwhile
would crash the process."""

Asked = TypeVar("Asked")
Read = TypeVar("Read")


@contextmanager
def one_moment(connection: psycopg.Connection) -> Iterator[None]:
    """Read everything as it is now, whatever is imported, undone or pushed meanwhile."""
    tables = _readable(connection)
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _may_wait(connection)
        # Before the snapshot: rows removed by a later TRUNCATE are missing in older snapshots too.
        connection.execute(tables)
        yield


def _readable(connection: psycopg.Connection) -> str:
    """The statement that locks all readable tables against whatever would lock out readers.

    Connections that share work take no further locks: if somebody else queued for a lock of one of
    them, another of them would queue behind that, a deadlock that the server cannot see.
    """
    found = connection.execute(
        "SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname) FROM pg_class c "
        "WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') "
        "AND has_table_privilege(c.oid, 'SELECT')",
        [SCHEMA],
    )
    names = one_value(found)
    return f"LOCK TABLE {names} IN ACCESS SHARE MODE" if names else "SELECT"


@contextmanager
def others_at_it(
    connection: psycopg.Connection, database: Database, most: int
) -> Iterator[list[psycopg.Connection]]:
    """Up to `most` further connections that share the snapshot of one in `one_moment`.

    There are fewer if the server or the role is at its limit, or somebody waits for a table.
    They share the work, so the server does not parallelise their queries once more. Leaving the
    block cancels their open queries, and waits until no thread reads by them.
    """
    snapshot = one_value(connection.execute("SELECT pg_export_snapshot()"))
    others: list[psycopg.Connection] = []
    # An error of the block is not theirs, and must not reach their contexts.
    with ExitStack() as connected, ExitStack() as asked:
        asked.callback(_end_reading, connection)
        tables = _readable(connection)
        with suppress(DatabaseUnusable, StatementRefused):
            for _ in range(most):
                other = connected.enter_context(_as_is(database.connect(patient=False)))
                with errors_reported(other):
                    other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    other.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                    _may_wait(other)
                    other.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
                    other.execute(tables)
                    other.execute("SET LOCAL max_parallel_workers_per_gather = 0")
                asked.callback(_end_reading, other)
                others.append(other)
        yield others


@contextmanager
def _as_is(way: AbstractContextManager[psycopg.Connection]) -> Iterator[psycopg.Connection]:
    """A connection that is always closed as after a success.

    It has only read, so closing it loses nothing, and errors need no report.
    """
    other = way.__enter__()
    try:
        yield other
    finally:
        other.close()
        way.__exit__(None, None, None)


def give_up(
    asked: Callable[[], Iterable[psycopg.Connection]], ended: Callable[[float], bool]
) -> None:
    """Cancel the queries of connections, which may wait for locks that are held for long.

    `asked` gives the connections that are still busy; `ended` waits up to that many seconds for all
    of them to end. A connection whose server is gone is busy no more.
    """
    while not ended(0):
        for connection in asked():
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_SECONDS)
        if ended(CANCEL_SECONDS):
            return


def _at_work(connection: psycopg.Connection) -> threading.Lock:
    return _AT_WORK.setdefault(connection, threading.Lock())


def _end_reading(connection: psycopg.Connection) -> None:
    """Cancel the reading by a connection, and wait until its thread is done."""
    at_work = _at_work(connection)
    give_up(lambda: [connection], lambda seconds: at_work.acquire(timeout=seconds))
    at_work.release()


def _submit(
    pool: ThreadPoolExecutor,
    connection: psycopg.Connection,
    read: Callable[[], Read],
    *,
    reported: bool = True,
) -> Future[Read]:
    """Read by a connection in a thread; `reported` translates errors by `errors_reported`."""
    at_work = _at_work(connection)

    def reading() -> Read:
        with errors_reported(connection) if reported else nullcontext():
            return read()

    at_work.acquire()
    try:
        future = pool.submit(reading)
    except BaseException:  # Such as when no more threads may be started.
        at_work.release()
        raise
    future.add_done_callback(lambda _: at_work.release())
    return future


def in_turn(
    connections: Sequence[psycopg.Connection],
    read: Callable[[psycopg.Connection, Asked], Read],
    asked: Iterable[Asked],
) -> Iterator[Read]:
    """Read each of `asked` and give the results in that order, one read at a time per connection.

    Errors of the first connection are raised as they are; those of the others are translated by
    `errors_reported`.
    """
    waiting: deque[Future[Read]] = deque()
    with ThreadPoolExecutor(len(connections)) as pool:
        for number, one in enumerate(asked):
            if len(waiting) == len(connections):
                # The oldest read in progress has the connection whose turn it is now.
                yield waiting.popleft().result()
            turn = number % len(connections)
            now = partial(read, connections[turn], one)
            waiting.append(_submit(pool, connections[turn], now, reported=bool(turn)))
        while waiting:
            yield waiting.popleft().result()


def aside(
    connection: psycopg.Connection,
    others: Sequence[psycopg.Connection],
    read: Callable[[psycopg.Connection], Read],
) -> Callable[[], Read]:
    """Start reading by another connection; the result reads now if there is no other."""
    if not others:
        return partial(read, connection)
    (other, *_) = others
    pool = ThreadPoolExecutor(1)
    reading = _submit(pool, other, partial(read, other))
    pool.shutdown(wait=False)
    return reading.result


def _may_wait(connection: psycopg.Connection) -> None:
    # Between two reads the kept files are hashed, which may take long.
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
