"""The embedded server is set up for large loads, and keeps what somebody set otherwise."""

from pathlib import Path

import psycopg

from connectors.embedded import SERVER_SETTINGS, embedded_url

MADE = "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"


def test_an_older_server_is_set_up_too(server: str) -> None:
    folder = Path(server.partition("host=")[2])
    with psycopg.connect(server, autocommit=True) as connection:
        before = dict(connection.execute(MADE).fetchall())
        assert before.items() >= SERVER_SETTINGS.items()
        assert "shared_buffers" in before
        connection.execute("ALTER SYSTEM RESET min_wal_size")
        connection.execute("ALTER SYSTEM SET wal_buffers = '32MB'")
        embedded_url(folder)
        after = dict(connection.execute(MADE).fetchall())
        assert after == before | {"wal_buffers": "32MB"}
