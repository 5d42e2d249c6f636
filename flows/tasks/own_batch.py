"""Whether the number that a run keeps still names its batch.

Prefect remembers the number of a batch, in a result or as a parameter. In a database that was
restored since, another delivery may have this number.
"""

from collections.abc import Callable
from datetime import UTC

from prefect import task

from connectors.errors import BatchStateError
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import TAKEN_BACK
from flows.tasks.attempts import this_run
from flows.tasks.batch import REMEMBERED, BatchStatus, opened_now
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import attempts_at


def own_batch(received: BatchStatus, again: Callable[[], BatchStatus]) -> BatchStatus:
    """The batch that a run continues with: the one it opened, if this database knows that.

    A Retry opens a new batch if that one was discarded or undone. A run that was only suspended
    keeps its batch, whatever became of it in the meantime.
    """
    run, workspace = this_run(), open_workspace()
    assert run is not None
    with workspace.database.connect() as connection:
        attempts = attempts_at(connection, received.batch_id, run)
        if run.run_count in attempts:
            return received
        if not attempts or ledger.find_batch(connection, received.batch_id).state in TAKEN_BACK:
            return again()
    opened_now(workspace, received.batch_id)
    return received


def refuse_if_renumbered(batch_id: int) -> None:
    """Raise BatchStateError if a batch number names another batch now than when the run began."""
    meant, now = when_opened(batch_id), when_opened.fn(batch_id)
    if meant != now:
        raise BatchStateError(
            f"Batch {batch_id} was opened at {now}, but the batch that this run was started for at "
            f"{meant}: the database was restored in between. Nothing was done. `recon status` "
            "lists the batches; start a new run for the one that you mean."
        )


@task(name="note batch", task_run_name="note which batch {batch_id} is", **REMEMBERED)
def when_opened(batch_id: int) -> str:
    """When a batch was opened, which tells batches of one number apart; raises BatchUnknown."""
    with open_workspace().database.connect() as connection:
        return ledger.find_batch(connection, batch_id).opened_at.astimezone(UTC).isoformat()
