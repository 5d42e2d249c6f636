"""Rows that come some at a time, and a connection that is lost behind them."""

from contextlib import ExitStack

import psycopg
import pytest
from psycopg.rows import tuple_row

from connectors.postgres.query import streamed
from flows.stages.workspace import Workspace


def test_of_a_connection_that_is_lost_no_cursor_stays_open(workspace: Workspace) -> None:
    """psycopg warns of one that does, whenever it is thrown away."""
    connection, rows = psycopg.connect(workspace.database.url), ExitStack()
    cursor = rows.enter_context(streamed(connection, "some", tuple_row))
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]
    with workspace.database.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        rows.close()
    assert cursor.closed
    connection.close()
