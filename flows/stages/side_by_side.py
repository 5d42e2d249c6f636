"""Side by side: transactions of one batch over two connections, if the server allows a second.

A large load mostly waits for one server process; two at once take less than twice as long.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TypeVar

from connectors.errors import DatabaseUnusable
from connectors.postgres.batches.lease import Lease
from connectors.postgres.database import Database, errors_reported
from connectors.postgres.one_moment import give_up

CONNECTIONS = 2

T = TypeVar("T")


def side_by_side(
    database: Database,
    lease: Lease,
    calls: Iterable[Callable[[Lease], T]],
    at_once: int = CONNECTIONS,
) -> Iterator[T]:
    """Make calls in threads, and yield what they return in the order they end.

    Each call gets the lease on a connection of its own; the next call is fetched when it can begin.
    When one fails, the others are cancelled, so everything that a call writes has to be in one
    transaction.
    """
    free, under_way = [lease], dict[Future[T], Lease]()
    with ExitStack() as connections, ThreadPoolExecutor(at_once) as pool:
        try:
            for call in calls:
                if not free and at_once > 1:
                    free, at_once = _another(database, lease, connections), 1
                if not free:
                    yield from _ended(under_way, free)
                one = free.pop()
                under_way[pool.submit(_made, call, one)] = one
            while under_way:
                yield from _ended(under_way, free)
        except BaseException:
            _stop(under_way)
            raise


def _another(database: Database, lease: Lease, connections: ExitStack) -> list[Lease]:
    try:
        connection = connections.enter_context(database.connect(patient=False))
    except DatabaseUnusable:
        # If the server has no connection left, the lease's own does everything.
        return []
    return [Lease(connection, lease.batch_id, lease.epoch)]


def _made(call: Callable[[Lease], T], lease: Lease) -> T:
    with errors_reported(lease.connection):
        return call(lease)


def _ended(under_way: dict[Future[T], Lease], free: list[Lease]) -> Iterator[T]:
    """Wait until at least one has ended."""
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        free.append(under_way.pop(future))
        yield future.result()


def _stop(under_way: dict[Future[T], Lease]) -> None:
    """Cancel the calls that are under way."""
    give_up(
        lambda: (one.connection for future, one in under_way.items() if not future.done()),
        lambda seconds: not wait(under_way, timeout=seconds).not_done,
    )
