"""Take a batch back: undo it while nothing later has touched its records, or discard it.

Its report says so from then on, and that of a batch it corrected shows the errors again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from connectors.errors import BatchStateError, EvidenceBroken
from connectors.files.disk.spool import clear_spool
from connectors.postgres.auditing.batch_hashes import answers_detail, are_images_altered
from connectors.postgres.batches import ledger
from connectors.postgres.batches.apply import lock_target
from connectors.postgres.batches.batch_reports import note_owed, owed_by
from connectors.postgres.batches.corrections import lock_corrections, settle_corrections
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.batches.ledger import TAKEN_BACK, Batch, State
from connectors.postgres.batches.undo import (
    TAKEN,
    changed_by_hand,
    refuse_if_corrected,
    refuse_if_touched,
    take_back,
)
from connectors.postgres.database import analyse
from connectors.postgres.push.reopen import may_reopen, reopen_restored
from connectors.postgres.push.sends import left_at_service
from connectors.postgres.resume import resumed
from connectors.postgres.trail import add_event, committed, last_detail
from connectors.recovery import reach
from flows.report.text import left_text
from flows.stages.check import leave_hold
from flows.stages.finish import report_taken_back, write_owed
from flows.stages.receiving.kept import unproven
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from schemas.guards.batch_states import BY_UNDO, REOPENED, UNDO
from schemas.guards.ledger_digests import BEFORE
from schemas.operations import BY_NAME, PUSHES
from schemas.tables import INSERT_BATCH_DATA

Counts = dict[str, int]
_POSTED_BEFORE = (
    " If a record of a POST is imported again unchanged, it is not posted again, and ends as it "
    "did here; if any of its values has changed, it is posted, beside what the service has."
)


@dataclass(frozen=True, slots=True)
class Undone:
    batch_id: int
    counts: Counts
    left: dict[str, int]
    """Rows that the service keeps, by operation."""
    faults: Sequence[EvidenceBroken]

    @property
    def exit_code(self) -> int:
        """0: undone; 1: undone, but one of its kept files is not what was delivered."""
        return 1 if self.faults else 0

    @property
    def lines(self) -> list[str]:
        undone = ", ".join(f"{rows} {what}" for what, rows in self.counts.items() if rows)
        lines = [f"Batch {self.batch_id} is undone: {undone or 'nothing to undo'}."]
        if self.left:
            # An operation that is no longer defined may have been a POST.
            posted = any(one not in BY_NAME or not BY_NAME[one].keyed for one in self.left)
            but = ", but for what was posted before" if posted else ""
            lines.append(
                f"{left_text(self.left)} Rows of earlier batches that own their records again are "
                f"unsent{but}; `recon push` sends them.{_POSTED_BEFORE if posted else ''}"
            )
        return [*lines, *map(str, self.faults)]


def nothing_to_undo(batch: Batch) -> str:
    return f"Batch {batch.id} is {batch.state} already; nothing to undo."


def why_not_undone(workspace: Workspace, batch_id: int) -> str:
    """Why an undo would be refused now; empty if it would not. Changes nothing."""
    with workspace.database.connect() as connection:
        tables = ledger.staged_tables(connection, batch_id)
        changed: dict[str, int] = {}
        try:
            refuse_if_corrected(connection, batch_id)
            _prove_images(connection, batch_id)
            for table in tables:
                if table is INSERT_BATCH_DATA:
                    continue
                refuse_if_touched(connection, table, batch_id)
                if by_hand := changed_by_hand(connection, table, batch_id):
                    changed[table.title.lower()] = by_hand
        except (BatchStateError, EvidenceBroken) as error:
            return str(error)
    return _refusal(batch_id, changed) if changed else ""


def undo_and_tell(
    workspace: Workspace, batch_id: int, *, by: str | None, reason: str, over_changes: bool = False
) -> Undone:
    """Undo a batch; says what the service keeps, and which kept files are not as delivered."""
    with workspace.database.connect() as connection:
        ledger.find_batch(connection, batch_id)
        extracts = ledger.list_extracts(connection, batch_id)
        faults = [fault for _, fault in unproven(workspace, extracts)]
    counts = undo_batch(
        workspace, batch_id, by=by, reason=reason, faults=faults, over_changes=over_changes
    )
    with workspace.database.connect() as connection:
        return Undone(batch_id, counts, left_at_service(connection, batch_id), faults)


def undo_batch(
    workspace: Workspace,
    batch_id: int,
    *,
    by: str | None,
    reason: str,
    faults: Sequence[EvidenceBroken] = (),
    over_changes: bool = False,
) -> Counts:
    """Restore what the batch changed, in one transaction; its rows and receipts stay on record.

    Rows that somebody changed or deleted in the database since are only taken back with
    `over_changes`.

    The service keeps what it was sent. Rows of earlier batches whose records become current again
    are unsent again, so that the next push corrects the service where possible. An undo does not
    need the kept files, so their `faults` do not stop it; they are noted with it.
    """
    tried: dict[int, Counts] = {}

    def run() -> Counts:
        with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
            # An undo may be committed although the answer to its COMMIT was lost.
            event = committed(connection, batch_id, UNDO, tried)
            counts = (
                tried[event]
                if event
                else _undone_before(connection, batch_id)
                or _take_back(
                    workspace, lease, tried, by, reason, faults, over_changes=over_changes
                )
            )
            write_owed(workspace, connection, batch_id)
            clear_spool(workspace.settings, batch_id)
            witness_trail(workspace, connection)
            return counts

    return resumed(workspace.database, run)


def discard(
    workspace: Workspace,
    lease: Lease,
    *,
    by: str | None,
    reason: str | None,
    held: int | None = None,
) -> None:
    """End a held batch without applying anything; its content may be delivered again.

    `held` is the event that the person deciding has seen, if known.
    """
    with lease.transaction() as connection:
        leave_hold(lease, State.DISCARDED, by, reason, held)
        refuse_if_corrected(connection, lease.batch_id, "discarded")
        settle_corrections(connection, lease.batch_id)
        report_taken_back(workspace, lease)
    write_owed(workspace, lease.connection, lease.batch_id)
    clear_spool(workspace.settings, lease.batch_id)
    witness_trail(workspace, lease.connection)


def _undone_before(connection: psycopg.Connection, batch_id: int) -> Counts | None:
    """What an earlier undo took back without having written all reports; None if there is none."""
    batch = ledger.find_batch(connection, batch_id)
    if batch.state is not State.UNDONE or not owed_by(connection, batch_id):
        return None
    detail = last_detail(connection, batch_id, UNDO)
    return {what: int(detail.get(what, 0)) for what in TAKEN}


def _take_back(
    workspace: Workspace,
    lease: Lease,
    tried: dict[int, Counts],
    by: str | None,
    reason: str,
    faults: Sequence[EvidenceBroken],
    *,
    over_changes: bool,
) -> Counts:
    """Undo the batch; the attempt is noted in `tried` by its event before the commit."""
    connection, batch_id = lease.connection, lease.batch_id
    batch = ledger.find_batch(connection, batch_id)
    if batch.state in TAKEN_BACK:
        raise BatchStateError(nothing_to_undo(batch))
    tables = [
        table
        for table in ledger.staged_tables(connection, batch_id)
        if table is not INSERT_BATCH_DATA
    ]
    counts: Counter[str] = Counter()
    with lease.transaction():
        lock_corrections(connection, batch_id)
        refuse_if_corrected(connection, batch_id)
        _prove_images(connection, batch_id)
        changed: dict[str, int] = {}
        for table in tables:
            lock_target(connection, table)
            refuse_if_touched(connection, table, batch_id)
            if by_hand := changed_by_hand(connection, table, batch_id):
                changed[table.title.lower()] = by_hand
        if changed and not over_changes:
            raise BatchStateError(_refusal(batch_id, changed))
        pushed = [table for table in tables if table.name in PUSHES]
        others = {one for table in pushed for one in may_reopen(connection, table, batch_id)}
        reopened = {one: answers_detail(connection, one, BEFORE) for one in sorted(others)}
        for table in reversed(tables):
            lost = table.title.lower() in changed
            counts.update(take_back(connection, table, batch_id, lost=lost))
            if table.name in PUSHES:
                reopen_restored(connection, table, batch_id)
        reach("undo")
        left = left_at_service(connection, batch_id)
        detail: dict[str, object] = dict(counts) | ({"left_at_service": left} if left else {})
        if changed:
            detail["changed_by_hand"] = changed
        if faults:
            detail["kept_files"] = [str(fault) for fault in faults]
        note_owed(connection, others)
        event = add_event(connection, UNDO, batch_id=batch_id, by=by, reason=reason, detail=detail)
        tried[event] = dict(counts)
        for one, before in reopened.items():
            answers = {BY_UNDO: event} | before | answers_detail(connection, one)
            add_event(connection, REOPENED, batch_id=one, by=by, detail=answers)
        lease.set_state(State.UNDONE)
        settle_corrections(connection, batch_id)
        report_taken_back(workspace, lease)
    if tables:
        # Records belong to earlier batches again; the statistics may not have known of any.
        analyse(connection, *(table.name for table in tables))
    return dict(counts)


def _prove_images(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if the before-images are not the values that the batch overwrote."""
    if are_images_altered(connection, batch_id):
        raise EvidenceBroken(
            f"Batch {batch_id} cannot be undone: the rows that it wrote over (table before_image) "
            "are not what they were when it was applied, so somebody altered them in the database. "
            "Put back what stood there, from a backup; or deliver the records as they are to be, "
            "which writes them over. Nothing was changed."
        )


def _refusal(batch_id: int, changed: dict[str, int]) -> str:
    found = ", ".join(f"{number} of {title}" for title, number in changed.items())
    return (
        f"Batch {batch_id} cannot be undone: somebody changed or deleted rows in the database that "
        f"it wrote ({found}). `recon reconcile` names them. Put them back, or take the batch back "
        "with these rows (`--over-changes`; on the desk, the box above the button). Nothing was "
        "changed."
    )
