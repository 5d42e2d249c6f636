"""The product with its pages: `recon up`, `recon down` and `recon deploy`."""

import os
import shlex
import signal
import subprocess
import sys
import time
from typing import Annotated, Literal

from cyclopts import Parameter

from connectors.embedded import embedded_url
from connectors.errors import ReconError, SettingsError
from connectors.files import open_private, private_folder
from connectors.settings import Settings, read_settings
from flows.commands.console import out

DETACH_SECONDS = 240
DOWN_SECONDS = 90


def up_command(
    *,
    port: Annotated[int, Parameter(help="Of the Prefect server and its pages.")] = 4200,
    sandbox_port: Annotated[int, Parameter(help="Of the sandbox; 0: any free one.")] = 8080,
    host: Annotated[
        str, Parameter(help="Beyond 127.0.0.1 only with RECON_UP_AUTH=NAME:PASSWORD.")
    ] = "127.0.0.1",
    pages: Annotated[
        Literal["v1", "v2"], Parameter(help="Which of Prefect's two user interfaces.")
    ] = "v1",
    detach: Annotated[
        bool, Parameter(negative="", help="Come back when it is up; `recon down` stops it.")
    ] = False,
) -> int:
    """Start everything on this machine: database, Prefect with its pages, worker, sandbox.

    Deployments, blocks and automations are registered; Ctrl-C stops all of it.

    Example: `recon up`, then open http://127.0.0.1:4200
    """
    from flows.laptop import Choice, refuse_open_doors, run  # noqa: PLC0415 -- slow to import.

    settings = read_settings()
    choice = Choice(host=host, port=port, sandbox_port=sandbox_port, pages=pages)
    if not detach:
        return run(settings, choice, _say)
    refuse_open_doors(choice, os.environ.get("RECON_UP_AUTH") or None)
    options = [f"--port={port}", f"--sandbox-port={sandbox_port}", f"--host={host}"]
    return _detached(settings, [*options, f"--pages={pages}"])


def down_command() -> int:
    """Stop what `recon up` started here, also what a killed one left behind.

    Example: `recon down`
    """
    from flows.running import alone, await_end, find, note, stop_all  # noqa: PLC0415

    home = read_settings().home
    folder = home / "up"
    running = find(folder)
    with alone(folder) as free:
        if free:
            left = stop_all(running)
            note(folder, None)
            if left:
                # The database of the dead process stops with the last one that asked for it: this.
                embedded_url(home / "postgres")
            out().print(f"{left} processes left behind were stopped." if left else "Nothing is up.")
            return 0
    if running is None:
        raise ReconError("recon up is just starting here; ask again in a moment.")
    os.kill(running.process.pid, signal.SIGTERM)
    if not await_end(running.process, DOWN_SECONDS):
        raise ReconError(
            f"Process {running.process.pid} does not end. Its logs are in {running.logs}."
        )
    out().print("Everything is stopped.")
    return 0


def deploy_command(
    *,
    pool: Annotated[str, Parameter(help="Name of the work pool; created if missing.")] = "recon",
    type: Annotated[  # noqa: A002 -- as `prefect work-pool create` names it.
        str, Parameter(help="Of the pool: process, docker, kubernetes.")
    ] = "process",
) -> int:
    """Register pool, blocks, deployments and automations on the server of PREFECT_API_URL.

    Again it updates them; a schedule or an automation somebody switched off stays off.

    Example: `recon deploy`, with PREFECT_API_URL=http://prefect.example.com/api
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise SettingsError(
            "PREFECT_API_URL is not set. Name the server, as in http://127.0.0.1:4200/api, "
            "or start one with `recon up`."
        )
    os.environ.setdefault("DO_NOT_TRACK", "1")
    from pydantic import SecretStr  # noqa: PLC0415 -- Prefect is imported below, when it may be.

    from flows import automations, blocks, deployments  # noqa: PLC0415

    url = os.environ.get("RECON_NOTIFY_URL")
    notices = automations.Notices(SecretStr(url) if url else None)
    deployments.create_pool(pool, type)
    _say(f"work pool   {pool}")
    for name in blocks.register():
        _say(f"block       {name}")
    for name in deployments.register(pool):
        _say(f"deployment  {name}")
    for name in deployments.left_over():
        _say(
            f"left over   {name}: not of this version, its schedule goes on; "
            f"where nobody needs it: prefect deployment delete {shlex.quote(name)}"
        )
    for name in automations.register(notices):
        _say(f"automation  {name}")
    return 0


def _say(line: str) -> None:
    out().print(line)
    sys.stdout.flush()


def _detached(settings: Settings, options: list[str]) -> int:
    from flows.laptop import told  # noqa: PLC0415 -- slow to import.
    from flows.running import find, log_tail  # noqa: PLC0415

    folder = settings.home / "up"
    private_folder(folder)
    log = folder / "up.log"
    with open_private(log) as file:
        started = subprocess.Popen(
            [sys.executable, "-m", "flows", "up", *options],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"RECON_HOME": str(settings.home)},
        )
    deadline = time.monotonic() + DETACH_SECONDS
    while time.monotonic() < deadline:
        running = find(folder)
        if running and running.process.alive():
            _say(told(running))
            _say("`recon down` stops everything.")
            return 0
        if started.poll() is not None:
            raise ReconError(f"It did not start: {log_tail(log)}")
        time.sleep(0.2)
    raise ReconError(f"It is not up after {DETACH_SECONDS} s: {log_tail(log)}")
