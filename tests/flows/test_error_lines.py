"""What ends a run without being a bug is one line; a bug keeps its traceback."""

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.errors import BatchUnknown, ReconError, ServiceUnusable
from tests.flows.runs import log_lines, run

pytestmark = pytest.mark.flows

HEADER = "Id,TenantsId,DebtsId,PaidAmount,PaymentDate\n"
AWAY = "postgresql://nobody@127.0.0.1:1/nowhere"
TEXT = "a.csv: what is wrong. What to do."


def lines_of_failure(state: Any, found: str) -> list[str]:
    """The lines of a run that failed, all of which are lines."""
    assert state.type.value == "FAILED"
    lines = log_lines(state)
    assert [line for line in lines if "Traceback" in line or "\n" in line] == []
    assert [line for line in lines if line.startswith(found)], lines
    return lines


def test_a_path_that_leads_nowhere_is_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere.csv")
    lines_of_failure(run(path), f"{path}: no such file or folder.")


def test_a_database_that_is_gone_is_one_line_however_often_it_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks

    monkeypatch.setenv("RECON_DATABASE_URL", AWAY)
    monkeypatch.setattr(tasks.receive_files, "retry_delay_seconds", 0)
    (tmp_path / "a.csv").write_text(HEADER)
    lines_of_failure(run(str(tmp_path / "a.csv")), "The database cannot be used:")


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.tasks import batch as tasks

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "/data")

    monkeypatch.setattr(tasks, "receive", full)
    (tmp_path / "a.csv").write_text(HEADER)
    lines_of_failure(run(str(tmp_path / "a.csv")), "'/data': No space left on device. What was")


@pytest.mark.parametrize("name", ["batch_board", "push_batch", "rerun_batch"])
def test_every_flow_fails_with_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    if name == "batch_board":
        monkeypatch.setenv("RECON_DATABASE_URL", AWAY)
        lines_of_failure(flow(return_state=True), "The database cannot be used:")
    else:
        lines_of_failure(flow(77, return_state=True), "There is no batch 77")


def test_a_bug_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.tasks import batch as tasks

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(tasks, "receive", broken)
    (tmp_path / "a.csv").write_text(HEADER)
    lines = log_lines(run(str(tmp_path / "a.csv")))
    assert [line for line in lines if "Traceback" in line and "KeyError: 'a bug'" in line]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ReconError(TEXT), TEXT),
        (ServiceUnusable("it says 'no'\nand goes"), "it says 'no'\nand goes"),
        (BatchUnknown(TEXT), TEXT),
        (PermissionError(13, "Permission denied", "/a/b"), "'/a/b': Permission denied. What was"),
        (OSError(28, "No space left on device"), "standard output or a file: No space left"),
        (httpx.ConnectError("All connection attempts failed"), "The Prefect server gave no answer"),
        (
            RuntimeError(
                "Cannot create flow run. Failed to reach API at http://a:pw@127.0.0.1:1/."
            ),
            "The Prefect server cannot be reached. What was done before",
        ),
        (RuntimeError("a bug"), None),
        (ValueError("a bug"), None),
        (KeyError("a bug"), None),
        (AssertionError(), None),
    ],
)
@pytest.mark.parametrize("name", ["prefect.flow_runs", "prefect.task_runs", "prefect.engine"])
@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_a_logger_of_prefect_writes_one_line_and_the_rest_at_debug(
    name: str, level: int, error: Exception, line: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    from flows.tasks import holding

    assert holding.open_workspace
    log = logging.getLogger(name)
    caplog.set_level(level, logger=name)
    try:
        raise error
    except Exception:
        log.exception("Encountered exception during execution: %r", error)
    (record,) = caplog.records
    told = record.getMessage()
    assert told.startswith(line or "Encountered exception during execution")
    assert (record.exc_info is None) == (line is not None and level == logging.INFO)


def test_results_of_every_flow_are_json_where_it_fails_too() -> None:
    """What a run raised is kept; pickled, it would be code that the next version cannot read."""
    from flows.ops.deployments import DEPLOYMENTS, load

    kept = {line.flow: load(line).result_serializer for line in DEPLOYMENTS}
    assert kept == dict.fromkeys(kept, "json")
