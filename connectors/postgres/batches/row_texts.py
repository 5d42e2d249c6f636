"""The texts of staged rows, as a frame."""

from collections.abc import Sequence

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.bulk.copy_out import Columns, copied
from schemas.derived.sql_names import staged_name
from schemas.derived.views import AT_PLACES, of_batch
from schemas.field import Table


def row_texts_at(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    extracts: Sequence[int],
    numbers: Sequence[int],
) -> pl.DataFrame:
    """The texts of rows by extract and record number: columns `extract_id`, `row` and `data`.

    `data` is null for a row whose text is only in its file, or is no valid text.
    """
    columns: Columns = {
        "extract_id": ("s.extract_id", pl.Int32()),
        "row": ("s.record_number", pl.Int64()),
        "data": ("CASE WHEN s.raw IS NULL THEN s.data END", pl.String()),
    }
    return copied(
        connection,
        columns,
        f"""{staged_name(table)} s {AT_PLACES}
        WHERE {of_batch("s")} AND s.record_number BETWEEN %(first)s AND %(last)s
        ORDER BY s.extract_id, s.record_number""",
        batch_span(connection, batch_id)
        | {"extracts": list(extracts), "numbers": list(numbers)}
        | {"first": min(numbers), "last": max(numbers)},
    )
