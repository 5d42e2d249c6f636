"""How a run ends: operators filter by the names of these states; messages say what to do next.

A batch that is held or was rejected is a run that did not do what it was asked. Its type is Failed,
so that a list of failures, an automation or a calling script never takes it for done.
"""

from typing import Any

from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed, Failed

from connectors.errors import BatchStateError
from connectors.postgres.batches.ledger import State
from flows.report.next_step import decisions
from flows.tasks.batch import BatchStatus
from flows.tasks.hooks import HELD
from schemas.counting import agree, quantity

COMPLETED = "Completed"
WITH_ERRORS = "CompletedWithErrors"
REJECTED = "Rejected"


def end_state(batch: BatchStatus) -> RunState[Any]:
    """The state a run ends in; raises BatchStateError for a batch that is at no such end."""
    data = batch.model_dump(mode="json")
    if batch.stopped:
        # Returned and not raised, because a traceback would hide the message.
        return Failed(message=batch.stopped)
    if batch.taken:
        left = (
            f"Batch {batch.batch_id} is applied, and the rest is left to the run that has it now."
        )
        return Completed(
            name=WITH_ERRORS, message=f"{left} Its report says how it ended.", data=data
        )
    clean = batch.verdict == State.COMPLETE
    match batch.state:
        case State.COMPLETE | State.COMPLETE_WITH_ERRORS if clean:
            return Completed(name=COMPLETED, message=counted(batch), data=data)
        case State.COMPLETE | State.COMPLETE_WITH_ERRORS:
            todo = batch.next or f"read the report in {batch.folder}"
            message = f"{counted(batch)}. Next: {todo}."
            return Completed(name=WITH_ERRORS, message=message, data=data)
        case State.HELD:
            todo = (
                f"Nothing is applied: {batch.held_because}. Next: {decisions(batch.batch_id)}; "
                "or a run of rerun-batch/rerun, which asks on its page."
            )
            # Returned and not raised, because a retry cannot replace a person's decision.
            return Failed(name=HELD, message=f"{counted(batch)}. {todo}")
        case State.DISCARDED:
            todo = "Nothing of it is applied; correct it and deliver it again."
            return Failed(name=REJECTED, message=f"{counted(batch)}. {todo}")
        case State.UNDONE:
            raise BatchStateError(
                f"Batch {batch.batch_id} is undone. Import its files again; they are taken as new."
            )
        case _:
            todo = batch.next or f"recon rerun {batch.batch_id}"
            raise BatchStateError(
                f"{counted(batch)}; it stopped as {batch.state}. Read the report in "
                f"{batch.folder}, then go on with {todo}."
            )


def counted(batch: BatchStatus) -> str:
    """The batch in one sentence: rows, errors, refused files and the first of these."""
    rows = quantity(sum(batch.rows.values()), "row")
    errors = f"{batch.errors} of {rows} {agree(batch.errors, 'carries', 'carry')} HasError"
    sentence = f"Batch {batch.batch_id}: " + (errors if batch.errors else f"{rows}, no errors")
    refused = f", {quantity(batch.refused, 'file')} refused" if batch.refused else ""
    if batch.refused_first:
        refused += f"{', the first' if batch.refused > 1 else ''}: {batch.refused_first}"
    known = f"{batch.known} " if batch.known else ""
    return known + sentence + refused
