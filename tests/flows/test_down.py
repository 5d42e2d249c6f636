"""`recon down` ends what `recon up` noted, and nobody who only has its number."""

import subprocess
import sys
from pathlib import Path

import pytest

from connectors.errors import ReconError
from flows.commands.up import down_command
from flows.ops.running import Process, Running, alone, note


def test_a_note_of_a_dead_run_is_not_that_of_the_one_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECON_HOME", str(tmp_path))
    folder = tmp_path / "up"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as killed:
        process = Process.of(killed.pid)
        killed.kill()
    with alone(folder):
        note(folder, Running(process, prefect="", sandbox="", inbox="", logs=""))
        with pytest.raises(ReconError, match="just starting"):
            down_command()


def test_it_stops_whatever_is_wrong_with_what_else_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a mistake in a setting, or in a file that one names, would keep all of it running."""
    monkeypatch.setenv("RECON_HOME", str(tmp_path))
    monkeypatch.setenv("RECON_LIMIT_LEASE_SECONDS", "soon")
    assert down_command() == 0
    assert capsys.readouterr().out == "Nothing is up.\n"
