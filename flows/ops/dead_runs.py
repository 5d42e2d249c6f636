"""Runs whose processes ended with an earlier `recon up`, so that nothing works on them any more.

Their worker ended as well, so nobody tells the server: a run would stay Running for ever, or
Pending if its worker was just starting it, or Cancelling for minutes, and keep its place in its
deployment for minutes while others wait.
"""

import itertools
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from connectors.addresses import is_loopback
from flows.ops.up_options import UpOptions
from flows.ops.whose_server import login_header
from schemas.counting import quantity

PAGE = 200
"""Runs that the server lists at once."""
MESSAGE = "Its process ended with the recon up that started it; Retry goes on."


def end_dead_runs(choice: UpOptions, login: str | None, show: Callable[[str], None]) -> None:
    """Set runs to Crashed if their process on this machine is gone, with the runs below them.

    One that somebody had cancelled is Cancelled.

    Call it before a worker starts, because a run that one takes is Pending without a process for a
    moment. If other machines reach the server, a run may be theirs, with its process there. Runs
    whose change the server refuses are left as they are.
    """
    if not is_loopback(choice.host):
        return
    dead, header = Counter[str](), login_header(login)
    client = httpx.Client(base_url=choice.address, trust_env=False, timeout=30, headers=header)
    with client, suppress(httpx.HTTPError):
        for run in [one for one in _begun(client, {}) if _has_died(one)]:
            below = {"parent_flow_run_id": {"any_": [run["id"]]}}
            end, *_ = [_ended(client, one) for one in (run, *_begun(client, below))]
            dead.update([end] if end else ())
    for end, number in dead.items():
        show(
            f"Set to {end}: {quantity(number, 'run')}, cut off with an earlier recon up. "
            "Retry goes on."
        )


def _begun(client: httpx.Client, more: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
    asked = {"flow_runs": {"state": begun, **more}, "limit": PAGE}
    for offset in itertools.count(step=PAGE):
        page = client.post("/api/flow_runs/filter", json=asked | {"offset": offset})
        runs = page.raise_for_status().json()
        yield from runs
        if len(runs) < PAGE:
            return


def _ended(client: httpx.Client, run: dict[str, Any]) -> str | None:
    """The state it is in now; None: the server refuses that, which costs no other run."""
    end = "Cancelled" if run["state_type"] == "CANCELLING" else "Crashed"
    state = {"type": end.upper(), "name": end, "message": MESSAGE}
    answer = client.post(f"/api/flow_runs/{run['id']}/set_state", json={"state": state})
    return end if answer.is_success and answer.json()["status"] == "ACCEPT" else None


def _has_died(run: dict[str, Any]) -> bool:
    """Whether the run's process on this machine is gone; another may have its number by now.

    Such a process began after the run was last set to run; a Retry has its own process.
    """
    if run["infrastructure_pid"] is None and run["state_type"] != "RUNNING":
        return run["work_pool_name"] is not None  # A worker took it but never started it.
    host, _, number = (run["infrastructure_pid"] or "").rpartition(":")
    if host not in ("", socket.gethostname()) or not number.isdecimal():
        return False
    try:
        began = psutil.Process(int(number)).create_time()
    except psutil.NoSuchProcess:
        return True
    return bool(began > datetime.fromisoformat(run["state"]["timestamp"]).timestamp())
