"""Apply: the clean rows of a batch into the database, portion by portion, each with its receipt."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from connectors.postgres import ledger
from connectors.postgres.apply import NOT_NEW, Applied, add_rows, apply_rows, lock_target, may_meet
from connectors.postgres.corrections import settle_corrections
from connectors.postgres.database import analyse, summarise
from connectors.postgres.lease import Lease
from connectors.postgres.ledger import Receipt, State
from flows.stages.check import staged_tables
from flows.stages.portions import Portion, cut_portions
from flows.stages.recovery import reach
from flows.stages.side_by_side import side_by_side
from flows.stages.terms import restored_profile
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity
from schemas.derived.sql import staged_name
from schemas.derived.views import LISTED, apply_stage
from schemas.field import Table
from schemas.tables import INSERT_BATCH_DATA

log = logging.getLogger("recon.apply")


def apply(workspace: Workspace, lease: Lease) -> None:
    """Apply what has no receipt yet; a run that died goes on with what is left.

    Rows that were read from the service are told to be listed and change no target.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.CHECKED:
        return
    only_listed = restored_profile(batch).compare_only
    tables = [
        table for table in staged_tables(lease) if only_listed or table is not INSERT_BATCH_DATA
    ]
    portions = {table: _left(workspace, lease, table) for table in tables}
    done = _Done(workspace, sum(one.rows for left in portions.values() for one in left))
    for table, left in portions.items():
        if only_listed:
            _list(lease, left, done)
        else:
            _apply_table(workspace, lease, table, left, done)
    analyse(lease.connection, "outcome", *(table.name for table in tables if not only_listed))
    with lease.transaction() as connection:
        settle_corrections(connection, lease.batch_id)
        lease.set_state(State.MERGED)
    reach("applied")


def _left(workspace: Workspace, lease: Lease, table: Table) -> list[Portion]:
    staged = ledger.list_receipts(lease.connection, lease.batch_id, "stage")
    applied = ledger.list_receipts(lease.connection, lease.batch_id, apply_stage(table))
    return list(cut_portions(table, staged, applied, workspace.settings))


@dataclass(slots=True)
class _Done:
    """How many rows are done, for those who watch."""

    workspace: Workspace
    total: int
    rows: int = 0

    def add(self, portion: Portion) -> None:
        self.rows += portion.rows
        told = f"{self.rows:,} of {quantity(self.total, 'row', grouped)}"
        log.info("%s: %s applied", portion.table.title, told)
        self.workspace.progress("apply", self.rows, self.total)


def _apply_table(
    workspace: Workspace, lease: Lease, table: Table, portions: Sequence[Portion], done: _Done
) -> None:
    """First what is new for certain, two portions at a time, then all other in order."""
    new = [one for one in portions if one.spooled and not _may_meet(lease, one)]
    refused = []
    inserts = (partial(_insert, one) for one in new)
    for portion, inserted in side_by_side(workspace.database, lease, inserts):
        if inserted:
            done.add(portion)
        else:
            refused.append(portion)
    left = [one for one in portions if one not in new or one in refused]
    if len(left) > 1:
        summarise(lease.connection, staged_name(table))
    for portion in left:
        with lease.transaction() as connection:
            lock_target(connection, table)
            applied = apply_rows(connection, table, portion.where, portion.spooled, portion.span)
            _add_receipt(lease, portion, applied)
        reach("apply-chunk")
        done.add(portion)


def _may_meet(lease: Lease, portion: Portion) -> bool:
    return may_meet(lease.connection, portion.table, portion.span)


def _insert(portion: Portion, lease: Lease) -> tuple[Portion, bool]:
    """Insert new rows; false: not all of them are, and nothing of them is in the target."""
    try:
        with lease.transaction() as connection:
            applied = add_rows(connection, portion.table, portion.where, portion.spooled)
            _add_receipt(lease, portion, applied)
    except NOT_NEW:
        return portion, False
    reach("apply-chunk")
    return portion, True


def _list(lease: Lease, portions: Iterable[Portion], done: _Done) -> None:
    for portion in portions:
        with lease.transaction():
            _add_receipt(lease, portion, Applied(Counter({LISTED: portion.rows}), LISTED))
        reach("apply-chunk")
        done.add(portion)


def _add_receipt(lease: Lease, portion: Portion, applied: Applied) -> None:
    reach("apply")
    lease.add_receipt(
        Receipt(
            batch_id=lease.batch_id,
            extract_id=portion.where.extract_id,
            stage=apply_stage(portion.table),
            chunk=portion.chunk,
            first_record=portion.where.first,
            last_record=portion.where.last,
            counts=applied.counts,
            totals={},
            verdict=applied.verdict,
        )
    )
