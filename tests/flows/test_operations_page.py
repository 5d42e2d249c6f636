"""The page about operations names what the flows really ask for and how they really end."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [pytest.mark.flows, pytest.mark.usefixtures("no_database")]

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
LINE = re.compile(r"^\| `([a-z-]+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def test_every_parameter_of_a_flow_is_on_the_page() -> None:
    from flows.ops import deployments

    section = PAGE.split("## How a run ends")[0]
    told = {flow: re.findall(r"`([a-z_]+)`", named) for flow, named, _ in LINE.findall(section)}
    assert set(told) == {one.flow.replace("_", "-") for one in deployments.DEPLOYMENTS}
    for flow, names in told.items():
        name = flow.replace("-", "_")
        function = getattr(import_module(f"flows.{name}"), name).fn
        assert list(inspect.signature(function).parameters) == names, flow


def test_every_state_a_batch_can_end_a_run_in_is_on_the_page() -> None:
    from flows.tasks import states

    told = re.findall(r"^\| `([A-Za-z]+)` \| (\w+) \|", PAGE, re.MULTILINE)
    named = {states.COMPLETED, states.WITH_ERRORS, states.HELD, states.REJECTED}
    assert named <= {name for name, _ in told}
    assert dict(told)[states.HELD] == "failed"


def test_every_state_and_event_of_a_run_is_on_the_page() -> None:
    from flows.ops import automations
    from flows.tasks import hooks

    ours = [name for name in automations.ATTENTION if name != "TimedOut"]
    for name in (*ours, hooks.CANCELLED, hooks.SKIPPED):
        assert re.search(rf"^\| `{name}` \|", PAGE, re.MULTILINE), name
    events = PAGE.split("## Missed runs")[0]
    for end in automations.BATCH_ENDS:
        assert f"`{end}`" in events, end


def test_every_deployment_of_the_page_is_there() -> None:
    from flows.ops.deployments import DEPLOYMENTS

    known = {one.full_name for one in DEPLOYMENTS}
    flows = {one.partition("/")[0] for one in known}
    for flow, name in re.findall(r"`([a-z-]+)/([a-z-]+)`", PAGE):
        if flow in flows:
            assert f"{flow}/{name}" in known


def test_every_unfinished_name_and_default_is_on_the_page() -> None:
    from connectors.files.incoming.file_names import UNFINISHED
    from flows.stages.upkeep.retention import DEFAULT
    from flows.tasks.approval import DAYS_TO_DECIDE

    assert all(f"`{suffix}`" in PAGE for suffix in UNFINISHED)
    assert DAYS_TO_DECIDE == 7
    assert "seven days" in PAGE
    for setting in ("archive_days", "report_days", "result_days"):
        assert re.search(rf"{setting}.*\({getattr(DEFAULT, setting)}\b", PAGE) or re.search(
            rf"{setting}` old \({getattr(DEFAULT, setting)}", PAGE
        )
