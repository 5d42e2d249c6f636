"""What proves the row that the database has: the bytes of its kept file, and the hash of the rows.

The file says text and place of the record with its number. What was read of it, its fields and what
is wrong with them, is in the hash that the audit trail has of all rows that were staged with it.
"""

from collections.abc import Mapping
from typing import Any

import psycopg

from connectors.errors import EvidenceBroken
from connectors.files.reader import first_place, read_chunks
from connectors.postgres import ledger
from connectors.postgres.corrections import unrepaired
from connectors.postgres.digests import are_as_staged
from connectors.postgres.evidence import WHOLE, altered_ledger
from connectors.postgres.ledger import Batch, Extract
from flows.stages.chunk_ranges import STAGE, place_after
from flows.stages.kept import is_cleared, open_archived, removed_on
from flows.stages.terms import restored_profile
from flows.stages.workspace import Workspace
from schemas.counting import first_of
from schemas.derived.sql_names import staged_name
from schemas.tables import EXTRACTS

FAULTS_TOLD = 3
"""Of what was altered, an error tells so many; it counts the others."""
HASHED = "the hash of all rows that were staged with it"
_POSITION = ("byte_start", "byte_end", "first_line", "last_line")
_TEXT = ("data", "raw")


def prove_ledger(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken where what became of a batch is not what the audit trail says."""
    altered = [
        *altered_ledger(connection, [batch_id], WHOLE),
        *unrepaired(connection, [batch_id]),
    ]
    if altered:
        raise EvidenceBroken(
            f"Somebody altered in the database what became of batch {batch_id}, and nothing of it "
            f"is shown: {first_of(altered, FAULTS_TOLD, by='; ')}. `recon audit verify` tells "
            f"more. {_REMEDY}"
        )


class RowProof:
    """Proves rows of one batch."""

    def __init__(self, workspace: Workspace, connection: psycopg.Connection, batch: Batch) -> None:
        self._workspace, self._connection, self._batch = workspace, connection, batch

    def of(self, extract: Extract, row: Any) -> str:
        """What proves a row, in words; raises EvidenceBroken where it is another one."""
        cleared = is_cleared(self._workspace, extract)
        if not cleared:
            self._hold_against_file(extract, row)
        table = EXTRACTS[row.record]
        hashed = are_as_staged(self._connection, table, extract.batch_id, extract.id)
        if hashed is False:
            raise EvidenceBroken(
                f"The rows of {extract.name} of batch {extract.batch_id} (table "
                f"{staged_name(table)}) are not those that were staged: somebody altered them in "
                f"the database, and nothing tells which. Record {row.record_number} is not shown. "
                f"{_REMEDY}"
            )
        if not cleared:
            rest = f"{HASHED} proves" if hashed else "nothing proves"
            return f"The kept file proves its text and place; {rest} the rest."
        assert extract.cleared_at is not None
        gone = removed_on(extract.cleared_at)
        return f"{HASHED.capitalize() if hashed else 'Nothing'} proves it. {gone}"

    def _hold_against_file(self, extract: Extract, row: Any) -> None:
        about = f"{extract.name} of batch {extract.batch_id}"
        there = self._in_file(extract, row.record_number)
        if there is None:
            raise EvidenceBroken(
                f"{about} has no record {row.record_number}, and the database has one: somebody "
                f"added it there, and it is not shown. {_REMEDY}"
            )
        # The text of a row that is kept by reference is read from the file.
        kept = row.data is not None or row.raw is not None
        if kept and any(getattr(row, name) != there[name] for name in _TEXT):
            raise EvidenceBroken(
                f"{about} says another text in record {row.record_number} than the database: "
                f"somebody altered that there, and it is not shown. {_REMEDY}"
            )
        for name in _POSITION:
            if getattr(row, name) != there[name]:
                raise EvidenceBroken(
                    f"{about} has record {row.record_number} elsewhere than the database says "
                    f"({name} {there[name]}, and not {getattr(row, name)}): somebody altered that "
                    f"there, and it is not shown. {_REMEDY}"
                )

    def _in_file(self, extract: Extract, number: int) -> Mapping[str, Any] | None:
        """The record of a number as the kept file has it, read from the chunk before it on."""
        content, header = open_archived(self._workspace, extract, restored_profile(self._batch))
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


_REMEDY = "Put back what stood there; or undo the batch and import its files again."
