"""Run one client in a process of its own against a server of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import busy_seconds, peak_mib
from comparison import Case

from benchmarks.watching import watched

HERE = Path(__file__).resolve().parent
CLOCK = HERE.parent / "import" / "cases"
WRK = shutil.which("wrk")
Run = dict[str, Any]
"""rate (requests/s), cpu_ms a request, peak_mib, others (CPU seconds of all other processes)."""


class CaseFailed(Exception):
    """A client did not do what it was timed for."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the clients run with."""

    peers: dict[str, Path]
    database: str | None
    requests: int
    seconds: int
    """How long wrk runs."""

    @property
    def cores(self) -> tuple[str, str]:
        """Of the server and of the client."""
        cores = sorted(os.sched_getaffinity(0))
        return (str(cores[0]), str(cores[1])) if len(cores) > 1 else ("any", "any")


def run_case(case: Case, place: Place) -> Run:
    """One run; raises CaseFailed unless every request was answered as it should be."""
    with _server(case, place) as url:
        if case.client == "wrk":
            return _wrk(case, place, url)
        count = max(case.connections * 4, int(place.requests * case.share))
        run = _measured(case, _command(case, place, url, count))
        wall, client = run["wall"], run["client"]
        return {
            "rate": count / wall,
            "cpu_ms": 1000 * client / count,
            "peak_mib": run["peak_mib"],
            "others": run["others"],
            "requests": count,
        }


@contextmanager
def _server(case: Case, place: Place) -> Iterator[str]:
    core = place.cores[0]
    command = [place.peers["server"], HERE / "server.py", str(case.latency)]
    process = subprocess.Popen(
        [*command, *([] if core == "any" else [core])], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def _command(case: Case, place: Place, url: str, count: int) -> list[str | Path]:
    given = [url, str(case.connections), str(count), place.cores[1]]
    if case.client == "ours_lane":
        return [sys.executable, HERE / "cases" / "ours_lane.py", *given]
    if case.client.startswith("ours"):
        form = "csv" if case.client == "ours_csv" else "json"
        database = [place.database or ""] if case.client == "ours_written_ahead" else []
        return [sys.executable, HERE / "cases" / "ours.py", *given, form, *database]
    name = "httpx" if case.client == "httpx_aiohttp" else case.client
    transport = ["aiohttp"] if case.client == "httpx_aiohttp" else []
    program = HERE / "cases" / f"{name}_client.py"
    return [place.peers[case.client], program, *given, *transport]


def _measured(case: Case, command: list[str | Path]) -> Run:
    busy = busy_seconds()
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(CLOCK)},
    )
    if done.returncode:
        raise CaseFailed(f"{case.name}: {done.stderr[-2000:]}")
    run: Run = json.loads(done.stdout.strip().splitlines()[-1])
    # The server is among the others: it spends what it spends for every client.
    return run | {"others": max(0.0, busy_seconds() - busy - run["client"])}


def _wrk(case: Case, place: Place, url: str) -> Run:
    assert WRK is not None
    core = place.cores[1]
    pin = [] if core == "any" else ["taskset", "-c", core]
    connections = str(case.connections)
    command = [*pin, WRK, "-t1", "-c", connections, f"-d{place.seconds}s", "-s"]
    busy = busy_seconds()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([*command, HERE / "cases" / "put.lua", url], stdout=output)
        usage, peak = watched(process, peak_mib)
        output.seek(0)
        printed = output.read()
    rate = re.search(r"Requests/sec:\s+([0-9.]+)", printed)
    count = re.search(r"([0-9]+) requests in", printed)
    if rate is None or count is None or "Non-2xx" in printed:
        raise CaseFailed(f"{case.name}: {printed}")
    client = usage.ru_utime + usage.ru_stime
    return {
        "rate": float(rate[1]),
        "cpu_ms": 1000 * client / int(count[1]),
        "peak_mib": peak,
        "others": max(0.0, busy_seconds() - busy - client),
        "requests": int(count[1]),
    }
