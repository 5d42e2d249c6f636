"""Locate one delivered row: what is in that place of its file, and where nothing is, why.

What the database says of the row is shown with what proves it, and not where that says otherwise.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from connectors.errors import BatchUnknown
from connectors.files.blocks import blocks
from connectors.files.content import Content
from connectors.files.no_record import why_no_record
from connectors.postgres import ledger
from connectors.postgres.findings import find_row, row_from_line
from connectors.postgres.ledger import Batch, Extract, State
from connectors.postgres.one_moment import one_moment
from flows.report.spelling import shortened
from flows.stages.kept import is_cleared, open_archived, prove_profile
from flows.stages.rows.row_proof import RowProof, prove_ledger
from flows.stages.rows.spots import Spot, places, show_command
from flows.stages.terms import restored_profile
from flows.stages.workspace import Workspace
from schemas.counting import first_of, quantity

BLOCK_BYTES = 1 << 20
NAMED = 20
"""Files an error names; it counts the others."""


def locate(
    workspace: Workspace, connection: psycopg.Connection, batch_id: int, file: str, spot: Spot
) -> list[Any]:
    """The row, once for each file of this name; raises BatchUnknown where there is none.

    Its `proof` says in words what proves it. Raises EvidenceBroken where its file, or the profile
    that it is read by, is not as received, or where somebody altered what the database says of it.
    """
    with one_moment(connection):
        batch = ledger.find_batch(connection, batch_id)
        prove_profile(connection, batch_id)
        extracts = ledger.list_extracts(connection, batch_id)
        named = [one for one in extracts if one.name == file]
        if not named:
            names = first_of(extracts, NAMED, lambda one: shortened(one.name, 80))
            raise BatchUnknown(
                f"Batch {batch_id} has no file named {file!r}. Its files: {names or 'none'}."
            )
        found = [
            row
            for one in named
            for place in places(connection, one, spot)
            for row in find_row(connection, *place)
        ]
        if not found:
            raise BatchUnknown(_why_not(workspace, connection, batch, named[0], spot))
        prove_ledger(connection, batch_id)
        proof = RowProof(workspace, connection, batch)
        of = {one.id: one for one in named}
        return [row._replace(proof=proof.of(of[row.extract_id], row)) for row in found]


def _why_not(
    workspace: Workspace, connection: psycopg.Connection, batch: Batch, extract: Extract, spot: Spot
) -> str:
    name = shortened(extract.name, 80)
    if extract.refused is not None:
        return f"{name} was refused ({extract.refused}), so none of its rows was taken in."
    staged = ledger.list_receipts(
        connection, extract.batch_id, "stage", extract.id, with_clues=False
    )
    records = max((receipt.last_record for receipt in staged), default=0)
    unread = (
        f" It is not read to its end yet; `recon rerun {batch.id}` goes on."
        if batch.state is State.RECEIVED
        else ""
    )
    if spot.record is not None:
        return (
            f"{name} has {quantity(records, 'record')}{' so far' if unread else ''}, and no record "
            f"{spot.record}.{unread} A number that a report shows as a line is asked for with "
            f"--line: `{show_command(batch.id, extract.name, Spot(line=spot.record))}`."
        )
    assert spot.line is not None
    place = row_from_line(connection, extract, spot.line)
    before = (
        f" Above it ends record {place.record_number}, at line {place.last_line}." if place else ""
    )
    if is_cleared(workspace, extract):
        return (
            f"Line {spot.line} of {name} is in no record.{before}{unread} The content of the file "
            "is not in the archive any more, so more cannot be said."
        )
    content, header = open_archived(workspace, extract, restored_profile(batch))
    behind, lines = header.body_line, _count_lines(content)
    if spot.line < behind:
        return (
            f"Line {spot.line} of {name} is its header, or above it. Records begin "
            f"at line {behind}; the file has {quantity(lines, 'line')}."
        )
    if spot.line > lines:
        size = f"{quantity(lines, 'line')} and {quantity(records, 'record')}"
        return f"{name} has {size}, and no line {spot.line}.{unread}"
    if unread:
        return f"Line {spot.line} of {name} is in no record so far.{unread}"
    is_what = why_no_record(content, header, spot.line)
    return f"Line {spot.line} of {name} is {is_what}, and belongs to no record.{before}"


def _count_lines(content: Content) -> int:
    """The lines of a file, ended by LF, CRLF or CR; a last one without its end counts."""
    lines, last = 0, b"\n"
    for joined, block in _with_last(blocks(content, content.text_start, BLOCK_BYTES)):
        returns = block.count(b"\r") - joined.count(b"\r\n")
        lines += block.count(b"\n") + returns
        last = block[-1:]
    return lines + (last not in (b"\n", b"\r"))


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Each piece, in front of it also joined to the last byte of the one before."""
    before = b""
    for piece in pieces:
        yield before + piece, piece
        before = piece[-1:]
