"""What ends a run without being a bug is one line; a bug keeps its traceback."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.runs import imported, log_lines, run
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

HEADER = "Id,TenantsId,DebtsId,PaidAmount,PaymentDate\n"
ANOTHER_RUN = (
    "Nothing was done, and Retry would fail again: start a new run with other parameters, or "
    "correct those of its schedule."
)
AWAY = "postgresql://nobody@127.0.0.1:1/nowhere"


def lines_of_failure(state: Any, found: str) -> list[str]:
    """The lines of a run that failed, all of which are lines."""
    assert state.type.value == "FAILED"
    lines = log_lines(state)
    assert [one for one in lines if "Traceback" in one or "\n" in one] == []
    assert [one for one in lines if one.startswith(found)], lines
    return lines


@pytest.mark.long
def test_a_path_that_leads_nowhere_is_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere.csv")
    lines_of_failure(run(path), f"{path}: no such file or folder.")


@pytest.mark.long
def test_a_database_that_is_gone_is_one_line_however_often_it_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks

    monkeypatch.setenv("RECON_DATABASE_URL", AWAY)
    monkeypatch.setattr(tasks.receive_files, "retry_delay_seconds", 0)
    (tmp_path / "a.csv").write_text(HEADER)
    lines_of_failure(run(str(tmp_path / "a.csv")), "The database cannot be used:")


@pytest.mark.long
def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.tasks import batch as tasks

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "/data")

    monkeypatch.setattr(tasks, "receive", full)
    (tmp_path / "a.csv").write_text(HEADER)
    lines_of_failure(run(str(tmp_path / "a.csv")), "'/data': No space left on device. What was")


@pytest.mark.long
@pytest.mark.parametrize("name", ["batch_board", "push_batch", "rerun_batch"])
def test_every_flow_fails_with_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    if name == "batch_board":
        monkeypatch.setenv("RECON_DATABASE_URL", AWAY)
        lines_of_failure(flow(return_state=True), "The database cannot be used:")
    else:
        lines_of_failure(flow(77, return_state=True), "There is no batch 77")


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        (
            "resolve",
            {"batch_id": 0, "decision": "confirm", "reason": "r", "by": " "},
            "batch_id: Input should be greater than or equal to 1; "
            f"by: String should have at least 1 character. {ANOTHER_RUN}",
        ),
        (
            "watch_inbox",
            {"inbox": "https://ann:canary@example.com/in"},
            "This address carries a login, a key or a signature, and parameters of a run are shown "
            f"to everyone; take it out and let the worker's environment give access. {ANOTHER_RUN}",
        ),
        (
            # Of a run that another version has scheduled, or of parameters given as JSON.
            "batch_board",
            {"weeks": 2},
            "Function expects parameters ['days'] but was provided with parameters ['weeks']. "
            f"{ANOTHER_RUN}",
        ),
    ],
)
def test_parameters_that_are_refused_are_one_line(
    name: str, given: dict[str, Any], told: str
) -> None:
    import importlib

    from prefect.exceptions import ParameterTypeError, SignatureMismatchError

    from flows.tasks.error_lines import error_line

    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    with pytest.raises((ParameterTypeError, SignatureMismatchError)) as refused:
        flow.validate_parameters(given)
    assert error_line(refused.value) == told


UNFIT = [
    # By a schedule, or by a request without the schema: the server then looks at none of these.
    (
        "batch_board",
        {"weeks": 2},
        "Function expects parameters ['days'] but was provided with parameters ['weeks']. ",
    ),
    (
        "rerun_batch",
        {},
        "Error binding parameters for function 'rerun_batch': "
        "missing a required argument: 'batch_id'. ",
    ),
]


@pytest.mark.parametrize(("name", "given", "told"), UNFIT)
def test_a_run_whose_parameters_no_flow_can_be_called_with_ends_failed_and_says_why(
    name: str, given: dict[str, Any], told: str
) -> None:
    """The process of such a run ends before the flow begins, and its worker calls it crashed."""
    import importlib

    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow
    from prefect.logging.loggers import flow_run_logger
    from prefect.states import Crashed

    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(flow, parameters=given)
        with pytest.raises(TypeError):
            run_flow(flow, flow_run=run, error_logger=flow_run_logger(run))
        client.set_flow_run_state(run.id, Crashed())
        run = client.read_flow_run(run.id)
        for hook in flow.on_crashed_hooks:
            hook(flow, run, run.state)
        state = client.read_flow_run(run.id).state
        # As the worker does once the hooks have ended.
        again = client.set_flow_run_state(run.id, Crashed())
    assert (state.name, state.message) == ("Failed", told + ANOTHER_RUN)
    assert again.status.value == "ABORT"
    lines_of_failure(state, told + ANOTHER_RUN)


def test_a_run_that_was_killed_stays_crashed() -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    from flows.batch_board import batch_board

    with get_client(sync_client=True) as client:
        run = client.create_flow_run(batch_board, parameters={"days": 2})
        client.set_flow_run_state(run.id, Crashed())
        run = client.read_flow_run(run.id)
        for hook in batch_board.on_crashed_hooks:
            hook(batch_board, run, run.state)
        assert client.read_flow_run(run.id).state.name == "Crashed"


def test_a_run_that_ends_failed_and_raises_nothing_is_told_without_a_traceback(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "payments.csv", line(1), line(2, amount="x"))
    state = imported(path, max_errors=0, over_budget="discard").work()
    assert state.name == "Rejected"
    lines_of_failure(state, state.message)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_run_whose_process_is_told_to_stop_says_how_to_go_on(
    stop: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks

    def stopped(*_: Any, **__: Any) -> None:
        raise stop

    monkeypatch.setattr(tasks, "receive", stopped)
    asked = imported(write(tmp_path / "payments.csv", line(1)))
    with pytest.raises(stop):
        asked.work()
    assert asked.state.name == "Crashed"
    lines = log_lines(asked.state)
    assert [one for one in lines if "Traceback" in one] == []
    assert [one for one in lines if one.endswith("Retry goes on where it stopped.")]


@pytest.mark.long
def test_a_bug_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.tasks import batch as tasks

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(tasks, "receive", broken)
    (tmp_path / "a.csv").write_text(HEADER)
    lines = log_lines(run(str(tmp_path / "a.csv")))
    assert [one for one in lines if "Traceback" in one and "KeyError: 'a bug'" in one]


def test_results_of_every_flow_are_json_where_it_fails_too() -> None:
    """What a run raised is kept; pickled, it would be code that the next version cannot read."""
    from flows.ops.deployments import DEPLOYMENTS, load

    kept = {line.flow: load(line).result_serializer for line in DEPLOYMENTS}
    assert kept == dict.fromkeys(kept, "json")
