"""Killed anywhere, run again: the state is that of a run that was never killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchHeldElsewhere
from connectors.extracts.profile import DEFAULT
from data_samples.generate import write_payments
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

ROWS, SEED = 3_000, 11
BLOCK_BYTES = 64 * 1024

POINTS = [
    "hashed",
    "archived",
    "open",
    "spool:2",
    "copy",
    "copy:3",
    "receipt:2",
    "chunk:1",
    "chunk:3",
    "stage",
    "check",
    "apply",
    "apply:2",
    "apply-chunk",
    "apply-chunk:2",
    "applied",
    "file-written",
    "file-renamed",
    "file-renamed:2",
    "report",
    "cleared",
    "finish",
]


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delivery")
    write_payments(folder, ROWS, 0.02, SEED)
    return folder / "payments.csv"


def recon(url: str, home: Path, *arguments: str, crash_at: str | None = None) -> Any:
    environment = os.environ | {
        "RECON_DATABASE_URL": url,
        "RECON_HOME": str(home),
        "RECON_LIMIT_BLOCK_BYTES": str(BLOCK_BYTES),
    }
    if crash_at:
        environment["CRASH_AT"] = crash_at
    return subprocess.run(
        [sys.executable, "-m", "flows", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def truth(workspace: Workspace) -> tuple[Any, ...]:
    with workspace.database.connect() as connection:
        return tuple(
            connection.execute(statement).fetchall()
            for statement in (
                'SELECT * FROM payment ORDER BY "Id"',
                "SELECT record_number, state, data, error_data FROM staged_row ORDER BY 1",
                "SELECT stage, chunk, counts, totals FROM receipt ORDER BY 1, 2",
                "SELECT id, state FROM batch",
            )
        )


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_import_goes_on_and_ends_the_same(
    workspace: Workspace, database_url: str, delivery: Path, point: str
) -> None:
    home = workspace.settings.home
    killed = recon(database_url, home, "import", str(delivery), crash_at=point)
    assert killed.returncode == -signal.SIGKILL, (point, killed.stderr)
    again = recon(database_url, home, "import", str(delivery))
    assert again.returncode == 1, (point, again.stderr)
    after_crash = truth(workspace)
    report = (home / "reports" / "batch-1" / "report.html").read_bytes()
    assert not list(home.rglob(".writing-*"))
    assert not list((home / "archive" / "incoming").iterdir())
    assert not list((home / "spool").rglob("*-*"))

    with workspace.database.connect() as connection:
        for table in ("payment", "staged_payment", "receipt", "outcome", "note", "extract"):
            connection.execute(f"TRUNCATE {table} RESTART IDENTITY")
        connection.execute("TRUNCATE batch RESTART IDENTITY")
    undisturbed = recon(database_url, home, "import", str(delivery))
    assert undisturbed.returncode == 1
    assert truth(workspace) == after_crash
    assert (home / "reports" / "batch-1" / "report.html").read_bytes() == report


def test_eight_runs_at_once_are_one(
    workspace: Workspace, database_url: str, delivery: Path
) -> None:
    environment = os.environ | {
        "RECON_DATABASE_URL": database_url,
        "RECON_HOME": str(workspace.settings.home),
    }
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "flows", "import", str(delivery)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    codes = [(run.communicate(timeout=120)[1], run.returncode) for run in runs]
    assert {code for _, code in codes} <= {1, BatchHeldElsewhere.exit_code}, codes
    assert 1 in {code for _, code in codes}
    assert all("is being worked on by" in told for told, code in codes if code == 3)
    with workspace.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM batch").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM staged_payment").fetchone() == (ROWS,)
    final = import_delivery(workspace, [str(delivery)], DEFAULT)
    assert all(chain.ties for chain in final.report.chains)
