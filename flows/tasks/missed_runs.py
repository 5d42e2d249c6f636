"""Missed runs of a schedule: after a pause of the worker or the server, the latest does the work.

Prefect hands missed runs out one after the other in no particular order. Each of these flows does
all there is to do, so a run that a later one of the same schedule has overtaken does nothing,
whatever their order. Runs with other parameters, such as another feed or inbox, are other work.

A run to which another has left its work does it, whatever has become due since. Otherwise, if
runs take longer to begin than the schedule's interval, each would leave the work to the next, and
it would never be done.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateName,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.objects import State as RunState
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Completed
from prefect.types import DateTime
from prefect.types._datetime import now

from flows.tasks.attempts import this_run
from flows.tasks.hooks import SKIPPED

LOST = (StateType.FAILED, StateType.CRASHED, StateType.CANCELLED, StateType.CANCELLING)
"""States of a later run that has not done the work."""
NOT_DUE = "Scheduled"
"""State of a future run; once it is due and nobody has taken it, the server calls it Late."""
MOST = 200


RETRIED = "Retry runs this one all the same."


def overtaken(all_the_same: str = RETRIED) -> RunState[Any] | None:
    """The end of a run whose work a later run of its schedule does; None if this run has to work.

    A run that somebody asked for, or retried, is never overtaken. `all_the_same` is a sentence on
    how to have this run's work done anyway.
    """
    run = this_run()
    if run is None or not run.auto_scheduled or run.run_count > 1 or run.deployment_id is None:
        return None
    later = later_run(run, *_runs_around(run))
    return None if later is None else skipped_for(run, later, all_the_same)


def done_since() -> RunState[Any] | None:
    """The end of a run whose work another of its deployment has done since it was due; else None.

    For a flow that many events ask for, and that does the work for all of them at once. Whichever
    run begins first works: if it left the work to a waiting one, none would be done while more
    come.
    """
    run = this_run()
    if run is None or run.run_count > 1 or run.deployment_id is None:
        return None
    begun = FlowRunFilterStartTime(after_=run.expected_start_time)
    ended = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.COMPLETED]))
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id])),
            flow_run_filter=FlowRunFilter(start_time=begun, state=ended),
            sort=FlowRunSort.START_TIME_DESC,
            limit=MOST,
        )
    done = done_by(run, found)
    if done is None:
        return None
    reason = f"{_sign(done).capitalize()} began when this one was due, and has done the same."
    return Completed(name=SKIPPED, message=f"{reason} {RETRIED}")


def done_by(run: FlowRun, others: Iterable[FlowRun]) -> FlowRun | None:
    """The one of `others` that has done all the work there was when this run was due; None if none.

    Both times are the server's: a run that it calls due asks for nothing that came later.
    """
    due = run.expected_start_time
    return next(
        (
            one
            for one in others
            if one.state_type is StateType.COMPLETED
            and one.state_name != SKIPPED
            and one.parameters == run.parameters
            and due is not None
            and one.start_time is not None
            and one.start_time >= due
        ),
        None,
    )


def skipped_for(run: FlowRun, later: FlowRun, all_the_same: str = RETRIED) -> RunState[Any]:
    """The end of a run that leaves its work to a later one."""
    return Completed(
        name=SKIPPED,
        message=(
            f"Missed at {_minute(run.expected_start_time)}; the run for "
            f"{_minute(later.expected_start_time)} of the same schedule does its work "
            f"({_sign(later)}). {all_the_same}"
        ),
    )


def _runs_around(run: FlowRun) -> tuple[list[FlowRun], list[FlowRun]]:
    """Runs of the deployment that became due since, and earlier ones that were skipped."""
    assert run.deployment_id is not None
    after = FlowRunFilterExpectedStartTime(
        after_=run.expected_start_time, before_=cast(DateTime, now("UTC"))
    )
    before = FlowRunFilterExpectedStartTime(before_=run.expected_start_time)
    skipped = FlowRunFilterState(name=FlowRunFilterStateName(any_=[SKIPPED]))
    with get_client(sync_client=True) as client:
        later, earlier = (
            client.read_flow_runs(
                deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id])),
                flow_run_filter=wanted,
                sort=FlowRunSort.EXPECTED_START_TIME_DESC,
                limit=MOST,
            )
            for wanted in (
                FlowRunFilter(expected_start_time=after),
                FlowRunFilter(expected_start_time=before, state=skipped),
            )
        )
    return later, earlier


def later_run(run: FlowRun, later: Iterable[FlowRun], skipped: Iterable[FlowRun]) -> FlowRun | None:
    """The later run that does the work of this one; None if this run has to work.

    `skipped` are earlier runs, one of which may have left its work to this run.
    """
    # Then only a run that has done the work takes it over, since others may leave it as well.
    is_left_to = any(one.state and _sign(run) in (one.state.message or "") for one in skipped)
    return next(
        (
            one
            for one in later
            if _overtakes(one, run) and (not is_left_to or one.state_type is StateType.COMPLETED)
        ),
        None,
    )


def _sign(run: FlowRun) -> str:
    return f"run {run.id}"


def _overtakes(other: FlowRun, run: FlowRun) -> bool:
    assert other.expected_start_time is not None
    assert run.expected_start_time is not None
    return (
        other.auto_scheduled
        and other.expected_start_time > run.expected_start_time
        and other.parameters == run.parameters
        and other.state_type not in LOST
        # The server decides by its own clock whether a run is due; this machine's may be ahead. A
        # run that was itself overtaken has left its work to one that may be lost since.
        and other.state_name not in (NOT_DUE, SKIPPED)
    )


def _minute(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else "an unknown time"
