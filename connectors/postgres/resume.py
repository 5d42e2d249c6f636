"""Resume: work that lost its connection is run again, a bounded number of times.

A second run has to find out by itself what the first has committed, since it may have lost just the
answer to its COMMIT.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import psycopg

from connectors.errors import BatchHeldElsewhere, DatabaseLost, DatabaseUnusable, ScopeHeldElsewhere
from connectors.postgres.database import Database

ATTEMPTS = 3
"""Runs of the same work, including the first."""
PAUSE_SECONDS = 0.2

log = logging.getLogger("recon.database")
Result = TypeVar("Result")


def resumed(database: Database, run: Callable[[], Result]) -> Result:
    """Run something, a few times if it loses its connection, and give what it returns.

    Raises DatabaseLost when the server does not come back, or the connection is lost every time.
    """
    try:
        return run()
    except DatabaseLost as error:
        lost = error
    for attempt in range(2, ATTEMPTS + 1):
        log.warning("%s Attempt %s of %s follows by itself.", lost, attempt, ATTEMPTS)
        deadline = time.monotonic() + database.wait_seconds
        try:
            with connected_again(database, deadline):
                pass
        except DatabaseUnusable:
            raise lost from None
        try:
            return when_let(run, deadline)
        except DatabaseLost as error:
            lost = error
    raise lost


@contextmanager
def connected_again(database: Database, deadline: float) -> Iterator[psycopg.Connection]:
    """Connect once the server is back; raises DatabaseUnusable if it is not by the deadline."""
    with ExitStack() as opened:
        while True:
            try:
                connection = opened.enter_context(database.connect())
                break
            except DatabaseUnusable:
                if time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE_SECONDS)
        yield connection


def when_let(run: Callable[[], Result], deadline: float) -> Result:
    """Run something once nobody else holds what it needs, waiting until a deadline.

    A lost connection keeps its locks until the server notices that its client is gone.
    """
    while True:
        try:
            return run()
        except (BatchHeldElsewhere, ScopeHeldElsewhere):
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)
