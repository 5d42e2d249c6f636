"""Runs that nothing works on any more: their processes ended with the `recon up` before this one.

Their worker ended as well, so nobody says so to the server: each would be Running for ever, and
keep its place in its deployment for minutes, in which others wait.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from connectors.addresses import is_loopback
from flows.ops.up_options import UpOptions
from flows.ops.whose_server import login_header
from schemas.counting import quantity

CRASHED = {
    "type": "CRASHED",
    "name": "Crashed",
    "message": "Its process ended with the recon up that it was started by; Retry goes on.",
}


def crash_dead_runs(choice: UpOptions, login: str | None, show: Callable[[str], None]) -> None:
    """Set runs to Crashed whose process on this machine is gone, and those below them.

    Where other machines reach the server, a run may be one of theirs, and its process there. What
    the server refuses is left as it is.
    """
    if not is_loopback(choice.host):
        return
    dead, header = 0, login_header(login)
    client = httpx.Client(base_url=choice.address, trust_env=False, timeout=30, headers=header)
    with client, suppress(httpx.HTTPError):
        for run in _running(client, {}):
            if not _has_died(run):
                continue
            dead += 1
            below = {"parent_flow_run_id": {"any_": [run["id"]]}}
            for one in (run, *_running(client, below)):
                path = f"/api/flow_runs/{one['id']}/set_state"
                client.post(path, json={"state": CRASHED}).raise_for_status()
    if dead:
        show(f"{quantity(dead, 'run')} of before, cut off: Crashed now. Retry goes on.")


def _running(client: httpx.Client, more: dict[str, Any]) -> list[dict[str, Any]]:
    asked = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}, **more}}
    found: list[dict[str, Any]] = (
        client.post("/api/flow_runs/filter", json=asked).raise_for_status().json()
    )
    return found


def _has_died(run: dict[str, Any]) -> bool:
    """Whether its process was one of this machine; another one may have its number by now."""
    host, _, number = (run["infrastructure_pid"] or "").rpartition(":")
    if host not in ("", socket.gethostname()) or not number.isdecimal():
        return False
    try:
        began = psutil.Process(int(number)).create_time()
    except psutil.NoSuchProcess:
        return True
    return bool(began > datetime.fromisoformat(run["start_time"]).timestamp())
