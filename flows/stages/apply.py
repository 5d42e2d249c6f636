"""Apply: the clean rows of a batch into the database, range by range, each with its receipt."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors import ledger
from connectors.apply import Applied, Range, apply_rows, lock_target
from connectors.corrections import settle_corrections
from connectors.database import analyse, summarise
from connectors.ledger import Lease, Receipt, State
from connectors.settings import Settings
from connectors.spool import Spooled, spool_path
from flows.stages.check import staged_tables
from flows.stages.receive import restored_profile
from flows.stages.recovery import reach
from flows.stages.workspace import Workspace
from flows.steps.judge import READY
from schemas.field import Table
from schemas.sql import staged_name
from schemas.tables import INSERT_BATCH_DATA
from schemas.views import LISTED, apply_stage

log = logging.getLogger("recon.apply")
ROWS_AT_ONCE = 1_000_000
"""A range is joined with the target as one: many small ones would read the target many times."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Clean rows of one record kind in consecutive chunks of one extract."""

    table: Table
    extract_id: int
    chunk: int
    first: int
    last: int
    rows: int
    spooled: tuple[Spooled, ...] = ()
    """Chunks whose tuples were kept."""
    spans: tuple[tuple[int, int] | None, ...] = ()
    """Of each chunk: the least and the greatest value of the key's first column."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The same of all chunks; None where that of one is not known."""
        known = [span for span in self.spans if span is not None]
        if len(known) < len(self.spans):
            return None
        return min(low for low, _ in known), max(high for _, high in known)


def apply(workspace: Workspace, lease: Lease) -> None:
    """Apply what has no receipt yet; a run that died goes on at the next range.

    Rows that were read from the service are told to be listed and change no target.
    """
    if ledger.find_batch(lease.connection, lease.batch_id).state is not State.CHECKED:
        return
    staged = ledger.list_receipts(lease.connection, lease.batch_id, "stage")
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    only_listed = restored_profile(batch).compare_only
    portions = [
        portion
        for table in staged_tables(lease)
        if only_listed or table is not INSERT_BATCH_DATA
        for portion in _portions(table, staged, workspace.settings)
    ]
    total = sum(portion.rows for portion in portions)
    done = 0
    if total > ROWS_AT_ONCE:
        summarise(lease.connection, *{staged_name(portion.table) for portion in portions})
    for portion in portions:
        _apply_portion(lease, portion, only_listed=only_listed)
        done += portion.rows
        log.info("%s: %s of %s rows applied", portion.table.title, f"{done:,}", f"{total:,}")
        workspace.progress("apply", done, total)
    written = set() if only_listed else {portion.table.name for portion in portions}
    analyse(lease.connection, "outcome", *written)
    with lease.transaction() as connection:
        settle_corrections(connection, lease.batch_id)
        lease.set_state(State.MERGED)
    reach("applied")


def _portions(table: Table, staged: Sequence[Receipt], settings: Settings) -> Iterator[Portion]:
    """The same receipts always give the same ranges, so their receipts can be found again."""
    open_one: Portion | None = None
    for receipt in staged:
        rows = int(receipt.totals.get(table.name, {}).get(READY, {}).get("rows", 0))
        if not rows:
            continue
        first = receipt.first_record
        if open_one and (
            open_one.extract_id != receipt.extract_id or open_one.rows + rows > ROWS_AT_ONCE
        ):
            yield open_one
            open_one = None
        start = open_one or Portion(table, receipt.extract_id, receipt.chunk, first, first, 0)
        open_one = Portion(
            table,
            start.extract_id,
            start.chunk,
            start.first,
            receipt.last_record,
            start.rows + rows,
            (*start.spooled, *_spooled(table, receipt, rows, settings)),
            (*start.spans, _span(table, receipt)),
        )
    if open_one:
        yield open_one


def _spooled(table: Table, receipt: Receipt, rows: int, settings: Settings) -> Iterator[Spooled]:
    sha256 = receipt.clues.get(table.name, {}).get("spool")
    if sha256:
        path = spool_path(settings, receipt.batch_id, receipt.extract_id, receipt.chunk)
        yield Spooled(path, sha256, receipt.first_record, receipt.last_record, rows)


def _span(table: Table, receipt: Receipt) -> tuple[int, int] | None:
    span = receipt.clues.get(table.name, {}).get("span")
    return None if span is None else (span[0], span[1])


def _apply_portion(lease: Lease, portion: Portion, *, only_listed: bool) -> None:
    stage = apply_stage(portion.table)
    with lease.transaction() as connection:
        found = ledger.list_receipts(connection, lease.batch_id, stage, portion.extract_id)
        if any(receipt.chunk == portion.chunk for receipt in found):
            return
        if only_listed:
            applied = Applied(Counter({LISTED: portion.rows}), LISTED)
        else:
            lock_target(connection, portion.table)
            rows = Range(lease.batch_id, portion.extract_id, portion.first, portion.last)
            applied = apply_rows(connection, portion.table, rows, portion.spooled, portion.span)
        reach("apply")
        lease.add_receipt(
            Receipt(
                batch_id=lease.batch_id,
                extract_id=portion.extract_id,
                stage=stage,
                chunk=portion.chunk,
                first_record=portion.first,
                last_record=portion.last,
                counts=applied.counts,
                totals={},
                verdict=applied.verdict,
            )
        )
    reach("apply-chunk")
