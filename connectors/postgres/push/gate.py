"""The one gate before a send: only the newest copy of the database and of RECON_HOME passes.

A database that was restored, or that runs twice, has rows as unsent that the service may have. So
every run that sends writes an epoch into the database before its first byte leaves, and a marker
with the same token into RECON_HOME. The next run passes only if both still agree: the database has
the marker's token (it is not older than the home); it has no newer epoch of the home (the home is
not older than the database); this very database wrote the epoch's row (restoring a dump writes it
again); it has claimed every window that the home has counted; and the marker is the file that was
written, not a copy. Otherwise pushes are held until somebody says from where to go on.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from connectors.errors import PushHeld, ReconError
from connectors.files.disk.atomic import file_alone, private_folder, room_left, sync_folder
from connectors.postgres.heartbeat import in_turn
from connectors.postgres.push.count import (
    forget_windows,
    knows_windows,
    unreadable,
    windows_at_home,
)
from connectors.postgres.query import one_value
from connectors.recovery import reach
from schemas.guards.leases import Held
from schemas.guards.push_gate import BIRTH

MARKER = "push-marker.json"
LOCK = ".push-marker.lock"
LOOKS = 5
"""How often to read the marker; if it differs each time, runs that pass are writing it."""
HELD = "held"
"""Home in an epoch that holds all homes, because one of them found the database to be older."""
_EPOCHS = "Writing down that rows are sent from here"
IN_DOUBT, UNSENT = "in_doubt", "unsent"
"""What the rows are that a restored database has as unsent: possibly sent, or certainly not."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What the home last saw of the database."""

    number: int
    token: str
    home: str
    inode: str


class _Epoch(NamedTuple):
    number: int
    token: str
    home: str
    native: bool
    """Whether this very database wrote the row, not a dump, a copy or another timeline."""
    inode: str | None
    """Inode of the marker when it was sealed; None if the run died before it sent anything."""
    changed_ns: int | None

    @property
    def sealed(self) -> bool:
        """Whether rows may have been sent in this epoch."""
        return self.inode is not None


class _Identity(NamedTuple):
    """Which database this is, in values that a restored copy does not share."""

    system: str
    timeline: str
    database_oid: int


class _Unreadable(NamedTuple):
    """A marker that exists but cannot be read."""

    why: str


class _Hold(NamedTuple):
    why: str
    database_is_older: bool = False
    """Whether the database is older than this home, so that other homes must be held too."""


def why_held(connection: psycopg.Connection, home: Path) -> str | None:
    """Why nothing may be sent from this home to a service; None if nothing is in the way.

    A run passing the gate meanwhile writes epoch and marker one after the other. If the marker has
    changed since it was read, the result may mix old and new, so it is determined again. A marker
    that differs at every look is written by runs that pass, so nothing is in their way.
    """
    marker = _try_marker(home)
    for _ in range(LOOKS):
        hold = _find_hold(connection, home, marker)
        before, marker = marker, _try_marker(home)
        if hold is None or marker == before:
            return hold.why if hold else None
    return None


def _find_hold(
    connection: psycopg.Connection, home: Path, marker: Marker | _Unreadable | None
) -> _Hold | None:
    """The first reason to hold: one of this home, or else one of another."""
    try:
        windows = windows_at_home(home)
    except ValueError as problem:
        return _Hold(f"{problem}, so nobody can tell how much was sent from here")
    if isinstance(marker, _Unreadable):
        return _Hold(f"{marker.why}, so nobody can tell which database it has seen")
    epochs = _epochs(connection, marker)
    if marker is None:
        hold = _hold_of_new_home(home, epochs)
    else:
        hold = _hold_of_known_home(connection, home, marker, windows, epochs)
    if hold is None and epochs and epochs[-1].home == HELD:
        hold = _Hold(
            "the database is older than another RECON_HOME that sends: it was restored, and does "
            "not know of the last rows that were sent from there"
        )
    return hold


def _hold_of_new_home(home: Path, epochs: Sequence[_Epoch]) -> _Hold | None:
    """Why nothing may be sent from a home without a marker."""
    if any(one.sealed for one in epochs):
        return _Hold(
            f"this RECON_HOME ({home}) has no marker, and rows were sent from another one: it "
            "is new, was lost, or its database was restored"
        )
    if not all(one.native for one in epochs if one.number == BIRTH):
        return _Hold("the database is a copy: it was restored or moved since its first batch")
    return None


def _hold_of_known_home(
    connection: psycopg.Connection,
    home: Path,
    marker: Marker,
    windows: Mapping[str, int],
    epochs: Sequence[_Epoch],
) -> _Hold | None:
    """Why nothing may be sent from a home with a marker; each check relies on those above it."""
    older = f"the database is older than this RECON_HOME ({home})"
    epoch = next((one for one in epochs if one.number == marker.number), None)
    if epoch is None or epoch.token != marker.token:
        return _Hold(
            f"{older}: it does not know of the last run that sent rows from here. It was "
            "restored, or is another one",
            database_is_older=True,
        )
    if not epoch.native:
        return _Hold(
            "the database is a copy: it was restored, moved, or failed over since rows were sent "
            "the last time"
        )
    if any(one.sealed and one.home == marker.home and one.number > marker.number for one in epochs):
        return _Hold(f"this RECON_HOME ({home}) is older than the database: it was restored")
    if not knows_windows(connection, windows):
        return _Hold(
            f"{older}: it does not know of the last rows that were sent from here. It was "
            "restored from a copy made while a run was sending",
            database_is_older=True,
        )
    if not _is_original(home / MARKER, marker, epoch):
        return _Hold(
            f"this RECON_HOME ({home}) is a copy: its marker was restored, copied or touched"
        )
    return None


def held_text(why: str) -> str:
    """The reason to hold as a message, with what to do."""
    return (
        f"Pushes are held: {why}. Nothing is sent, because rows that are unsent here may be at the "
        "service already. See that no other copy of this database sends; then say from where to "
        "go on: `recon restored --unsent in-doubt --reason ...` (what is unsent may have been "
        "sent), or `--unsent unsent` (it was certainly not)."
    )


def held_text_for_sender(connection: psycopg.Connection, home: Path) -> str | None:
    """The same if this account may send; None if it may not, or nothing is held."""
    may = one_value(connection.execute("SELECT has_table_privilege('push_seal', 'INSERT')"))
    why = why_held(connection, home) if may else None
    return held_text(why) if why else None


def pass_gate(connection: psycopg.Connection, home: Path, wait_seconds: float) -> None:
    """Begin an epoch before the first byte of a send; raises PushHeld.

    Raises TurnNotGiven if another run of this home takes longer than `wait_seconds`.
    """
    with _alone(home, wait_seconds):
        hold = _find_hold(connection, home, _try_marker(home))
        if hold is not None:
            if hold.database_is_older:
                _hold_all(connection)
            raise PushHeld(held_text(hold.why))
        _begin(connection, home)


@contextmanager
def going_on(connection: psycopg.Connection, home: Path, wait_seconds: float) -> Iterator[None]:
    """Let this database and home send on together, once the block has decided about rows."""
    with _alone(home, wait_seconds):
        with connection.transaction():
            yield
        forget_windows(home)
        _begin(connection, home)


def note_birth(connection: psycopg.Connection) -> None:
    """Record which database has the first batch, inside the open transaction."""
    if connection.execute("SELECT 1 FROM push_epoch LIMIT 1").fetchone() is None:
        _insert(connection, BIRTH, "")


def _begin(connection: psycopg.Connection, home: Path) -> None:
    """Write epoch, marker and seal; a run that dies in between sent nothing and holds nobody."""
    before = _try_marker(home)
    owner = before.home if isinstance(before, Marker) else secrets.token_hex(16)
    with in_turn(connection, Held.EPOCH, _EPOCHS), connection.transaction():
        newest, _ = _newest(connection)
        number = newest + 1
        token = _insert(connection, number, owner)
    reach("push-epoch")
    inode, changed = _write_marker(home, number, token, owner)
    connection.execute(
        "INSERT INTO push_seal (number, inode, changed_ns) VALUES (%s, %s, %s)",
        [number, inode, changed],
    )
    reach("push-sealed")


def _hold_all(connection: psycopg.Connection) -> None:
    """Hold the other homes too: they may have as unsent what was sent from here."""
    with in_turn(connection, Held.EPOCH, _EPOCHS), connection.transaction():
        newest, home = _newest(connection)
        if home != HELD:
            _insert(connection, newest + 1, HELD)


def _newest(connection: psycopg.Connection) -> tuple[int, str]:
    """Number and home of the newest epoch; the caller has the turn, so no other is written."""
    row = connection.execute(
        "SELECT number, home FROM push_epoch ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return (row[0], row[1]) if row else (BIRTH, "")


def _insert(connection: psycopg.Connection, number: int, home: str) -> str:
    token, identity = secrets.token_hex(16), _identity(connection)
    connection.execute(
        "INSERT INTO push_epoch (number, token, home, system, timeline, database_oid, xid, at) "
        "VALUES (%s, %s, %s, %s, %s, %s, pg_current_xact_id()::text::bigint, now())",
        [number, token, home, *identity],
    )
    return token


def _epochs(connection: psycopg.Connection, marker: Marker | None) -> Sequence[_Epoch]:
    """The first epoch, the latest, the latest sealed, and all from the marker's on."""
    with connection.cursor(row_factory=class_row(_Epoch)) as cursor:
        return cursor.execute(
            "SELECT p.number, p.token, p.home, (p.system, p.timeline, p.database_oid) = "
            "(%(system)s::text, %(timeline)s::text, %(database_oid)s::bigint) "
            "AND p.xmin::text::bigint = p.xid %% 4294967296 "
            "AS native, s.inode, s.changed_ns "
            "FROM push_epoch p LEFT JOIN push_seal s ON s.number = p.number "
            "WHERE p.number = 0 OR p.number >= %(marker)s "
            "OR p.number IN ((SELECT max(number) FROM push_seal), "
            "(SELECT max(number) FROM push_epoch)) ORDER BY p.number",
            _identity(connection)._asdict() | {"marker": marker.number if marker else None},
        ).fetchall()


def _identity(connection: psycopg.Connection) -> _Identity:
    row = connection.execute(
        "SELECT oid, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), "
        "has_function_privilege('pg_control_system()', 'execute') "
        "FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None
    database_oid, timeline, may_read_system = row
    system = ""
    if may_read_system:
        asked = "SELECT system_identifier FROM pg_control_system()"
        system = str(one_value(connection.execute(asked)))
    return _Identity(system, timeline, database_oid)


def _try_marker(home: Path) -> Marker | _Unreadable | None:
    try:
        return Marker(**json.loads((home / MARKER).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        return _Unreadable(unreadable(home / MARKER, error))


def _write_marker(home: Path, number: int, token: str, owner: str) -> tuple[str, int]:
    """Write the marker; gives its inode and change time, which no copy shares."""
    path, draft = home / MARKER, None
    try:
        descriptor, draft = tempfile.mkstemp(dir=home, prefix=f".{MARKER}-")
        with os.fdopen(descriptor, "wb") as file:
            inode = str(os.fstat(file.fileno()).st_ino)
            file.write(json.dumps(asdict(Marker(number, token, owner, inode))).encode())
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
        sync_folder(home)
        return inode, path.stat().st_ctime_ns
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise ReconError(
            f"{path} cannot be written: {error.strerror}.{room_left(path, error)} Nothing was "
            "sent. Make room or give the rights, and run the same command again."
        ) from error


def _is_original(path: Path, marker: Marker, epoch: _Epoch) -> bool:
    """Whether the marker is the very file that was written, unchanged since it was sealed."""
    file = path.lstat()
    inode = str(file.st_ino)
    unchanged = (inode, file.st_ctime_ns) == (epoch.inode, epoch.changed_ns)
    return inode == marker.inode and (unchanged or not epoch.sealed)


@contextmanager
def _alone(home: Path, wait_seconds: float) -> Iterator[None]:
    """Let one run of a home at a time read and write its marker."""
    private_folder(home)
    with file_alone(home / LOCK, wait_seconds, "Beginning to send from here"):
        yield
