"""Insert: the new rows of a range go into its target, from the spool or from the staged rows.

The temporary table `present` has the rows of the range that the target knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import psycopg
from numpy.typing import NDArray

from connectors.files.disk.spool import OF_EXTRACT, Spooled, read_spool
from connectors.postgres.batches.ranges import AppliedTogether, Range, absent, ready
from connectors.postgres.bulk import binary_copy
from connectors.postgres.database import COPY_BYTES
from schemas.derived.sql_names import inserted_columns, staged_name, target_columns
from schemas.derived.views import quoted
from schemas.field import Table

MOST_LEFT_OUT = 200_000
"""Most rows of a range that COPY leaves out; with more, the range is inserted by SQL."""
NO_COPY = -1
"""In place of a record number: row security keeps tenants apart, so COPY would be refused."""


def insert_staged(connection: psycopg.Connection, table: Table, rows: AppliedTogether) -> int:
    """Insert the new rows among these from the staged rows."""
    names = ", ".join(map(quoted, inserted_columns(table)))
    return connection.execute(
        f"""INSERT INTO {table.name} ({names}) SELECT {names} FROM {staged_name(table)} s
        WHERE {ready(rows.within)} AND {absent()}""",
        rows.parameters(),
    ).rowcount


def insert_new(
    connection: psycopg.Connection, table: Table, rows: Range, spooled: Sequence[Spooled]
) -> int:
    """Insert the new rows of a range: spooled rows by COPY, at half the cost, others by SQL."""
    left_out = _left_out(connection, table, rows) if spooled else None
    if left_out is None:
        return insert_staged(connection, table, rows)
    columns = ", ".join(map(quoted, target_columns(table)))
    copied: list[Spooled] = []
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(binary_copy.HEAD)
            for part in spooled:
                written = _written_out(table, rows, part, left_out)
                if written is not None:
                    for piece in binary_copy.pieces([written], COPY_BYTES):
                        copy.write(piece)
                    copied.append(part)
            copy.write(binary_copy.TAIL)
        added = cursor.rowcount
    for between in _between(rows, copied):
        added += insert_staged(connection, table, between)
    return added


def _written_out(
    table: Table, rows: Range, part: Spooled, left_out: NDArray[np.int64]
) -> memoryview | None:
    """Encode a part for COPY without the rows left out; None if its rows are not at hand."""
    frame = read_spool(part)
    if frame is None:
        return None
    if len(left_out):
        frame = frame.filter(pl.Series(~np.isin(frame["record_number"].to_numpy(), left_out)))
    ids = zip(OF_EXTRACT, (rows.batch_id, rows.extract_id), strict=True)
    frame = frame.with_columns(pl.lit(number, pl.Int32).alias(name) for name, number in ids)
    return binary_copy.encode(table, frame, target_columns(table))


def _left_out(
    connection: psycopg.Connection, table: Table, rows: Range
) -> NDArray[np.int64] | None:
    """Record numbers of the range not to insert; None if too many or COPY is not allowed."""
    found = connection.execute(
        f"SELECT record_number FROM present UNION SELECT record_number FROM outcome o "
        f"WHERE {rows.within('o')} "
        f"UNION SELECT {NO_COPY} WHERE row_security_active('{table.name}') "
        f"ORDER BY 1 LIMIT {MOST_LEFT_OUT + 1}",
        rows.parameters(),
    ).fetchall()
    if len(found) > MOST_LEFT_OUT or (NO_COPY,) in found:
        return None
    return np.array([number for (number,) in found], np.int64)


def _between(rows: Range, parts: Sequence[Spooled]) -> Iterator[Range]:
    """The pieces of a range that are not in the parts."""
    free = rows.first
    for part in parts:
        if part.first > free:
            yield replace(rows, first=free, last=part.first - 1)
        free = part.last + 1
    if free <= rows.last:
        yield replace(rows, first=free)
