"""How often a task is tried, and what Prefect keeps of it."""

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.client.schemas.objects import State as RunState
from prefect.context import FlowRunContext
from prefect.tasks import Task

from connectors.errors import DatabaseUnusable

RETRY_SECONDS = [5, 30]
"""Waits before the second and the third attempt, when the database could not be used."""


def _is_worth_another_attempt(_task: Task[..., Any], _run: TaskRun, state: RunState[Any]) -> bool:
    return isinstance(state.data, DatabaseUnusable)


ATTEMPTS: dict[str, Any] = {
    "retries": len(RETRY_SECONDS),
    "retry_delay_seconds": RETRY_SECONDS,
    "retry_condition_fn": _is_worth_another_attempt,
    "result_serializer": "json",
}
"""Only a database that cannot be used is tried again; anything else would fail alike."""
FROM_LEDGER: dict[str, Any] = {"persist_result": False, "cache_policy": NO_CACHE, **ATTEMPTS}
"""The ledger, not Prefect, knows how far such a stage is."""


def this_run() -> FlowRun | None:
    context = FlowRunContext.get()
    return context.flow_run if context else None


def begun_again() -> bool:
    """Whether this run was retried; one that waited for a decision goes on in the same attempt."""
    run = this_run()
    return run is not None and run.run_count > 1
