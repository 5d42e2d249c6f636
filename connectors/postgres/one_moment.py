"""Everything as it is at one moment, read by several connections at the same time."""

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
"""Between two requests to cancel: one that comes between two statements cancels nothing."""
_PATIENCE = "1s"
"""How long another connection waits for a table before there is one fewer."""
_AT_WORK: WeakKeyDictionary[psycopg.Connection, threading.Lock] = WeakKeyDictionary()
"""Held from when a thread is to read by a connection until it has. Closing one meanwhile ends the
process."""

Asked = TypeVar("Asked")
Read = TypeVar("Read")


@contextmanager
def one_moment(connection: psycopg.Connection) -> Iterator[None]:
    """Read everything as it is now, whatever is imported, undone or pushed meanwhile."""
    tables = _readable(connection)
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _may_wait(connection)
        # Before the snapshot: what is emptied by TRUNCATE later would be missing in it too.
        connection.execute(tables)
        yield


def _readable(connection: psycopg.Connection) -> str:
    """The statement that keeps others from what locks out all who read, for all that is read.

    Connections that share work take no lock while they do: where somebody waits for a lock that one
    of them has, another of them would wait behind that, and no database sees that the two are one.
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
    """Other connections that see what a connection sees that is `one_moment`; at most so many.

    There are fewer where the server or the role is at its limit, or somebody waits for a table.
    They are to share the work, so the server does not share out theirs once more. What any of them
    is asked when the block is left is given up, and none is left while somebody reads by it.
    """
    snapshot = one_value(connection.execute("SELECT pg_export_snapshot()"))
    others: list[psycopg.Connection] = []
    # What went wrong in the block is no error of theirs.
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
    """A connection that is left as after a success, whatever happens meanwhile.

    It has only read, so that nothing is lost by closing it as it is; who cut it is no matter.
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
    """Have what connections are asked end: it may wait for a lock that is held for long.

    `asked` gives those that are asked something still, `ended` waits up to so many seconds for the
    end of all of it. One whose server is gone is asked nothing any more.
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
    """Have whoever reads by a connection end, or be done."""
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
    """Read by a connection in a thread; `reported`: with errors in words of `errors_reported`."""
    at_work = _at_work(connection)

    def reading() -> Read:
        with errors_reported(connection) if reported else nullcontext():
            return read()

    at_work.acquire()
    try:
        future = pool.submit(reading)
    except BaseException:  # As where there may be no more threads.
        at_work.release()
        raise
    future.add_done_callback(lambda _: at_work.release())
    return future


def in_turn(
    connections: Sequence[psycopg.Connection],
    read: Callable[[psycopg.Connection, Asked], Read],
    asked: Iterable[Asked],
) -> Iterator[Read]:
    """What is read for each that is asked, in that order: as many at a time as are connected.

    Errors of the first connection are raised as they are, those of the others in the words of
    `errors_reported`.
    """
    waiting: deque[Future[Read]] = deque()
    with ThreadPoolExecutor(len(connections)) as pool:
        for number, one in enumerate(asked):
            if len(waiting) == len(connections):
                # The one that was asked first has the connection whose turn it is now.
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
    """What gives what is read, by another connection meanwhile; when it is asked where none is."""
    if not others:
        return partial(read, connection)
    (other, *_) = others
    pool = ThreadPoolExecutor(1)
    reading = _submit(pool, other, partial(read, other))
    pool.shutdown(wait=False)
    return reading.result


def _may_wait(connection: psycopg.Connection) -> None:
    # Between two reads the kept files are hashed, for as long as that takes.
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
