"""Rows of insert-batch data as delivered, whatever record kind they were staged as.

A row with a record inside is staged as that record, but the service lists the outer rows. So the
outer row is read again from the verbatim text.
"""

from collections.abc import Iterable

import polars as pl
import psycopg

from connectors.files.chunks.cells import split_cells
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import Extract
from flows.stages.receiving.kept import open_archived
from flows.stages.receiving.terms import restored_profile
from flows.stages.rows.writing import plain_rows
from flows.stages.workspace import Workspace
from flows.steps.frames.sources import DELIVERED, record_schema
from schemas.cells.reading import UNFIT, Unread, read
from schemas.derived.views import staged_rows
from schemas.field import Field, Kind
from schemas.tables import INSERT_BATCH_DATA


def delivered_batch_rows(
    workspace: Workspace, connection: psycopg.Connection, extracts: Iterable[Extract]
) -> pl.DataFrame:
    """E of insert-batch data: every row of these extracts with its place and end state."""
    rows = [
        row
        for extract in extracts
        if extract.record == INSERT_BATCH_DATA.name
        for row in _rows(workspace, connection, extract)
    ]
    schema = record_schema(INSERT_BATCH_DATA) | DELIVERED
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rows(
    workspace: Workspace, connection: psycopg.Connection, extract: Extract
) -> Iterable[tuple[object, ...]]:
    profile = restored_profile(ledger.find_batch(connection, extract.batch_id))
    _, header = open_archived(workspace, extract, profile)
    staged = staged_rows(ledger.tables_of_extract(connection, extract.id))
    found = connection.execute(
        f"SELECT data, state, first_line, record_number FROM ({staged}) r "
        "WHERE extract_id = %s ORDER BY record_number",
        [extract.id],
    ).fetchall()
    # A broken record has no cells.
    nothing = [""] * header.width
    cells = [split_cells(data, header) or nothing for data, *_ in found]
    plain = plain_rows(header, cells, profile).select(INSERT_BATCH_DATA.columns)
    for (_, state, line, number), texts in zip(found, plain.iter_rows(), strict=True):
        values = map(_value, INSERT_BATCH_DATA.delivered, texts)
        yield (*values, state, extract.name, line, number, extract.id, extract.batch_id)


def _value(field: Field, cell: str | None) -> object:
    if cell is None:
        return None
    if field.kind is Kind.STRING:
        return cell.partition(UNFIT)[0]
    value = read(field, cell, _never)
    return None if isinstance(value, Unread) else value


def _never(field: Field, text: str) -> Unread:
    raise AssertionError(f"{field.name} holds nothing nested: {text!r}")
