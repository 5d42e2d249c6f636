"""A program of PostgreSQL, such as pg_dump, on the database of recon: the embedded one is started.

`python -m connectors.postgres.tools pg_dump --format=custom --file=recon.dump`

What it writes is for nobody else, and the password of the database stands on no command line.
"""

import os
import subprocess
import sys

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connectors.errors import DatabaseUnusable, ReconError
from connectors.files.atomic import keep_private
from connectors.postgres.addresses import no_connection
from connectors.postgres.database import database_url
from connectors.postgres.server.programs import installed_programs
from connectors.settings import DATABASE, read_settings

ON_DATABASE = ("pg_dump", "pg_restore", "psql")
"""Those that take the address of a database as `--dbname`."""


def main(name: str = "", *arguments: str) -> int:
    """Run it to its end, and give its exit code; 2: it could not be run."""
    if name not in ON_DATABASE:
        sys.stderr.write(f"recon: say which program to run: {', '.join(ON_DATABASE)}.\n")
        return 2
    keep_private()
    try:
        address, password = _apart(database_url(read_settings()))
        program = installed_programs() / "bin" / name
    except ReconError as error:
        sys.stderr.write(f"recon: {error}\n")
        return 2
    command = [str(program), f"--dbname={address}", *arguments]
    return subprocess.run(command, env=os.environ | password, check=False).returncode


def _apart(url: str) -> tuple[str, dict[str, str]]:
    """The address without its password, and the environment that gives it to the program."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise DatabaseUnusable(no_connection(error, url, DATABASE)) from None
    password = given.pop("password", None)
    address = make_conninfo("", **{name: str(value) for name, value in given.items()})
    return address, {} if password is None else {"PGPASSWORD": str(password)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
