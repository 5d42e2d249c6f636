"""Apply: the clean rows of a batch into the database, range by range, each with its receipt."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from connectors.files.profiles.profile import Profile
from connectors.postgres.auditing.batch_hashes import ledger_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.apply import (
    CONSTRAINT_ERRORS,
    NOT_NEW,
    Applied,
    add_rows,
    apply_extracts,
    apply_rows,
    lock_target,
    may_meet,
)
from connectors.postgres.batches.corrections import settle_corrections
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Receipt, State
from connectors.postgres.batches.ranges import WholeExtracts
from connectors.postgres.batches.undo import refuse_if_corrected
from connectors.postgres.batches.written_over import note_second_records
from connectors.postgres.database import analyse, summarise
from connectors.recovery import reach
from flows.stages.apply_ranges import ApplyRange, cut_ranges, in_groups, span_around
from flows.stages.check import reject_taken
from flows.stages.receiving.kept import prove_staged
from flows.stages.receiving.terms import restored_profile
from flows.stages.side_by_side import side_by_side
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity
from schemas.derived.sql_names import staged_name
from schemas.derived.views import LISTED, apply_stage
from schemas.field import Table
from schemas.guards.ledger_digests import APPLIED
from schemas.tables import INSERT_BATCH_DATA

log = logging.getLogger("recon.apply")


def apply(workspace: Workspace, lease: Lease, *, proven: bool = False) -> None:
    """Apply ranges without a receipt; after a crash the next run applies what is left.

    Rows read from the service are marked as listed and change no target. `proven`: this process has
    just staged all rows, or compared them with their hashes; otherwise that is done first.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.CHECKED:
        return
    if not proven:
        prove_staged(lease.connection, batch.id)
    # An earlier version allowed corrections before this: applying would overwrite the repairs. No
    # further correction can arrive now, since this batch is not applied.
    refuse_if_corrected(lease.connection, batch.id, "applied")
    profile = restored_profile(batch)
    only_listed = profile.compare_only
    guarded = None if batch.corrects is None else profile
    staged = ledger.list_receipts(lease.connection, lease.batch_id, "stage")
    tables = [
        table for table in ledger.tables_of(staged) if only_listed or table is not INSERT_BATCH_DATA
    ]
    apply_ranges = {}
    for table in tables:
        applied = ledger.list_receipts(
            lease.connection, lease.batch_id, apply_stage(table), with_clues=False
        )
        apply_ranges[table] = [*cut_ranges(table, staged, applied, workspace.settings)]
    done = _Done(workspace, sum(one.rows for left in apply_ranges.values() for one in left))
    for table, left in apply_ranges.items():
        if only_listed:
            _list(lease, left, done)
        else:
            _apply_table(workspace, lease, table, left, done, guarded=guarded)
    analyse(lease.connection, "outcome", *(table.name for table in tables if not only_listed))
    with lease.transaction() as connection:
        if batch.corrects is not None:
            note_second_records(connection, lease.batch_id)
        lease.set_state(State.MERGED, detail=ledger_detail(connection, lease.batch_id, APPLIED))
        settle_corrections(connection, lease.batch_id)
    reach("applied")


@dataclass(slots=True)
class _Done:
    """The number of applied rows, for progress."""

    workspace: Workspace
    total: int
    rows: int = 0

    def add(self, *apply_ranges: ApplyRange) -> None:
        self.rows += sum(one.rows for one in apply_ranges)
        rows_of_total = f"{self.rows:,} of {quantity(self.total, 'row', grouped)}"
        log.info("%s: %s applied", apply_ranges[0].table.title, rows_of_total)
        self.workspace.progress("apply", self.rows, self.total)


def _apply_table(
    workspace: Workspace,
    lease: Lease,
    table: Table,
    apply_ranges: Sequence[ApplyRange],
    done: _Done,
    *,
    guarded: Profile | None,
) -> None:
    """Insert what is certain to be new, two ranges at a time, then apply the rest in order.

    `guarded`: the profile of a correction, which limits what its rows may overwrite; else None.
    """
    new = [
        one
        for one in apply_ranges
        if one.spooled and not may_meet(lease.connection, table, one.span)
    ]
    refused = []
    inserts = (partial(_insert, one, guarded) for one in new)
    for apply_range, inserted in side_by_side(workspace.database, lease, inserts):
        if inserted:
            done.add(apply_range)
        else:
            refused.append(apply_range)
    left = [one for one in apply_ranges if one not in new or one in refused]
    if len(left) > 1:
        summarise(lease.connection, staged_name(table))
    for group in in_groups(left):
        if guarded or len(group) == 1 or not _apply_together(lease, group, done):
            for apply_range in group:
                _apply_range(lease, apply_range, done, guarded)


def _apply_range(
    lease: Lease, apply_range: ApplyRange, done: _Done, guarded: Profile | None
) -> None:
    table, where = apply_range.table, apply_range.where
    with lease.transaction() as connection:
        lock_target(connection, table)
        if guarded:
            reject_taken(connection, table, lease.batch_id, guarded, where)
        applied = apply_rows(connection, table, where, apply_range.spooled, apply_range.span)
        _add_receipts(lease, [(apply_range, applied)])
    reach("apply-chunk")
    done.add(apply_range)


def _apply_together(lease: Lease, group: Sequence[ApplyRange], done: _Done) -> bool:
    """Apply small ranges in one transaction; False if the database refused a row, and so all."""
    table = group[0].table
    where = WholeExtracts(lease.batch_id, tuple(one.where.extract_id for one in group))
    span = span_around([one.span for one in group])
    try:
        with lease.transaction() as connection:
            lock_target(connection, table)
            applied = apply_extracts(connection, table, where, span)
            _add_receipts(lease, [(one, applied[one.where.extract_id]) for one in group])
    except CONSTRAINT_ERRORS:
        return False
    reach("apply-chunk")
    done.add(*group)
    return True


def _insert(
    apply_range: ApplyRange, guarded: Profile | None, lease: Lease
) -> tuple[ApplyRange, bool]:
    """Insert new rows; False if a row is not new, and then none of them is in the target."""
    table, where = apply_range.table, apply_range.where
    try:
        with lease.transaction() as connection:
            if guarded:
                reject_taken(connection, table, lease.batch_id, guarded, where)
            applied = add_rows(connection, table, where, apply_range.spooled)
            _add_receipts(lease, [(apply_range, applied)])
    except NOT_NEW:
        return apply_range, False
    reach("apply-chunk")
    return apply_range, True


def _list(lease: Lease, apply_ranges: Iterable[ApplyRange], done: _Done) -> None:
    for group in in_groups(apply_ranges):
        listed = [(one, Applied(Counter({LISTED: one.rows}), LISTED)) for one in group]
        with lease.transaction():
            _add_receipts(lease, listed)
        reach("apply-chunk")
        done.add(*group)


def _add_receipts(lease: Lease, applied: Iterable[tuple[ApplyRange, Applied]]) -> None:
    reach("apply")
    lease.add_receipts(
        [
            Receipt(
                batch_id=one.where.batch_id,
                extract_id=one.where.extract_id,
                stage=apply_stage(one.table),
                chunk=one.chunk,
                first_record=one.where.first,
                last_record=one.where.last,
                counts=outcome.counts,
                totals={},
                verdict=outcome.verdict,
            )
            for one, outcome in applied
        ]
    )
