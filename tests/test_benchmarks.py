"""The scripts in `benchmarks` that need no peer, on small data: each runs to its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PARTS = ("feeds", "history", "references", "reconcile", "bad rows", "commands", "growth")


@pytest.mark.long(but=("feeds",))
@pytest.mark.parametrize("part", PARTS)
def test_a_script_runs_to_its_end(part: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--trial", "--only", part, "--out", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
