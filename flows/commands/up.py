"""The product with its pages: `recon up`, `recon down` and `recon deploy`."""

import os
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from typing import Annotated, Literal

from cyclopts import Parameter

from connectors.errors import ReconError, SettingsError
from connectors.settings import Settings, check_own_kinds, home_folder, read_settings
from flows.commands.console import PORT, out, show_warnings, within
from schemas.counting import agree, quantity

DETACH_SECONDS = 240
UNDO_SECONDS = 25
"""How long a stop during the start may take to undo it, before the command is ended."""
DOWN_SECONDS = 90


def up_command(
    *,
    port: Annotated[
        int | None,
        Parameter(
            help="Port of the Prefect server and its pages; default: 4200.",
            validator=within(1, 65_535),
        ),
    ] = None,
    sandbox_port: Annotated[
        int | None,
        Parameter(help="Port of the sandbox; 0: any free one; default: 8080.", validator=PORT),
    ] = None,
    desk_port: Annotated[
        int | None,
        Parameter(help="Port of the desk; 0: any free one; default: 8300.", validator=PORT),
    ] = None,
    host: Annotated[
        str | None,
        Parameter(
            help="Address of the Prefect server; one that other machines reach needs "
            "RECON_UP_AUTH=NAME:PASSWORD; default: 127.0.0.1."
        ),
    ] = None,
    pages: Annotated[
        Literal["v1", "v2"] | None,
        Parameter(help="Which of Prefect's two user interfaces; default: v1."),
    ] = None,
    detach: Annotated[
        bool,
        Parameter(
            help="Return once everything is up, and leave it running; `recon down` stops it."
        ),
    ] = False,
) -> int:
    """Start everything on this machine: database, desk, Prefect with its pages, worker, sandbox.

    Deployments, blocks and automations are registered; Ctrl-C stops all of it.

    Example: `recon up`, then open http://127.0.0.1:4200

    Exit code 0: it was up and was stopped; 130: stopped before it was up.
    """
    from flows.ops.laptop import run
    from flows.ops.running import find
    from flows.ops.up_options import UpOptions, refuse_open_doors, refuse_other_terms

    settings = read_settings()
    given = {
        "host": host,
        "port": port,
        "sandbox_port": sandbox_port,
        "desk_port": desk_port,
        "pages": pages,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    choice = UpOptions(**asked)  # type: ignore[arg-type]  # Each has the type of its option.
    refuse_open_doors(choice, os.environ.get("RECON_UP_AUTH") or None)
    refuse_other_terms(find(settings.home / "up"), asked)
    if not detach:
        with show_warnings():  # The desk runs in this process.
            return run(settings, choice, _say)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    return _detached(settings, options)


def down_command() -> int:
    """Stop what `recon up` started here, including what a killed one left behind.

    Example: `recon down`
    """
    from connectors.postgres.server.embedded import answers, embedded_url
    from flows.ops.running import alone, await_end, find, note, stop_all

    home = home_folder()
    folder = home / "up"
    running = find(folder)
    with alone(folder) as free:
        if free:
            left = stop_all(folder)
            note(folder, None)
            if answers(home / "postgres"):
                # The server of a dead process stops together with the last process that uses it.
                embedded_url(home / "postgres")
            were = f"{quantity(left, 'process')} left behind {agree(left, 'was', 'were')} stopped."
            out().print(were if left else "Nothing is up.")
            return 0
    # A run that has just begun has noted nothing yet; the note may be from a killed one before it.
    found = running.process.find() if running else None
    if running is None or found is None:
        raise ReconError("recon up is just starting here; ask again in a moment.")
    found.terminate()
    if not await_end(running.process, DOWN_SECONDS):
        raise ReconError(
            f"Process {running.process.pid} has not ended within {DOWN_SECONDS} s. Its logs are in "
            f"{folder}."
        )
    out().print("Everything is stopped.")
    return 0


def deploy_command(
    *,
    pool: Annotated[str, Parameter(help="Name of the work pool; created if missing.")] = "recon",
    kind: Annotated[
        str,
        Parameter(name="--type", help="Type of the pool, such as process, docker or kubernetes."),
    ] = "process",
) -> int:
    """Register pool, blocks, deployments and automations on the Prefect server PREFECT_API_URL.

    Run it again to update them. What operators set on the server stays: schedules, parameters, job
    variables, notices, switches.

    Example: `recon deploy`, with PREFECT_API_URL=http://prefect.example.com/api
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise SettingsError(
            "PREFECT_API_URL is not set. Name the server, as in http://127.0.0.1:4200/api, "
            "or start one with `recon up`."
        )
    check_own_kinds()  # Without them, forms would lack these kinds, and parameters would be lost.
    from flows.ops.whose_server import refuse_unreachable

    refuse_unreachable(os.environ["PREFECT_API_URL"])
    os.environ.setdefault("DO_NOT_TRACK", "1")
    import httpx
    from prefect.exceptions import PrefectException

    try:
        _deploy(pool, kind)
    except (httpx.HTTPError, PrefectException) as problem:
        reason = str(problem).strip().partition("\n")[0][:200]
        raise ReconError(
            f"The server stopped answering, or refused: {reason or type(problem).__name__}. What "
            "is listed above is registered; run the same command again for the rest."
        ) from None
    return 0


def _deploy(pool: str, kind: str) -> None:
    from flows.ops import automations, registering
    from flows.tasks import blocks

    registering.create_pool(pool, kind)
    _say(f"work pool   {pool}")
    for name in blocks.register():
        _say(f"block       {name}")
    for line in registering.register(pool):
        _say(f"deployment  {line.name}")
        for note in line.notes:
            _say(f"note        {line.name}: {note}")
    for name in registering.left_over():
        _say(
            f"left over   {name}: not part of this version, but its schedule goes on; "
            f"if nobody needs it: prefect deployment delete {shlex.quote(name)}"
        )
    for name in automations.register(os.environ.get("RECON_NOTIFY_URL")):
        _say(f"automation  {name}")


def _say(line: str) -> None:
    out().print(line)
    sys.stdout.flush()


def _detached(settings: Settings, options: list[str]) -> int:
    from connectors.files.disk.atomic import open_private, private_folder
    from connectors.process import start_detached
    from flows.ops.laptop import show_registered
    from flows.ops.running import log_tail

    if _displayed_if_up(settings):
        return 0
    folder = settings.home / "up"
    private_folder(folder)
    log = folder / "up.log"
    with open_private(log) as file:
        started = start_detached(
            [sys.executable, "-m", "flows", "up", *options],
            os.environ | {"RECON_HOME": str(settings.home)},
            file,
        )
    _say(f"Starting everything; {log} shows the progress ...")
    deadline = time.monotonic() + DETACH_SECONDS
    try:
        while time.monotonic() < deadline:
            if _displayed_if_up(settings):
                show_registered(folder, _say)
                return 0
            if started.poll() is not None:
                raise ReconError(f"It did not start: {log_tail(log)}")
            time.sleep(0.2)
    except KeyboardInterrupt:
        started.terminate()
        with suppress(subprocess.TimeoutExpired):
            started.wait(UNDO_SECONDS)
        raise
    raise ReconError(
        f"It is not up after {DETACH_SECONDS} s and is still starting; `recon down` stops it. Its "
        f"log ends with: {log_tail(log)}"
    )


def _displayed_if_up(settings: Settings) -> bool:
    """Say what is up here; False if nothing is yet."""
    from flows.ops.laptop import show_held
    from flows.ops.running import describe, find

    running = find(settings.home / "up")
    if running is None or not (running.up and running.process.alive()):
        return False
    _say(describe(running))
    show_held(settings, _say)
    _say("`recon down` stops everything.")
    return True
