"""Servers for a laptop: `recon sandbox`."""

import signal
import threading
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from connectors.database import database_url
from connectors.errors import SettingsError
from connectors.sandbox import Sandbox, SandboxOptions, User
from connectors.settings import read_settings
from flows.commands.console import out

DEFAULT_USER = "demo:demo:Client,Admin,Partner"


def sandbox_command(
    *,
    port: Annotated[int, Parameter(help="0: any free port.")] = 0,
    database: Annotated[
        str | None, Parameter(help="URL of a PostgreSQL; default: the one recon uses.")
    ] = None,
    user: Annotated[
        tuple[str, ...], Parameter(help="NAME:PASSWORD:ROLE[,ROLE], may be given more than once.")
    ] = (DEFAULT_USER,),
    load: Annotated[
        tuple[str, ...],
        Parameter(help="RECORD=FILE, rows of a listing, CSV or JSON; may repeat."),
    ] = (),
    style: Annotated[
        str, Parameter(help="pascal-5 (as recorded) or camel-core (current hosts).")
    ] = "pascal-5",
) -> int:
    """Run the documented service on this machine: its paths, roles, formats and errors.

    It listens on 127.0.0.1 only and keeps its records in the schema `sandbox`. Ctrl-C stops it.

    Example: `recon sandbox --port 8080 --load avatar=data_samples/clean/avatars.csv`
    """
    options = SandboxOptions(port=port, style=style, users=tuple(map(_user, user)))
    listings = [_listing(text) for text in load]
    sandbox = Sandbox(options, database or database_url(read_settings()))
    stopped = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopped.set())
    with sandbox.running() as url:
        for record, path in listings:
            out().print(f"{path}: {sandbox.load(record, path)} rows loaded as {record}")
        out().print(f"The service listens on {url}. Ctrl-C stops it.")
        stopped.wait()
    return 0


def _user(text: str) -> User:
    name, _, rest = text.partition(":")
    password, colon, roles = rest.rpartition(":")
    if not (name and password and colon):
        # The text is not shown: it holds a password.
        raise SettingsError("--user must be NAME:PASSWORD:ROLE[,ROLE].")
    return User(name, password, tuple(role for role in roles.split(",") if role))


def _listing(text: str) -> tuple[str, Path]:
    record, equals, path = text.partition("=")
    if not (record and equals and path):
        raise SettingsError(f"--load {text} must be RECORD=FILE.")
    return record, Path(path)
