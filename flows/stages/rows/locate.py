"""Locate a delivered row: what is at a place of its file, or why nothing is.

What the database says about the row is shown with its proof, or not at all if the proof fails.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import psycopg

from connectors.errors import BatchUnknown, EvidenceBroken
from connectors.files.archived.blocks import blocks
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.layout.no_record import why_no_record
from connectors.files.text.content import Content
from connectors.postgres.auditing.evidence import WHOLE, altered_ledger
from connectors.postgres.batches import ledger
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.digests import is_as_staged
from connectors.postgres.batches.findings import find_row, row_from_line
from connectors.postgres.batches.ledger import Batch, Extract, State
from connectors.postgres.batches.other_names import came_as
from connectors.postgres.one_moment import one_moment
from flows.report.spelling import shortened
from flows.stages.chunk_ranges import STAGE, place_after
from flows.stages.receiving.kept import (
    FAULTS_NAMED,
    PUT_BACK,
    is_cleared,
    open_archived,
    prove_profile,
    prove_staged,
    removed_on,
)
from flows.stages.receiving.terms import restored_profile
from flows.stages.rows.spots import Spot, of_name, places, show_command
from flows.stages.workspace import Workspace
from schemas.counting import first_of, quantity
from schemas.derived.sql_names import staged_name
from schemas.tables import EXTRACTS

HASHED = "the hash of the rows that were staged with it"
_POSITION = ("byte_start", "byte_end", "first_line", "last_line")
_TEXT = ("data", "raw")
BLOCK_BYTES = 1 << 20
NAMED = 20
"""The number of files that an error names; it counts the others."""


class RowProof:
    def __init__(self, workspace: Workspace, connection: psycopg.Connection, batch: Batch) -> None:
        self._workspace, self._connection, self._batch = workspace, connection, batch

    def of(self, extract: Extract, row: Any) -> str:
        """The proof of a row, in words; raises EvidenceBroken if the row was altered."""
        cleared = is_cleared(self._workspace, extract)
        if not cleared:
            self._hold_against_file(extract, row)
        table = EXTRACTS[row.record]
        hashed = is_as_staged(
            self._connection, table, extract.batch_id, extract.id, row.record_number
        )
        if hashed is False:
            raise EvidenceBroken(
                f"Rows of {extract.name} of batch {extract.batch_id} (table {staged_name(table)}) "
                f"around record {row.record_number} are not those that were staged: somebody "
                "altered them in the database, and nothing tells which. Record "
                f"{row.record_number} is not shown. {PUT_BACK}"
            )
        if not cleared:
            rest = f"{HASHED} proves" if hashed else "nothing proves"
            return f"The kept file proves its text and place; {rest} the rest."
        assert extract.cleared_at is not None
        gone = removed_on(extract.cleared_at)
        return f"{HASHED.capitalize() if hashed else 'Nothing'} proves it. {gone}"

    def _hold_against_file(self, extract: Extract, row: Any) -> None:
        content, header = open_archived(self._workspace, extract, restored_profile(self._batch))
        fault = self._fault(extract, row, content, header)
        # An earlier version took lines whose only value is in a nameless column for records.
        if fault and header.unpivot and header.unpivot.nameless:
            then = replace(header, unpivot=replace(header.unpivot, nameless=()))
            fault = self._fault(extract, row, content, then)
        if fault:
            about = f"{extract.name} of batch {extract.batch_id}"
            raise EvidenceBroken(f"{about} {fault}, and it is not shown. {PUT_BACK}")

    def _fault(self, extract: Extract, row: Any, content: Content, header: Header) -> str:
        """How a row differs from its file, read with this header; empty if it does not."""
        number = row.record_number
        there = self._in_file(extract, number, content, header)
        if there is None:
            return f"has no record {number}, and the database has one: somebody added it there"
        # A row kept by reference has its text in the file only.
        kept = row.data is not None or row.raw is not None
        if kept and any(getattr(row, name) != there[name] for name in _TEXT):
            return (
                f"says another text in record {number} than the database: somebody altered that "
                "there"
            )
        for name in _POSITION:
            if getattr(row, name) != there[name]:
                return (
                    f"has record {number} elsewhere than the database says ({name} {there[name]}, "
                    f"and not {getattr(row, name)}): somebody altered that there"
                )
        return ""

    def _in_file(
        self, extract: Extract, number: int, content: Content, header: Header
    ) -> Mapping[str, Any] | None:
        """The record with this number as the kept file has it, read from its chunk on."""
        before = [
            one
            for one in ledger.list_receipts(
                self._connection, extract.batch_id, STAGE, extract.id, with_clues=False
            )
            if one.last_record < number
        ]
        place = place_after(before[-1]) if before else first_place(header)
        limits = self._workspace.settings.limits
        for chunk in read_chunks(content, header, place, limits.block_bytes, limits.strict_bytes):
            if number < chunk.end.record:
                (at,) = (chunk.numbers == number).nonzero()
                return chunk.positions().row(int(at[0]), named=True) if at.size else None
        return None


def locate(
    workspace: Workspace, connection: psycopg.Connection, batch_id: int, file: str, spot: Spot
) -> list[Any]:
    """The row, once for each file of this name; raises BatchUnknown if there is none.

    Its `proof` says in words what proves it. Raises EvidenceBroken if its file or profile is not as
    received, or if somebody altered what the database says about the row.
    """
    with one_moment(connection):
        batch = ledger.find_batch(connection, batch_id)
        prove_profile(connection, batch_id)
        extracts = ledger.list_extracts(connection, batch_id)
        named, again = of_name(extracts, file), dict[str, int]()
        if not named:
            again = came_as(connection, batch_id, file)
            named = [one for one in extracts if one.sha256 in again]
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
        as_well = {one.id: _as_well(one, file, again) for one in named}
        proofs = (proof.of(of[row.extract_id], row) + as_well[row.extract_id] for row in found)
        return [row._replace(proof=text) for row, text in zip(found, proofs, strict=True)]


def _as_well(extract: Extract, file: str, again: Mapping[str, int]) -> str:
    """The sentence that a file's bytes came under this name too, if they did."""
    event = again.get(extract.sha256 or "")
    if event is None:
        return ""
    return f" {file} came with the bytes of {extract.name}, which were taken once: event {event}."


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
    """The lines of a file, ended by LF, CRLF or CR; an unended last line counts."""
    lines, last = 0, b"\n"
    for joined, block in _with_last(blocks(content, content.text_start, BLOCK_BYTES)):
        returns = block.count(b"\r") - joined.count(b"\r\n")
        lines += block.count(b"\n") + returns
        last = block[-1:]
    return lines + (last not in (b"\n", b"\r"))


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Each piece, preceded by a copy that begins with the last byte of the piece before."""
    before = b""
    for piece in pieces:
        yield before + piece, piece
        before = piece[-1:]


def prove_ledger(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if the outcome of a batch is not what the audit trail says."""
    altered = [*altered_ledger(connection, [batch_id], WHOLE), *unrepaired(connection, [batch_id])]
    if altered:
        raise EvidenceBroken(
            f"Somebody altered in the database what became of batch {batch_id}, and nothing of it "
            f"is shown: {first_of(altered, FAULTS_NAMED, by='; ')}. `recon audit verify` tells "
            f"more. {PUT_BACK}"
        )


def prove_rows(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if any row of a batch, or its outcome, was altered."""
    with one_moment(connection):
        prove_staged(connection, batch_id)
        prove_ledger(connection, batch_id)
