"""A process of a run of tests that is killed: what it had is run by another, and the run ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """\
from tests import workers

def pytest_xdist_make_scheduler(config, log):
    return workers.scheduler(config, log)
"""
SHARES = """\
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("share", [f"share {one} of 6" for one in range(1, 7)])
def test_one(share: str) -> None:
    once = Path(__file__).with_name("killed")
    if share == "share KILLED of 6" and not once.exists():
        once.touch()
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("killed", [3, 6])
def test_the_shares_of_a_killed_process_are_run_by_another(tmp_path: Path, killed: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_shares.py").write_text(
        SHARES.replace("KILLED", str(killed)), encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "xdist.plugin", "-c", os.devnull,
         "--rootdir", str(tmp_path), str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[1],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert "1 failed, 6 passed" in done.stdout, done.stdout + done.stderr
