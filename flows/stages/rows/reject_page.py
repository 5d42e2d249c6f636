"""Rows with errors as a page shows them, some at a time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from connectors.postgres import ledger
from connectors.postgres.attempts import AttemptRow, Later
from connectors.postgres.findings import RejectedRow, rejected_rows
from flows.report.next_step import next_of_row
from flows.stages.rows.texts import RowTexts
from flows.stages.workspace import Workspace
from flows.steps.secrets import shown_record
from schemas.tables import EXTRACTS


@dataclass(frozen=True, slots=True)
class ShownReject:
    """One row with errors; its text never holds a secret."""

    extract_id: int
    record_number: int
    file: str
    line: int
    record: str
    text: str
    """As delivered; where it is no text, its bytes in hex; empty: its file is not kept any more."""
    errors: tuple[Mapping[str, Any], ...]
    """As ErrorData has them."""
    remedies: tuple[str, ...]
    later: Later | None
    """The later batch that has its repair."""


def list_rejects(
    workspace: Workspace,
    connection: psycopg.Connection,
    batch_id: int,
    elsewhere: Mapping[AttemptRow, Later],
    *,
    most: int,
    after: tuple[int, int],
) -> list[ShownReject]:
    """So many rows with errors of a batch behind the one of this extract and record number."""
    batch = ledger.find_batch(connection, batch_id)
    tables = ledger.staged_tables(connection, batch_id)
    found = [*rejected_rows(connection, tables, batch_id, most=most, after=after)]
    texts = RowTexts(workspace, connection, [batch_id])
    names = {one.id: one.name for one in ledger.list_extracts(connection, batch_id)}
    return [_shown(row, names[row.extract_id], elsewhere, batch) for row in texts.filled(found)]


def _shown(
    row: RejectedRow,
    file: str,
    elsewhere: Mapping[AttemptRow, Later],
    batch: ledger.Batch,
) -> ShownReject:
    later = elsewhere.get(AttemptRow(batch.id, row.extract_id, row.record_number))
    errors = tuple(json.loads(row.error_data))
    text, table = row.data or row.raw or "", EXTRACTS[row.record]
    return ShownReject(
        row.extract_id,
        row.record_number,
        file,
        row.first_line,
        table.title,
        shown_record(table, text) if text else "",
        errors,
        tuple(next_of_row(errors, batch.state, later)),
        later,
    )
