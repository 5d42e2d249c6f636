"""The number of windows of POSTs claimed, counted both in the database and in RECON_HOME.

A run writes its marker only once. So a copy of the database's disk made while it was sending knows
the run but not its last rows. The database counts each window in the commit that claims it; the
home counts it after that, before its first byte leaves. So the home is ahead of a database only if
that one was restored.
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import psycopg

from connectors.errors import ReconError
from connectors.files.disk.atomic import PRIVATE_FILE, room_left
from connectors.postgres.query import one_value

_PREFIX, _SUFFIX = "push-", ".windows"
_DIGITS = 20
"""Fixed width, so that a count overwrites the one before in one piece."""


def count_window(connection: psycopg.Connection, operation: str) -> int:
    """Count a claimed window, inside the open transaction; gives the new count."""
    counted = connection.execute(
        "UPDATE push_lane SET windows = coalesce(windows, 0) + 1 WHERE operation = %s "
        "RETURNING windows",
        [operation],
    )
    return int(one_value(counted))


def note_window(home: Path, operation: str, count: int) -> None:
    """Write the count to the home before the first byte of the window leaves.

    A greater count stays: it shows the next gate that the database lacks windows.
    """
    path = home / f"{_PREFIX}{operation}{_SUFFIX}"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            there = os.pread(descriptor, _DIGITS, 0)
            if there.isdigit() and int(there) > count:
                return
            if os.pwrite(descriptor, f"{count:0{_DIGITS}}".encode(), 0) < _DIGITS:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ReconError(
            f"{path} cannot be written: {error.strerror}.{room_left(path, error)} The rows that "
            "were to be sent next were not sent and are unsent; make room or give the rights, and "
            "run the same command again."
        ) from error


def windows_at_home(home: Path) -> Mapping[str, int]:
    """Windows that this home has counted, by operation; raises ValueError for an unreadable file.

    Read it before the database's counts, which are never behind during a run. A file is empty if
    the disk was full when it was first written, so nothing was sent after that.
    """
    counts = {}
    for path in sorted(home.glob(f"{_PREFIX}*{_SUFFIX}")):
        operation = path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        try:
            counts[operation] = int(path.read_bytes() or b"0")
        except (OSError, ValueError) as error:
            raise ValueError(unreadable(path, error)) from None
    return counts


def unreadable(path: Path, error: Exception) -> str:
    """Why a file of the gate cannot be read, in words for a message."""
    why = error.strerror if isinstance(error, OSError) else "it is not whole"
    return f"{path} cannot be read: {why}"


def knows_windows(connection: psycopg.Connection, at_home: Mapping[str, int]) -> bool:
    """Whether the database has claimed every window that the home has counted."""
    rows = connection.execute("SELECT operation, coalesce(windows, 0) FROM push_lane")
    known: dict[str, int] = dict(rows.fetchall())
    return all(known.get(name, 0) >= count for name, count in at_home.items())


def forget_windows(home: Path) -> None:
    """Restart the count from the database's, once somebody has said what became of the rows."""
    for path in home.glob(f"{_PREFIX}*{_SUFFIX}"):
        path.unlink(missing_ok=True)
