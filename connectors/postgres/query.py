"""What a statement gives: one value, or rows some at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import Row, RowFactory

ROWS_AT_ONCE = 5_000


def one_value(found: psycopg.Cursor) -> Any:
    """The first value of the first row; None where there is no row."""
    row = found.fetchone()
    return row[0] if row else None


@contextmanager
def streamed(
    connection: psycopg.Connection[Any], name: str, row_factory: RowFactory[Row]
) -> Iterator[psycopg.ServerCursor[Row]]:
    """A cursor of the server that is closed in the end, also if the connection is lost by then.

    psycopg leaves one open if the server does not answer to its end.
    """
    cursor = connection.cursor(name, row_factory=row_factory)
    cursor.itersize = ROWS_AT_ONCE
    try:
        yield cursor
    finally:
        try:
            cursor.close()
        except psycopg.OperationalError:
            cursor.close()  # Without asking: the connection is known to be lost now.
            raise
