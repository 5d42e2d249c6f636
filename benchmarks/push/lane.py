"""The whole push lane timed: payments that are in the database, planned, written ahead and sent.

    python benchmarks/push/lane.py http://127.0.0.1:8080 --rows 20000 --connections 32

`stage_payments` prepares a batch and `push_staged` is what is timed: the plan of the sends, their
windows with the commits around them, the calls themselves and the record of every answer.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT)]

from connectors.database import open_database  # noqa: E402
from connectors.embedded import embedded_url  # noqa: E402
from connectors.extracts.profile import DEFAULT  # noqa: E402
from connectors.ledger import hold_batch  # noqa: E402
from connectors.sends import count_states  # noqa: E402
from connectors.settings import ServiceSettings, Settings  # noqa: E402
from data_samples.generate import write_payments  # noqa: E402
from flows.stages.push import ask_for_service, push  # noqa: E402
from flows.stages.sequence import import_delivery  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402


@dataclass(frozen=True, slots=True)
class Timed:
    """What one push took."""

    rows: int
    seconds: float
    cpu_seconds: float
    """Of this process; the database and the service have their own."""

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def stage_payments(workspace: Workspace, rows: int) -> int:
    """Import so many payments; gives their batch, nothing of which is planned or sent yet."""
    with tempfile.TemporaryDirectory(prefix="recon-lane-") as folder:
        write_payments(Path(folder), rows, 0.0, 1)
        return import_delivery(workspace, [str(Path(folder) / "payments.csv")], DEFAULT).batch.id


def push_staged(workspace: Workspace, batch_id: int) -> Timed:
    """Push a staged batch and time it; raises SystemExit when not every row was acknowledged."""
    with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
        ask_for_service(workspace, lease)
        started, cpu = time.perf_counter(), time.process_time()
        push(workspace, lease)
        seconds, used = time.perf_counter() - started, time.process_time() - cpu
        states = count_states(connection, batch_id)["EditPayment"]
    if set(states) != {"acknowledged"}:
        raise SystemExit(f"not every row was acknowledged: {states}")
    return Timed(states["acknowledged"], seconds, used)


def open_workspace(home: Path, url: str, connections: int, form: str) -> Workspace:
    """A workspace with a database of its own and this service."""
    service = ServiceSettings(url=url, format=form, concurrency=connections)
    settings = replace(Settings(home.resolve(), embedded_url(home / "postgres")), service=service)
    return Workspace(settings, open_database(settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="a service that answers PUT /payments/{Id} with its echo")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--format", default="json", choices=("csv", "json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recon-lane-") as home:
        Path(home).chmod(0o755)
        workspace = open_workspace(Path(home), asked.url, asked.connections, asked.format)
        timed = push_staged(workspace, stage_payments(workspace, asked.rows))
    print(
        json.dumps(
            {
                "rows": timed.rows,
                "seconds": round(timed.seconds, 3),
                "rows_per_second": round(timed.rate),
                "client_cpu_ms_per_row": round(1000 * timed.cpu_seconds / timed.rows, 4),
            }
        )
    )


if __name__ == "__main__":
    main()
