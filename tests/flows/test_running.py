"""What `recon up` noted of its processes is found again, and nothing else is taken for it."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
import pytest

from connectors.errors import SettingsError
from flows.ops.dead_runs import end_dead_runs
from flows.ops.laptop import Start
from flows.ops.running import Process, Running, describe, find, note, stop_all
from flows.ops.up_options import UpOptions, refuse_taken_port, refuse_taken_ports

pytestmark = pytest.mark.usefixtures("no_database")

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


@pytest.mark.parametrize("part", ["sandbox", "desk"])
def test_a_taken_port_is_told_before_anything_is_started(part: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        own = {"sandbox_port": 0, "desk_port": 0} | {f"{part}_port": port}
        with pytest.raises(SettingsError, match=f"where the {part} would listen") as refused:
            refuse_taken_ports(UpOptions(port=9, **own), None)
    assert f"process {os.getpid()} (" in str(refused.value)
    assert f"with --{part}-port" in str(refused.value)
    refuse_taken_ports(UpOptions(port=9, **own), None)
    with pytest.raises(SettingsError, match="asked for twice"):
        refuse_taken_ports(UpOptions(port=9, sandbox_port=port, desk_port=port), None)


def test_what_a_start_has_begun_is_noted_and_a_stop_ends_it(tmp_path: Path) -> None:
    stopped = threading.Event()
    with ExitStack() as parts:
        start = Start(tmp_path, UpOptions(), stopped, parts)
        start.child("server", "http.server", "0", environment=os.environ)
        noted = find(tmp_path)
        assert noted is not None
        assert "just starting" in describe(noted)
        assert noted.process.alive()
        assert [*noted.children] == ["server"]
        stopped.set()
        with pytest.raises(KeyboardInterrupt):
            start.until(lambda: False, 60)
        with pytest.raises(KeyboardInterrupt):
            start.child("worker", "http.server", "0", environment=os.environ)
    assert not noted.children["server"].alive()


def test_what_a_killed_start_left_is_found(tmp_path: Path) -> None:
    with ExitStack() as parts:
        start = Start(tmp_path, UpOptions(), threading.Event(), parts)
        start.child("server", "http.server", "0", environment=os.environ)
        assert stop_all(tmp_path) == 1


def _with_worker(folder: Path, module: str, parts: ExitStack) -> Start:
    """A start of `recon up` in a folder, with this module in it as the worker."""
    start = Start(folder, UpOptions(), threading.Event(), parts)
    ours = os.environ | {"PREFECT_HOME": str(folder.parent / "prefect")}
    start.child("worker", module, environment=ours)
    return start


@pytest.mark.parametrize("up", ["goes on", "was killed as well"])
def test_a_run_whose_worker_was_killed_ends_with_the_rest(tmp_path: Path, up: str) -> None:
    """It has a session of its own, so nothing that ends its worker ends it."""
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "of_a_run.py").write_text(
        "import os, subprocess\n"
        "environment = os.environ | {'PREFECT__FLOW_RUN_ID': '1'}\n"
        "run = subprocess.Popen(['sleep', '600'], env=environment, start_new_session=True)\n"
        "print(run.pid, flush=True)\n"
        "run.wait()\n"
    )
    with ExitStack() as parts:
        start = _with_worker(folder, "of_a_run", parts)
        log = folder / "worker.log"
        assert start.until(lambda: log.read_text().endswith("\n"), 60)
        run = psutil.Process(int(log.read_text()))
        start.children["worker"].kill()
        start.children["worker"].wait()
        if up != "goes on":
            assert stop_all(folder) == 1
            assert not run.is_running()
    assert not run.is_running()


@pytest.mark.parametrize("up", ["ends", "was killed"])
def test_a_run_writes_down_what_it_did_before_its_worker_would_kill_it(
    tmp_path: Path, up: str
) -> None:
    """A push that is killed leaves every record in doubt that was on its way."""
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "a_run.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def stop(*_):\n"
        "    time.sleep(0.5)\n"
        "    pathlib.Path('written').touch()\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('begun', flush=True)\n"
        "signal.pause()\n"
    )
    (folder / "a_worker.py").write_text(
        "import os, signal, subprocess, sys\n"
        "environment = os.environ | {'PREFECT__FLOW_RUN_ID': '1'}\n"
        "run = subprocess.Popen([sys.executable, 'a_run.py'], env=environment)\n"
        "signal.signal(signal.SIGTERM, lambda *_: (run.kill(), sys.exit()))\n"
        "while True:\n"
        "    signal.pause()\n"
    )
    with ExitStack() as parts:
        start = _with_worker(folder, "a_worker", parts)
        assert start.until(lambda: (folder / "worker.log").read_text() == "begun\n", 60)
        if up == "was killed":
            assert stop_all(folder) == 2
    assert (folder / "written").exists()


@pytest.mark.long
def test_a_run_whose_process_ended_with_an_earlier_up_is_crashed() -> None:
    """What runs on, here or on another machine, stays as it is."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL
    from prefect.states import Failed, Scheduled
    from prefect.states import Running as Begun
    from prefect.tasks import Task

    from flows.do_job import do_job
    from flows.import_batch import import_batch

    gone = subprocess.Popen(["true"])
    gone.wait()
    places = [str(gone.pid), str(os.getpid()), f"elsewhere:{gone.pid}", None]
    with get_client(sync_client=True) as client:
        runs = [client.create_flow_run(do_job, parameters={"job": 1}) for _ in places]
        for run, place in zip(runs, places, strict=True):
            client.set_flow_run_state(run.id, Begun())
            if place:
                client.update_flow_run(run.id, infrastructure_pid=place)
        # Retried: its process began long after the run did.
        runs.append(client.create_flow_run(do_job, parameters={"job": 1}))
        for state in (Begun(), Failed()):
            client.set_flow_run_state(runs[-1].id, state)
        begun = client.read_flow_run(runs[-1].id).start_time
        assert begun is not None
        going_on = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        while psutil.Process(going_on.pid).create_time() <= begun.timestamp():  # To the second.
            going_on.communicate()
            going_on = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        client.set_flow_run_state(runs[-1].id, Scheduled(name="AwaitingRetry"))
        client.set_flow_run_state(runs[-1].id, Begun())
        client.update_flow_run(runs[-1].id, infrastructure_pid=str(going_on.pid))
        above = client.create_task_run(Task(import_batch.fn), runs[0].id, "0")
        below = client.create_flow_run(
            import_batch,
            parameters={"delivery": {"paths": ["a.csv"]}},
            parent_task_run_id=above.id,
            state=Begun(),
        )
        said: list[str] = []
        port = urlsplit(str(PREFECT_API_URL.value())).port
        assert port is not None
        end_dead_runs(UpOptions(host="0.0.0.0", port=port), None, said.append)
        assert said == [], "a worker of another machine may have them"
        for _ in range(2):
            end_dead_runs(UpOptions(port=port), None, said.append)
        states = [client.read_flow_run(run.id).state_name for run in (*runs, below)]
        going_on.communicate()
        for run in runs:
            client.delete_flow_run(run.id)
    assert states == ["Crashed", "Running", "Running", "Running", "Running", "Crashed"]
    assert said == ["Set to Crashed: 1 run, cut off with an earlier recon up. Retry goes on."]


@pytest.mark.long
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_run_that_was_being_started_as_an_earlier_up_ended_is_crashed(*, cancelled: bool) -> None:
    """Its worker had taken it, and no other one ever takes it again.

    One that somebody had cancelled by then is Cancelled: nobody else would ever hear of it.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL
    from prefect.states import Cancelling, Pending

    from flows.do_job import do_job
    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool, register_one

    gone = subprocess.Popen(["true"])
    gone.wait()
    places = [None, str(gone.pid), str(os.getpid()), f"elsewhere:{gone.pid}"]
    line = next(one for one in DEPLOYMENTS if one.full_name == "do-job/desk")
    create_pool()
    with get_client(sync_client=True) as client:
        register_one(client, line, "recon")
        desk = client.read_deployment_by_name(line.full_name).id
        runs = [client.create_flow_run_from_deployment(desk, parameters={"job": 1}) for _ in places]
        # Begun by hand: whoever did so goes on.
        runs.append(client.create_flow_run(do_job, parameters={"job": 1}))
        for run, place in zip(runs, [*places, None], strict=True):
            client.set_flow_run_state(run.id, Pending())
            if place:
                client.update_flow_run(run.id, infrastructure_pid=place)
            if cancelled:
                client.set_flow_run_state(run.id, Cancelling())
        said: list[str] = []
        port = urlsplit(str(PREFECT_API_URL.value())).port
        assert port is not None
        for _ in range(2):
            end_dead_runs(UpOptions(port=port), None, said.append)
        states = [client.read_flow_run(run.id).state_name for run in runs]
        for run in runs:
            client.delete_flow_run(run.id)
        client.delete_deployment(desk)
    stays, ends = ("Cancelling", "Cancelled") if cancelled else ("Pending", "Crashed")
    assert states == [ends, ends, stays, stays, stays]
    assert said == [f"Set to {ends}: 2 runs, cut off with an earlier recon up. Retry goes on."]
