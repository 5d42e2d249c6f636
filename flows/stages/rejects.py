"""Rejects: the rows with errors as CSV files that, once corrected, are a valid delivery.

The first column, ReconRow, names the row that each one stands for; what is wrong with it is told
in a text file beside them.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from connectors import ledger
from connectors.extracts.header import PARENT_COLUMN, Header
from connectors.files import write_file
from connectors.findings import RejectedRow, rejected_rows
from connectors.lease import Lease
from connectors.ledger import Extract
from flows.report.decision import ROWS_SHOWN, FirstReject
from flows.report.spelling import visible
from flows.stages.check import staged_tables
from flows.stages.kept import open_archived, prove_extracts
from flows.stages.locate import Spot, show_command
from flows.stages.receive import restored_profile
from flows.stages.texts import Texts
from flows.stages.workspace import Workspace

EXPLANATION = "what-is-wrong.txt"


def write_rejects(
    workspace: Workspace, batch_id: int, folder: Path, *, with_secrets: bool
) -> dict[Path, int]:
    """One CSV per delivered file, under its own header; returns the rows written by file.

    Secrets are left empty unless asked for, so that whoever knows them delivers them anew.
    """
    written: dict[Path, int] = {}
    told: list[str] = []
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
        profile = restored_profile(batch)
        texts = Texts(workspace, connection, [batch_id])
        rows = _by_extract(Lease(connection, batch_id, -1), texts)
        for extract in ledger.list_extracts(connection, batch_id):
            found = rows.get(extract.id)
            if not found:
                continue
            prove_extracts(workspace, [extract])
            _, header = open_archived(workspace, extract, profile)
            path = folder / f"{Path(extract.name).name.split('.')[0]}-batch-{batch_id}.csv"
            if path in written:
                path = path.with_stem(f"{path.stem}-{extract.id}")
            lines = _lines(extract, header, found, with_secrets=with_secrets)
            write_file(path, b"".join(lines))
            written[path] = len(found)
            told += _told(extract, found)
    if written:
        write_file(folder / EXPLANATION, ("\n".join(told) + "\n").encode())
    return written


def first_rejects(lease: Lease, most: int = ROWS_SHOWN) -> list[FirstReject]:
    """The first rows with errors of a batch, by record kind in the order they were delivered."""
    extracts = ledger.list_extracts(lease.connection, lease.batch_id)
    names = {extract.id: extract.name for extract in extracts}
    return [
        FirstReject(names[row.extract_id], row.first_line, row.record_number, row.error_data)
        for table in staged_tables(lease)
        for row in rejected_rows(lease.connection, table, lease.batch_id, most=most)
    ][:most]


def _by_extract(lease: Lease, texts: Texts) -> dict[int, dict[int, RejectedRow]]:
    rows: dict[int, dict[int, RejectedRow]] = {}
    for table in staged_tables(lease):
        for row in texts.filled(rejected_rows(lease.connection, table, lease.batch_id)):
            rows.setdefault(row.extract_id, {})[row.record_number] = row
    return rows


def _lines(
    extract: Extract, header: Header, rows: Mapping[int, RejectedRow], *, with_secrets: bool
) -> Iterator[bytes]:
    yield heading(header)
    for number, row in sorted(rows.items()):
        own = {PARENT_COLUMN: f"{extract.id}:{number}"}
        yield rewritten(row, header, own, with_secrets=with_secrets)


def heading(header: Header, own: Sequence[str] = (PARENT_COLUMN,)) -> bytes:
    """The header of rows to correct: columns of our own, then those that were delivered."""
    kept = set(range(header.width)) - _own_places(header, own)
    return _row([*own, *(header.names[place] for place in sorted(kept))], header)


def rewritten(
    row: RejectedRow, header: Header, own: Mapping[str, str], *, with_secrets: bool
) -> bytes:
    """One delivered row as it was, with columns of our own in front.

    Secrets are left empty unless asked for; a row that then cannot be split is left empty.
    """
    left_out = _own_places(header, tuple(own))
    hidden = {
        place
        for place, name in enumerate(header.fields)
        if name and header.table.by_name[name].secret and not with_secrets
    }
    delimiter, encoding = header.dialect.delimiter, header.dialect.encoding
    front = _row(list(own.values()), header).removesuffix(b"\r\n") + delimiter
    if hidden or left_out:
        cells = _cells(row, header)
        kept = [
            "" if place in hidden else cell
            for place, cell in enumerate(cells)
            if place not in left_out
        ]
        return front + _row(kept, header)
    text = bytes.fromhex(row.raw) if row.raw else (row.data or "").encode(encoding)
    return front + text + b"\r\n"


def _own_places(header: Header, own: Sequence[str]) -> set[int]:
    """Columns of our own that were delivered, and are written anew."""
    names = {name.casefold() for name in own}
    return {place for place, name in enumerate(header.names) if name.casefold() in names}


def _cells(row: RejectedRow, header: Header) -> list[str]:
    """The cells of a row that has to be rewritten; a row that cannot be split is left empty."""
    try:
        cells = next(
            csv.reader(
                [row.data or ""],
                delimiter=header.dialect.delimiter.decode(),
                quotechar=header.dialect.quote.decode(),
                strict=True,
            )
        )
    except csv.Error:
        cells = []
    return cells if len(cells) == header.width else [""] * header.width


def _row(cells: list[str], header: Header) -> bytes:
    text = io.StringIO()
    csv.writer(
        text,
        delimiter=header.dialect.delimiter.decode(),
        quotechar=header.dialect.quote.decode(),
    ).writerow(cells)
    return text.getvalue().encode(header.dialect.encoding, "replace")


def _told(extract: Extract, rows: Mapping[int, RejectedRow]) -> Iterator[str]:
    """Each row by its place in the delivered file, with the command that shows it."""
    for number, row in sorted(rows.items()):
        name = visible(extract.name)
        yield f"{name}, line {row.first_line}, record {number} (ReconRow {extract.id}:{number})"
        for error in json.loads(row.error_data):
            yield f"    {error['ErrorCode']}: {' '.join(error['Message'].split())}"
        yield show_command(extract.batch_id, extract.name, Spot(line=row.first_line))
