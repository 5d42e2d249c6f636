"""A machine that is up: `recon up` in a folder of its own, and what people click, as API calls."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from connectors.postgres.server.postmaster import Postmaster
from tests.ports import own_port

ENDS = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
SECONDS = 180
"""Longest wait for anything; two cores may be busy with other things."""


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of the test session's own Prefect, database or crash points."""
    ours = ("PREFECT_", "RECON_", "CRASH_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"RECON_HOME": str(home)} | more


def left_behind(home: Path) -> list[str]:
    """Every living process that works in this home, PostgreSQL included."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.status() == psutil.STATUS_ZOMBIE or one.pid == os.getpid():
                continue
            line = " ".join(one.cmdline())
            if one.environ().get("RECON_HOME") == str(home) or str(home / "postgres") in line:
                found.append(f"{one.pid} {line}")
    return found


@contextmanager
def webhook(notices: list[bytes]) -> Iterator[str]:
    """A receiver of notices on a port of this machine; gives its address."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notices.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Machine:
    """What runs, and the server's API."""

    def __init__(self, home: Path, notices: Sequence[bytes] = (), **environment: str) -> None:
        self.home = home
        self.notices = notices
        """What the webhook of RECON_NOTIFY_URL was told."""
        self.port, self.sandbox_port = own_port(), own_port()
        self.desk_port = own_port()
        self.environment = clean_environment(home, **environment)
        self.url = f"http://127.0.0.1:{self.port}"
        self.api = httpx.Client(base_url=f"{self.url}/api", trust_env=False, timeout=30)

    def recon(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "flows", *arguments],
            env=self.environment | {"PREFECT_API_URL": f"{self.url}/api"} | more,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def options(self) -> list[str]:
        return [
            f"--port={self.port}",
            f"--sandbox-port={self.sandbox_port}",
            f"--desk-port={self.desk_port}",
        ]

    @contextmanager
    def up(self) -> Iterator[None]:
        """`recon up` in the foreground; ended as Ctrl-C ends it."""
        self.home.mkdir(parents=True, exist_ok=True)
        log = self.home / "foreground.log"
        process = self.begin_up(log)
        try:
            self.until(
                lambda: (process.poll() is not None or b"Ctrl-C stops" in log.read_bytes()) or None
            )
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(SECONDS)
        assert code == 0, log.read_text()
        assert left_behind(self.home) == []

    def begin_up(self, log: Path) -> "subprocess.Popen[bytes]":
        """`recon up` in the foreground, as soon as its process is there; what it says is in log."""
        with log.open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "flows", "up", *self.options()],
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def until(self, ask: Any, seconds: float = SECONDS) -> Any:
        """What `ask` gives as soon as it gives anything; an AssertionError when it never does."""
        pause = threading.Event()
        for _ in range(int(seconds * 5)):
            found = ask()
            if found is not None:
                return found
            pause.wait(0.2)
        raise AssertionError(f"nothing within {seconds} s; {self.logs()}")

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted((self.home / "up").glob("*.log"))
        )

    def get(self, path: str) -> Any:
        answer = self.api.get(path)
        assert answer.is_success, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.api.post(path, json={} if body is None else body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def deployment(self, name: str) -> Any:
        return self.get(f"/deployments/name/{name}")

    def start(self, name: str, parameters: Any, **environment: str) -> str:
        """Quick run or custom run of a deployment, as its page offers it."""
        body: dict[str, Any] = {
            "parameters": parameters,
            "state": {"type": "SCHEDULED"},
            "enforce_parameter_schema": True,
        }
        if environment:
            body["job_variables"] = {"env": environment}
        return str(
            self.post(f"/deployments/{self.deployment(name)['id']}/create_flow_run", body)["id"]
        )

    def run(self, run_id: str) -> Any:
        return self.get(f"/flow_runs/{run_id}")

    def end(self, run_id: str, *, runs: int = 1) -> tuple[str, str, str]:
        """Type, name and message of the state the run ends its n-th attempt in."""

        def ended() -> Any:
            run = self.run(run_id)
            state = run["state"]
            over = state["type"] in (*ENDS, "PAUSED") and run["run_count"] >= runs
            return (state["type"], state["name"], state["message"]) if over else None

        return self.until(ended)

    def crashed(self, run_id: str) -> None:
        """Wait until a killed run is Crashed for good.

        It is reported twice, and a Retry between the two is taken for the run that died: first
        when its process ends, then by the worker, when the hooks of the run have ended.
        """
        assert self.end(run_id)[:2] == ("CRASHED", "Crashed")
        last = "Check whether the flow run exceeded"
        self.until(lambda: any(last in one for one in self.log_lines(run_id)) or None)

    def retry(self, run_id: str, *, later: timedelta = timedelta()) -> None:
        """The Retry button of the run page."""
        state = {
            "type": "SCHEDULED",
            "name": "AwaitingRetry",
            "state_details": {"scheduled_time": (datetime.now(UTC) + later).isoformat()},
        }
        answer = self.post(f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})
        assert answer["status"] == "ACCEPT", answer

    def retry_without(self, run_id: str) -> None:
        """The same with the environment of the run taken away, which only a waiting run allows."""
        self.retry(run_id, later=timedelta(minutes=5))
        path = f"/flow_runs/{run_id}"
        self.api.patch(path, json={"job_variables": {}}).raise_for_status()
        self.retry(run_id)

    def answer(self, run_id: str, **values: str) -> Any:
        """The Resume form of a suspended run."""
        return self.post(f"/flow_runs/{run_id}/resume", {"run_input": values})

    def block(self, kind: str, name: str, values: Any) -> str:
        """The form under Blocks; gives the document's id."""
        kind_id = self.get(f"/block_types/slug/{kind}")["id"]
        wanted = {"block_schemas": {"block_type_id": {"any_": [kind_id]}}}
        schema_id = self.post("/block_schemas/filter", wanted)[0]["id"]
        document = {"name": name, "block_type_id": kind_id, "block_schema_id": schema_id}
        return str(self.post("/block_documents/", document | {"data": values})["id"])

    def log_lines(self, run_id: str) -> list[str]:
        wanted = {"logs": {"flow_run_id": {"any_": [run_id]}}, "sort": "TIMESTAMP_ASC"}
        return [one["message"] for one in self.post("/logs/filter", wanted)]

    def artifact(self, key: str) -> Any:
        return self.get(f"/artifacts/{key}/latest")

    def database(self, name: str) -> str:
        """URL of a database of the embedded server, without keeping that server alive."""
        return Postmaster(self.home / "postgres").uri(name)

    def rows(self, statement: str, parameters: Any = None, database: str = "recon") -> Any:
        options = "-c search_path=recon,public -c timezone=UTC"
        with psycopg.connect(self.database(database), options=options) as connection:
            return connection.execute(statement, parameters).fetchall()
