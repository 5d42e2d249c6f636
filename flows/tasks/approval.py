"""The decision about a batch over its error budget, asked for on the page of its run."""

from typing import Annotated, Literal

from prefect.context import FlowRunContext
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from pydantic import BeforeValidator, Field

from flows.tasks import batch as tasks
from flows.tasks.batch import BatchStatus
from flows.tasks.delivery import EARLIER, OverBudget
from flows.tasks.hooks import tell_held, who

Decision = Annotated[
    Literal["release", "discard"],
    BeforeValidator(lambda word: EARLIER.get(word, word) if isinstance(word, str) else word),
]

DAYS_TO_DECIDE = 7
"""After this time the form can no longer be sent; the batch stays held, and a rerun asks again."""
SOMETHING = r"\S[\s\S]*\S"
"""By this the server refuses a blank answer while the run still waits."""


class Approval(RunInput):
    """The form: who decides what, and why; it goes to the audit trail."""

    decision: Decision = Field(
        title="Decision",
        description="release applies the rows without errors; discard ends the batch.",
        json_schema_extra={"position": 0},
    )
    name: str = Field(
        title="Your name",
        min_length=2,
        max_length=100,
        pattern=SOMETHING,
        json_schema_extra={"position": 1},
    )
    reason: str = Field(
        title="Reason",
        min_length=2,
        max_length=500,
        pattern=SOMETHING,
        json_schema_extra={"position": 2},
    )


def decide(held: BatchStatus, over_budget: OverBudget) -> BatchStatus:
    """Settle a held batch as the request says; if it says to ask, the run is suspended.

    A run without a deployment can be answered by nobody, and leaves the batch held.
    """
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    run = context.flow_run
    match EARLIER.get(over_budget, over_budget):
        case "release" | "discard" as asked:
            reason = f"the request says: {asked} what is over budget"
            return tasks.settle_hold(held, asked, by=who(run), reason=reason)
    if run.deployment_id is None:
        return held
    assert context.flow is not None
    hold = tasks.describe_hold(held)
    # A Retry is a new question, and an answer about one batch, or about one reading of it, is no
    # answer about another.
    key = f"approval-{held.batch_id}-{run.run_count}"
    if not tell_held(context.flow, run, held.batch_id, hold.event):
        key = f"{key}-{hold.sign}"
    form = Approval.with_initial_data(description=hold.description)
    answer = suspend_flow_run(wait_for_input=form, timeout=DAYS_TO_DECIDE * 86_400, key=key)
    by, reason = answer.name.strip(), answer.reason.strip()
    return tasks.settle_hold(held, answer.decision, by=by, reason=reason, seen=hold.event)
