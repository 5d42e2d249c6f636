"""Read the service's listings, so that they can be compared with our records."""

from dataclasses import asdict
from typing import Any, Literal

from prefect import flow, get_run_logger, task
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed

from connectors.postgres.batches.ledger import State
from flows.report.markdown import cell
from flows.report.spelling import digits
from flows.stages.pull import Pulled, pull, pull_compared
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.tasks.artifacts import publish_table
from flows.tasks.attempts import FROM_LEDGER, this_run
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import HOOKS, note_run
from flows.tasks.missed_runs import overtaken
from flows.tasks.run_names import called
from flows.tasks.states import COMPLETED, WITH_ERRORS
from schemas.counting import quantity

ListingName = Literal["avatars", "payment_plan_details", "insert_batch_data"]
"""The service's listings; a test compares them with the table of operations."""


@flow(name="pull-listings", flow_run_name=called(lambda _: "pull listings"), **HOOKS)
def pull_listings(listings: list[ListingName] | None = None) -> RunState[Any]:
    """Import the service's listings as they are; an incomplete listing is not imported at all.

    The same listing is imported only once, and no record is changed. The artifact listings shows
    the rows of each listing, and the proof that none is missing.

    Args:
        listings: Which listings to read; if empty, all of them.
    """
    if (skipped := overtaken()) is not None:
        return skipped
    pulled = read_listings(list(listings or []))
    publish_table(
        [
            {
                "Listing": cell(one["name"]),
                "Rows": digits(one["rows"]),
                "Complete because": cell(one["proof"]),
                "sha256": one["sha256"][:12],
            }
            for one in pulled["listings"]
        ],
        key="listings",
        about=f"Batch {pulled['batch_id']} holds these listings.",
        batches=[pulled["batch_id"]],
    )
    clean = pulled["verdict"] == State.COMPLETE
    counts = ", ".join(
        f"{quantity(one['rows'], 'row')} of {one['name']}" for one in pulled["listings"]
    )
    return Completed(
        name=COMPLETED if clean else WITH_ERRORS,
        message=f"Batch {pulled['batch_id']}: {counts}",
        data=pulled,
    )


@task(name="read listings", task_run_name="read listings", **FROM_LEDGER)
def read_listings(names: list[str]) -> dict[str, Any]:
    """Read listings; gives their batch and a line on each. Raises ServiceUnusable."""
    workspace = open_workspace()
    pulled = pull(workspace, names)
    _note(workspace, pulled)
    return {
        "batch_id": pulled.ended.batch.id,
        "verdict": pulled.ended.report.verdict,
        "listings": [asdict(one) for one in pulled.listings],
    }


@task(name="read listings", task_run_name="read listings", **FROM_LEDGER)
def read_compared(batches: list[int], feeds: list[str], tenants: list[int]) -> dict[str, str]:
    """Pull the listings that a scope is compared with; gives those that failed, and why."""
    workspace = open_workspace()
    first = pull_compared(workspace, Scope(tuple(batches), tuple(feeds), tuple(tenants)))
    if first.pulled is not None:
        _note(workspace, first.pulled)
    for why in first.unread.values():
        get_run_logger().warning("%s", why)
    return dict(first.unread)


def _note(workspace: Workspace, pulled: Pulled) -> None:
    with workspace.database.connect() as connection:
        if (run := this_run()) is not None:
            note_run(connection, pulled.ended.batch.id, run)
