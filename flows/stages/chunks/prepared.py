"""Chunks with their verdicts, written with their receipts in one transaction."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from connectors.errors import CleanRowsBroken, ConservationError
from connectors.files.chunks.chunk import Chunk
from connectors.files.disk.spool import spool_path, write_spool
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.postgres.batches import ledger
from connectors.postgres.batches.clues import COMMENTS, LEFT_OUT, VALUELESS
from connectors.postgres.batches.findings import REASONS_OF
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Extract, Receipt
from connectors.postgres.batches.staging import CopyRows
from connectors.recovery import reach
from connectors.settings import Limits, Settings
from flows.stages.chunk_ranges import STAGE
from flows.stages.chunks.write_out import WrittenChunk, write_out
from flows.stages.comparing.currency_names import Names
from flows.steps.validate.key_filter import At, Clues, KeyFilter
from flows.steps.validate.omitted_secrets import FindRepaired
from schemas.derived.pandera_schemas import SchemaBroken
from schemas.tables import EXTRACTS


@dataclass(frozen=True, slots=True)
class Prepared:
    extract: Extract
    number: int
    """Number of the chunk in its extract."""
    chunk: Chunk
    sha256: str
    written: WrittenChunk
    """Its rows and verdicts; without copies if its rows are written with those of other chunks."""
    clues: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What its receipt says besides its counts, by record kind."""

    @property
    def at(self) -> At:
        return self.extract.id, self.number

    @property
    def is_heavy(self) -> bool:
        """Whether so many of its rows are wrong that their reasons take most of the memory."""
        reasons = (one for of in self.written.validated.reasons.values() for one in of)
        return sum(int(one[2]) for one in reasons) * 4 > self.chunk.height

    def look(self, key_filter: KeyFilter) -> None:
        """Gather the clues; chunks have to do this in their order."""
        self.tell(
            {
                record: key_filter.add(EXTRACTS[record], keys, self.at)
                for record, keys in self.written.keys.items()
            }
        )

    def tell(self, found: Mapping[str, Clues]) -> None:
        """Take over the key filter's clues, by record kind, and add the chunk's own."""
        validated = self.written.validated
        for record, clues in found.items():
            self.clues[record] = {**clues}
            if validated.left_out:
                self.clues[record][LEFT_OUT] = validated.left_out
        for clue, lines in ((VALUELESS, self.chunk.valueless), (COMMENTS, self.chunk.comments)):
            if lines.lines:
                # These lines belong to the file. If it has several kinds of records, one of them
                # tells; if it has no record at all, the kind that it is read as.
                assert self.extract.record is not None
                record = next(iter(found or validated.totals), self.extract.record)
                self.clues.setdefault(record, {})[clue] = lines
        for record, reasons in validated.reasons.items():
            self.clues.setdefault(record, {})[REASONS_OF] = reasons
        self.written.keys.clear()

    def receipt(self) -> Receipt:
        by_record = self.written.validated.totals
        counts: Counter[str] = Counter()
        for states in by_record.values():
            counts.update({state: totals.rows for state, totals in states.items()})
        start, end = self.chunk.start, self.chunk.end
        return Receipt(
            batch_id=self.extract.batch_id,
            extract_id=self.extract.id,
            stage=STAGE,
            chunk=self.number,
            first_record=start.record,
            last_record=end.record - 1,
            byte_start=start.byte,
            byte_end=end.byte,
            last_line=end.line - 1,
            inside=end.inside,
            sha256=self.sha256,
            counts=counts,
            totals={
                record: {state: totals.as_receipt() for state, totals in states.items()}
                for record, states in by_record.items()
            },
            clues=self.clues,
        )


class ReadChunk(NamedTuple):
    extract: Extract
    header: Header
    number: int
    """Number of the chunk in its extract."""
    chunk: Chunk
    names: Names
    """The codes of its records' currencies."""


def prepare_chunk(
    limits: Limits, profile: Profile, repaired: FindRepaired, read: ReadChunk
) -> Prepared:
    """Validate a chunk and write it out.

    Raises ConservationError if a byte of the chunk is in no record, and CleanRowsBroken if rows
    that were found clean break the schema of their record.
    """
    extract, header, number, chunk, names = read
    if not chunk.conserved():
        raise ConservationError(
            f"{extract.name}: bytes {chunk.start.byte} to {chunk.end.byte} are not all in a "
            "record. This is a fault of the program; nothing of the chunk was staged."
        )
    try:
        written = write_out(
            chunk, header, profile, extract, repaired, strict_bytes=limits.strict_bytes, names=names
        )
    except SchemaBroken as broken:
        raise CleanRowsBroken(
            f"{extract.name}: {broken} This is a fault of the program; nothing of the chunk was "
            "staged, and the delivery is kept. Report it; in a version that has it fixed, "
            f"`recon rerun {extract.batch_id}` goes on where this run stopped."
        ) from None
    return Prepared(extract, number, chunk, sha256_of(chunk), written)


def sha256_of(chunk: Chunk) -> str:
    return hashlib.sha256(memoryview(chunk.block)[: chunk.records.consumed]).hexdigest()


def write_once(settings: Settings, prepared: Prepared, lease: Lease) -> int:
    """Write a chunk; returns its rows, or 0 if another worker has written it.

    A worker that was taken for dead may only have been slow, and its chunks went to another one;
    the key of the receipts lets only one of the two transactions commit.
    """
    extract, number = prepared.extract, prepared.number
    try:
        write_chunks(settings, [prepared], prepared.written.copies, lease)
    except psycopg.errors.UniqueViolation:
        receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
        if (number, prepared.sha256) not in {(one.chunk, one.sha256) for one in receipts}:
            raise
        return 0
    return prepared.chunk.height


def write_chunks(
    settings: Settings, chunks: Sequence[Prepared], copies: Sequence[CopyRows], lease: Lease
) -> None:
    """Write chunks, whose rows are in `copies`, with their receipts; all or nothing."""
    for prepared in chunks:
        if (rows := prepared.written.spool) is not None:
            (clues,) = prepared.clues.values()
            extract = prepared.extract
            path = spool_path(settings, extract.batch_id, extract.id, prepared.number)
            clues["spool"] = write_spool(path, rows)  # The receipt says what is kept there.
            reach("spool")
    with lease.transaction() as connection:
        # Rows and receipts are lost together or not at all; the commit of the state after the last
        # chunk is durable, and everything before it with it.
        connection.execute("SET LOCAL synchronous_commit = off")
        for copied in copies:
            copied.send(connection)
        reach("copy")
        outcomes = [
            (lease.batch_id, prepared.extract.id, *outcome)
            for prepared in chunks
            for outcome in prepared.written.validated.outcomes
        ]
        if outcomes:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO outcome (batch_id, extract_id, record_number, verdict) "
                    "VALUES (%s, %s, %s, %s)",
                    outcomes,
                )
        lease.add_receipts([prepared.receipt() for prepared in chunks])
        reach("receipt")
    reach("chunk")
