"""The heartbeat of a session that holds something: if it stops, the session is taken over.

A process that is killed loses its session and with it what it holds. One that is frozen, or whose
machine is gone, keeps both. So each holder renews a lease by the server's clock, and once that has
expired anybody who needs what it holds may end its session, by the functions of
`schemas.guards.leases`.
"""

import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from connectors.errors import DatabaseLost, TurnNotGiven
from connectors.postgres.query import one_value
from connectors.postgres.session import TRANSACTIONS
from connectors.process import whoami
from schemas.derived.sql_names import SCHEMA
from schemas.guards.leases import ENDED_SESSION, MINE, MOST_SECONDS, Held

DEFAULT_SECONDS = 120
MOST_MILLISECONDS = 2**31 - 1
FREE_SECONDS = 10
"""How long a session that was ended may take to release what it holds."""
MOST_PATIENCE_SECONDS = 900
"""The longest wait for a turn, however long a lease is."""
PAUSE_SECONDS = 0.05
STATEMENT_SECONDS = 5
# This clock goes on while a machine sleeps; the monotonic clock may not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


Session = tuple[int, datetime]
"""Process id of a database session, and when the session says it began."""


def lease_name(kind: Held, whose: object) -> str:
    return f"{kind} {whose}".rstrip()


class Heartbeat:
    """Renews a session's lease, from a thread and a session of its own."""

    def __init__(self, connection: psycopg.Connection, taken: "Taken") -> None:
        self.name = taken.name
        self.lost = False
        """Whether the lease is no longer ours: somebody else has it, or nobody."""
        self.seconds = taken.seconds
        self._parameters: dict[str, Any] = connection.info.get_parameters() | {
            "password": connection.info.password,
            "connect_timeout": STATEMENT_SECONDS,
            "options": f"{TRANSACTIONS} -c statement_timeout={STATEMENT_SECONDS}s "
            "-c application_name=recon-lease",
        }
        self._session = taken.session
        self._held_by = connection
        self._readable = select.poll()
        self._readable.register(connection.pgconn.socket, select.POLLIN)
        self._own: psycopg.Connection | None = None
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._renewed = _now()
        of = f"lease of {self.name}"
        self._thread = threading.Thread(target=self._beat, name=of, daemon=True)
        self._thread.start()

    def holds(self) -> bool:
        """Whether the lease is ours now; asked before each effect that cannot be taken back.

        Free if it was renewed recently; a process that was frozen asks the server first.
        """
        if not self.lost and _now() - self._renewed >= self.seconds / 2:
            with suppress(psycopg.Error, OSError):
                self._renew()
        return not self.lost and _now() - self._renewed < self.seconds

    def has_ended(self) -> bool:
        """Whether the server has ended the idle session; sends nothing to the server.

        What the session held was free from then on, however recently it was renewed.
        """
        try:
            # Read past notices; the end of the stream follows the server's last words.
            while self._readable.poll(0):
                self._held_by.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        return self._held_by.closed

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def successor(self) -> str:
        """Who else holds it now, in words; empty if nobody does or the server does not answer."""
        with suppress(psycopg.Error, OSError), self._turn:
            return who_holds(self._server(), self.name, but=self._session[0])
        return ""

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
            found = self._server().execute(
                f"SELECT {SCHEMA}.renew_lease(%s, %s, %s, %s)",
                [self.name, *self._session, self.seconds],
            )
            self.lost = not one_value(found) or self.lost
            self._renewed = began

    def _end_blockers(self) -> None:
        """End the sessions that block ours and whose lease has expired."""
        with self._turn:
            blockers = self._server().execute(
                f"SELECT name FROM {SCHEMA}.lease WHERE pid = ANY(pg_blocking_pids(%s)) "
                "AND expires_at < clock_timestamp()",
                [self._session[0]],
            )
            for (name,) in blockers.fetchall():
                end_holder(self._server(), name)

    def _server(self) -> psycopg.Connection:
        if self._own is None or self._own.broken:
            self._own = psycopg.connect(**self._parameters, autocommit=True)
        return self._own


class Taken(NamedTuple):
    name: str
    session: Session
    seconds: int
    """How long the lease lasts after each renewal."""
    former: str | None = None
    """Previous holder, if its lease had expired; None if the lease was free."""


def take(
    connection: psycopg.Connection, kind: Held, whose: object = "", wait_seconds: float | None = 0
) -> Taken | None:
    """Take a lease for this session, outside a transaction; None if another session holds it.

    A holder whose lease has expired is ended and its lease taken over. A wait of None is long
    enough for the lease of a frozen process to expire.
    """
    name, seconds = lease_name(kind, whose), _seconds(connection)
    patience = _patience(seconds) if wait_seconds is None else wait_seconds
    deadline = time.monotonic() + patience
    while True:
        if session := _keep(connection, kind, whose, seconds):
            return Taken(name, session, seconds)
        if former := end_holder(connection, name):
            let_go_by = time.monotonic() + FREE_SECONDS
            while time.monotonic() < let_go_by:
                if session := _keep(connection, kind, whose, seconds):
                    return Taken(name, session, seconds, former)
                time.sleep(PAUSE_SECONDS)
        if time.monotonic() >= deadline:
            return None
        time.sleep(PAUSE_SECONDS)


@contextmanager
def renewed(connection: psycopg.Connection, taken: Taken) -> Iterator[Heartbeat]:
    """Renew a lease that this session has taken, and release it at the end."""
    heartbeat = Heartbeat(connection, taken)
    try:
        yield heartbeat
    finally:
        heartbeat.end()
        let_go(connection, taken)


def let_go(connection: psycopg.Connection, taken: Taken) -> None:
    """Release a lease; a lost session has released it by itself."""
    if not connection.closed:
        connection.execute("SELECT drop_lease(%s)", [taken.name])


@contextmanager
def in_turn(connection: psycopg.Connection, kind: Held, what: str) -> Iterator[Heartbeat]:
    """Hold a lease that others need only briefly; raises TurnNotGiven, naming the holder.

    The wait is long enough for the lease of a frozen process to expire. `what` names in words what
    takes turns.
    """
    taken = take(connection, kind, wait_seconds=None)
    if taken is None:
        seconds = _patience(_seconds(connection))
        raise TurnNotGiven(
            f"{what} is done by one run at a time, and this one waited {seconds} s for its turn in "
            f"vain: {holder_text(connection, kind)}Nothing was changed; run the same command again."
        )
    with renewed(connection, taken) as heartbeat:
        yield heartbeat


def _patience(seconds: int) -> int:
    """How long to wait for what a frozen process may hold, given the seconds of a lease."""
    return min(seconds + FREE_SECONDS, MOST_PATIENCE_SECONDS)


def _keep(
    connection: psycopg.Connection, kind: Held, whose: object, seconds: int
) -> Session | None:
    row = connection.execute(
        f"SELECT pid, started FROM keep_{kind}(%s, %s, %s, ({MINE}))",
        [str(whose), whoami(), seconds],
    ).fetchone()
    return None if row is None else (row[0], row[1])


def end_if_idle(connection: psycopg.Connection) -> None:
    """Let the server end the open transaction if its process idles for as long as a lease.

    For sessions that others may lack the right to end.
    """
    milliseconds = min(_seconds(connection) * 1000, MOST_MILLISECONDS)
    connection.execute(
        "SELECT set_config('idle_in_transaction_session_timeout', %s, TRUE)", [str(milliseconds)]
    )


@contextmanager
def ended_if_idle(connection: psycopg.Connection) -> Iterator[None]:
    """The same for work that may be run again: raises DatabaseLost if the server ended it."""
    end_if_idle(connection)
    try:
        yield
    except psycopg.errors.IdleInTransactionSessionTimeout:
        raise DatabaseLost(
            "This process did nothing for longer than its lease, and its session of the database "
            "was ended: others waited for it. Run the command again; it goes on from there."
        ) from None


def end_holder(connection: psycopg.Connection, name: str) -> str | None:
    """End the session of an expired lease; gives its owner, or None if nothing was ended."""
    for statement in (ENDED_SESSION.format(name="%s"), f"SELECT {SCHEMA}.end_holder(%s)"):
        # First as this role, which may end sessions of its own; then as the schema's owner.
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            if owner := one_value(connection.execute(statement, [name])):
                return str(owner)
    return None


def who_holds(connection: psycopg.Connection, name: str, but: int | None = None) -> str:
    """Who has a lease and since when, in words; empty if nobody has, or only session `but`."""
    row = connection.execute(
        f"SELECT l.owner, l.since, l.account, l.pid, a.application_name FROM {SCHEMA}.lease l "
        "LEFT JOIN pg_stat_activity a ON a.pid = l.pid "
        "WHERE l.name = %s AND l.pid IS DISTINCT FROM %s",
        [name, but],
    ).fetchone()
    if row is None:
        return ""
    owner, since, account, pid, program = row
    return (
        f"{owner}{f' since {since:%Y-%m-%d %H:%M:%S} UTC' if since else ''} "
        f"(account {account}, session {pid} of the database{f', {program}' if program else ''})"
    )


def holder_text(connection: psycopg.Connection, kind: Held, whose: object = "") -> str:
    """Who holds something, and when and how it comes free, as sentences; empty if nobody does."""
    name = lease_name(kind, whose)
    who = who_holds(connection, name)
    return f"it is held by {who}. {when_free(connection, name)}" if who else ""


def when_free(connection: psycopg.Connection, name: str) -> str:
    """When a lease can be taken over, in words for whoever has to wait."""
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
        f"it renews until {expires:%Y-%m-%d %H:%M:%S} UTC or later; at once, SELECT "
        f"pg_terminate_backend({pid}) as {account} ends it. "
    )


def _seconds(connection: psycopg.Connection) -> int:
    stated = one_value(connection.execute("SELECT current_setting('recon.lease_seconds', TRUE)"))
    return min(int(stated), MOST_SECONDS) if stated else DEFAULT_SECONDS


def _now() -> float:
    return time.clock_gettime(_CLOCK)
