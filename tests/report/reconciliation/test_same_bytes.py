import hashlib
import io
import os
import subprocess
import sys

import pytest

from flows.stages.reconcile.write import rendered
from tests.report.reconciliation.sample import REPORTS

CODE = """
import hashlib
from flows.stages.reconcile.write import rendered
from tests.report.reconciliation.sample import REPORTS
import io
for name, write in rendered(REPORTS["everything"]()).items():
    write(content := io.BytesIO())
    print(name, hashlib.sha256(content.getvalue()).hexdigest())
"""


def hashes() -> dict[str, str]:
    """Of every rendering of a report."""
    found = {}
    for name, write in rendered(REPORTS["everything"]()).items():
        content = io.BytesIO()
        write(content)
        found[name] = hashlib.sha256(content.getvalue()).hexdigest()
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return hashes()


def test_rendering_twice_gives_the_same_bytes(here: dict[str, str]) -> None:
    assert hashes() == here


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "zone", "threads", "locale"),
    [("1", "America/Anchorage", "1", "C"), ("4711", "Asia/Kathmandu", "3", "de_DE.UTF-8")],
)
def test_no_hash_seed_zone_locale_or_number_of_threads_changes_a_byte(
    here: dict[str, str], seed: str, zone: str, threads: str, locale: str
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ
        | {"PYTHONHASHSEED": seed, "TZ": zone, "POLARS_MAX_THREADS": threads, "LC_ALL": locale},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert dict(line.split() for line in told.splitlines()) == here
