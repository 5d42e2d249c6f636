"""The table of batches on a page of Prefect: what waits, visible without a terminal."""

from datetime import timedelta
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed
from pydantic import Field

from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.push.gate import held_text, why_held
from flows.report.board import MOST, board_table
from flows.report.next_step import next_step
from flows.stages.reconcile.as_of import first_moment, today
from flows.tasks.artifacts import publish_table
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import UNKEPT
from flows.tasks.missed_runs import done_since, overtaken
from flows.tasks.run_names import called
from schemas.counting import quantity

DAYS = 14


@flow(name="batch-board", flow_run_name=called(lambda _: "write the table of batches"), **UNKEPT)
def batch_board(days: Annotated[int, Field(ge=1, le=3650)] = DAYS) -> RunState[Any]:
    """Write the table of batches: id, feed, state, rows, errors, why it is held, and the next step.

    Args:
        days: Show batches opened within this number of days, and every older one that has not
            ended; at most the latest 200 of them.
    """
    if (skipped := overtaken() or done_since()) is not None:
        return skipped
    workspace = open_workspace()
    zone = workspace.settings.time_zone
    since = first_moment(today(zone) - timedelta(days=days), zone)
    with workspace.database.connect() as connection:
        why = why_held(connection, workspace.settings.home)
        found = list_overview(connection, MOST + 1, since=since)
    lines = found[:MOST]
    waiting = sum(bool(next_step(line)) for line in lines)
    held = sum(line.state is State.HELD for line in lines)
    latest = "the latest " if found[MOST:] else ""
    summary = f"{latest}{quantity(len(lines), 'batch')}, {held} held, {waiting} with a next step"
    summary += f". {held_text(why)}" if why else ""
    publish_table(
        board_table(lines, zone, held=why is not None),
        key="batches",
        about=f"{summary}; {quantity(days, 'day')}; times in {zone.key}",
    )
    return Completed(message=summary)
