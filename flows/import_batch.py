"""Import a delivery, as a flow: the life of a row from the delivered file to the service."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State as RunState
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from connectors.errors import BatchHeldElsewhere
from connectors.postgres.batches.ledger import State
from flows.tasks import batch as tasks
from flows.tasks.approval import decide
from flows.tasks.batch import BatchStatus
from flows.tasks.delivery import Delivery, OverBudget
from flows.tasks.hooks import HOOKS
from flows.tasks.own_batch import own_batch, refuse_if_renumbered
from flows.tasks.run_names import called
from flows.tasks.states import end_state


@flow(
    name="import-batch",
    flow_run_name=called(lambda given: f"import {given['delivery'].label}"),
    **HOOKS,
)
def import_batch(delivery: Delivery) -> RunState[Any]:
    """Import a delivery into PostgreSQL, with every row accounted for.

    The same bytes are imported only once: a second run continues where the batch stopped, or names
    the batch that has them and changes nothing. If it cannot go on, it fails with a ReconError.
    """
    if delivery.corrects is not None:
        refuse_if_renumbered(delivery.corrects)
    receive = tasks.receive_files
    received = own_batch(
        receive(delivery), lambda: receive.with_options(refresh_cache=True)(delivery)
    )
    return end_state(run_stages(received, delivery.over_budget))


def run_stages(received: BatchStatus, over_budget: OverBudget) -> BatchStatus:
    """Take a batch from its present state to its end, or to the decision it waits for."""
    # Every row is kept verbatim with its place and verdict; from here on nothing can be lost.
    staged = tasks.stage_rows(received)
    # Rows that repeat a key or refer to unknown records get their verdict before any is visible.
    checked = tasks.check_rows(staged)
    if checked.state is State.HELD:
        # Too many errors. The report of the held batch stands beside the form for the decision.
        checked = decide(tasks.report_batch(checked), over_budget)
        if checked.state is State.HELD:
            return checked
    # Clean rows go into their tables, each once; what was there before is kept.
    applied = tasks.apply_rows(checked)
    try:
        if applied.service:
            # Applied rows go on to the service; the outcome of each is written down.
            applied = tasks.push_rows(applied)
        # Everything is recounted from the rows themselves; a total that does not tie fails the run.
        return tasks.report_batch(applied)
    except BatchHeldElsewhere:
        # A push of unsent rows may take the batch between two stages; it finishes and reports.
        return applied.model_copy(update={"taken": True})


def run_import(delivery: Delivery) -> RunState[Any]:
    """Run the flow in this process; the end state has the last status if it completed."""
    # A run of seconds needs no heartbeat, and Prefect takes a second to stop each one.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return import_batch(delivery, return_state=True)
