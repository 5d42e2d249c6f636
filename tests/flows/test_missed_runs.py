"""Runs that a schedule missed: the latest of them works, in whatever order they come back."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from itertools import groupby, permutations
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.flows.runs import put

pytestmark = pytest.mark.flows
NAME = "missed"


PARAMETERS = {"batch_id": 0, "max_rows": None, "rate": None}


async def schedule(
    flow: UUID, deployment: UUID, due: datetime, parameters: dict[str, Any] = PARAMETERS
) -> UUID:
    from prefect.server import models, schemas
    from prefect.server.database import provide_database_interface

    async with provide_database_interface().session_context(
        begin_transaction=True, with_for_update=True
    ) as session:
        run = schemas.core.FlowRun(
            flow_id=flow,
            deployment_id=deployment,
            auto_scheduled=True,
            parameters=parameters,
            expected_start_time=due,
            next_scheduled_start_time=due,
            state=schemas.states.Late(scheduled_time=due),
        )
        return (await models.flow_runs.create_flow_run(session, run)).id


@pytest.fixture
def missed() -> Any:
    """Three runs of a deployment as the scheduler of the server makes them, an hour apart."""
    from prefect.client.orchestration import get_client

    from flows.push_batch import push_batch

    deployment = push_batch.to_deployment(NAME).apply()
    with get_client(sync_client=True) as client:
        flow = client.read_deployment(deployment).flow_id
    hours = [datetime.now(UTC) - timedelta(hours=ago, minutes=5) for ago in (2, 1, 0)]

    ids = [asyncio.run(schedule(flow, deployment, hour)) for hour in hours]
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


@pytest.mark.long
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_only_the_latest_works_in_whatever_order_they_begin(
    missed: list[Any], order: tuple[int, ...]
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
def test_a_run_whose_later_one_failed_works(missed: list[Any]) -> None:
    from prefect.states import Crashed

    put(missed[2].id, Crashed())
    assert work(missed[1]).state_name == "Completed"
    assert work(missed[0]).state_name == "Skipped"


@pytest.mark.long
def test_a_run_that_was_skipped_itself_has_done_no_work(missed: list[Any]) -> None:
    from prefect.states import Crashed

    assert work(missed[1]).state_name == "Skipped"
    put(missed[2].id, Crashed())
    assert work(missed[0]).state_name == "Completed"


@pytest.mark.long
def test_a_run_that_work_was_left_to_works_though_another_is_due(missed: list[Any]) -> None:
    from prefect.client.orchestration import get_client

    assert work(missed[0]).state_name == "Skipped"
    of, due = missed[2], datetime.now(UTC) - timedelta(minutes=1)
    another = asyncio.run(schedule(of.flow_id, of.deployment_id, due))
    assert work(missed[2]).state_name == "Completed"
    assert work(missed[1]).state_name == "Skipped"
    with get_client(sync_client=True) as client:
        assert work(client.read_flow_run(another)).state_name == "Completed"


@pytest.mark.long
def test_a_run_that_is_not_due_by_the_clock_of_the_server_takes_no_work(missed: list[Any]) -> None:
    """As a worker sees it whose own clock is ahead."""
    from prefect.states import Scheduled

    put(missed[2].id, Scheduled())
    assert work(missed[1]).state_name == "Completed"
    assert work(missed[0]).state_name == "Skipped"


def be(run: Any, state: Any) -> None:
    run.state, run.state_type, run.state_name = state, state.type, state.name


class Schedule:
    """Runs of a schedule, one at a time, decided on as flows decide; times are in seconds."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.runs: list[Any] = []
        self.waiting: list[Any] = []

    def make_due(self, time: float) -> None:
        from prefect.client.schemas.objects import FlowRun
        from prefect.states import Late

        while len(self.runs) * self.every <= time:
            due = at_second(len(self.runs) * self.every)
            run = FlowRun(flow_id=uuid4(), auto_scheduled=True, expected_start_time=due)
            be(run, Late(scheduled_time=due))
            self.runs.append(run)
            self.waiting.append(run)

    def begin(self, run: Any) -> bool:
        """Whether it works."""
        from prefect.states import Completed

        from flows.tasks.missed_runs import later_run, skipped_for

        self.waiting.remove(run)
        place = self.runs.index(run)
        skipped = [one for one in self.runs[:place] if one.state_name == "Skipped"]
        later = later_run(run, self.runs[:place:-1], skipped[::-1])
        be(run, Completed() if later is None else skipped_for(run, later))
        return later is None


@pytest.mark.long
@pytest.mark.parametrize("order", ["first", "last", "any"])
@pytest.mark.parametrize("seconds", [1, 19, 21, 39, 41, 100])
def test_a_schedule_closer_than_its_runs_begin_makes_progress(seconds: int, order: str) -> None:
    every, chance, worked = 20, random.Random(7), []
    schedule, time = Schedule(every), 0.0
    while len(worked) < 100:
        schedule.make_due(time)
        if not schedule.waiting:
            time += 1
            continue
        place = {"first": 0, "last": -1, "any": chance.randrange(len(schedule.waiting))}[order]
        run = schedule.waiting[place]
        time += seconds
        schedule.make_due(time)
        worked.append(schedule.begin(run))
    most = max((len(list(group)) for did, group in groupby(worked) if not did), default=0)
    assert any(worked)
    # Oldest first, about as many are skipped in a row as become due while one begins.
    assert most <= {"first": 2 * (seconds // every + 1), "last": 1, "any": 50}[order]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_of_missed_runs_the_latest_alone_works(order: tuple[int, ...]) -> None:
    schedule = Schedule(60)
    schedule.make_due(3 * 60)
    assert {place: schedule.begin(schedule.runs[place]) for place in order} == {
        0: False,
        1: False,
        2: False,
        3: True,
    }


class Board:
    """The runs that write a table, one at a time, as events ask for them; times are in seconds."""

    def __init__(self, seconds: float) -> None:
        from flows.ops.automations import board_automation

        automation = board_automation(uuid4())
        (action,) = automation.actions
        self.gathered = automation.trigger.within.total_seconds()
        self.after = action.schedule_after.total_seconds()
        self.seconds = seconds
        self.quiet = self.time = self.written = float("-inf")
        self.runs: list[Any] = []

    def event(self, time: float) -> None:
        """As the server takes it: whoever asked is followed by a time that asks for nothing."""
        if time >= self.quiet:
            self.quiet = time + self.gathered
            self.ask(time + self.after)

    def ask(self, time: float) -> None:
        from prefect.client.schemas.objects import FlowRun
        from prefect.states import Scheduled

        due = at_second(time)
        run = FlowRun(flow_id=uuid4(), expected_start_time=due)
        be(run, Scheduled(scheduled_time=due))
        self.runs.append(run)

    def work(self, chance: random.Random) -> int:
        """Let those that wait begin, in any order, once they are due; how many have written."""
        from prefect.states import Completed

        from flows.tasks.missed_runs import done_by

        waiting, wrote = [*self.runs], 0
        while waiting:
            earliest = min(one.expected_start_time for one in waiting)
            self.time = max(self.time, (earliest - START).total_seconds())
            due = [one for one in waiting if one.expected_start_time <= at_second(self.time)]
            run = chance.choice(due)
            waiting.remove(run)
            run.start_time = at_second(self.time)
            if done_by(run, self.runs):
                be(run, Completed(name="Skipped"))
                continue
            self.written, wrote = self.time, wrote + 1
            self.time += self.seconds
            be(run, Completed())
        return wrote


START = datetime(2026, 1, 1, tzinfo=UTC)


def at_second(time: float) -> datetime:
    return START + timedelta(seconds=time)


@pytest.mark.parametrize("seconds", [1, 29, 31, 100])
@pytest.mark.parametrize("every", [0, 1, 7, 45])
def test_the_table_of_batches_is_younger_than_the_last_of_many_events(
    every: float, seconds: float
) -> None:
    board = Board(seconds)
    for number in range(20):
        board.event(number * every)
    wrote = board.work(random.Random(7))
    assert board.written > 19 * every
    assert wrote <= 1 + 19 * every // max(seconds, board.gathered) + 1
    assert len(board.runs) <= 1 + 19 * every // max(every, board.gathered)


@pytest.mark.parametrize("seed", range(5))
def test_of_many_who_ask_for_the_table_at_once_one_is_enough(seed: int) -> None:
    board = Board(5)
    for _ in range(20):
        board.ask(0)
    assert board.work(random.Random(seed)) == 1


def test_only_events_of_a_batch_ask_for_the_table_of_batches() -> None:
    from prefect.server.events.schemas.events import Resource, ResourceSpecification

    from flows.ops.automations import board_automation
    from flows.tasks.hooks import about_batch

    trigger = board_automation(uuid4()).trigger
    wanted = ResourceSpecification(dict(trigger.match.root))
    asked = {batch: wanted.matches(Resource(about_batch(batch))) for batch in (None, 1, 20)}
    assert asked == {None: False, 1: True, 20: True}
