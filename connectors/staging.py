"""Staged rows on their way into PostgreSQL: COPY, and the receipt of a chunk beside it."""

import io
from dataclasses import dataclass

import polars as pl
import psycopg
from psycopg import sql

from schemas.field import Table
from schemas.sql import SCHEMA, staged_columns, staged_name

COPY_BYTES = 1024 * 1024
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Rows of one table, written out for COPY, so that writing out and sending can overlap."""

    statement: sql.Composed
    text: bytes

    def send(self, connection: psycopg.Connection) -> None:
        """Add the rows."""
        view = memoryview(self.text)
        with connection.cursor() as cursor, cursor.copy(self.statement) as copy:
            for begin in range(0, len(view), COPY_BYTES):
                copy.write(view[begin : begin + COPY_BYTES])


def copy_staged(table: Table, rows: pl.DataFrame) -> CopyRows:
    """Staged rows for COPY; the frame's columns are those of `sql.staged_columns`, in order."""
    columns = staged_columns(table)
    assert tuple(rows.columns) == columns, rows.columns
    # Most of the position's columns are empty for most feeds, and null is what COPY leaves out.
    filled = [name for name in columns if rows[name].null_count() < rows.height]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(SCHEMA, staged_name(table)), sql.SQL(", ").join(map(sql.Identifier, filled))
    )
    return CopyRows(statement, copy_text(rows.select(filled)))


def copy_text(rows: pl.DataFrame) -> bytes:
    """The frame in PostgreSQL's COPY text format."""
    special = list(_ESCAPES)
    texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    needy = [
        name
        for name in texts
        if rows[name].null_count() < rows.height
        and rows[name].str.contains_any(special).any(ignore_nulls=True)
    ]
    escaped = rows.with_columns(
        pl.col(name).str.replace_many(special, list(_ESCAPES.values())) for name in needy
    )
    buffer = io.BytesIO()
    escaped.write_csv(
        buffer,
        include_header=False,
        separator="\t",
        quote_style="never",
        null_value="\\N",
        datetime_format="%Y-%m-%d %H:%M:%S%.6f",
    )
    return buffer.getvalue()


def withdraw_staged(connection: psycopg.Connection, table: Table, extract_id: int) -> None:
    """Take back the staged rows of a file that turned out to be incomplete."""
    connection.execute(
        sql.SQL("DELETE FROM {} WHERE extract_id = %s").format(
            sql.Identifier(SCHEMA, staged_name(table))
        ),
        [extract_id],
    )
