"""Check: duplicates and conflicts among the rows of a batch, references, and the error budget.

All of it is decided before anything is visible in a target, and in one transaction, which a run
after a crash repeats.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator

import psycopg

from connectors.errors import BatchStateError
from connectors.files.chunks.skipped_lines import NO_LINES, SkippedLines
from connectors.files.profiles.profile import Profile
from connectors.postgres.auditing.batch_hashes import ledger_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.batch_keys import check_reference, mark_collisions, mark_duplicates
from connectors.postgres.batches.clues import COMMENTS, LEFT_OUT, VALUELESS
from connectors.postgres.batches.correction_keys import (
    mark_applied_otherwise,
    mark_repaired_twice,
    mark_taken_keys,
    mark_taken_records,
    mark_unmatched_repairs,
)
from connectors.postgres.batches.findings import note_left_out, note_no_records
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Receipt, State
from connectors.postgres.batches.ranges import Range
from connectors.postgres.batches.recount import recount
from connectors.postgres.batches.undo import refuse_if_corrected
from connectors.postgres.database import analyse, nested_loops
from connectors.postgres.trail import add_event, last_of_batch
from connectors.recovery import reach
from flows.stages.held import because, beyond_budget, has_budget, left_blank, not_proven
from flows.stages.receiving.kept import prove_batch, prove_held, prove_staged
from flows.stages.receiving.stated import tied_in_batch
from flows.stages.receiving.terms import restored_profile
from flows.stages.workspace import Workspace
from flows.steps.validate.key_filter import Known, gather
from flows.steps.validate.states import EXCLUDED, READY
from schemas.counting import agree, grouped, quantity
from schemas.derived.views import ERRORS
from schemas.field import Table
from schemas.guards.batch_states import DECIDED_BY, PREFIX
from schemas.tables import INSERT_BATCH_DATA

log = logging.getLogger("recon.check")

MOST_NAMED, OTHERS = 100, "(others)"
"""How many of the cells that leave rows out are named, and the name for all others."""


def check(workspace: Workspace, lease: Lease) -> None:
    """Settle duplicates and references, then hold the batch if it is over its budget."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.STAGED:
        return
    profile = restored_profile(batch)
    receipts = ledger.list_receipts(lease.connection, lease.batch_id, "stage")
    tables = ledger.tables_of(receipts)
    with lease.transaction() as connection:
        known = _known(receipts)
        with nested_loops(connection, on=False):
            if batch.corrects is not None:
                _reject_wrong_repairs(lease, tables, batch.corrects)
            for number, table in enumerate(tables):
                workspace.progress("check", number, len(tables))
                if batch.corrects is not None:
                    reject_taken(connection, table, batch.id, profile)
                _check_table(lease, table, profile, known.get(table.name, Known()))
                note_left_out(connection, table, batch.id, _left_out(receipts, table))
                for clue, code in ((VALUELESS, "NoValue"), (COMMENTS, "Comment")):
                    lines = _no_records(receipts, table, clue)
                    note_no_records(connection, table, batch.id, code, lines)
            reach("check")
            unproven = _unproven(lease, receipts, profile)
            reason = because([*unproven, _over_budget(lease, batch, tables, receipts, profile)])
        if reason:
            detail = ledger_detail(connection, lease.batch_id)
            lease.set_state(State.HELD, held_because=reason, detail=detail)
        else:
            lease.set_state(State.CHECKED)
    # From here on rows are looked up one by one, together with the findings about them.
    analyse(lease.connection, "outcome")
    workspace.progress("check", len(tables), len(tables))


def _known(receipts: Iterable[Receipt]) -> dict[str, Known]:
    """Where repeated keys and references of the batch can occur, according to its receipts."""
    return gather(
        (
            {
                record: int(states[READY]["rows"])
                for record, states in receipt.totals.items()
                if READY in states
            },
            receipt.clues,
        )
        for receipt in receipts
    )


def _left_out(receipts: Iterable[Receipt], table: Table) -> list[tuple[str, str, int, int, int]]:
    """The rows a profile leaves out, by column and cell, in the form `note_left_out` takes.

    If there are very many different cells, only the first ones are named.
    """
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for receipt in receipts:
        for column, cell, rows, first in receipt.clues.get(table.name, {}).get(LEFT_OUT, ()):
            of = (column, cell if len(found) < MOST_NAMED or (column, cell) in found else OTHERS)
            so_far, extract, number = found.get(of, (0, receipt.extract_id, first))
            found[of] = (so_far + rows, extract, number)
    return [(*of, *counts) for of, counts in found.items()]


def _no_records(receipts: Iterable[Receipt], table: Table, clue: str) -> dict[int, SkippedLines]:
    """Lines that become no record, by extract."""
    found: dict[int, SkippedLines] = {}
    for receipt in receipts:
        if skipped := receipt.clues.get(table.name, {}).get(clue):
            so_far = found.get(receipt.extract_id, NO_LINES)
            found[receipt.extract_id] = so_far.with_more(SkippedLines(*skipped))
    return found


def _reject_wrong_repairs(lease: Lease, tables: list[Table], corrects: int) -> None:
    """Reject rows that do not repair the row they name, or that are not alone in repairing it."""
    for table in tables:
        if wrong := mark_unmatched_repairs(lease.connection, table, lease.batch_id):
            rows = f"{quantity(wrong, 'row', grouped)} that {agree(wrong, 'repairs', 'repair')}"
            log.warning("%s: %s no row of batch %s", table.title, rows, corrects)
    if twice := mark_repaired_twice(lease.connection, tables, lease.batch_id, corrects):
        rows = quantity(twice, "row", grouped)
        log.warning("%s of several keys that repair the same rows of batch %s", rows, corrects)
    for table in tables:
        if second := mark_applied_otherwise(lease.connection, table, lease.batch_id, corrects):
            rows = quantity(second, "row", grouped)
            log.warning("%s: %s that would be a second record of a row", table.title, rows)


def reject_taken(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    profile: Profile,
    only: Range | None = None,
) -> None:
    """Reject rows of a correction that have the key of a row or record they do not repair.

    Done when the batch is checked, so that it counts towards the budget, and again for `only` a
    range once the target is locked. Between the two, which may be days if the batch is held, others
    may bring records, and a row may be refused that was to free its key.
    """
    if profile.duplicate != "last_wins" and (
        taken := mark_taken_keys(
            connection, table, batch_id, merges=profile.merges(table), only=only
        )
    ):
        rows = f"{quantity(taken, 'row', grouped)} with the key of a row"
        log.warning("%s: %s that %s not repaired", table.title, rows, agree(taken, "is", "are"))
    if not profile.change_records and (
        taken := mark_taken_records(connection, table, batch_id, only)
    ):
        rows = f"{quantity(taken, 'row', grouped)} with the key of a record"
        log.warning("%s: %s of another delivery", table.title, rows)


def _check_table(lease: Lease, table: Table, profile: Profile, known: Known) -> None:
    if table is INSERT_BATCH_DATA:
        return  # Rows are staged as insert-batch data only if no record is inside.
    last_wins = profile.duplicate == "last_wins"
    made = {name: key.names for name, key in profile.made_keys(table).items()}
    repeated = mark_duplicates(
        lease.connection,
        table,
        lease.batch_id,
        last_wins=last_wins,
        merges=profile.merges(table),
        keys=known.keys,
        made_of=sorted({one for of in made.values() for one in of}),
    )
    for verdict, rows in sorted(repeated.items()):
        shared = f"{quantity(rows, 'row', grouped)} that {agree(rows, 'shares', 'share')} a key"
        log.info("%s: %s: %s", table.title, shared, verdict)
    for name, of in made.items():
        if rows := mark_collisions(lease.connection, table, lease.batch_id, name, of):
            log.warning(
                "%s: %s whose %s is that of another record",
                table.title,
                quantity(rows, "row", grouped),
                name,
            )
    for reference in table.references:
        missing = check_reference(
            lease.connection,
            table,
            reference,
            lease.batch_id,
            reject=profile.complete or profile.reference == "reject",
            complete=profile.complete,
            values=known.values.get(reference.field),
        )
        if missing:
            named = f"{quantity(missing, 'row', grouped)} {agree(missing, 'names', 'name')}"
            message = f"{named} a {reference.field} that leads nowhere or elsewhere"
            log.warning("%s: %s", table.title, message)


def _unproven(lease: Lease, receipts: Iterable[Receipt], profile: Profile) -> Iterator[str]:
    """Why somebody has to decide about each file that cannot be proven."""
    of = ledger.by_extract(receipts)
    for extract in ledger.list_extracts(lease.connection, lease.batch_id):
        if extract.refused is None:
            tied = tied_in_batch(extract, profile, of[extract.id])
            if tied is not None and tied.differences:
                # Receipts of an earlier version may not say what cannot be read.
                yield not_proven(extract.name, tied.unproven or "; ".join(tied.details))


def _over_budget(
    lease: Lease,
    batch: ledger.Batch,
    tables: list[Table],
    receipts: Iterable[Receipt],
    profile: Profile,
) -> str | None:
    if not has_budget(profile):
        return None
    rows: Counter[str] = Counter()
    skipped = blank = 0
    for table in tables:
        for receipt in receipts:
            blank += left_blank(receipt.clues.get(table.name, {}).get(LEFT_OUT, ()), profile)
        for clue in (VALUELESS, COMMENTS):
            skipped += sum(one.lines for one in _no_records(receipts, table, clue).values())
        for one in recount(lease.connection, table, lease.batch_id):
            rows[one.state] += one.rows
    return beyond_budget(
        profile,
        rows=rows.total(),
        errors=sum(rows[state] for state in ERRORS),
        excluded=rows[EXCLUDED],
        skipped=skipped,
        left_blank=blank,
        headed=batch.corrects is None,  # A corrected row contains the values of the lines above.
    )


def release(
    workspace: Workspace,
    lease: Lease,
    *,
    by: str | None,
    reason: str | None,
    held: int | None = None,
) -> None:
    """Let a held batch go on with its clean rows; who decided and why is kept.

    `held` is the event that the person deciding has seen (`held_event`); raises BatchStateError if
    a later one exists.
    """
    # A decision must not be about content that is not what was delivered.
    prove_batch(workspace, lease.connection, lease.batch_id)
    prove_held(lease.connection, lease.batch_id)
    prove_staged(lease.connection, lease.batch_id)
    with lease.transaction() as connection:
        leave_hold(lease, State.CHECKED, by, reason, held)
        refuse_if_corrected(connection, lease.batch_id, "released")


def not_held(batch: ledger.Batch) -> str:
    """The message that nothing is to be decided about a batch."""
    message = f"Batch {batch.id} is {batch.state.replace('_', ' ')}, not held; nothing was changed."
    if batch.state in ledger.ENDED:
        return message
    return f"{message} If no run has it, `recon rerun {batch.id}` goes on with it."


def held_event(connection: psycopg.Connection, batch_id: int) -> int:
    """The latest event that says a batch is held; a decision is bound to it."""
    return last_of_batch(connection, PREFIX + State.HELD, batch_id)


def seen_before(batch: ledger.Batch) -> BatchStateError:
    """The refusal of a decision based on an outdated view of a held batch."""
    return BatchStateError(
        f"Batch {batch.id} was worked on since that page was loaded. Look at what it holds now, "
        "and decide again. Nothing was changed."
    )


def leave_hold(
    lease: Lease, state: State, by: str | None, reason: str | None, held: int | None
) -> None:
    """Change the state of a held batch as decided; `held` as in `release`."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state is not State.HELD:
        raise BatchStateError(not_held(batch))
    if held is not None and held != held_event(lease.connection, batch.id):
        raise seen_before(batch)
    what = DECIDED_BY[State.HELD, state]
    with lease.transaction() as connection:
        add_event(connection, what, batch_id=batch.id, by=by, reason=reason)
        lease.set_state(state)
