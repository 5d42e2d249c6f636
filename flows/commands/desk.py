"""`recon desk`: the pages on which reports are reviewed and signed."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from connectors.addresses import is_loopback
from connectors.errors import SettingsError
from flows.commands.console import PORT, out, workspace
from flows.commands.stopping import stop_requested

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.stages.workspace import Workspace


def desk_command(
    *,
    port: Annotated[int, Parameter(help="Port; 0: any free one.", validator=PORT)] = 8300,
    host: Annotated[
        str,
        Parameter(
            help="Loopback address to listen on, such as ::1; to be reached from elsewhere, put a "
            "proxy with TLS before the desk."
        ),
    ] = "127.0.0.1",
) -> int:
    """Serve the desk: web pages on which reports are reviewed and signed, and batches repaired.

    It listens on this machine only. Ctrl-C stops it.

    Example: `recon desk`, then open http://127.0.0.1:8300
    """
    from connectors.desk_settings import read_desk_settings
    from connectors.oidc import Provider
    from flows.desk.app import Desk
    from flows.desk.server import serving

    if not is_loopback(host):
        raise SettingsError(
            f"--host {host} can be reached from elsewhere, and the desk has no TLS of its own. "
            "Leave it at 127.0.0.1 and put a proxy with TLS before it."
        )
    settings = read_desk_settings()
    stopped = stop_requested()
    with workspace(say_held=False) as place:
        # Visitors of the pages must not act by the login of the person who started this.
        provider = Provider(settings.provider) if settings.provider else None
        desk = Desk(place.as_login(None), settings, provider, start=_start())
        with serving(desk, host, port, ahead=True) as url:
            out().print(f"The desk is at {url}. Ctrl-C stops it.")
            sys.stdout.flush()
            stopped.wait()
    return 0


def _start() -> "Callable[[Workspace, int], None]":
    """How jobs are started: by Prefect if its server is named, else as processes here."""
    if os.environ.get("PREFECT_API_URL"):
        from flows.ops.start_job import start_flow

        return start_flow
    from flows.desk.jobs import start_here

    return start_here
