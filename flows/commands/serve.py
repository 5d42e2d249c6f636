"""Servers for a laptop: `recon sandbox`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from connectors.addresses import check_database_address
from connectors.errors import SettingsError
from connectors.settings import check_own_kinds, read_settings
from flows.commands.console import PORT, out, refuse_password
from flows.commands.stopping import stop_requested
from schemas.counting import quantity
from schemas.endpoints import ANY_ROLE

if TYPE_CHECKING:
    from connectors.sandbox import User

LINE = "NAME:PASSWORD:ROLE[,ROLE]"
DEFAULT_USER = "demo:demo:Client,Admin,Partner"
PASSWORD = "RECON_SANDBOX_PASSWORD"  # noqa: S105 -- the name of a variable.


def sandbox_command(
    *,
    port: Annotated[int, Parameter(help="Port; 0: any free one.", validator=PORT)] = 0,
    database: Annotated[
        str | None, Parameter(help="URL of a PostgreSQL database; default: the one recon uses.")
    ] = None,
    user: Annotated[
        tuple[str, ...],
        Parameter(
            help="User as NAME:ROLE[,ROLE], whose password is RECON_SANDBOX_PASSWORD; may be "
            "repeated; default: demo, with password demo and every role."
        ),
    ] = (),
    users: Annotated[
        Path | None,
        Parameter(help="File of users, one NAME:PASSWORD:ROLE[,ROLE] per line; -: standard input."),
    ] = None,
    load: Annotated[
        tuple[str, ...],
        Parameter(help="Rows for a listing, as RECORD=FILE (CSV or JSON); may be repeated."),
    ] = (),
    style: Annotated[
        Literal["pascal-5", "camel-core"],
        Parameter(
            help="Style of the answers: pascal-5, as recorded; camel-core, as current hosts answer."
        ),
    ] = "pascal-5",
) -> int:
    """Run the documented service on this machine: its paths, roles, formats and errors.

    It listens on 127.0.0.1 only and keeps its records in the schema `sandbox`. Ctrl-C stops it.

    Example: `recon sandbox --port 8080 --load avatar=data_samples/clean/avatars.csv`
    """
    from connectors.postgres.database import database_url, libpq_address
    from connectors.sandbox import Sandbox, SandboxOptions

    check_own_kinds()
    listed = [*(_listed_users(users) if users else []), *map(_named_user, user)]
    options = SandboxOptions(
        port=port, style=style, users=tuple(listed or [_user(DEFAULT_USER, "the default")])
    )
    listings = [_listing(text) for text in load]
    if database is not None:
        refuse_password(database, "--database", "RECON_DATABASE_URL, PGPASSWORD or ~/.pgpass")
        check_database_address("--database", database, "leave it out for the one recon uses")
        database = libpq_address(database)
    sandbox = Sandbox(options, database or database_url(read_settings()))
    stopped = stop_requested()
    with sandbox.running() as url:
        for record, path in listings:
            rows = sandbox.load(record, path)
            out().print(f"{path}: {quantity(rows, 'row')} loaded as {record}")
        out().print(f"The service listens on {url}. Ctrl-C stops it.")
        stopped.wait()
    return 0


def _named_user(text: str) -> "User":
    """A user without a password, since everybody on this machine can read a command line."""
    from connectors.sandbox import User

    name, colon, roles = text.partition(":")
    named = tuple(role for role in roles.strip(":").split(",") if role)
    if not (name and colon and named) or not set(named) <= set(ANY_ROLE):
        # The text is not shown, because it may contain a password.
        raise SettingsError(
            f"--user must be NAME:ROLE[,ROLE], of the roles {', '.join(ANY_ROLE)}. A password does "
            "not belong on a command line, where others on this machine can read it: set "
            f"{PASSWORD} for these accounts, or write lines of NAME:PASSWORD:ROLE[,ROLE] to a file "
            "for --users, or to standard input for --users -."
        )
    password = os.environ.get(PASSWORD, "")
    if not password:
        raise SettingsError(
            f"--user {name}: its password is not set. Set {PASSWORD}, or use --users."
        )
    return User(name, password, named)


def _listed_users(path: Path) -> "list[User]":
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--users {path}: cannot be read: {type(error).__name__}.") from None
    lines = [line.strip() for line in text.splitlines()]
    listed = [
        _user(line, f"line {number} of --users {path}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#")
    ]
    if not listed:
        raise SettingsError(f"--users {path}: it names no user. Write one {LINE} per line.")
    return listed


def _user(text: str, place: str) -> "User":
    from connectors.sandbox import User

    name, _, rest = text.partition(":")
    password, colon, roles = rest.rpartition(":")
    named = tuple(role for role in roles.split(",") if role)
    if not (name and password and colon and named) or not set(named) <= set(ANY_ROLE):
        # The text is not shown, because it contains a password.
        raise SettingsError(f"{place} must be {LINE}, of the roles {', '.join(ANY_ROLE)}.")
    return User(name, password, named)


def _listing(text: str) -> tuple[str, Path]:
    record, equals, path = text.partition("=")
    if not (record and equals and path):
        raise SettingsError(f"--load {text} must be RECORD=FILE.")
    return record, Path(path)
