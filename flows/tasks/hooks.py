"""What follows the end of a run: an entry in the ledger's audit trail, and an event.

Prefect calls these hooks by position and by name, in the run's process or, after a crash, in a
helper of the worker. So they take all facts from the ledger, and never raise.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

import psycopg
from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.objects import State as RunState
from prefect.client.schemas.responses import OrchestrationResult, SetStateStatus
from prefect.events import emit_event
from prefect.flows import FlowStateHook
from prefect.states import Crashed, Failed
from prefect.utilities.callables import get_call_parameters, parameters_to_args_kwargs

from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import RUN_BEGAN, State
from connectors.postgres.database import open_database
from connectors.postgres.push.sends import count_states
from connectors.postgres.trail import add_event, events_of_run
from connectors.process import whoami
from flows.report.text import state_word
from flows.stages.finish import build_report
from flows.stages.workspace import Workspace
from flows.steps.batch_report import PUSH_LEFT
from flows.tasks.artifacts import publish_summary
from flows.tasks.blocks import run_settings
from flows.tasks.error_lines import error_line
from flows.tasks.run_names import is_made_up
from schemas.counting import agree, grouped, quantity

log = logging.getLogger("recon.run")

NO_BATCH = "none"
"""The batch number in events of a run that opened no batch."""
CANCELLED, CRASHED, HELD, SKIPPED = "Cancelled", "Crashed", "Held", "Skipped"
KILLED_ABOVE = "The process of its parent run was killed; retry that run to go on."
SUMMARY_SECONDS = 20
"""The limit of each statement for the summary of a cancelled run, whose worker waits for it."""
OWN_ENDS = {
    f"batch {State.COMPLETE.value}": "Completed",
    f"batch {State.COMPLETE_WITH_ERRORS.value}": "CompletedWithErrors",
}
"""Event of a batch that a stage has ended -> the name of the run's end."""


def on_end(flow: Flow[..., Any], flow_run: FlowRun, state: RunState[Any]) -> None:
    """Tell how a run ended: completed, failed, with its batch held or rejected, or killed."""
    _tell(flow.name, flow_run, str(state.name or state.type.value.capitalize()))


def on_crash(flow: Flow[..., Any], flow_run: FlowRun, state: RunState[Any]) -> None:
    """Tell that a run was killed, or that it could not begin."""
    on_end(flow, flow_run, _fail_unfit(flow, flow_run) or state)


def on_crash_above(flow: Flow[..., Any], flow_run: FlowRun, state: RunState[Any]) -> None:
    """Tell how the runs below a killed run ended, which its worker does not know of.

    A run below that has begun since belongs to a Retry, and goes on.
    """
    if _fail_unfit(flow, flow_run):
        return
    running = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING])
    below = FlowRunFilter(
        parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run.id]),
        state=FlowRunFilterState(type=running),
    )
    with (
        _never_raising("The ends of the runs below this one could not be reported", flow_run),
        get_client(sync_client=True) as client,
    ):
        for run in client.read_flow_runs(flow_run_filter=below):
            if run.state is None or run.state.timestamp > state.timestamp:
                continue
            answer: OrchestrationResult[Any] = client.set_flow_run_state(
                run.id, Crashed(message=KILLED_ABOVE)
            )
            if answer.status is not SetStateStatus.ACCEPT:
                continue  # It has ended by itself meanwhile.
            _tell(client.read_flow(run.flow_id).name, run, CRASHED)


def _fail_unfit(flow: Flow[..., Any], flow_run: FlowRun) -> RunState[Any] | None:
    """Let a run end Failed if its flow cannot be called with its parameters; else return None.

    Its process ended before the flow began, so the worker took it for killed.
    """
    try:
        given = parameters_to_args_kwargs(flow.fn, flow_run.parameters)
        get_call_parameters(flow.fn, *given)
    except TypeError as refused:
        failed: RunState[Any] = Failed(message=error_line(refused))
    else:
        return None
    with (
        _never_raising("It could not be reported that this run did not begin", flow_run),
        get_client(sync_client=True) as client,
    ):
        client.set_flow_run_state(flow_run.id, failed)
    return failed


def on_cancellation(flow: Flow[..., Any], flow_run: FlowRun, state: RunState[Any]) -> None:  # noqa: ARG001
    """Tell that a run was cancelled; Prefect calls this while its state is still Cancelling."""
    _tell(flow.name, flow_run, CANCELLED)
    unsent = _unsent(flow_run)
    _say(way_on(unsent), flow_run)
    _summarise(flow_run, unsent)


class Unkept(TypedDict):
    """Arguments of `@flow`."""

    persist_result: bool
    result_serializer: str
    on_crashed: list[FlowStateHook[..., Any]]


class Hooks(Unkept):
    on_completion: list[FlowStateHook[..., Any]]
    on_failure: list[FlowStateHook[..., Any]]
    on_cancellation: list[FlowStateHook[..., Any]]


UNKEPT: Unkept = {
    "persist_result": False,
    "result_serializer": "json",
    "on_crashed": [on_crash_above],
}
HOOKS: Hooks = {
    **UNKEPT,
    "on_completion": [on_end],
    "on_failure": [on_end],
    "on_crashed": [on_crash],
    "on_cancellation": [on_cancellation],
}
"""For `@flow(**HOOKS)`."""


def note_run(connection: psycopg.Connection, batch_id: int, flow_run: FlowRun) -> None:
    """Note that a run works on a batch, so that its end can be told of the right one."""
    _add(connection, RUN_BEGAN, batch_id, flow_run)


def attempts_at(connection: psycopg.Connection, batch_id: int, flow_run: FlowRun) -> set[object]:
    """The attempts in which a run worked on a batch, according to this database's trail."""
    begun = events_of_run(connection, RUN_BEGAN, str(flow_run.id))
    return {detail.get("attempt") for batch, detail in begun if batch == batch_id}


def who(flow_run: FlowRun) -> str:
    """Who asked for a run according to Prefect, or else the user of this process."""
    created = flow_run.created_by
    return (created and created.display_value) or whoami()


def tell_held(flow: Flow[..., Any], flow_run: FlowRun, batch_id: int, hold: int) -> bool:
    """Tell that a run waits for a decision about its batch, once for each time it asks.

    Prefect has no hook for suspended runs, and an answered run comes by here again. `hold` is the
    event that the batch is held by. Returns whether an earlier version had the run ask already,
    without saying about which hold.
    """
    with open_database(run_settings()).connect() as connection:
        held = f"run {_spelled(HELD)}"
        holds = [
            detail.get("hold")
            for about, detail in events_of_run(connection, held, str(flow_run.id))
            if (about, detail.get("attempt")) == (batch_id, flow_run.run_count)
        ]
        if None in holds or hold in holds:
            return None in holds
        _add(connection, held, batch_id, flow_run, hold=hold)
    # The person deciding can find the run without the event.
    with _never_raising("No event could be sent that this run waits for a decision", flow_run):
        _emit(flow.name, flow_run, HELD, batch_id)
    return False


def _tell(flow: str, flow_run: FlowRun, name: str) -> None:
    """Write both as far as possible: a run has ended whether or not that can be told."""
    if name == SKIPPED:
        return
    flow_run = _as_named(flow_run)
    ends: dict[int | None, str] = {}
    with (
        _never_raising("The end of this run could not be added to the audit trail", flow_run),
        open_database(run_settings()).connect() as connection,
    ):
        for batch_id, end in _ends_of(connection, flow_run, name).items():
            ends[batch_id] = end
            _add(connection, f"run {_spelled(end)}", batch_id, flow_run)
    with _never_raising("No event could be sent about the end of this run", flow_run):
        for about, end in (ends or {None: name}).items():
            _emit(flow, flow_run, end, about)


def _as_named(flow_run: FlowRun) -> FlowRun:
    """The run with the name on its page; whoever started it may know an earlier name."""
    if not is_made_up(flow_run.name):
        return flow_run
    try:
        with get_client(sync_client=True) as client:
            return client.read_flow_run(flow_run.id)
    except Exception:  # noqa: BLE001 -- a hook must never raise, and the id says which run it is.
        return flow_run


def way_on(unsent: Mapping[int, int]) -> str:
    """How to continue after a cancelled run, which Prefect's own message does not say.

    `unsent`: rows still to send, by batch of the run.
    """
    left = [
        f"{quantity(rows, 'row', grouped)} of batch {batch} {agree(rows, 'is', 'are')} unsent "
        f"(`recon push {batch}`)"
        for batch, rows in unsent.items()
        if rows
    ]
    return " ".join([*(f"{one}." for one in left), "Retry goes on where this run stopped."])


def _unsent(flow_run: FlowRun) -> dict[int, int]:
    with (
        _never_raising("The unsent rows could not be counted", flow_run),
        open_database(run_settings()).connect() as connection,
    ):
        return {
            batch: sum(
                states.get(state, 0)
                for states in count_states(connection, batch).values()
                for state in PUSH_LEFT
            )
            for batch in _batches_of(connection, flow_run)
        }
    return {}


def _summarise(flow_run: FlowRun, unsent: Mapping[int, int]) -> None:
    """Publish a summary of the batch the run was at, since the existing one is older."""
    with _never_raising("The summary of this run's batch could not be published", flow_run):
        settings = run_settings()
        place = Workspace(settings, open_database(settings))
        with place.database.connect() as connection:
            connection.execute(f"SET statement_timeout = '{SUMMARY_SECONDS}s'")
            for batch, end in _ends_of(connection, flow_run, CANCELLED).items():
                if end != CANCELLED:
                    continue
                state = state_word(ledger.find_batch(connection, batch).state)
                left = way_on({batch: unsent.get(batch, 0)})
                about = f"Batch {batch}, {state}, as a cancelled run left it. {left}"
                report = build_report(place, connection, batch)
                publish_summary(report, batch, about, flow_run=flow_run.id)


@contextmanager
def _never_raising(warning: str, flow_run: FlowRun) -> Iterator[None]:
    """Report on a run's page what a hook could not do, whatever the error is."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        _say(f"{warning}: {type(error).__name__}", flow_run)


def _say(text: str, flow_run: FlowRun) -> None:
    # A hook has no run of its own; naming the run puts the line on its page all the same.
    log.warning("%s", text, extra={"flow_run_id": str(flow_run.id)})


def _emit(flow: str, flow_run: FlowRun, name: str, batch_id: int | None) -> None:
    emit_event(
        event=f"recon.batch.{_spelled(name)}",
        resource=about_batch(batch_id),
        related=[
            {
                "prefect.resource.id": f"prefect.flow-run.{flow_run.id}",
                "prefect.resource.role": "flow-run",
                "prefect.resource.name": flow_run.name,
            }
        ],
        payload={
            "batch_id": batch_id,
            "state": name,
            "run_id": str(flow_run.id),
            "run_name": flow_run.name,
            "flow": flow,
        },
    )


def about_batch(batch_id: int | None) -> dict[str, str]:
    """The resource of an event: a batch, or none if a run opened none."""
    about = NO_BATCH if batch_id is None else str(batch_id)
    return {"prefect.resource.id": f"recon.batch.{about}", "recon.batch": about}


def _ends_of(connection: psycopg.Connection, flow_run: FlowRun, name: str) -> dict[int, str]:
    """The batches a run has worked on, and how it ended for each; empty if it opened none.

    If it worked on several, each has its own end.
    """
    batches = _batches_of(connection, flow_run)
    own = _own_ends(connection, batches) if len(batches) > 1 else {}
    return {batch: own.get(batch, name) for batch in batches}


def _batches_of(connection: psycopg.Connection, flow_run: FlowRun) -> list[int]:
    return sorted({batch for batch, _ in events_of_run(connection, RUN_BEGAN, str(flow_run.id))})


def _own_ends(connection: psycopg.Connection, batches: list[int]) -> dict[int, str]:
    """For batches that have ended since a run began to work on them, the names of their ends."""
    rows = connection.execute(
        "SELECT DISTINCT ON (batch_id) batch_id, what FROM event "
        "WHERE batch_id = ANY(%s) AND what = ANY(%s) ORDER BY batch_id, id DESC",
        [batches, [RUN_BEGAN, *OWN_ENDS]],
    )
    return {batch: OWN_ENDS[what] for batch, what in rows if what in OWN_ENDS}


def _add(
    connection: psycopg.Connection, what: str, batch_id: int, flow_run: FlowRun, **more: object
) -> None:
    run = {"run": str(flow_run.id), "name": flow_run.name, "attempt": flow_run.run_count}
    detail = run | more
    add_event(connection, what, batch_id=batch_id, by=who(flow_run), detail=detail)


def _spelled(name: str) -> str:
    """`CompletedWithErrors` -> `completed_with_errors`."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9]+", "_", parted)
