"""recon is an application: its wheel goes into an environment of its own, and needs no checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_demo_runs_from_a_wheel_in_an_empty_folder(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip")
    subprocess.run(
        [*pip, "wheel", "-q", "--no-deps", "-w", str(tmp_path / "wheel"), str(ROOT)], check=True
    )
    home, empty = tmp_path / "application", tmp_path / "empty"
    venv.create(home, symlinks=True)
    python = str(home / "bin" / "python")
    packages = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    # What it depends on is here already, behind what the wheel brings.
    (packages / "known.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (wheel,) = (tmp_path / "wheel").iterdir()
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-deps", wheel], check=True)
    empty.mkdir()
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [home / "bin" / "recon", "demo"],
        cwd=empty,
        env=environment | {"RECON_HOME": str(empty / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Proven" in done.stdout
    assert str(ROOT) not in done.stdout
