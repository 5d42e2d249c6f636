"""Results of a statement: one value, or rows in pieces."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import Row, RowFactory

ROWS_AT_ONCE = 5_000


def one_value(found: psycopg.Cursor) -> Any:
    """The first value of the first row; None if there is no row."""
    row = found.fetchone()
    return row[0] if row else None


@contextmanager
def streamed(
    connection: psycopg.Connection[Any], name: str, row_factory: RowFactory[Row]
) -> Iterator[psycopg.ServerCursor[Row]]:
    """A server-side cursor that is always closed, even if the connection is lost by then.

    psycopg leaves a cursor open if the server does not answer its CLOSE.
    """
    cursor = connection.cursor(name, row_factory=row_factory)
    cursor.itersize = ROWS_AT_ONCE
    try:
        yield cursor
    finally:
        try:
            cursor.close()
        except psycopg.OperationalError:
            cursor.close()  # Sends nothing now: the connection is known to be lost.
            raise
