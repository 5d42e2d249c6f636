"""A reconciliation that was killed leaves nothing half done: run again, it is as if never begun."""

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.recon import run
from tests.reconcile.scenario import FOLDER

POINTS = ["gathered", "reconciliation-written", "reconciled"]
REPORTS = ("report.html", "report.xlsx", "totals.json", "breaks.csv")


def recon(url: str, home: Path, *arguments: str, crash_at: str = "") -> int:
    ended = run(url, home, *arguments, CRASH_AT=crash_at)
    assert "Traceback" not in ended.stderr
    return ended.returncode


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_reconciliation_is_run_again(
    database_url: str, rows: Any, tmp_path: Path, point: str
) -> None:
    home = tmp_path / "home"
    assert recon(database_url, home, "import", str(FOLDER / "monday")) == 1
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute((FOLDER / "monday.sql").read_bytes())
    asked = ("reconcile", "--as-of", "2026-03-09", "--rules", str(FOLDER / "rules.toml"))

    assert recon(database_url, home, *asked, crash_at=point) == -signal.SIGKILL
    saved = rows("SELECT count(*) FROM reconciliation")
    assert saved == [(1 if point == "reconciled" else 0,)]

    assert recon(database_url, home, *asked) == 1
    runs = rows("SELECT id, folder, report_hash FROM reconciliation ORDER BY id")
    number, folder, _ = runs[-1]
    assert all((home / "reports" / folder / name).is_file() for name in REPORTS)
    assert recon(database_url, home, "report", str(number)) == 1
    assert recon(database_url, home, "audit", "verify") == 0
    if point == "reconciled":
        # It was saved before it died: the second run carries the same breaks on.
        last = "SELECT DISTINCT state FROM break_state WHERE reconciliation_id = %s"
        assert rows(last, [number]) == [("OPEN",)]
