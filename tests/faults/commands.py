"""The command line in a process of its own, for faults that only a process can meet."""

from pathlib import Path

from tests.recon import Run


def ended(run: Run, seconds: float = 120) -> tuple[int, str]:
    """Exit code and what was said on standard error, which is never a traceback."""
    with run:
        _, told = run.communicate(seconds)
    assert "Traceback" not in told, told[-1500:]
    return run.wait(), told


def command(url: str, home: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run a command to its end."""
    return ended(Run(url, home, *arguments, **environment))
