"""A program of PostgreSQL, such as pg_dump, on the database of recon: the embedded one is started.

`python -m connectors.postgres.tools pg_dump --format=custom --file=recon.dump`
"""

import subprocess
import sys

from connectors.errors import ReconError
from connectors.postgres.database import database_url
from connectors.postgres.server.programs import installed_programs
from connectors.settings import read_settings

ON_DATABASE = ("pg_dump", "pg_restore", "psql")
"""Those that take the address of a database as `--dbname`."""


def main(name: str = "", *arguments: str) -> int:
    """Run it to its end, and give its exit code; 2: it could not be run."""
    if name not in ON_DATABASE:
        sys.stderr.write(f"recon: say which program to run: {', '.join(ON_DATABASE)}.\n")
        return 2
    try:
        address = database_url(read_settings())
        program = installed_programs() / "bin" / name
    except ReconError as error:
        sys.stderr.write(f"recon: {error}\n")
        return 2
    return subprocess.run([program, f"--dbname={address}", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
