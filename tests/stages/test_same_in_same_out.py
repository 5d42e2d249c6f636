"""The same delivery gives the same report, byte for byte, whatever surrounds the run."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.postgres.server.embedded import embedded_url
from connectors.postgres.server.postmaster import Postmaster
from tests.examples import ALL
from tests.stages.payments import line, write

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
RATES = {1: 2, 2: -3, 3: 10, 4: -20}
"""By payment, the rates it names, which are not there: what is noted, in the order of the texts."""
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


@pytest.fixture
def in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database whose texts have the order of a dictionary, on a server that knows such a locale.

    To it capitals are no other letters, and underscores are hardly there.
    """
    folder, locale = tmp_path / "english" / "postgres", tmp_path / "en_US.UTF-8"
    made = subprocess.run(
        ["localedef", "-i", "en_US", "-f", "UTF-8", locale], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("the system lacks what locales are made of")
    Postmaster(folder).prepare()
    # Where the server's user finds it, whatever the folders above allow.
    shutil.copytree(locale, folder / "locales" / locale.name)
    for path in [folder / "locales", *(folder / "locales").rglob("*")]:
        path.chmod(0o755)
    monkeypatch.setenv("LOCPATH", "locales")
    with psycopg.connect(embedded_url(folder), autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE english LOCALE_PROVIDER libc LOCALE 'en_US.UTF-8' TEMPLATE template0"
        )
    with psycopg.connect(embedded_url(folder, "english")) as connection:
        assert connection.execute("SELECT 'a_b' < 'aa', 'b' < 'C'").fetchone() == (False, True)
    yield embedded_url(folder, "english")
    Postmaster(folder).stop()


@pytest.mark.long
def test_reports_are_those_of_any_other_locale(
    server_url: str, in_english: str, tmp_path: Path
) -> None:
    lines = [
        line(number, amount="x" if number == 4 else "1").replace(",9", f",{rate}")
        for number, rate in RATES.items()
    ]
    paths = [Path(write(tmp_path / "payments.csv", *lines))]
    theirs = reports(in_english, tmp_path / "theirs", paths, {})
    ours = reports(server_url, tmp_path / "ours", paths, {})
    assert theirs == ours
