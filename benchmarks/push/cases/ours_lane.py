"""The whole push lane: payments that are in the database, planned, written ahead, sent, settled.

`push` is what is timed: the plan of the sends, their windows with the commits around them, the
calls themselves and the record of every answer. The import before it is not.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "import" / "cases")]

from clock import Clock  # noqa: E402

from connectors.files.profiles.profile import DEFAULT  # noqa: E402
from connectors.postgres.batches.lease import hold_batch  # noqa: E402
from connectors.postgres.database import open_database  # noqa: E402
from connectors.postgres.push.sends import count_states  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402
from connectors.settings import ServiceSettings, Settings  # noqa: E402
from data_samples.generate import write_payments  # noqa: E402
from flows.stages.push import push  # noqa: E402
from flows.stages.receiving.batch_service import ask_for_service  # noqa: E402
from flows.stages.sequence import import_delivery  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402


def stage_payments(workspace: Workspace, rows: int) -> int:
    """Import so many payments; gives their batch, nothing of which is planned or sent yet."""
    with tempfile.TemporaryDirectory(prefix="recon-lane-") as folder:
        write_payments(Path(folder), rows, 0.0, 1)
        return import_delivery(workspace, [str(Path(folder) / "payments.csv")], DEFAULT).batch.id


def open_workspace(home: Path, url: str, connections: int) -> Workspace:
    """A workspace with a database of its own and this service."""
    service = ServiceSettings(url=url, format="json", concurrency=connections)
    settings = replace(Settings(home.resolve(), embedded_url(home / "postgres")), service=service)
    return Workspace(settings, open_database(settings))


def main() -> None:
    url, connections, rows, core = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="recon-lane-") as home:
        Path(home).chmod(0o755)
        workspace = open_workspace(Path(home), url, int(connections))
        batch_id = stage_payments(workspace, int(rows))
        # Only now: the database server would be pinned to the client's core otherwise.
        if core != "any":
            os.sched_setaffinity(0, {int(core)})
        with (
            workspace.database.connect() as connection,
            hold_batch(connection, batch_id) as lease,
        ):
            ask_for_service(workspace, lease)
            clock = Clock()
            push(workspace, lease)
            clock.lap("push")
            states = count_states(connection, batch_id)["EditPayment"]
        if states != {"acknowledged": int(rows)}:
            raise SystemExit(f"not every row was acknowledged: {states}")
    clock.report()


if __name__ == "__main__":
    main()
