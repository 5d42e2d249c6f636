"""The same delivery gives the same report, byte for byte, whatever surrounds the run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.examples import ALL

SAMPLES = Path(__file__).parents[2] / "data_samples" / "dirty"
REPORTS = ("report.html", "report.txt")
SURROUNDINGS = {
    "as it is, two threads": {"POLARS_MAX_THREADS": "2"},
    "another zone, one thread": {"TZ": "Pacific/Chatham", "POLARS_MAX_THREADS": "1"},
    "another zone, one thread, small blocks": {
        "TZ": "America/New_York",
        "POLARS_MAX_THREADS": "1",
        "RECON_LIMIT_BLOCK_BYTES": "20000",
        "RECON_LIMIT_STRICT_BYTES": "1",
        "LC_ALL": "C",
    },
}
if not ALL:
    del SURROUNDINGS["another zone, one thread"]


@pytest.fixture
def server_url(database_url: str) -> str:
    return database_url


def reports(url: str, home: Path, paths: list[Path], surroundings: dict[str, str]) -> list[bytes]:
    environment = os.environ | {"RECON_DATABASE_URL": url, "RECON_HOME": str(home)} | surroundings
    run = subprocess.run(
        [sys.executable, "-m", "flows", "import", *map(str, paths)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    (folder,) = (home / "reports").iterdir()
    return [(folder / name).read_bytes() for name in REPORTS]


@pytest.mark.long
def test_reports_are_identical(server_url: str, tmp_path: Path) -> None:
    found = {}
    for number, (title, surroundings) in enumerate(SURROUNDINGS.items()):
        home = tmp_path / f"home-{number}"
        folder = tmp_path / f"copy-{number}"
        shutil.copytree(SAMPLES, folder)
        paths = sorted(folder.glob("*.csv"), reverse=number % 2 == 1)
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS recon CASCADE")
        found[title] = reports(server_url, home, paths, surroundings)
    first, *others = found.values()
    assert all(other == first for other in others), [
        title for title, other in found.items() if other != first
    ]
