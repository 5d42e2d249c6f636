"""The command line in a process of its own, for faults that only a process can meet."""

import os
import subprocess
import sys
from pathlib import Path


def start(url: str, home: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start a command; its output is kept."""
    return subprocess.Popen(
        [sys.executable, "-m", "flows", *arguments],
        env=os.environ | {"RECON_DATABASE_URL": url, "RECON_HOME": str(home)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(run: "subprocess.Popen[str]", seconds: float = 120) -> tuple[int, str]:
    """Exit code and what was said on standard error, which is never a traceback."""
    _, told = run.communicate(timeout=seconds)
    assert "Traceback" not in told, told[-1500:]
    return run.returncode, told


def command(url: str, home: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run a command to its end."""
    return ended(start(url, home, *arguments, **environment))
