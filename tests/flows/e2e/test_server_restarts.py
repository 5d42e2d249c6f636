"""A Prefect server, set up as the page says, that is killed while a run is under way."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.ops.laptop import SERVER
from tests.flows.e2e.machine import clean_environment
from tests.ports import own_port

pytestmark = [pytest.mark.e2e, pytest.mark.long]


class Server:
    """A server on a port of this machine, its API as a worker of Prefect 3.8.8 asks it."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, own_port()
        self.api = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}/api",
            headers={"User-Agent": "prefect/3.8.8 (API 0.8.4)"},
            trust_env=False,
            timeout=30,
        )

    @contextmanager
    def up(self) -> Iterator[None]:
        """It runs, and is killed at the end: nothing of what it has in memory is left."""
        with (self.home / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start"],
                env=clean_environment(
                    self.home,
                    PREFECT_HOME=str(self.home),
                    PREFECT_SERVER_DATABASE_CONNECTION_URL=(
                        f"sqlite+aiosqlite:///{self.home}/server.db"
                    ),
                    PREFECT_SERVER_API_HOST="127.0.0.1",
                    PREFECT_SERVER_API_PORT=str(self.port),
                    DO_NOT_TRACK="1",
                    **SERVER,
                ),
                stdout=log,
                stderr=log,
            )
        try:
            pause = threading.Event()
            while process.poll() is None and not pause.wait(0.2):
                with suppress(httpx.TransportError):
                    if self.api.get("/health").is_success:
                        break
            assert process.poll() is None, (self.home / "server.log").read_text()
            yield
        finally:
            process.kill()
            process.wait()

    def post(self, path: str, **body: Any) -> Any:
        for _ in range(100):
            answer = self.api.post(path, json=body)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:  # SQLite, in use.
                break
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def state(self, run: str, name: str) -> Any:
        """Propose a state; the state that the run has then."""
        return self.post(f"/flow_runs/{run}/set_state", state={"type": name})["state"]


def test_what_a_run_holds_is_let_go_though_the_server_was_killed_meanwhile(tmp_path: Path) -> None:
    server = Server(tmp_path)
    with server.up():
        flow = server.post("/flows/", name="imports")["id"]
        deployment = server.post(
            "/deployments/", name="one", flow_id=flow, concurrency_limit=1, entrypoint="a.b"
        )["id"]
        first, second = (
            server.post(f"/deployments/{deployment}/create_flow_run")["id"] for _ in range(2)
        )
        held = server.state(first, "PENDING")["state_details"]["deployment_concurrency_lease_id"]
        assert server.state(first, "RUNNING")["name"] == "Running"
        assert server.state(second, "PENDING")["name"] == "AwaitingConcurrencySlot"
    with server.up():
        # As the process of the run does three times in its term; refused, it ends the run.
        renewed = server.api.post(f"/v2/concurrency_limits/leases/{held}/renew", json={})
        assert renewed.status_code == httpx.codes.NO_CONTENT, renewed.text
        assert server.state(first, "COMPLETED")["name"] == "Completed"
        assert server.state(second, "PENDING")["name"] == "Pending"
