"""Rows with errors for people: some on a page, all in a workbook."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from connectors.postgres.batches import ledger
from connectors.postgres.batches.attempts import AttemptRow, Later
from connectors.postgres.batches.findings import rejected_rows
from flows.report.next_step import next_of_row
from flows.stages.rows.texts import RowTexts
from flows.stages.workspace import Workspace
from flows.steps.secrets import shown_record
from schemas.tables import EXTRACTS


@dataclass(frozen=True, slots=True)
class ShownReject:
    """A row with errors; its text never contains a secret."""

    extract_id: int
    record_number: int
    file: str
    line: int
    record: str
    text: str
    """The text as delivered, in hex if it is no text; empty if its file is no longer kept."""
    errors: tuple[Mapping[str, Any], ...]
    """The errors as in ErrorData."""
    remedies: tuple[str, ...]
    later: Later | None
    """The later batch that has its repair."""


def shown_rejects(
    workspace: Workspace,
    connection: psycopg.Connection,
    batch_id: int,
    elsewhere: Mapping[AttemptRow, Later],
    *,
    most: int | None = None,
    after: tuple[int, int] = (0, 0),
) -> Generator[ShownReject, None, None]:
    """The rows with errors of a batch that follow this extract and record number.

    They come from one open statement; until the last row the connection has no other use.
    """
    batch = ledger.find_batch(connection, batch_id)
    tables = ledger.staged_tables(connection, batch_id)
    texts = RowTexts(workspace, connection, [batch_id])
    names = {one.id: one.name for one in ledger.list_extracts(connection, batch_id)}
    for row in texts.filled(rejected_rows(connection, tables, batch_id, most=most, after=after)):
        later = elsewhere.get(AttemptRow(batch.id, row.extract_id, row.record_number))
        errors = tuple(json.loads(row.error_data))
        text, table = row.data or row.raw or "", EXTRACTS[row.record]
        yield ShownReject(
            row.extract_id,
            row.record_number,
            names[row.extract_id],
            row.first_line,
            table.title,
            shown_record(table, text) if text else "",
            errors,
            tuple(next_of_row(errors, batch.state, later)),
            later,
        )
