"""The stages of a batch as tasks in their order, and the decision between check and apply."""

from collections.abc import Callable

from prefect.context import FlowRunContext

from connectors.errors import ServiceUnusable
from connectors.ledger import State
from flows import tasks
from flows.approval import OverBudget, decide
from flows.tasks import Manifest


def receive_again_if_taken_back(received: Manifest, again: Callable[[], Manifest]) -> Manifest:
    """What a run goes on with: on a Retry, a batch rejected meanwhile is received as a new one.

    A run that was only suspended keeps to its batch, whatever became of it in the meantime.
    """
    context = FlowRunContext.get()
    retried = (
        context is not None and context.flow_run is not None and context.flow_run.run_count > 1
    )
    taken_back = tasks.state_of(received) in (State.DISCARDED, State.UNDONE)
    return again() if retried and taken_back else received


def carry(received: Manifest, over_budget: OverBudget = "ask") -> Manifest:
    """Take a batch from where it is to its end, or to the decision that it waits for."""
    staged = tasks.stage_rows(received)
    checked = tasks.check_rows(staged)
    if checked.state is State.HELD:
        # Whoever decides finds the report of the held batch beside the form.
        checked = decide(tasks.report_batch(checked), over_budget)
        if checked.state is State.HELD:
            return checked
    applied = tasks.apply_rows(checked)
    if applied.service:
        try:
            applied = tasks.push_rows(applied)
        except ServiceUnusable:
            tasks.report_batch(applied)
            raise
    return tasks.report_batch(applied)
