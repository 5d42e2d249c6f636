"""Killed anywhere, run again: the state is that of a run that was never killed."""

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import BatchHeldElsewhere
from connectors.files.profiles.profile import DEFAULT
from data_samples.generate import write_payments
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.conftest import Databases
from tests.recon import Run, run

ROWS, SEED = 1_500, 11
BLOCK_BYTES = 32 * 1024

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
    "names-free",
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


@dataclass(frozen=True)
class Outcome:
    """What a run leaves in the database, and its report."""

    tables: tuple[Any, ...]
    report: bytes


@pytest.fixture(scope="module")
def undisturbed(
    databases: Databases, delivery: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    home = tmp_path_factory.mktemp("undisturbed")
    with databases.new() as url:
        imported = import_it(url, home, delivery)
        assert imported.returncode == 1, imported.stderr
        return outcome(url, home)


def import_it(
    url: str, home: Path, delivery: Path, crash_at: str = ""
) -> "subprocess.CompletedProcess[str]":
    sizes = {"RECON_LIMIT_BLOCK_BYTES": str(BLOCK_BYTES), "RECON_LIMIT_STRICT_BYTES": "1"}
    known = {**sizes, "CRASH_AT": crash_at}
    return run(url, home, "import", str(delivery), **known)


def outcome(url: str, home: Path) -> Outcome:
    with psycopg.connect(url, options="-c search_path=recon") as connection:
        tables = tuple(
            connection.execute(statement).fetchall()
            for statement in (
                'SELECT * FROM payment ORDER BY "Id"',
                "SELECT record_number, state, data, error_data FROM staged_row ORDER BY 1",
                "SELECT stage, chunk, counts, totals FROM receipt ORDER BY 1, 2",
                "SELECT id, state FROM batch",
            )
        )
    return Outcome(tables, (home / "reports" / "batch-1" / "report.html").read_bytes())


@pytest.mark.long(but=("apply-chunk",))
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_import_goes_on_and_ends_the_same(
    database_url: str, tmp_path: Path, delivery: Path, undisturbed: Outcome, point: str
) -> None:
    home = tmp_path / "home"
    killed = import_it(database_url, home, delivery, point)
    assert killed.returncode == -signal.SIGKILL, (point, killed.stderr)
    again = import_it(database_url, home, delivery)
    assert again.returncode == 1, (point, again.stderr)
    assert outcome(database_url, home) == undisturbed
    assert not list(home.rglob(".writing-*"))
    assert not list((home / "archive" / "incoming").iterdir())
    assert not list((home / "spool").rglob("*-*"))


@pytest.mark.long
def test_eight_runs_at_once_are_one(
    workspace: Workspace, database_url: str, delivery: Path
) -> None:
    runs = [Run(database_url, workspace.settings.home, "import", str(delivery)) for _ in range(8)]
    codes = [(one.communicate()[1], one.returncode) for one in runs]
    assert {code for _, code in codes} <= {1, BatchHeldElsewhere.exit_code}, codes
    assert 1 in {code for _, code in codes}
    assert all("is being worked on by" in told for told, code in codes if code == 3)
    with workspace.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM batch").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM staged_payment").fetchone() == (ROWS,)
    final = import_delivery(workspace, [str(delivery)], DEFAULT)
    assert all(chain.ties for chain in final.report.chains)
