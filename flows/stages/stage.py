"""Stage: every row of every extract verbatim into PostgreSQL, with its position and verdict.

A chunk's rows and its receipt are one transaction. While two chunks are written, the next one is
read and checked. Small extracts in sequence share a transaction; each has its receipt. After a
crash, a run continues at the first chunk without a receipt; there may be gaps behind it.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from connectors.errors import ExtractRefused
from connectors.files.chunks.reader import read_chunks
from connectors.files.incoming.manifest import incomplete
from connectors.files.incoming.manifest_entries import read_entry
from connectors.files.layout.header_again import OtherHeader
from connectors.files.profiles.profile import Profile
from connectors.memory import keep_arrays
from connectors.postgres.batches import ledger
from connectors.postgres.batches.digests import keep_digests
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Extract, Receipt, State
from connectors.postgres.batches.staging import withdraw_staged
from connectors.postgres.database import analyse
from connectors.recovery import reach
from flows.stages.chunk_ranges import STAGE, ChunkRange, first_gap, missing, take_back_misfits
from flows.stages.chunks.prepared import Prepared, ReadChunk, prepare_chunk, write_once
from flows.stages.chunks.stage_together import in_groups, stage_together, staged_whole
from flows.stages.comparing.currency_names import currency_names
from flows.stages.receiving.kept import open_to_stage
from flows.stages.receiving.stated import tied_in_batch
from flows.stages.receiving.terms import restored_profile, with_secrets
from flows.stages.rows.repaired import RepairedRows
from flows.stages.side_by_side import CONNECTIONS, side_by_side
from flows.stages.workspace import Workspace
from flows.steps.validate.key_filter import KeyFilter
from schemas.derived.sql_names import staged_name
from schemas.tables import EXTRACTS

READ_AHEAD = 2
"""Chunks in memory besides those being written: one is validated, one waits for that."""
log = logging.getLogger("recon.stage")


class Span(NamedTuple):
    """The position of an extract within the bytes of its batch, for progress."""

    before: int
    total: int


def stage(workspace: Workspace, lease: Lease) -> bool:
    """Stage all readable extracts of the batch; rows that are staged already stay as they are.

    Returns whether anything was left to do: only then has this run hashed the staged rows.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.RECEIVED:
        return False
    profile = restored_profile(batch)
    extracts = [
        extract
        for extract in ledger.list_extracts(lease.connection, lease.batch_id)
        if extract.refused is None
    ]
    begun = ledger.begun_extracts(lease.connection, lease.batch_id)
    whole = staged_whole(workspace, extracts, begun, profile)
    total = sum(extract.bytes or 0 for extract in extracts)
    done = 0
    key_filter = KeyFilter()
    for group in in_groups(extracts, begun, whole, workspace.settings.limits):
        refusals: dict[int, ExtractRefused] = {}
        if len(group) > 1:
            workspace.progress(STAGE, done, total)
            refusals = stage_together(workspace, lease, group, whole, profile, key_filter)
        else:
            if group[0].id in begun:
                key_filter.forget()  # Some or all of its chunks were staged before.
            span = Span(done, total)
            try:
                stage_extract(workspace, lease, group[0], profile, span, key_filter)
            except ExtractRefused as refusal:
                refusals[group[0].id] = refusal
        for extract, receipts in _staged(lease, group):
            _tell(extract, receipts)
            wrong = refusals.get(extract.id) or _not_as_stated(extract, profile, receipts)
            if wrong:
                _refuse(lease, extract, receipts, wrong)
                key_filter.forget()
        done += sum(extract.bytes or 0 for extract in group)
    workspace.progress(STAGE, total, total)
    tables = ledger.staged_tables(lease.connection, lease.batch_id)
    analyse(lease.connection, *map(staged_name, tables))
    with lease.transaction():
        kept = keep_digests(lease, tables)
        lease.set_state(State.STAGED, detail=kept)
    reach("stage")
    return True


def stage_extract(
    workspace: Workspace,
    lease: Lease,
    extract: Extract,
    profile: Profile,
    span: Span,
    key_filter: KeyFilter,
    chunk_range: ChunkRange | None = None,
    at_once: int = CONNECTIONS,
) -> int:
    """Stage the chunks of a range, or of the extract, that have no receipt; returns their rows.

    Raises ExtractRefused if a header with other columns is among them. Chunks before it are staged;
    its own chunk gets no receipt, so that every later reader of the file meets that line.
    """
    keep_arrays()
    profile = with_secrets(lease.connection, extract.batch_id, profile)
    content, header = open_to_stage(workspace, extract, profile)
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
    repaired = RepairedRows(workspace, ledger.find_batch(lease.connection, lease.batch_id))
    prepare = partial(prepare_chunk, limits, profile, repaired)
    names = currency_names(workspace.settings, header, profile)
    other = list[OtherHeader]()

    def read() -> Iterator[ReadChunk]:
        for number, chunk in chunks:
            if chunk.other_header:
                other.append(chunk.other_header)
                return
            yield ReadChunk(extract, header, number, chunk, names)

    def writes(reader: ThreadPoolExecutor) -> Iterator[Callable[[Lease], int]]:
        follows = chunk_range.first
        for prepared in _in_order(reader, prepare, read()):
            if prepared.number != follows:
                key_filter.forget()
            prepared.look(key_filter)
            follows = prepared.number + 1
            yield partial(write_once, workspace.settings, prepared)
            workspace.progress(STAGE, span.before + prepared.chunk.end.byte, span.total)

    with ThreadPoolExecutor(1) as reader:
        rows = sum(side_by_side(workspace.database, lease, writes(reader), at_once))
    if other:
        raise other[0].refusal(extract.name)
    return rows


def _staged(
    lease: Lease, extracts: Sequence[Extract]
) -> Iterator[tuple[Extract, Sequence[Receipt]]]:
    """Extracts with the receipts of their chunks."""
    numbers = [extract.id for extract in extracts]
    receipts = ledger.list_receipts(
        lease.connection, lease.batch_id, STAGE, numbers, with_clues=False
    )
    of = ledger.by_extract(receipts)
    yield from ((extract, of[extract.id]) for extract in extracts)


def _tell(extract: Extract, receipts: Sequence[Receipt]) -> None:
    counts: Counter[str] = Counter()
    for receipt in receipts:
        counts.update(receipt.counts)
    counted = ", ".join(f"{rows:,} {verdict}" for verdict, rows in sorted(counts.items()))
    log.info("%s: %s", extract.name, counted or "no rows")


def _not_as_stated(
    extract: Extract, profile: Profile, receipts: Sequence[Receipt]
) -> ExtractRefused | None:
    """The refusal of a file that does not match its manifest; None if it does."""
    tied = tied_in_batch(extract, profile, receipts)
    if tied is None or not tied.is_refused:
        return None
    assert extract.manifest is not None
    return incomplete(read_entry(extract.manifest), extract.name, tied.details)


def _refuse(
    lease: Lease, extract: Extract, receipts: Sequence[Receipt], refusal: ExtractRefused
) -> None:
    """Refuse a file, and take back those of its rows that are staged."""
    with lease.transaction() as connection:
        for record in {record for receipt in receipts for record in receipt.totals}:
            withdraw_staged(connection, EXTRACTS[record], extract.id)
        ledger.refuse_extract(connection, extract, refusal)
    log.warning("Refused: %s", refusal)


def _in_order(
    reader: ThreadPoolExecutor,
    prepare: Callable[[ReadChunk], Prepared],
    chunks: Iterator[ReadChunk],
) -> Iterator[Prepared]:
    """Chunks prepared while the next ones are split and earlier ones are written.

    After a heavy chunk nothing is read ahead: its reasons are many times larger than the chunk, and
    writing them out and sending them takes both cores.
    """
    waiting: deque[Future[Prepared]] = deque()
    ahead = READ_AHEAD
    for read in chunks:
        waiting.append(reader.submit(prepare, read))
        while len(waiting) >= ahead:
            prepared = waiting.popleft().result()
            ahead = 1 if prepared.is_heavy else READ_AHEAD
            yield prepared
    for one in waiting:
        yield one.result()
