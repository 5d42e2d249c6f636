"""Runs that a schedule missed: the latest of them works, in whatever order they come back."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.examples import in_long

pytestmark = pytest.mark.flows
NAME = "missed"


@pytest.fixture
def missed() -> Any:
    """Three runs of a deployment as the scheduler of the server makes them, an hour apart."""
    from prefect.client.orchestration import get_client
    from prefect.server import models, schemas
    from prefect.server.database import provide_database_interface

    from flows.push_batch import push_batch

    deployment = push_batch.to_deployment(NAME).apply()
    with get_client(sync_client=True) as client:
        flow = client.read_deployment(deployment).flow_id
    hours = [datetime.now(UTC) - timedelta(hours=ago, minutes=5) for ago in (2, 1, 0)]

    async def schedule() -> list[UUID]:
        made = []
        async with provide_database_interface().session_context(begin_transaction=True) as session:
            for hour in hours:
                run = schemas.core.FlowRun(
                    flow_id=flow,
                    deployment_id=deployment,
                    auto_scheduled=True,
                    parameters={"batch_id": 0, "max_rows": None, "rate": None},
                    expected_start_time=hour,
                    next_scheduled_start_time=hour,
                    state=schemas.states.Scheduled(scheduled_time=hour),
                )
                made.append((await models.flow_runs.create_flow_run(session, run)).id)
        return made

    ids = asyncio.run(schedule())
    with get_client(sync_client=True) as client:
        yield [client.read_flow_run(one) for one in ids]
        client.delete_deployment(deployment)


def work(run: Any) -> Any:
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow

    from flows.push_batch import push_batch

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run.id)
    run_flow(push_batch, flow_run=found, parameters=found.parameters, return_type="state")
    with get_client(sync_client=True) as client:
        return client.read_flow_run(run.id)


@pytest.mark.parametrize("order", [in_long((0, 1, 2)), (2, 0, 1), in_long((1, 2, 0))])
def test_only_the_latest_works_in_whatever_order_they_begin(
    missed: list[Any], rows: Any, order: tuple[int, ...]
) -> None:
    assert len(missed) == 3
    assert all(one.auto_scheduled for one in missed)
    ended = {place: work(missed[place]) for place in order}
    assert {place: run.state_name for place, run in ended.items()} == {
        0: "Skipped",
        1: "Skipped",
        2: "Completed",
    }
    assert "Missed at" in str(ended[0].state.message)
    assert "Retry runs this one all the same" in str(ended[0].state.message)


@pytest.mark.long
def test_a_run_whose_later_one_failed_works(missed: list[Any], rows: Any) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    with get_client(sync_client=True) as client:
        client.set_flow_run_state(missed[2].id, Crashed(), force=True)
    assert work(missed[1]).state_name == "Completed"
    assert work(missed[0]).state_name == "Skipped"


@pytest.mark.long
def test_a_run_that_was_skipped_itself_has_done_no_work(missed: list[Any], rows: Any) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    assert work(missed[1]).state_name == "Skipped"
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(missed[2].id, Crashed(), force=True)
    assert work(missed[0]).state_name == "Completed"
