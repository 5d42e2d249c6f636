"""Rejects: the rows with errors as CSV files that, once corrected, are a valid delivery.

The first column, ReconRow, names the row that each row replaces; a text file beside the CSV files
explains the errors.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import IO

import polars as pl
import psycopg

from connectors.files.chunks.cells import split_cells
from connectors.files.chunks.rewriting import (
    RewrittenLine,
    as_one_cell,
    cells_left_out,
    delivered_text,
    on_its_own,
    write_lines,
)
from connectors.files.disk.atomic import Write, named, write_files
from connectors.files.layout.header import Header
from connectors.postgres.batches import ledger
from connectors.postgres.batches.attempts import (
    REJECTED,
    REPAIRED,
    WAITING,
    AttemptRow,
    Later,
    later_attempts,
)
from connectors.postgres.batches.findings import RejectedRow, is_broken, rejected_rows, wrong_fields
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Extract
from connectors.settings import MIB
from flows.report.decision import ROWS_SHOWN, FirstReject
from flows.report.spelling import visible
from flows.stages.frame_file import FrameFile
from flows.stages.receiving.kept import open_archived, prove_extracts, prove_profile
from flows.stages.receiving.terms import restored_profile
from flows.stages.rows.locate import prove_rows
from flows.stages.rows.spots import Spot, show_command
from flows.stages.rows.texts import RowTexts
from flows.stages.workspace import Workspace
from flows.steps.validate.omitted_secrets import in_place
from schemas.counting import grouped, quantity
from schemas.field import Table
from schemas.own_columns import PARENT_COLUMN
from schemas.tables import EXTRACTS

EXPLANATION = "what-is-wrong-batch-{}.txt"
_AT_ONCE = 4096
"""Rows that are put aside together."""
_ROW = {
    name: pl.Int64() if kind is int else pl.String()
    for name, kind in RejectedRow.__annotations__.items()
}
"""The columns of a RejectedRow."""


def attempts_after(workspace: Workspace, batch_id: int) -> Mapping[AttemptRow, Later]:
    """Rows with errors that a later batch has, and what became of them there."""
    with workspace.database.connect() as connection:
        return later_attempts(connection, batch_id)


def is_left_to_correct(
    connection: psycopg.Connection, batch_id: int, elsewhere: Collection[AttemptRow]
) -> bool:
    """Whether a row with errors of a batch is none of those that a later batch has."""
    tables = ledger.staged_tables(connection, batch_id)
    with closing(rejected_rows(connection, tables, batch_id, most=len(elsewhere) + 1)) as rows:
        return any(
            AttemptRow(batch_id, row.extract_id, row.record_number) not in elsewhere for row in rows
        )


def waiting_correction(workspace: Workspace, batch_id: int) -> int | None:
    """The first unfinished batch with repairs of a batch's rows in error; None if there is none."""
    with workspace.database.connect() as connection:
        later = {one.batch_id for one in later_attempts(connection, batch_id).values()}
        batches = ledger.batches_of(connection, later)
    return next((one.id for one in batches if one.state not in ledger.ENDED), None)


def write_rejects(
    workspace: Workspace,
    batch_id: int,
    folder: Path,
    *,
    with_secrets: bool,
    elsewhere: Mapping[AttemptRow, Later] | None = None,
) -> dict[Path, int]:
    """Write one CSV per delivered file, under its own header; returns the rows written by file.

    Secrets are left empty unless asked for: a correction that leaves them empty keeps the delivered
    ones. Only the owner can read the files. Rows whose repair came in a later batch are left out,
    as they would be repaired twice; a caller that knows these passes them as `elsewhere`.

    Raises EvidenceBroken if a row, its file or its outcome was altered.
    """
    files: dict[str, Write] = {}
    written: dict[Path, int] = {}
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
        prove_profile(connection, batch_id)
        prove_rows(connection, batch_id)
        profile = restored_profile(batch)
        texts = RowTexts(workspace, connection, [batch_id])
        if elsewhere is None:
            elsewhere = later_attempts(connection, batch_id)
        rows, counts = _aside(connection, batch_id, texts, elsewhere.keys())
        extracts = [
            extract for extract in ledger.list_extracts(connection, batch_id) if counts[extract.id]
        ]
        for extract in extracts:
            prove_extracts(workspace, [extract])
            _, header = open_archived(workspace, extract, profile)
            stem = Path(extract.name).name.split(".")[0]
            path = folder / named(stem, f"-batch-{batch_id}.csv")
            if path in written:
                path = folder / named(stem, f"-batch-{batch_id}-{extract.id}.csv")
            lines = partial(_lines, rows, extract, header, with_secrets=with_secrets)
            files[path.name] = partial(write_lines, header, [PARENT_COLUMN], lines)
            written[path] = counts[extract.id]
    if files:
        # Last, so that it is only beside all of the rows that it explains.
        files[EXPLANATION.format(batch_id)] = partial(_write_explanation, rows, extracts)
        write_files(folder, files)
    return written


def first_rejects(lease: Lease) -> list[FirstReject]:
    """The first rows with errors of a batch, by record kind in the order of delivery."""
    extracts = ledger.list_extracts(lease.connection, lease.batch_id)
    names = {extract.id: extract.name for extract in extracts}
    return [
        FirstReject(names[row.extract_id], row.first_line, row.record_number, row.error_data)
        for table in ledger.staged_tables(lease.connection, lease.batch_id)
        for row in rejected_rows(lease.connection, [table], lease.batch_id, most=ROWS_SHOWN)
    ][:ROWS_SHOWN]


def repaired_elsewhere(elsewhere: Mapping[AttemptRow, Later]) -> list[str]:
    """Lines on the rows that `write_rejects` leaves out because a later batch has their repair."""
    counts = Counter(elsewhere.values())
    return [
        _ELSEWHERE[later.state].format(rows=quantity(count, "row", grouped), batch=later.batch_id)
        for later, count in sorted(counts.items(), key=lambda one: (one[0].batch_id, one[0].state))
    ]


_ELSEWHERE = {
    REPAIRED: "{rows} not written: repaired by batch {batch}.",
    REJECTED: (
        "{rows} not written: delivered again in batch {batch} and in error there. "
        "`recon rejects {batch}` writes what is left to correct."
    ),
    WAITING: (
        "{rows} not written: the repair is in batch {batch}, which has not come to its end. "
        "`recon status` says what it waits for; where it is discarded or undone, run this again."
    ),
}


def _aside(
    connection: psycopg.Connection,
    batch_id: int,
    texts: RowTexts,
    elsewhere: Collection[AttemptRow],
) -> tuple[FrameFile, Counter[int]]:
    """The rows with errors by extract, in a file if there are many, and each extract's number."""
    tables = ledger.staged_tables(connection, batch_id)
    rows = (
        row
        for row in texts.filled(rejected_rows(connection, tables, batch_id))
        if AttemptRow(batch_id, row.extract_id, row.record_number) not in elsewhere
    )
    aside, counts = FrameFile(MIB, "lz4"), Counter[int]()
    for extract_id, mine in groupby(rows, attrgetter("extract_id")):
        while part := [*islice(mine, _AT_ONCE)]:
            aside.add(pl.DataFrame(part, _ROW, orient="row"), extract_id)
            counts[extract_id] += len(part)
    return aside, counts


def _rows_of(rows: FrameFile, extract: Extract) -> Iterator[RejectedRow]:
    for frame in rows.frames(extract.id):
        yield from map(RejectedRow._make, frame.iter_rows())


def _lines(
    rows: FrameFile, extract: Extract, header: Header, *, with_secrets: bool
) -> Iterator[RewrittenLine]:
    for row in _rows_of(rows, extract):
        text = rewritten(EXTRACTS[row.record], row, header, with_secrets=with_secrets)
        yield RewrittenLine({PARENT_COLUMN: f"{extract.id}:{row.record_number}"}, text)


def rewritten(table: Table, row: RejectedRow, header: Header, *, with_secrets: bool) -> str:
    """The text of a delivered row, without possible secrets unless they are asked for.

    `table` is the record kind of the row, which may be inside insert-batch data.
    """
    text = delivered_text(row.data, row.raw, header)
    if is_broken(row.error_data):
        # An unpivoted line has other columns, and would be read as a line of records.
        text = as_one_cell(text, header) if header.unpivot else on_its_own(text, header)
    if with_secrets or not table.unquotable:
        return text
    return cells_left_out(text, header, _left_out(row, header))


def _left_out(row: RejectedRow, header: Header) -> Collection[int]:
    """The places of secrets; every place if a secret may have slipped into another column."""
    every = range(header.width)
    if row.raw is not None or header.table.holds_records:
        return every
    cells = split_cells(row.data or "", header)
    wrong = wrong_fields(row.error_data)
    if not cells or not in_place(cells, header.fields, header.table, wrong):
        return every
    # The content of a column without a field is unknown, and no import reads it.
    return [place for place in every if header.fields[place] in {None, *header.table.secrets}]


def _write_explanation(rows: FrameFile, extracts: Sequence[Extract], file: IO[bytes]) -> None:
    lines = (line for extract in extracts for line in _explained(extract, _rows_of(rows, extract)))
    file.writelines(f"{line}\n".encode() for line in lines)


def _explained(extract: Extract, rows: Iterable[RejectedRow]) -> Iterator[str]:
    """Each row by its place in the delivered file, with the command that shows it."""
    name = visible(extract.name)
    for row in rows:
        number = row.record_number
        yield f"{name}, line {row.first_line}, record {number} (ReconRow {extract.id}:{number})"
        for error in json.loads(row.error_data):
            yield f"    {error['ErrorCode']}: {' '.join(error['Message'].split())}"
        yield show_command(extract.batch_id, extract.name, Spot(line=row.first_line))
