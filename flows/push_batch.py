"""Push applied rows to the service: of one batch, or of every batch that has unsent rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from prefect import flow, task
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed, Failed
from pydantic import Field

from connectors.desk_links import DeskPage, linked
from connectors.errors import OF_ONE_BATCH, BatchHeldElsewhere, OperationBusy, RowsUnsent
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import worked_on
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.sends import count_states
from connectors.settings import LEAST_RATE
from flows.report.markdown import escape
from flows.report.spelling import digits
from flows.report.text import state_word
from flows.stages.jobs.arguments import Rows
from flows.stages.push import push
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.sequence import hardly_waiting, waiting_to_push
from flows.steps.batch_report import PUSH_STATES
from flows.tasks import batch as tasks
from flows.tasks import rerun as rerun_tasks
from flows.tasks.artifacts import publish_table
from flows.tasks.attempts import FROM_LEDGER
from flows.tasks.batch import BatchStatus
from flows.tasks.holding import held, open_workspace
from flows.tasks.hooks import HOOKS
from flows.tasks.missed_runs import overtaken
from flows.tasks.own_batch import refuse_if_renumbered
from flows.tasks.run_names import called
from flows.tasks.states import COMPLETED, WITH_ERRORS
from schemas.counting import agree, quantity

MOST_BATCHES = 50
"""The most batches of one run, longest untried first; the next run takes the rest."""
MOST_RATE = 1_000_000
"""Requests a second."""
ABOUT = "Rows at the service, by batch, operation and state"
NOTHING = [{"Batch": "none", "Operation": "", "State": "", "Rows": "0"}]


def _name(batch_id: int) -> str:
    return f"push batch {batch_id}" if batch_id else "push what is unsent"


@flow(name="push-batch", flow_run_name=called(lambda given: _name(given["batch_id"])), **HOOKS)
def push_batch(
    batch_id: Annotated[int, Field(ge=0, lt=2**31)] = 0,
    max_rows: Rows | None = None,
    rate: Annotated[float | None, Field(ge=LEAST_RATE, le=MOST_RATE)] = None,
) -> RunState[Any]:
    """Send unsent rows: every PUT until it succeeds, a POST again only if it was not done.

    The artifact push-results shows the rows by operation and state.

    Args:
        batch_id: Number of the batch. With 0, all batches that have unsent rows, up to 50 in a run.
        max_rows: Send at most this number of rows of each batch in this run.
        rate: Begin at most this number of requests a second; if empty, the worker's setting.
    """
    if (skipped := overtaken()) is not None:
        return skipped
    if batch_id:
        refuse_if_renumbered(batch_id)
    found = [batch_id] if batch_id else waiting()
    batches = found[:MOST_BATCHES]
    # A retry would send max_rows rows once more.
    send = push_rows if max_rows is None else push_rows.with_options(retries=0)
    ended, kept_back, left = [], [], []
    busy: list[int] = []
    tried = 0
    for number in batches:
        tried += 1
        if not batch_id and _is_worked_on(number):
            left.append(number)
            continue
        try:
            opened = rerun_tasks.open_batch(number)
            pushed = send(
                opened, max_rows=max_rows, rate=rate, patient=not busy, named=number == batch_id
            )
            reported = tasks.report_batch(pushed)
        except OF_ONE_BATCH as error:
            if batch_id:
                raise
            if isinstance(error, BatchHeldElsewhere):
                left.append(number)
            else:
                kept_back.append(str(error))
            continue
        if pushed.busy and not batch_id:
            busy.append(number)
            continue
        ended.append(reported)
        if pushed.stopped and not pushed.others_go:
            break
    _publish(batches, _stops(ended))
    return _end_state(ended, kept_back, left, busy, waits=len(found) - tried)


@task(name="find unsent", task_run_name="find batches with unsent rows", **FROM_LEDGER)
def waiting() -> list[int]:
    """The batches that have something to push, longest untried first."""
    return waiting_to_push(open_workspace())


def _is_worked_on(batch_id: int) -> bool:
    """Whether another run has the batch; asked before this run is noted as one of its runs."""
    with open_workspace().database.connect() as connection:
        return bool(worked_on(connection, batch_id))


@task(name="push batch", task_run_name="push batch {batch.batch_id}", **FROM_LEDGER)
def push_rows(
    batch: BatchStatus, *, max_rows: int | None, rate: float | None, patient: bool, named: bool
) -> BatchStatus:
    """Name the service if need be, and send; if the service is down, say so and what to do.

    `patient`: wait for a run that sends the same records. `named`: the run is for this batch alone.
    """
    # Taken for writing even if the batch has ended: some of its rows may be unsent again.
    with held(batch.batch_id, State.MERGED) as (workspace, lease):
        place = workspace if patient else hardly_waiting(workspace)
        if rate is not None:
            service = replace(place.settings.service, rate=rate)
            place = replace(place, settings=replace(place.settings, service=service))
        ask_for_service(place, lease, named=named)
        stop = tasks.push_reported(lambda: push(place, lease, most=max_rows, named=named))
        now = ledger.find_batch(lease.connection, lease.batch_id)
        outcome = {
            "stopped": stop and str(stop),
            "busy": isinstance(stop, OperationBusy),
            "others_go": isinstance(stop, RowsUnsent),
        }
        return batch.model_copy(update={"state": now.state, "service": True, **outcome})


def _stops(ended: Sequence[BatchStatus]) -> list[str]:
    """Why some rows of each batch could not be sent."""
    return [batch.stopped for batch in ended if batch.stopped]


def _publish(batches: Sequence[int], stopped: Sequence[str]) -> None:
    lines: list[dict[str, str]] = []
    with open_workspace().database.connect() as connection:
        for number in batches:
            for operation, states in count_states(connection, number).items():
                lines += [
                    {
                        "Batch": linked(DeskPage.BATCH, number),
                        "Operation": operation,
                        "State": state_word(state),
                        "Rows": digits(states[state]),
                    }
                    for state in PUSH_STATES
                    if state in states
                ]
    publish_table(
        lines or NOTHING,
        key="push-results",
        about=". ".join([ABOUT, *(escape(one).rstrip(".") for one in stopped)]) + ".",
        batches=batches,
    )


def _named(batches: Sequence[int]) -> str:
    return f"{agree(len(batches), 'batch', 'batches')} {', '.join(map(str, batches))}"


def _end_state(
    ended: Sequence[BatchStatus],
    kept_back: Sequence[str],
    left: Sequence[int],
    busy: Sequence[int],
    *,
    waits: int,
) -> RunState[Any]:
    """The end state of a run, with what it says of batches it did not push.

    `kept_back`: why batches could not be pushed; `left`: batches that other runs have; `busy`:
    batches whose records another run is sending; `waits`: batches left for the next run.
    """
    data = [batch.model_dump(mode="json") for batch in ended]
    stopped = _stops(ended)
    more = f"{quantity(waits, 'more batch')} {agree(waits, 'waits', 'wait')} for the next run."
    has = (
        f"{agree(len(left), 'is', 'are')} left to the run that has {agree(len(left), 'it', 'each')}"
    )
    behind_another = (
        f"{agree(len(busy), 'waits', 'wait')} for the end of another run that sends the same "
        "records; the next run goes on"
    )
    others = [
        *dict.fromkeys(text for batch in ended for text in batch.not_sent),
        *([f"{_named(left).capitalize()} {has}."] if left else ()),
        *([f"{_named(busy).capitalize()} {behind_another}."] if busy else ()),
        *([more] if waits else ()),
    ]
    if stopped or kept_back:
        return Failed(message=" ".join([*stopped, *kept_back, *others]))
    behind = [batch for batch in ended if batch.verdict != State.COMPLETE]
    if not behind:
        batches = quantity(len(ended), "batch")
        nothing = "Nothing else unsent" if left or busy else "Nothing unsent"
        else_ = " else" if any(batch.not_sent for batch in ended) else ""
        message = f"{batches}: everything{else_} is at the service" if ended else nothing
        message = f"{message}." if others else message
        return Completed(name=COMPLETED, message=" ".join([message, *others]), data=data)
    todo = "; ".join(batch.next for batch in behind if batch.next) or "read their reports"
    which = _named([batch.batch_id for batch in behind])
    message = f"Rows of {which} are not at the service or carry errors. Next: {todo}."
    return Completed(name=WITH_ERRORS, message=" ".join([message, *others]), data=data)
