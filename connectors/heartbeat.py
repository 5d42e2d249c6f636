"""The heartbeat of a session that holds something: who does not renew it is taken over.

A process that is killed loses its session and with it what it holds. One that is frozen, or whose
machine is gone, keeps both: so it renews a lease by the server's clock, and once that has run out
anybody who needs what it holds ends its session.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import psycopg

from connectors.ledger import whoami
from schemas.leases import ENDED_SESSION, MINE
from schemas.sql import SCHEMA

DEFAULT_SECONDS, MOST_SECONDS = 120, 10**9
MOST_MILLISECONDS = 2**31 - 1
FREE_SECONDS = 10
"""How long a session that was ended may take to let go."""
PAUSE_SECONDS = 0.05
STATEMENT_SECONDS = 5
# It goes on while a machine sleeps, which the monotonic clock does not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def batch_lease(batch_id: int) -> str:
    """Name of the lease of a run on its batch."""
    return f"batch {batch_id}"


class Heartbeat:
    """Renews one lease from a thread and a session of its own."""

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self.name = name
        self.lost = False
        """Somebody else has it."""
        self.seconds = _seconds(connection)
        self._parameters: dict[str, Any] = connection.info.get_parameters() | {
            "password": connection.info.password,
            "connect_timeout": STATEMENT_SECONDS,
            "options": f"-c statement_timeout={STATEMENT_SECONDS}s -c application_name=recon-lease",
        }
        self._held_by = connection.info.backend_pid
        self._own: psycopg.Connection | None = None
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._renewed = _now()
        row = connection.execute(
            f"SELECT pid, started FROM keep_lease(%s, %s, %s, ({MINE}))",
            [name, whoami(), self.seconds],
        ).fetchone()
        assert row is not None
        self._session: tuple[int, datetime] = (row[0], row[1])
        self._thread = threading.Thread(target=self._beat, name=f"lease of {name}", daemon=True)
        self._thread.start()

    def holds(self) -> bool:
        """Whether the lease is ours now; asked before each effect that cannot be taken back.

        Costs nothing while it was renewed lately; a process that was frozen asks the server first.
        """
        if not self.lost and _now() - self._renewed >= self.seconds / 2:
            with suppress(psycopg.Error, OSError):
                self._renew()
        return not self.lost and _now() - self._renewed < self.seconds

    def end(self) -> None:
        """Renew it no more."""
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._ended.wait(self.seconds / 3):
                with suppress(psycopg.Error, OSError):
                    self._renew()
                    self._end_blockers()
        finally:
            with self._turn:
                if self._own is not None:
                    self._own.close()

    def _renew(self) -> None:
        with self._turn:
            began = _now()
            row = (
                self._server()
                .execute(
                    f"SELECT {SCHEMA}.renew_lease(%s, %s, %s, %s)",
                    [self.name, *self._session, self.seconds],
                )
                .fetchone()
            )
            self.lost = self.lost or not (row and row[0])
            self._renewed = began

    def _end_blockers(self) -> None:
        """End whoever keeps our own session waiting, if its lease has run out."""
        with self._turn:
            names = (
                self._server()
                .execute(
                    f"SELECT name FROM {SCHEMA}.lease WHERE pid = ANY(pg_blocking_pids(%s)) "
                    "AND expires_at < clock_timestamp()",
                    [self._held_by],
                )
                .fetchall()
            )
            for (name,) in names:
                end_holder(self._server(), name)

    def _server(self) -> psycopg.Connection:
        if self._own is None or self._own.broken:
            self._own = psycopg.connect(**self._parameters, autocommit=True)
        return self._own


@contextmanager
def leased(connection: psycopg.Connection, name: str) -> Iterator[Heartbeat]:
    """Renew a lease of this session, which holds the lock of the same name already."""
    heartbeat = Heartbeat(connection, name)
    try:
        yield heartbeat
    finally:
        heartbeat.end()
        if not connection.closed:
            connection.execute("SELECT drop_lease(%s)", [name])


def end_if_idle(connection: psycopg.Connection) -> None:
    """Let the server end the open transaction if its process does nothing for as long as a lease.

    For those who hold something for one transaction only, and renew no lease.
    """
    milliseconds = min(_seconds(connection) * 1000, MOST_MILLISECONDS)
    connection.execute(
        "SELECT set_config('idle_in_transaction_session_timeout', %s, TRUE)", [str(milliseconds)]
    )


def taken_over(connection: psycopg.Connection, name: str, locked: Callable[[], bool]) -> str | None:
    """End the holder of a lease that ran out and take its lock; gives who it was."""
    owner = end_holder(connection, name)
    if owner is None:
        return None
    deadline = time.monotonic() + FREE_SECONDS
    while not locked():
        if time.monotonic() > deadline:
            return None
        time.sleep(PAUSE_SECONDS)
    return owner


def end_holder(connection: psycopg.Connection, name: str) -> str | None:
    """End the session of a lease that ran out; gives its owner, None where nothing was ended."""
    for statement in (ENDED_SESSION.format(name="%s"), f"SELECT {SCHEMA}.end_holder(%s)"):
        # First as ourselves, who may end sessions of our own account; then as the schema's owner.
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            row = connection.execute(statement, [name]).fetchone()
            if row and row[0]:
                return str(row[0])
    return None


def when_free(connection: psycopg.Connection, name: str) -> str:
    """When a lease can be taken over, in words for the one who has to wait."""
    row = connection.execute(
        "SELECT l.account, l.pid, l.expires_at, l.expires_at < clock_timestamp() "
        f"FROM {SCHEMA}.lease l WHERE l.name = %s",
        [name],
    ).fetchone()
    if row is None:
        return ""
    account, pid, expires, over = row
    if over:
        return (
            f"It has not renewed its lease since {expires:%Y-%m-%d %H:%M:%S} UTC, and this account "
            f"may not end its session: run this as {account}, or let somebody who may run "
            f"SELECT pg_terminate_backend({pid}). "
        )
    return (
        f"If it hangs, it can be taken over by the same command once its lease has run out, which "
        f"it renews until {expires:%Y-%m-%d %H:%M:%S} UTC or later. "
    )


def _seconds(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT current_setting('recon.lease_seconds', TRUE)").fetchone()
    return min(int(row[0]), MOST_SECONDS) if row and row[0] else DEFAULT_SECONDS


def _now() -> float:
    return time.clock_gettime(_CLOCK)
