"""Run a PostgreSQL program, such as pg_dump, on recon's database; starts an embedded server.

`python -m connectors.postgres.tools pg_dump --format=custom --file=recon.dump`

Only this user can read what it writes, and no secret of the database's address stands on a command
line. pg_restore sets a parameter that PostgreSQL 15 and 16 do not know. For these servers, its text
output is filtered and run by psql in one transaction.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connectors.addresses import SECRET_PARAMETERS
from connectors.errors import DatabaseUnusable, ReconError, SettingsError
from connectors.files.disk.atomic import keep_private, write_file
from connectors.files.disk.scratch import scratch_folder
from connectors.postgres.database import database_url
from connectors.postgres.server.programs import installed_programs
from connectors.postgres.session import no_connection
from connectors.settings import DATABASE, read_settings

ON_DATABASE = ("pg_dump", "pg_restore", "psql")
"""Programs that take the address of a database as `--dbname`."""
PASSWORD, SERVICE = "password", "recon"
LONGEST_LINE = 900
"""Bytes of a value in a service file, where libpq reads lines of at most 1023 bytes."""
UNKNOWN_BEFORE = 170000
"""The first server version that knows the setting."""
UNKNOWN = b"SET transaction_timeout = 0;\n"
AS_ONE = ("-1", "--single-transaction", "-e", "--exit-on-error")
"""Options that a restore to an older server implies, and that pg_restore rejects for text."""
READING = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null")
NO_RESTORE = ("-l", "--list", "-V", "--version", "-?", "--help")


def main(name: str = "", *arguments: str) -> int:
    """Run the program to its end and give its exit code; 2 if it could not be run."""
    if name not in ON_DATABASE:
        sys.stderr.write(f"recon: say which program to run: {', '.join(ON_DATABASE)}.\n")
        return 2
    keep_private()
    try:
        url = database_url(read_settings())
        address, secrets = _split_url(url)
        programs = installed_programs() / "bin"
        with _given(secrets) as (more, service):
            environment, place = os.environ | more, make_conninfo(**address, **service)
            restores = name == "pg_restore" and not {*NO_RESTORE}.intersection(arguments)
            if restores and _is_older(url):
                return _restore_as_text(programs, place, arguments, environment)
            command = [str(programs / name), f"--dbname={place}", *arguments]
            return subprocess.run(command, env=environment, check=False).returncode
    except ReconError as error:
        sys.stderr.write(f"recon: {error}\n")
        return 2


def _is_older(url: str) -> bool:
    """Whether the server lacks the setting; if it cannot be asked, the program reports that."""
    try:
        with psycopg.connect(url) as connection:
            return connection.info.server_version < UNKNOWN_BEFORE
    except psycopg.Error:
        return False


def _restore_as_text(
    programs: Path, address: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Restore everything or nothing, without the setting; gives the exit code."""
    asked = [one for one in arguments if one not in AS_ONE]
    written = [str(programs / "pg_restore"), "--file=-", *asked]
    read = [str(programs / "psql"), f"--dbname={address}", *READING]
    with (
        subprocess.Popen(written, env=environment, stdout=subprocess.PIPE) as writer,
        subprocess.Popen(read, env=environment, stdin=subprocess.PIPE) as reader,
    ):
        assert writer.stdout is not None
        assert reader.stdin is not None
        with suppress(BrokenPipeError), reader.stdin as script:
            script.write(b"BEGIN;\n")
            for line in writer.stdout:
                if line == UNKNOWN:
                    break
                script.write(line)
            shutil.copyfileobj(writer.stdout, script)
            # A dump that stopped short is not committed.
            if writer.wait() == 0:
                script.write(b"COMMIT;\n")
        writer.stdout.close()
    return reader.returncode or min(1, abs(writer.returncode))


def _split_url(url: str) -> tuple[dict[str, str], dict[str, str]]:
    """Split an address into what a command line may show, and its secrets."""
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
    """Give the environment that carries the secrets, and the address part that refers to it.

    libpq has a variable only for the password; it reads other secrets from a service file.
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
