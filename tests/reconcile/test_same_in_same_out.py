"""The same truths and rules give the same files, byte for byte, whatever surrounds the run."""

import os
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.joins import reconcile_sources
from tests.examples import ALL, examples
from tests.reconcile.scenario import FOLDER

SURROUNDINGS = {
    "as it is, two threads": {"POLARS_MAX_THREADS": "2"},
    "another zone, one thread": {
        "TZ": "Pacific/Chatham",
        "POLARS_MAX_THREADS": "1",
        "PYTHONHASHSEED": "1",
    },
    "another zone, one thread, small blocks": {
        "TZ": "America/New_York",
        "POLARS_MAX_THREADS": "1",
        "RECON_LIMIT_BLOCK_BYTES": "20000",
        "RECON_LIMIT_STRICT_BYTES": "1",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "2",
    },
}
if not ALL:
    del SURROUNDINGS["another zone, one thread"]


def recon(environment: dict[str, str], *arguments: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "flows", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 1, run.stderr


def files(url: str, home: Path, surroundings: dict[str, str]) -> dict[str, bytes]:
    """Every file of a reconciliation but the manifest, by its name."""
    environment = os.environ | {"RECON_DATABASE_URL": url, "RECON_HOME": str(home)} | surroundings
    recon(environment, "import", str(FOLDER / "monday"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((FOLDER / "monday.sql").read_text())
    rules = str(FOLDER / "rules.toml")
    recon(environment, "reconcile", "--as-of", "2026-03-09", "--rules", rules)
    folder = home / "reports" / "reconciliation-1"
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }
    assert {"report.html", "report.xlsx", "breaks.csv", "breaks.parquet", "totals.json"} <= {*found}
    return found


@pytest.mark.long
def test_files_are_identical(database_url: str, tmp_path: Path) -> None:
    found = {}
    for number, (title, surroundings) in enumerate(SURROUNDINGS.items()):
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS recon CASCADE")
        found[title] = files(database_url, tmp_path / f"home-{number}", surroundings)
    first, *others = found.values()
    for other in others:
        assert other.keys() == first.keys()
        assert [name for name in first if other[name] != first[name]] == []


def test_the_order_of_rows_does_not_matter(workspace: Workspace) -> None:
    import_delivery(workspace, [str(FOLDER / "monday")], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute((FOLDER / "monday.sql").read_bytes())
        sources = gather_sources(workspace, connection, Scope(), {}).sources
    rules = read_rules(FOLDER / "rules.toml")
    breaks = reconcile_sources(sources, rules, date(2026, 3, 9), service=False).breaks
    for seed in range(examples(5, 2)):
        shuffled = Sources(
            *(
                {
                    name: frame.sample(fraction=1.0, shuffle=True, seed=seed)
                    for name, frame in random.Random(seed).sample(sorted(side.items()), k=len(side))
                }
                for side in (sources.extract, sources.database)
            )
        )
        again = reconcile_sources(shuffled, rules, date(2026, 3, 9), service=False).breaks
        assert again.equals(breaks), f"seed {seed}"
