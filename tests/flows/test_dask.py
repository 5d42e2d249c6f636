"""A delivery over the workers of a Dask cluster, one of which dies, against the same without."""

import gc
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import SettingsError
from connectors.forms import form_of_code
from data_samples.generate import write_payments
from flows.stages.partitions import MOST_PARTITIONS, Partition
from flows.stages.workspace import Workspace
from tests.conftest import Databases
from tests.flows.runs import flow_run, kept_files, kept_results, log_lines, run
from tests.ports import LOOPBACK, own_port
from tests.scale.conftest import new_workspace  # noqa: F401 - A fixture.
from tests.scale.workers import left_behind

pytestmark = [
    pytest.mark.flows,
    # Looked for, not imported: that takes as long as to read all other tests.
    pytest.mark.skipif(not find_spec("prefect_dask"), reason="the extra `scale` is not installed"),
]

ROWS, SEED = 8_000, 29


def point_at(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))


def partition_runs(state: Any) -> list[Any]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    wanted = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run(state).id]))
    with get_client(sync_client=True) as client:
        found = client.read_task_runs(flow_run_filter=wanted)
    return [one for one in found if one.name.startswith("stage partition")]


@pytest.mark.long
def test_killed_workers_change_nothing(
    new_workspace: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    prefect_home: Path,
) -> None:
    write_payments(tmp_path / "delivery", ROWS, 0.03, SEED)
    path = str(tmp_path / "delivery" / "payments.csv")
    monkeypatch.setenv("RECON_LIMIT_BLOCK_BYTES", str(16 * 1024))
    monkeypatch.setenv("RECON_LIMIT_STRICT_BYTES", "1")
    # Dask keeps its lines to itself.
    monkeypatch.setattr(logging.getLogger("distributed.nanny"), "handlers", [caplog.handler])
    found = []
    for cluster in (None, "local:2"):
        workspace = new_workspace(16 * 1024)
        point_at(workspace, monkeypatch)
        if cluster:
            monkeypatch.setenv("RECON_DASK", cluster)
            # Every worker dies at the tenth chunk it has written, within its second partition.
            monkeypatch.setenv("CRASH_AT", "chunk:10")
        state = run(path)
        assert state.name == "CompletedWithErrors", state.message
        found.append(left_behind(workspace))
    assert found[1] == found[0]
    assert len(partition_runs(state)) > 3
    assert "Restarting worker" in caplog.text
    # Prefect keeps JSON, and nothing of a partition but that it ran.
    assert list(kept_results(prefect_home))
    assert workspace.settings.database_url not in "\n".join(log_lines(state))
    kept = b"".join(file.read_bytes() for file in kept_files(prefect_home))
    assert str(workspace.settings.database_url).encode() not in kept
    assert b'"chunk_range"' not in kept


@pytest.mark.parametrize("with_url", [False, True])
def test_a_worker_without_the_database_of_the_run_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, databases: Databases, with_url: bool
) -> None:
    from flows.tasks.partitions import stage_one_partition

    home = tmp_path / "empty"
    monkeypatch.setenv("RECON_HOME", str(home))
    monkeypatch.delenv("RECON_DATABASE_URL")
    wanted = Partition(1, 1, "content", "somebody", {}, (), form_of_code()).as_json()
    with ExitStack() as opened:
        if with_url:
            url = opened.enter_context(databases.new())
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS recon CASCADE")
            monkeypatch.setenv("RECON_DATABASE_URL", url)
        with pytest.raises(SettingsError, match="is not in the database of this worker"):
            stage_one_partition(wanted)
        if with_url:
            with psycopg.connect(url) as connection:
                found = connection.execute("SELECT to_regnamespace('recon')").fetchone()
            assert found == (None,)
    assert not (home / "postgres").exists()


@contextmanager
def scheduler(workers: int, *, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """A Dask scheduler in a process of its own, with workers; `address` is where it listens."""
    script = (
        "import sys, time\n"
        "from distributed import LocalCluster\n"
        f"{before}"
        "if __name__ == '__main__':\n"
        f"    cluster = LocalCluster(n_workers={workers}, threads_per_worker=1, memory_limit=0,\n"
        "        scheduler_port=0, dashboard_address=None)\n"
        "    print(cluster.scheduler_address, flush=True)\n"
        "    for workers in sys.stdin:\n"
        "        cluster.scale(int(workers))\n"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end_at_first_chunk(workspace: Workspace, process: subprocess.Popen[str], ends: str) -> None:
    with workspace.database.connect() as connection:
        while not connection.execute("SELECT 1 FROM receipt LIMIT 1").fetchone():
            time.sleep(0.005)
    if ends == "scheduler":
        process.kill()
        return
    assert process.stdin is not None
    process.stdin.write("0\n")
    process.stdin.flush()


@contextmanager
def web_server() -> Iterator[str]:
    """The address of a port where something else answers."""

    def answer(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with listening.accept()[0] as caller:
                    caller.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, args=[listening], daemon=True).start()
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


def refused(cluster: str) -> str:
    import dask
    import distributed  # noqa: F401 - Its settings are there before one is changed.

    from flows.tasks.partitions import connect, dask_runner

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(SettingsError) as refusal,
        dask_runner(cluster) as runner,
    ):
        connect(runner, cluster, 0.5)
    text = str(refusal.value)
    assert text.startswith(f"RECON_DASK={cluster!r}: ")
    assert "run again, or unset it; nothing more was staged" in text
    assert open_clients() == []
    return text


def open_clients() -> list[str]:
    """What state clients of Dask are in that nobody has closed, of those that are in memory."""
    from distributed import Client

    clients: list[Any] = [one for one in gc.get_objects() if issubclass(type(one), Client)]
    return [one.status for one in clients if one.status != "closed"]


@pytest.mark.long
def test_something_else_answers_where_the_cluster_should_be() -> None:
    with web_server() as address:
        assert "what answers there is not a Dask scheduler" in refused(address)


@pytest.mark.long
def test_nothing_answers_where_the_cluster_should_be() -> None:
    assert "no cluster can be reached there" in refused(f"tcp://{LOOPBACK}:{own_port()}")


def test_a_cluster_behind_tls_without_certificates() -> None:
    assert "tls:// needs certificates, and there are none" in refused("tls://127.0.0.1:8786")


SAYS_MORE = """
from distributed.batched import BatchedSend
send, greeted = BatchedSend.send, []
def more(self, *messages):
    if messages[0].get("op") == "stream-start" and not greeted:
        greeted.append(True)
        messages = (*messages, {"op": "erred"})
    send(self, *messages)
BatchedSend.send = more
"""
"""What a scheduler does that has more to say by the time its first word leaves."""


@pytest.mark.long
def test_a_busy_scheduler_is_one() -> None:
    """Dask asserts that the first word of a scheduler comes alone."""
    with scheduler(0, before=SAYS_MORE) as process:
        assert "its scheduler has had no worker for" in refused(address_of(process))


@pytest.mark.long
def test_a_cluster_without_a_worker() -> None:
    with scheduler(0) as process:
        assert "its scheduler has had no worker for" in refused(address_of(process))


@pytest.mark.long
@pytest.mark.parametrize("ends", ["scheduler", "workers", "scaled"])
def test_a_cluster_that_fails_in_the_middle_ends_the_run_in_one_line(
    new_workspace: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: str,
) -> None:
    write_payments(tmp_path / "delivery", ROWS, 0.03, SEED)
    path = str(tmp_path / "delivery" / "payments.csv")
    monkeypatch.setenv("RECON_LIMIT_BLOCK_BYTES", str(16 * 1024))
    monkeypatch.setenv("RECON_LIMIT_STRICT_BYTES", "1")
    expected = new_workspace(16 * 1024)
    point_at(expected, monkeypatch)
    run(path)
    workspace = new_workspace(16 * 1024)
    point_at(workspace, monkeypatch)
    if ends == "workers":
        # Each dies at the first chunk it has written, and one death of a partition is enough.
        monkeypatch.setenv("CRASH_AT", "chunk:1")
        monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setattr("flows.tasks.partitions.WORKERLESS_SECONDS", 2)
    monkeypatch.setattr("flows.tasks.partitions.LOOK_SECONDS", 0.5)
    with scheduler(1) as process:
        monkeypatch.setenv("RECON_DASK", address_of(process))
        if ends != "workers":
            given = [workspace, process, ends]
            threading.Thread(target=end_at_first_chunk, args=given).start()
        state = run(path)
    assert state.is_failed()
    if ends == "scaled":
        assert "its scheduler has had no worker for 0 minutes" in state.message
    else:
        told = "KilledWorker" if ends == "workers" else "FutureCancelledError"
        assert "the cluster gave a partition back undone" in state.message
        assert told in state.message
    assert not [line for line in log_lines(state) if "Traceback" in line]
    monkeypatch.delenv("RECON_DASK")
    monkeypatch.delenv("CRASH_AT", raising=False)
    assert run(path).name == "CompletedWithErrors"
    assert left_behind(workspace) == left_behind(expected)


@pytest.mark.long
@pytest.mark.usefixtures("no_database")
def test_what_no_worker_has_is_taken_back() -> None:
    from flows.tasks.partitions import _HandedOut, connect, dask_runner

    with scheduler(1) as process:
        address = address_of(process)
        with dask_runner(address) as runner:
            connect(runner, address)
            client: Any = runner.client
            handed = _HandedOut(runner, address)
            handed._waited_for = [client.submit(time.sleep, 60 + n) for n in range(10)]
            # It has one in hand, and the next beside it.
            while sum(map(len, client.processing().values())) < 2:
                time.sleep(0.01)
            handed.take_back()
            assert [one.cancelled() for one in handed._waited_for] == [False] * 2 + [True] * 8
            handed.give_up()
            assert all(one.cancelled() for one in handed._waited_for)


def worker_tells_errors() -> bool:
    return logging.getLogger("distributed.worker").isEnabledFor(logging.ERROR)


@pytest.mark.long
def test_processes_that_are_closed_say_nothing_of_it() -> None:
    from flows.tasks.partitions import connect, dask_runner, quieten

    with dask_runner("local:1") as runner:
        connect(runner, "local:1")
        client: Any = runner.client
        assert list(client.run(worker_tells_errors).values()) == [True]
        quieten(runner)
        assert list(client.run(worker_tells_errors).values()) == [False]


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize("cluster", ["2", "local", "local:0", "host:8786", "tcp://me:pw@host:1"])
def test_a_cluster_that_is_none(cluster: str) -> None:
    from flows.tasks.partitions import dask_runner

    with pytest.raises(SettingsError, match="neither local:NUMBER nor tcp://HOST:PORT") as refused:
        dask_runner(cluster)
    assert "me:pw" not in str(refused.value)


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(
    ("setting", "feed", "most"),
    [
        ("", "ledger", MOST_PARTITIONS),
        ("16", "ledger", 16),
        ("16, ledger=4", "ledger", 4),
        ("16,ledger=4", "other", 16),
        ("ledger=4", "other", MOST_PARTITIONS),
        ("a=b=3", "a=b", 3),
    ],
)
def test_partitions_at_once(setting: str, feed: str, most: int) -> None:
    from flows.tasks.partitions import at_once

    assert at_once(setting, feed) == most


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize("setting", ["0", "many", "ledger=", "ledger=0", "4;5"])
def test_no_number_of_partitions(setting: str) -> None:
    from flows.tasks.partitions import at_once

    with pytest.raises(SettingsError, match="is neither a number nor FEED=NUMBER"):
        at_once(setting, "ledger")
