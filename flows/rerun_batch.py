"""Run a batch again: continue where it stopped, read it again, or take its repaired rows."""

from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State as RunState

from connectors.errors import BatchStateError
from flows.import_batch import run_stages
from flows.stages.jobs.arguments import Number
from flows.tasks import batch as tasks
from flows.tasks import rerun as rerun_tasks
from flows.tasks.artifacts import publish_table
from flows.tasks.batch import BatchStatus
from flows.tasks.delivery import BareAddress, OverBudget
from flows.tasks.hooks import HOOKS
from flows.tasks.own_batch import own_batch, refuse_if_renumbered
from flows.tasks.rerun import changes_table
from flows.tasks.run_names import called
from flows.tasks.states import end_state

FromStage = Literal["where it stopped", "stage", "report"]
Only = Literal["all rows", "failed rows"]


@flow(
    name="rerun-batch",
    flow_run_name=called(lambda given: f"rerun batch {given['batch_id']}"),
    **HOOKS,
)
def rerun_batch(
    batch_id: Number,
    from_stage: FromStage = "where it stopped",
    only: Only = "all rows",
    corrected_file: BareAddress | None = None,
    over_budget: OverBudget = "ask",
) -> RunState[Any]:
    """Bring a batch to its end, or its failed rows into the database; nothing is applied twice.

    The artifact rerun-diff shows the rows of the batches by state, before and after.

    Args:
        batch_id: Number of the batch, as the table of batches lists it.
        from_stage: stage reads and judges the archived files again, if nothing of them is applied;
            report only recounts.
        only: failed rows imports the rows with errors as a batch of their own: from the corrected
            file, or, without one, as delivered, for rows whose references have arrived since.
        corrected_file: The corrected output of recon rejects, a file or folder as the worker sees
            it.
        over_budget: What to do with a batch over its error budget: ask on this run's page, discard
            it, or release its clean rows anyway.
    """
    _refuse_contradiction(from_stage, only, corrected_file)
    refuse_if_renumbered(batch_id)
    before = {batch_id: rerun_tasks.count_rows(batch_id)}
    if only == "failed rows":

        def receive(*, again: bool = False) -> BatchStatus:
            task = rerun_tasks.receive_correction.with_options(refresh_cache=again)
            return task(batch_id, corrected_file)

        opened = own_batch(receive(), lambda: receive(again=True))
    else:
        opened = rerun_tasks.open_batch(batch_id, from_the_start=from_stage == "stage")
    ended = (
        tasks.report_batch(opened) if from_stage == "report" else run_stages(opened, over_budget)
    )
    touched = sorted({batch_id, opened.batch_id})
    publish_table(
        changes_table(before, {number: rerun_tasks.count_rows.fn(number) for number in touched}),
        key="rerun-diff",
        about=f"Rows of {_named(touched)} by state, before this rerun and after it.",
        batches=touched,
    )
    return end_state(ended)


def _refuse_contradiction(from_stage: FromStage, only: Only, corrected_file: str | None) -> None:
    if corrected_file is not None and only != "failed rows":
        raise BatchStateError(
            "A corrected file holds the failed rows of a batch, and all rows were asked for. "
            "Choose failed rows, or import the file as a delivery of its own."
        )
    if only == "failed rows" and from_stage != "where it stopped":
        raise BatchStateError(
            "Failed rows are taken in as a batch of their own, which has no earlier stage. "
            "Choose where it stopped, or all rows."
        )


def _named(batches: list[int]) -> str:
    return ("batch " if len(batches) == 1 else "batches ") + " and ".join(map(str, batches))
