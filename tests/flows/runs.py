"""What Prefect keeps of a run, read back from its API and its files."""

import json
import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
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


def put(run: Any, state: Any) -> None:
    """Bring the run, by its id, into this state, whatever the server's rules say."""
    with _client() as client:
        client.set_flow_run_state(run, state, force=True)


class DeployedRun:
    """One run of a deployment of a flow, carried out here as a worker does it, to its end."""

    def __init__(self, flow: Any, **parameters: Any) -> None:
        from prefect.deployments import run_deployment

        self.flow = flow
        flow.to_deployment("tested").apply()
        created = run_deployment(f"{flow.name}/tested", parameters=parameters, timeout=0)
        self.id = created.id

    def work(self) -> Any:
        """Do what a worker does when it is told to start the run; its state afterwards."""
        from prefect.exceptions import Pause
        from prefect.flow_engine import run_flow
        from prefect.logging.loggers import flow_run_logger
        from prefect.states import Pending

        with _client() as client:
            client.set_flow_run_state(self.id, Pending())
            found = client.read_flow_run(self.id)
        parameters = self.flow.validate_parameters(found.parameters)
        with suppress(Pause, Exception):  # It would end the worker's child process.
            run_flow(
                self.flow,
                flow_run=found,
                parameters=parameters,
                error_logger=flow_run_logger(found),
            )
        return self.state

    def answer(self, answer: dict[str, str]) -> Any:
        """Send the form; what the server says to it."""
        with _client() as client:
            return client.resume_flow_run(self.id, run_input=answer)

    def retry(self) -> None:
        """Press Retry."""
        from prefect.states import AwaitingRetry

        with _client() as client:
            told = client.set_flow_run_state(self.id, AwaitingRetry(), force=False)
        assert told.status.value == "ACCEPT", told

    @property
    def state(self) -> Any:
        with _client() as client:
            return client.read_flow_run(self.id).state

    @property
    def form(self) -> tuple[dict[str, Any], str]:
        """The schema and the description of the form that is shown now."""
        keys = self.state.state_details.run_input_keyset
        with _client() as client:
            schema, text = (
                client.read_flow_run_input(self.id, keys[part])
                for part in ("schema", "description")
            )
        return json.loads(schema), json.loads(text)


def _client() -> Any:
    from prefect.client.orchestration import get_client

    return get_client(sync_client=True)


def imported(*paths: str, **terms: Any) -> DeployedRun:
    """A run of a deployment of the flow over these paths."""
    from flows.import_batch import import_batch

    return DeployedRun(import_batch, delivery={"paths": list(paths), **terms})


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
    _send_lines()
    database = server_database()
    return [path for path in (*home.rglob("*"), *database.parent.iterdir()) if path.is_file()]


def server_database() -> Path:
    """The file that the tests' Prefect server keeps everything in."""
    from prefect.settings import PREFECT_SERVER_DATABASE_CONNECTION_URL

    database = Path(str(PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).split("///", 1)[1])
    assert database.is_file()
    return database


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
