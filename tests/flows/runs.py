"""What Prefect keeps of a run, read back from its API and its files."""

import json
import logging
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Artifact(NamedTuple):
    """The latest version of an artifact."""

    type: str
    data: str
    description: str

    @property
    def table(self) -> list[dict[str, str]]:
        return json.loads(self.data)


def run(*paths: str, **terms: Any) -> Any:
    """The end state of the flow over these paths."""
    from flows.import_batch import run_import
    from flows.tasks.delivery import Delivery

    return run_import(Delivery(paths=list(paths), **terms))


def artifact(key: str) -> Artifact:
    from prefect.artifacts import Artifact as Kept

    found = Kept.get(key)
    assert found is not None, key
    return Artifact(str(found.type), str(found.data), str(found.description))


def flow_run(state: Any) -> Any:
    """The run that ended in this state, as the API tells it."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return client.read_flow_run(state.state_details.flow_run_id)


def log_lines(state: Any) -> list[str]:
    """What the run page of this run shows."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    _send_lines()
    wanted = LogFilterFlowRunId(any_=[state.state_details.flow_run_id])
    with get_client(sync_client=True) as client:
        return [log.message for log in client.read_logs(LogFilter(flow_run_id=wanted))]


def kept_files(home: Path) -> list[Path]:
    """Every file Prefect has written, its database included."""
    from prefect.settings import PREFECT_SERVER_DATABASE_CONNECTION_URL

    _send_lines()
    database = Path(str(PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).split("///", 1)[1])
    assert database.is_file()
    return [path for path in (*home.rglob("*"), *database.parent.iterdir()) if path.is_file()]


def result_files(home: Path) -> set[Path]:
    """Where results are kept; those of tests before this one are among them."""
    return {path for path in (home / "storage").rglob("*") if path.is_file()}


def kept_results(home: Path, before: Collection[Path] = ()) -> Iterator[dict[str, Any]]:
    """The results kept since; each file has to be JSON through and through."""
    for path in result_files(home) - set(before):
        record = json.loads(path.read_bytes())
        result = json.loads(record["result"]) if "metadata" in record else record
        if "__exc_type__" not in result:  # The text of an error that ended a run.
            yield result


def _send_lines() -> None:
    """Lines are sent in batches; this waits until the last of them has arrived."""
    for handler in logging.getLogger("prefect.flow_runs").handlers:
        handler.flush()
