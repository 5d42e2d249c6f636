"""A run is called what somebody named it, or else what it does; never `None`, never `batch 0`."""

from datetime import UTC, datetime
from typing import Any

import pytest

pytestmark = pytest.mark.flows


def name_after(flow: Any, name: str | None, **parameters: Any) -> str:
    """The name of a run in Prefect after it began, as a worker begins it."""
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow

    with get_client(sync_client=True) as client:
        created = client.create_flow_run(flow, name=name, parameters=parameters)
        run_flow(flow, flow_run=created, parameters=parameters, return_type="state")
        return str(client.read_flow_run(created.id).name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "own"),
    [
        (None, None),
        ("gamma3-orionis-belt", None),  # The form of the page puts such a name in.
        ("lambda-canis-majoris", None),
        ("month-end", "month-end"),
        ("my-run", "my-run"),
        ("Second try, agreed with A. Meyer", "Second try, agreed with A. Meyer"),
    ],
)
def test_a_name_that_somebody_chose_is_kept(name: str | None, own: str | None) -> None:
    from flows.push_batch import push_batch

    assert name_after(push_batch, name) == (own or "push what is unsent")


@pytest.mark.long
def test_a_run_without_a_day_or_a_batch_says_what_it_does() -> None:
    from flows.push_batch import push_batch
    from flows.reconcile import reconcile
    from flows.resolve import resolve

    asked = {"batch_id": 7, "decision": "confirm", "reason": "seen", "by": "A. Meyer"}
    assert name_after(push_batch, None, batch_id=7) == "push batch 7"
    assert name_after(resolve, None, **asked) == "resolve batch 7: confirm"
    today = datetime.now(UTC).date()
    assert name_after(reconcile, None) == f"reconcile as of {today}"


@pytest.mark.long
def test_runs_that_a_schedule_makes_say_what_they_do() -> None:
    from flows.batch_board import batch_board
    from flows.housekeeping import housekeeping
    from flows.watch_inbox import watch_inbox

    assert name_after(batch_board, None, days=1) == "write the table of batches"
    assert name_after(housekeeping, None) == "count what nothing needs"
    assert name_after(housekeeping, None, dry_run=False) == "remove what nothing needs"
    assert name_after(watch_inbox, None) == "look into the inbox"
    assert name_after(watch_inbox, None, inbox="/nowhere/in") == "look into /nowhere/in"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/in/a.csv\n", r"import a.csv\n"),
        ("/in/a\nb.csv", r"import a\nb.csv"),
        ("/in/a\u202egpj.csv", r"import a\u202egpj.csv"),
        ("/in/" + "x" * 5000, f"import {'x' * 193}..."),
    ],
)
def test_a_name_is_one_line_whatever_somebody_typed_as_a_path(path: str, name: str) -> None:
    from flows.import_batch import import_batch
    from flows.tasks.delivery import Delivery

    assert name_after(import_batch, None, delivery=Delivery(paths=[path])) == name


def test_no_flow_leaves_its_runs_the_name_that_prefect_made_up() -> None:
    from flows.ops.deployments import DEPLOYMENTS, load

    named = {line.flow: callable(load(line).flow_run_name) for line in DEPLOYMENTS}
    assert named == dict.fromkeys(named, True)


def test_every_name_prefect_makes_up_is_known_as_such() -> None:
    from prefect.utilities.names import generate_slug

    from flows.tasks.run_names import is_made_up

    assert all(is_made_up(generate_slug(2)) for _ in range(500))
