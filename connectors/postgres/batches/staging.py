"""Staged rows on their way into PostgreSQL by COPY, in binary if the columns allow it."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import psycopg
from psycopg import sql

from connectors.postgres.bulk import binary_copy
from connectors.postgres.bulk.binary_copy import Texts
from connectors.postgres.database import COPY_BYTES
from schemas.derived.sql_names import SCHEMA, staged_columns, staged_name, target_columns
from schemas.field import Table

_POSITION = ("first_line", "last_line", "byte_start", "byte_end")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Rows of one table encoded for COPY, so that encoding and sending can overlap."""

    statement: sql.Composed
    parts: Callable[[], Iterable[bytes | memoryview]]

    def send(self, connection: psycopg.Connection) -> None:
        with connection.cursor() as cursor, cursor.copy(self.statement) as copy:
            for piece in binary_copy.pieces(self.parts(), COPY_BYTES):
                copy.write(piece)


def copy_staged(
    table: Table, rows: pl.DataFrame, pieces: Callable[[], Iterator[pl.DataFrame]] | None = None
) -> CopyRows:
    """Encode staged rows for COPY; the frame has the columns `sql_names.staged_columns`, in order.

    `pieces` gives the same rows with their ErrorData, a part at a time. Parts are encoded only as
    they are sent, because ErrorData may be many times as large as the rows.
    """
    columns = staged_columns(table)
    assert tuple(rows.columns) == columns, rows.columns
    length = pl.col("data").str.len_bytes()
    kept = _without_implied(rows, length)
    filled = _filled(kept, columns)
    if pieces is None:
        text = copy_text(kept.select(filled))
        return CopyRows(_copy(table, filled, "TEXT"), lambda: (text,))
    filled = [name for name in columns if name in filled or name == "error_data"]

    def parts() -> Iterator[bytes]:
        for piece in pieces():
            yield copy_text(_without_implied(piece, length).select(filled))

    return CopyRows(_copy(table, filled, "TEXT"), parts)


def copy_binary(table: Table, rows: pl.DataFrame, texts: Texts | None) -> CopyRows:
    """Encode clean staged rows `in_millionths` for binary COPY, each with its text.

    If `texts` is None, the rows are kept without their text.
    """
    length = pl.lit(None) if texts is None else pl.lit(pl.Series(texts.stop - texts.start))
    rows = _without_implied(rows, length)
    columns = _filled(rows, (*_POSITION, *target_columns(table)))
    if texts is None:
        body = binary_copy.encode(table, rows, columns)
    else:
        body = binary_copy.encode(table, rows, columns, texts)
        columns.append("data")
    copy = _copy(table, columns, "BINARY")
    return CopyRows(copy, lambda: (binary_copy.HEAD, body, binary_copy.TAIL))


def _without_implied(rows: pl.DataFrame, length: pl.Expr) -> pl.DataFrame:
    """Drop positions that `schemas.derived.views.position` can derive; `length` is of the text.

    Nearly every record is a line of its own behind one header line. Leaving out three columns saves
    a tenth of the cost of staging a row.
    """
    first, end = pl.col("first_line"), pl.col("byte_end")
    implied = {
        "first_line": first == pl.col("record_number") + 1,
        "last_line": pl.col("last_line") == first,
        "byte_end": (end == pl.col("byte_start") + length).fill_null(value=False),
    }
    return rows.with_columns(
        pl.when(~found).then(name).alias(name) for name, found in implied.items()
    )


def _filled(rows: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns with any value; COPY omits the rest, such as most of a position."""
    return [name for name in columns if rows[name].null_count() < rows.height]


def _copy(table: Table, columns: Sequence[str], form: str) -> sql.Composed:
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT {})").format(
        sql.Identifier(SCHEMA, staged_name(table)),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(form),
    )


def copy_text(rows: pl.DataFrame) -> bytes:
    """The frame in PostgreSQL's COPY text format."""
    special = list(_ESCAPES)
    texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    found = rows.select(pl.col(texts).str.contains_any(special).any())
    needy = [name for name in texts if found[name].item()]
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


def withdraw_staged(
    connection: psycopg.Connection, table: Table, extract_id: int, record: int = 0
) -> None:
    """Delete the staged rows of a file that turned out to be another, from a record on."""
    connection.execute(
        sql.SQL("DELETE FROM {} WHERE extract_id = %s AND record_number >= %s").format(
            sql.Identifier(SCHEMA, staged_name(table))
        ),
        [extract_id, record],
    )
