"""Missed runs of a schedule: after a pause of the worker or the server the latest does the work.

Prefect hands out what was missed in no order, one after the other. Each of these flows does all
there is to do, so the runs that a later one of the same schedule has overtaken do nothing, whatever
the order they begin in. Runs with other parameters, of another feed or inbox, are other work.
"""

from datetime import datetime
from typing import Any, cast

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.objects import State as RunState
from prefect.client.schemas.sorting import FlowRunSort
from prefect.context import FlowRunContext
from prefect.states import Completed
from prefect.types import DateTime
from prefect.types._datetime import now

from flows.tasks.hooks import SKIPPED

LOST = (StateType.FAILED, StateType.CRASHED, StateType.CANCELLED, StateType.CANCELLING)
"""A later run in one of these has not done the work."""
MOST = 200


def overtaken() -> RunState[Any] | None:
    """The end of a run whose work a later run of its schedule does; None: it is for this run.

    A run that somebody asked for, or retried, is never overtaken.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled or run.run_count > 1 or run.deployment_id is None:
        return None
    later = _later_run(run)
    if later is None:
        return None
    return Completed(
        name=SKIPPED,
        message=(
            f"Missed at {_minute(run.expected_start_time)}; the run for "
            f"{_minute(later.expected_start_time)} of the same schedule does its work. "
            "Retry runs this one all the same."
        ),
    )


def _later_run(run: FlowRun) -> FlowRun | None:
    assert run.deployment_id is not None
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id])),
            flow_run_filter=FlowRunFilter(
                expected_start_time=FlowRunFilterExpectedStartTime(
                    after_=run.expected_start_time, before_=cast(DateTime, now("UTC"))
                )
            ),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=MOST,
        )
    return next((one for one in found if _overtakes(one, run)), None)


def _overtakes(other: FlowRun, run: FlowRun) -> bool:
    assert other.expected_start_time is not None
    assert run.expected_start_time is not None
    return (
        other.auto_scheduled
        and other.expected_start_time > run.expected_start_time
        and other.parameters == run.parameters
        and other.state_type not in LOST
        # One that was overtaken itself has left its work to a run that may be lost since.
        and other.state_name != SKIPPED
    )


def _minute(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else "an unknown time"
