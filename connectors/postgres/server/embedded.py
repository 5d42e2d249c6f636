"""The embedded PostgreSQL: a real server from a wheel, in a data folder of the project's own.

Only the user of this process reaches it: its folder and socket are private, it listens on no
address, and it asks the system who connects. Locks, which die with their holders, tell who still
needs it; a process id in a file is never believed.
"""

import atexit
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import SubprocessError

import psutil  # type: ignore[import-untyped]
import psycopg
from psycopg import sql

from connectors.errors import DatabaseUnusable, TurnNotGiven
from connectors.files.disk.atomic import file_alone, open_private, private_folder
from connectors.postgres.server.postmaster import Postmaster
from connectors.settings import MIB

DATABASE = "recon"
LEAST_BUFFERS, MOST_BUFFERS = 128 * MIB, 512 * MIB
"""Limits of the server's page cache, an eighth of memory; a million rows need no more."""
# There is one server without replicas: what a bulk load writes to a new table need not be logged
# as well, checkpoints should not interrupt it, and log files are reused rather than created again.
# Nothing here weakens durability.
SERVER_SETTINGS = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "64MB",
    "min_wal_size": "1GB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}

START_SECONDS = 180
"""How long another process may take to start or stop the server, even after a crash."""

_needed: dict[Path, int] = {}
"""Servers this process needs: the descriptor of the lock that says so, by data folder."""


def embedded_url(folder: Path, database: str = DATABASE) -> str:
    """Give the URL of a database on the embedded server, starting it if it is not running.

    The server stops when the last process that asked for it ends. Raises DatabaseUnusable.
    """
    folder = folder.absolute()
    server = Postmaster(folder)
    try:
        private_folder(folder.parent)
        with _alone(folder):
            _need(folder)
            if server.prepare():
                server.start()
                with psycopg.connect(server.uri(), autocommit=True) as connection:
                    _set_up(connection)
                server.stop()
            server.start()
            with psycopg.connect(server.uri(), autocommit=True) as connection:
                if server.close_to_others():
                    connection.execute("SELECT pg_reload_conf()")
                _set_up(connection)
                known = "SELECT FROM pg_database WHERE datname = %s"
                if connection.execute(known, [database]).fetchone() is None:
                    create = sql.SQL("CREATE DATABASE {}")
                    connection.execute(create.format(sql.Identifier(database)))
    except IsADirectoryError as error:
        raise DatabaseUnusable(
            f"The embedded PostgreSQL in {folder} does not start: {error.filename} is a folder, "
            "where a file of the server belongs. recon makes none of that name: look what is in "
            "it, move it out of the way, and run the same command again. Nothing was changed."
        ) from error
    except (OSError, SubprocessError, psycopg.Error) as error:
        raise DatabaseUnusable(
            f"The embedded PostgreSQL in {folder} does not start ({error}). "
            f"Read {server.log}, free disk space, or set RECON_DATABASE_URL to a server of "
            "your own."
        ) from error
    return server.uri(database)


def answers(folder: Path) -> bool:
    """Whether the embedded server of this folder accepts connections."""
    return Postmaster(folder.absolute()).listens()


def is_made(folder: Path) -> bool:
    """Whether there is an embedded server in this folder, running or not."""
    return Postmaster(folder.absolute()).is_made()


def _set_up(connection: psycopg.Connection) -> None:
    """Set what nobody has set on this server yet; it takes effect from its next start."""
    buffers = max(LEAST_BUFFERS, min(MOST_BUFFERS, int(psutil.virtual_memory().total) // 8))
    settings = SERVER_SETTINGS | {"shared_buffers": f"{buffers // MIB}MB"}
    made = connection.execute(
        "SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf'"
    ).fetchall()
    for name in settings.keys() - {name for (name,) in made}:
        statement = sql.SQL("ALTER SYSTEM SET {} = {}")
        connection.execute(statement.format(sql.Identifier(name), settings[name]))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time set up, start or stop the server."""
    lock, what = folder.with_suffix(".lock"), "Starting or stopping the embedded PostgreSQL"
    with file_alone(lock, START_SECONDS, what):
        yield


def _need(folder: Path) -> None:
    """Keep the server running until this process ends."""
    if folder not in _needed:
        with open_private(folder.with_suffix(".users")) as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            _needed[folder] = os.dup(users.fileno())
        atexit.register(_release, folder, os.getpid())


def _release(folder: Path, process: int) -> None:
    """Stop the server, unless another process needs it."""
    if os.getpid() != process:
        return  # This is a fork of the process that asked for it.
    users = _needed.pop(folder)
    try:
        with _alone(folder):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Postmaster(folder).stop()
    except (OSError, DatabaseUnusable, TurnNotGiven):
        pass  # Others need it, or its folder is gone.
    finally:
        os.close(users)
