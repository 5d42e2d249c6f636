"""The push gate of a home: one run at a time, for a bounded wait, and onlookers see no mixture."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import TurnNotGiven
from connectors.files.disk.atomic import file_alone, private_folder
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.gate import LOCK, LOOKS, pass_gate, why_held
from connectors.postgres.server.embedded import embedded_url
from connectors.settings import ServiceSettings
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from tests.push.conftest import towards
from tests.push.deliveries import tones
from tests.service.faulty_server import FaultyServer

KEEPER = """
import sys, time
from pathlib import Path
from connectors.files.disk.atomic import file_alone
with file_alone(Path(sys.argv[1]), 1, "It"):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def keeper(tmp_path: Path) -> Any:
    """Starts a process that locks a file, and is stopped there."""
    started: list[subprocess.Popen[str]] = []

    def of(path: Path) -> int:
        private_folder(path.parent)
        command = [sys.executable, "-c", KEEPER, str(path)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        output = started[-1].stdout
        assert output is not None
        assert output.readline() == "locked\n"
        os.kill(started[-1].pid, signal.SIGSTOP)
        return started[-1].pid

    yield of
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.long
def test_a_run_that_stands_in_the_gate_is_named_after_a_wait(
    workspace: Workspace, keeper: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url, turn_seconds=0.1)
        import_delivery(place, [tones(tmp_path / "a.csv", 2)], DEFAULT)
        pid = keeper(place.settings.home / LOCK)
        for work in (
            lambda: push_batch(place, 1),
            lambda: go_on_after_restore(place, unsent="unsent", by="a", reason="b"),
        ):
            with pytest.raises(TurnNotGiven) as told:
                work()
            assert told.value.exit_code == 2
            assert f" pid {pid} since 20" in str(told.value)
            assert "waited 0.1 s for its turn" in str(told.value)
            assert "kill -CONT" in str(told.value)
        assert server.requests == []
        os.kill(pid, signal.SIGKILL)
        push_batch(replace(place, settings=patient(place)), 1)
        assert len(server.effects) == 2


def patient(place: Workspace) -> Any:
    service = place.settings.service
    assert isinstance(service, ServiceSettings)
    return replace(place.settings, service=replace(service, turn_seconds=30))


def test_a_process_that_hangs_in_the_start_of_the_server_is_named(
    keeper: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.postgres.server.embedded.START_SECONDS", 0.05)
    pid = keeper(tmp_path / "postgres.lock")
    with pytest.raises(TurnNotGiven, match=f"the embedded PostgreSQL.* pid {pid} since"):
        embedded_url(tmp_path / "postgres")


@pytest.mark.parametrize("seconds", [0, 0.001, 1e9])
def test_a_free_turn_comes_at_once_whatever_the_wait(tmp_path: Path, seconds: float) -> None:
    for _ in range(2):
        with file_alone(tmp_path / "x", seconds, "It"):
            assert f"pid {os.getpid()} since" in (tmp_path / "x").read_text()


@pytest.mark.long
@pytest.mark.parametrize("looks", [1, LOOKS])
def test_who_looks_while_runs_pass_the_gate_is_not_told_that_pushes_are_held(
    workspace: Workspace, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker is read before the epochs; a run writes both in between, at every look too."""
    monkeypatch.setattr("connectors.postgres.push.gate.LOOKS", looks)
    home = workspace.settings.home
    ended = threading.Event()

    def look() -> list[str | None]:
        seen: list[str | None] = []
        with workspace.database.connect() as connection:
            while not ended.is_set():
                seen.append(why_held(connection, home))
        return seen

    with ThreadPoolExecutor(1) as beside, workspace.database.connect() as connection:
        seen = beside.submit(look)
        for _ in range(60):
            pass_gate(connection, home, 30)
        ended.set()
        looks = seen.result()
    assert len(looks) > 10
    assert {*looks} == {None}
