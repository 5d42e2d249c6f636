"""Settle rows that are in doubt, refused or differ, from the Prefect UI."""

from typing import Annotated, Any, Literal

from prefect import flow, task
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed
from pydantic import StringConstraints, WithJsonSchema

from connectors.errors import BatchStateError
from connectors.postgres.push.sends import SendDecision
from flows.report.markdown import cell
from flows.report.spelling import digits
from flows.report.text import state_word
from flows.stages.chosen_sends import ChosenSends
from flows.stages.jobs.arguments import Number, Operation
from flows.stages.resolve import next_text
from flows.stages.resolve import resolve as settle
from flows.tasks.artifacts import publish_table
from flows.tasks.attempts import FROM_LEDGER, this_run
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import HOOKS, note_run
from flows.tasks.own_batch import refuse_if_renumbered
from flows.tasks.run_names import called
from flows.tasks.states import COMPLETED
from schemas.counting import quantity
from schemas.operations import BY_NAME

OperationName = Annotated[Operation, WithJsonSchema({"type": "string", "enum": [*BY_NAME]})]
"""Operations that take records, own kinds included; the form lists those known at deployment."""


NotBlank = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"\S")]
"""A text that is not blank. The pattern has the server refuse blanks before a run exists."""


@flow(
    name="resolve",
    flow_run_name=called(lambda given: f"resolve batch {given['batch_id']}: {given['decision']}"),
    **HOOKS,
)
def resolve(
    batch_id: Number,
    decision: Literal["confirm", "resend", "abandon"],
    reason: NotBlank,
    by: NotBlank,
    rows: list[str] = [],  # noqa: B006 -- Prefect shows it in a form.
    all_rows: bool = False,
    operation: OperationName | None = None,
    state: Literal[
        "in_doubt", "refused", "differs", "abandoned", "unsent", "acknowledged"
    ] = "in_doubt",
) -> RunState[Any]:
    """Decide about rows that nothing else can settle; who decided and why is kept.

    The artifact resolution shows how many rows changed. This flow sends nothing.

    Args:
        batch_id: Number of the batch.
        decision: confirm: the service has the row; resend: the next push sends it; abandon: it is
            never sent.
        reason: Why; kept in the audit trail.
        by: Who decides.
        rows: FILE:line:LINE or FILE:record:NUMBER of each row.
        all_rows: Instead of naming rows: all rows of the batch in this state.
        operation: Only rows of this operation.
        state: Only rows in this state; acknowledged: only those that somebody confirmed.
    """
    _refuse_unless_one(rows, all_rows=all_rows)
    refuse_if_renumbered(batch_id)
    detail = settle_rows(batch_id, decision, reason, by, rows, operation, state)
    publish_table(
        [
            {"Operation": name, "Was": state_word(was), "Rows": digits(count)}
            for name, states in detail["counts"].items()
            for was, count in states.items()
        ],
        key="resolution",
        about=f"Batch {batch_id}: {decision}, by {cell(by)}, because {cell(reason)}. "
        + next_text(batch_id, detail),
        batches=[batch_id],
    )
    message = f"{quantity(detail['rows'], 'row')} of batch {batch_id}: {decision}"
    return Completed(name=COMPLETED, message=message, data=detail)


def _refuse_unless_one(rows: list[str], *, all_rows: bool) -> None:
    """Refuse both or neither of rows and `all_rows`: a forgotten list must not mean everything."""
    if rows and all_rows:
        raise BatchStateError(
            "Rows are named and all_rows is on; nothing was changed. Choose one of the two."
        )
    if not rows and not all_rows:
        raise BatchStateError(
            "No row is named; nothing was changed. Name each as FILE:line:LINE, or switch on "
            "all_rows to settle all rows of the batch in this state."
        )


@task(name="settle rows", task_run_name="settle rows of batch {batch_id}", **FROM_LEDGER)
def settle_rows(
    batch_id: int,
    decision: str,
    reason: str,
    by: str,
    rows: list[str],
    operation: str | None,
    state: str,
) -> dict[str, Any]:
    """Settle rows; gives what the audit trail keeps. Raises BatchStateError if no row is chosen."""
    workspace = open_workspace()
    with workspace.database.connect() as connection:
        if (run := this_run()) is not None:
            note_run(connection, batch_id, run)
        resolved = settle(
            workspace,
            batch_id,
            ChosenSends(tuple(rows), operation, (state,)),
            SendDecision(decision),
            by=by,
            reason=reason,
            run=None if run is None else str(run.id),
        )
    return resolved.detail
