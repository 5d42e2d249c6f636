"""A program of PostgreSQL, such as pg_dump, on the database of recon: the embedded one is started.

`python -m connectors.postgres.tools pg_dump --format=custom --file=recon.dump`

What it writes is for nobody else, and no secret of the database's address stands on a command line.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connectors.addresses import SECRET_PARAMETERS
from connectors.errors import DatabaseUnusable, ReconError, SettingsError
from connectors.files.atomic import keep_private, write_file
from connectors.files.scratch import scratch_folder
from connectors.postgres.addresses import no_connection
from connectors.postgres.database import database_url
from connectors.postgres.server.programs import installed_programs
from connectors.settings import DATABASE, read_settings

ON_DATABASE = ("pg_dump", "pg_restore", "psql")
"""Those that take the address of a database as `--dbname`."""
PASSWORD, SERVICE = "password", "recon"
LONGEST_LINE = 900
"""Bytes of a text in a file of services, of whose lines libpq takes 1023."""


def main(name: str = "", *arguments: str) -> int:
    """Run it to its end, and give its exit code; 2: it could not be run."""
    if name not in ON_DATABASE:
        sys.stderr.write(f"recon: say which program to run: {', '.join(ON_DATABASE)}.\n")
        return 2
    keep_private()
    try:
        address, secrets = _apart(database_url(read_settings()))
        program = installed_programs() / "bin" / name
        with _given(secrets) as (environment, service):
            command = [str(program), f"--dbname={make_conninfo(**address, **service)}", *arguments]
            return subprocess.run(command, env=os.environ | environment, check=False).returncode
    except ReconError as error:
        sys.stderr.write(f"recon: {error}\n")
        return 2


def _apart(url: str) -> tuple[dict[str, str], dict[str, str]]:
    """What an address says, and the secrets in it."""
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.Error as error:
        raise DatabaseUnusable(no_connection(error, url, DATABASE)) from None
    secrets = {name: given.pop(name) for name in SECRET_PARAMETERS if name in given}
    if "service" in given and secrets.keys() - {PASSWORD}:
        raise SettingsError(
            f"{DATABASE} names a service and, beside it, {', '.join(secrets)}. Write these into "
            "the file of the service, for nobody else to read, and leave them out of the address."
        )
    return given, secrets


@contextmanager
def _given(secrets: dict[str, str]) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The environment that gives secrets to a program, and what its address has to say for that.

    Only for a password libpq has a variable; it reads the others from the file of a service.
    """
    environment = {"PGPASSWORD": secrets[PASSWORD]} if PASSWORD in secrets else {}
    others = {name: text for name, text in secrets.items() if name != PASSWORD}
    if not others:
        yield environment, {}
        return
    for name, text in others.items():
        if text != text.strip() or len(text.splitlines()) > 1 or len(text.encode()) > LONGEST_LINE:
            raise SettingsError(
                f"{name} in {DATABASE} begins or ends with a blank, has more than a line or is too "
                "long for a program of PostgreSQL to be given it. Choose another one."
            )
    with scratch_folder() as folder:
        path = folder / "service"
        lines = [f"[{SERVICE}]", *(f"{name}={text}" for name, text in others.items())]
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
        yield environment | {"PGSERVICEFILE": str(path)}, {"service": SERVICE}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
