"""What `recon up` noted of its processes is found again, and nothing else is taken for it."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from flows.ops.running import Process, Running, find, note
from flows.ops.up_options import UpOptions, refuse_taken_port

PLACES = {"prefect": "", "sandbox": "", "inbox": "", "logs": ""}


def test_a_process_is_itself_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(tmp_path, Running(Process.of(os.getpid()), **PLACES))
    real = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: real(self) + 3600)
    noted = find(tmp_path)
    assert noted is not None
    assert noted.process.alive()


def test_another_process_with_its_number_is_not_it() -> None:
    ours = Process.of(os.getpid())
    assert not replace(ours, started="1 of another machine").alive()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = Process.of(child.pid)
        assert started.alive()
        child.kill()
    assert not started.alive()


def test_what_an_earlier_version_noted_is_found() -> None:
    started = psutil.Process().create_time()
    assert Process(os.getpid(), started).alive()
    assert not Process(os.getpid(), started - 1).alive()


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::1", "[::1]"),
        ("::", "[::1]"),
        ("localhost", "localhost"),
    ],
)
def test_a_host_is_asked_at_an_address_that_can_be_read(host: str, place: str) -> None:
    choice = UpOptions(host=host, port=9)
    assert choice.address == f"http://{place}:9"
    refuse_taken_port(choice, None)
