"""How often a task is tried, and which results Prefect keeps of it."""

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.client.schemas.objects import State as RunState
from prefect.context import FlowRunContext
from prefect.tasks import Task

from connectors.errors import DatabaseUnusable

RETRY_SECONDS = [5, 30]
"""Waits before the second and the third attempt after the database could not be used."""


def _is_worth_another_attempt(_task: Task[..., Any], _run: TaskRun, state: RunState[Any]) -> bool:
    return isinstance(state.data, DatabaseUnusable)


ATTEMPTS: dict[str, Any] = {
    "retries": len(RETRY_SECONDS),
    "retry_delay_seconds": RETRY_SECONDS,
    "retry_condition_fn": _is_worth_another_attempt,
    "result_serializer": "json",
}
"""Only an unusable database is worth another attempt; other errors would repeat."""
FROM_LEDGER: dict[str, Any] = {"persist_result": False, "cache_policy": NO_CACHE, **ATTEMPTS}
"""For stages whose progress is in the ledger rather than in Prefect."""


def this_run() -> FlowRun | None:
    context = FlowRunContext.get()
    return context.flow_run if context else None


def begun_again() -> bool:
    """Whether this run was retried; a wait for a decision does not begin a new attempt."""
    run = this_run()
    return run is not None and run.run_count > 1
