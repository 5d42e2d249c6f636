"""What Prefect's loggers write of an error: one line, and the rest at debug."""

import logging

import httpx
import pytest

from connectors.errors import BatchUnknown, ReconError, ServiceUnusable
from tests.examples import in_long

pytestmark = pytest.mark.flows

TEXT = "a.csv: what is wrong. What to do."


@pytest.fixture(scope="module", autouse=True)
def environment() -> None:
    """No database is opened here. Prefect sets its loggers up when a run's modules are imported."""
    from prefect.logging.configuration import setup_logging

    from flows.tasks import holding

    assert holding.open_workspace
    setup_logging()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ReconError(TEXT), TEXT),
        (ServiceUnusable("it says 'no'\nand goes"), "it says 'no'\nand goes"),
        (BatchUnknown(TEXT), TEXT),
        (PermissionError(13, "Permission denied", "/a/b"), "'/a/b': Permission denied. What was"),
        (OSError(28, "No space left on device"), "standard output or a file: No space left"),
        (
            httpx.ConnectError("All connection attempts failed"),
            "The Prefect server gave no usable answer",
        ),
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
@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("prefect.flow_runs", logging.INFO),
        ("prefect.task_runs", logging.DEBUG),
        in_long("prefect.flow_runs", logging.DEBUG),
        in_long("prefect.task_runs", logging.INFO),
        in_long("prefect.engine", logging.INFO),
        in_long("prefect.engine", logging.DEBUG),
    ],
)
def test_a_logger_of_prefect_writes_one_line_and_the_rest_at_debug(
    name: str, level: int, error: Exception, line: str | None, caplog: pytest.LogCaptureFixture
) -> None:
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
