"""Stage: every row of every extract verbatim into PostgreSQL, with its position and verdict.

Chunk by chunk: rows and receipt in one transaction. While two chunks are written the next one is
read and checked. A run that died goes on at the first chunk without a receipt, and may have left
such gaps.
"""

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import psycopg

from connectors.errors import CleanRowsBroken, ConservationError
from connectors.files.chunk import Chunk
from connectors.files.header import Header
from connectors.files.manifest import incomplete, read_entry
from connectors.files.profile import Profile
from connectors.files.reader import read_chunks
from connectors.files.spool import spool_path, write_spool
from connectors.memory import keep_arrays
from connectors.postgres import ledger
from connectors.postgres.digests import keep_digests
from connectors.postgres.findings import REASONS_OF
from connectors.postgres.lease import Lease
from connectors.postgres.ledger import Extract, Receipt, State
from connectors.postgres.staging import CopyRows, withdraw_staged
from connectors.recovery import reach
from flows.stages.check import staged_tables
from flows.stages.chunk_ranges import STAGE, ChunkRange, first_gap, missing, take_back_misfits
from flows.stages.currency_names import Names, currency_names
from flows.stages.kept import open_archived
from flows.stages.rows.repaired import RepairedRows
from flows.stages.side_by_side import LANES, side_by_side
from flows.stages.stated import tied_in_batch
from flows.stages.terms import restored_profile, with_secrets
from flows.stages.workspace import Workspace
from flows.stages.write_out import write_out
from flows.steps.validate.chunk import COMMENTS, EXCLUDED, VALUELESS, Validated
from flows.steps.validate.key_filter import At, KeyFilter
from flows.steps.validate.omitted_secrets import FindRepaired
from schemas.derived.pandera_schemas import SchemaBroken
from schemas.tables import EXTRACTS

READ_AHEAD = 2
"""Chunks in memory beside those that are being written: one is validated, one waits for it."""
log = logging.getLogger("recon.stage")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be written."""

    chunk: Chunk
    validated: Validated
    copies: Sequence[CopyRows]
    sha256: str
    keys: dict[str, pl.DataFrame]
    """What `KeyFilter` looks at, by record kind."""
    spool: list[pl.DataFrame] | None
    """All clean rows as the target takes them, where they could be written out in binary."""
    clues: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where later stages need to look, by record kind."""

    def look(self, key_filter: KeyFilter, at: At) -> None:
        """Gather the clues; chunks have to do so in their order."""
        for record, keys in self.keys.items():
            self.clues[record] = key_filter.add(EXTRACTS[record], keys, at)
            if self.validated.left_out:
                self.clues[record][EXCLUDED] = self.validated.left_out
            if self.chunk.valueless.lines:
                self.clues[record][VALUELESS] = self.chunk.valueless
        if self.chunk.comments.lines:
            # They are of the file: where it has several kinds of records, one of them tells.
            record = next(iter(self.keys or self.validated.totals))
            self.clues.setdefault(record, {})[COMMENTS] = self.chunk.comments
        for record, reasons in self.validated.reasons.items():
            self.clues.setdefault(record, {})[REASONS_OF] = reasons
        self.keys.clear()


class Span(NamedTuple):
    """Where an extract lies within the bytes of its batch, for the progress."""

    before: int
    total: int


def stage(workspace: Workspace, lease: Lease) -> None:
    """Stage all readable extracts of the batch; what is staged already is left as it is."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.RECEIVED:
        return
    profile = restored_profile(batch)
    extracts = ledger.list_extracts(lease.connection, lease.batch_id)
    total = sum(extract.bytes or 0 for extract in extracts if extract.refused is None)
    done = 0
    key_filter = KeyFilter()
    for extract in extracts:
        if extract.refused is None:
            stage_extract(workspace, lease, extract, profile, Span(done, total), key_filter)
            _tell(lease, extract)
            if _is_not_as_stated(lease, extract, profile):
                key_filter.forget()
            done += extract.bytes or 0
    workspace.progress(STAGE, total, total)
    with lease.transaction() as connection:
        kept = keep_digests(connection, staged_tables(lease), batch.id, lease.epoch)
        lease.set_state(State.STAGED, detail=kept)
    reach("stage")


def stage_extract(
    workspace: Workspace,
    lease: Lease,
    extract: Extract,
    profile: Profile,
    span: Span,
    key_filter: KeyFilter,
    chunk_range: ChunkRange | None = None,
    lanes: int = LANES,
) -> int:
    """Stage the chunks of a range that have no receipt, or all of them; returns their rows."""
    keep_arrays()
    profile = with_secrets(lease.connection, extract.batch_id, profile)
    content, header = open_archived(workspace, extract, profile)
    limits = workspace.settings.limits
    block_bytes, strict_bytes = limits.block_bytes, limits.strict_bytes
    if chunk_range is None:
        receipts = take_back_misfits(lease, extract, content, header, block_bytes)
        chunk_range = first_gap(receipts, header)
    else:
        receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
    chunks = missing(
        read_chunks(content, header, chunk_range.place, block_bytes, strict_bytes),
        chunk_range,
        receipts,
    )
    repaired = RepairedRows(workspace, lease.batch_id)
    names = currency_names(workspace.settings, header, profile)
    prepare = partial(prepare_chunk, header, profile, extract, repaired, names, strict_bytes)

    def writes(reader: ThreadPoolExecutor) -> Iterator[Callable[[Lease], int]]:
        follows = chunk_range.first
        for number, prepared in _in_order(reader, prepare, chunks):
            if number != follows:
                key_filter.forget()
            prepared.look(key_filter, (extract.id, number))
            follows = number + 1
            path = spool_path(workspace.settings, lease.batch_id, extract.id, number)
            yield partial(_write_once, extract, number, prepared, path)
            workspace.progress(STAGE, span.before + prepared.chunk.end.byte, span.total)

    with ThreadPoolExecutor(1) as reader:
        return sum(side_by_side(workspace.database, lease, writes(reader), lanes))


def _tell(lease: Lease, extract: Extract) -> None:
    counts: Counter[str] = Counter()
    for receipt in ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id):
        counts.update(receipt.counts)
    told = ", ".join(f"{rows:,} {verdict}" for verdict, rows in sorted(counts.items()))
    log.info("%s: %s", extract.name, told or "no rows")


def _is_not_as_stated(lease: Lease, extract: Extract, profile: Profile) -> bool:
    """Refuse the file, and take its rows back, when it is not what is stated of it."""
    tied = tied_in_batch(lease.connection, extract, profile)
    if tied is None or not tied.is_refused:
        return False
    assert extract.manifest is not None
    entry = read_entry(extract.manifest)
    receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
    with lease.transaction() as connection:
        for record in {record for receipt in receipts for record in receipt.totals}:
            withdraw_staged(connection, EXTRACTS[record], extract.id)
        ledger.refuse_extract(connection, extract, incomplete(entry, extract.name, tied.details))
    log.warning("%s: refused, it is not what %s says of it", extract.name, entry.manifest)
    return True


def _in_order(
    reader: ThreadPoolExecutor,
    prepare: Callable[[Chunk], Prepared],
    chunks: Iterator[tuple[int, Chunk]],
) -> Iterator[tuple[int, Prepared]]:
    """Chunks prepared while the next ones are split and those before are written."""
    waiting: deque[tuple[int, Future[Prepared]]] = deque()
    for number, chunk in chunks:
        waiting.append((number, reader.submit(prepare, chunk)))
        if len(waiting) == READ_AHEAD:
            first, prepared = waiting.popleft()
            yield first, prepared.result()
    for first, prepared in waiting:
        yield first, prepared.result()


def prepare_chunk(
    header: Header,
    profile: Profile,
    extract: Extract,
    repaired: FindRepaired,
    names: Names,
    strict_bytes: int,
    chunk: Chunk,
) -> Prepared:
    """A chunk validated and written out.

    Raises ConservationError if a byte of it is in no record, CleanRowsBroken if rows that were
    found clean are not what the schema of their record says.
    """
    settled = memoryview(chunk.block)[: chunk.records.consumed]
    if not chunk.conserved():
        raise ConservationError(
            f"{extract.name}: bytes {chunk.start.byte} to {chunk.end.byte} are not all in a "
            "record. This is a fault of the program; nothing of the chunk was staged."
        )
    try:
        written = write_out(
            chunk, header, profile, extract, repaired, strict_bytes=strict_bytes, names=names
        )
    except SchemaBroken as broken:
        raise CleanRowsBroken(
            f"{extract.name}: {broken} This is a fault of the program; nothing of the chunk was "
            "staged, and the delivery is kept. Report it; in a version that has it fixed, "
            f"`recon rerun {extract.batch_id}` goes on where this run stopped."
        ) from None
    sha256 = hashlib.sha256(settled).hexdigest()
    return Prepared(chunk, written.validated, written.copies, sha256, written.keys, written.spool)


def _write_once(extract: Extract, number: int, prepared: Prepared, path: Path, lease: Lease) -> int:
    """Write a chunk; returns its rows, or 0 when somebody else has written it.

    A worker that was taken for dead may have been slow, and its chunks were given to another one:
    the key of the receipts lets one of the two transactions commit.
    """
    try:
        _write(lease, extract, number, prepared, path)
    except psycopg.errors.UniqueViolation:
        receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
        if (number, prepared.sha256) not in {(one.chunk, one.sha256) for one in receipts}:
            raise
        return 0
    return prepared.chunk.height


def _spool(prepared: Prepared, path: Path) -> None:
    """Keep the rows of a chunk for the target; its receipt says what they are."""
    if prepared.spool is not None:
        (clues,) = prepared.clues.values()
        clues["spool"] = write_spool(path, prepared.spool)
        reach("spool")


def _write(lease: Lease, extract: Extract, number: int, prepared: Prepared, path: Path) -> None:
    chunk, validated = prepared.chunk, prepared.validated
    _spool(prepared, path)
    with lease.transaction() as connection:
        # The rows and their receipt are lost together or not at all; the state that follows the
        # last chunk is committed durably, and with it everything before.
        connection.execute("SET LOCAL synchronous_commit = off")
        for rows in prepared.copies:
            rows.send(connection)
        reach("copy")
        if validated.outcomes:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO outcome (batch_id, extract_id, record_number, verdict) "
                    "VALUES (%s, %s, %s, %s)",
                    [(lease.batch_id, extract.id, *told) for told in validated.outcomes],
                )
        counts: Counter[str] = Counter()
        for states in validated.totals.values():
            for state, totals in states.items():
                counts[state] += totals.rows
        end = chunk.end
        lease.add_receipt(
            Receipt(
                batch_id=lease.batch_id,
                extract_id=extract.id,
                stage=STAGE,
                chunk=number,
                first_record=chunk.start.record,
                last_record=end.record - 1,
                byte_start=chunk.start.byte,
                byte_end=end.byte,
                last_line=end.line - 1,
                inside=end.inside,
                sha256=prepared.sha256,
                counts=counts,
                totals={
                    record: {state: totals.as_json() for state, totals in states.items()}
                    for record, states in validated.totals.items()
                },
                clues=prepared.clues,
            )
        )
        reach("receipt")
    reach("chunk")
