"""Rewind: forget what was read of a batch, so that its archived files are read again."""

from connectors.errors import BatchStateError
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.batches.ledger import NOTHING_APPLIED, State
from connectors.postgres.batches.staging import withdraw_staged
from connectors.postgres.batches.undo import refuse_if_corrected
from connectors.postgres.trail import add_event
from connectors.recovery import reach
from flows.stages.receiving.kept import open_to_stage, prove_batch
from flows.stages.receiving.terms import restored_profile
from flows.stages.sequence import refuse_if_taken_back
from flows.stages.workspace import Workspace

REWOUND = "rewound"
"""The event of a batch being taken back to its received files."""


def rewind(workspace: Workspace, lease: Lease, run: str | None = None) -> None:
    """Take a batch back to its received files, in one transaction; `run` is the run that asks.

    Raises BatchStateError once any of its rows may be in the database, or if it has ended, or if
    one of its files no longer fits the definition of its record kind.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    applied = lease.connection.execute(
        "SELECT sum(rows::bigint) FROM receipt LEFT JOIN jsonb_each_text(counts::jsonb) "
        "AS counted (outcome, rows) ON true WHERE batch_id = %s AND stage LIKE 'apply %%' "
        "HAVING count(*) > 0",
        [batch.id],
    ).fetchone()
    if batch.state not in NOTHING_APPLIED or applied:
        there, next_step = "rows of it are in the database", "Go on where it stopped; or undo it"
        if not (applied and applied[0]):
            there, next_step = "none of its rows became a record", "Undo it"
        raise BatchStateError(
            f"Batch {batch.id} is {batch.state.replace('_', ' ')} and {there}, so it cannot be "
            f"read from the start. {next_step} and import its files again."
        )
    profile = restored_profile(batch)
    for extract in ledger.list_extracts(lease.connection, batch.id):
        if extract.refused is None:
            # Raises if the file could not be read again; its rows stay then.
            open_to_stage(workspace, extract, profile)
    with lease.transaction() as connection:
        refuse_if_corrected(connection, batch.id, "read from the start")
        for table in ledger.staged_tables(lease.connection, lease.batch_id):
            for extract in ledger.list_extracts(connection, batch.id):
                withdraw_staged(connection, table, extract.id)
        for name in ("outcome", "note", "receipt"):
            connection.execute(f"DELETE FROM {name} WHERE batch_id = %s", [batch.id])
        detail = {"run": run} if run else None
        add_event(connection, REWOUND, batch_id=batch.id, detail=detail)
        lease.set_state(State.RECEIVED)
        reach("rewind")


def rewind_batch(workspace: Workspace, batch_id: int) -> None:
    """Take a batch back to its received files, if they are still what was delivered.

    Raises BatchStateError, EvidenceBroken and BatchHeldElsewhere.
    """
    with workspace.database.connect() as connection:
        refuse_if_taken_back(connection, batch_id)
        prove_batch(workspace, connection, batch_id)
        with hold_batch(connection, batch_id) as lease:
            rewind(workspace, lease)
