"""Programs of PostgreSQL on the database of recon: `python -m connectors.postgres.tools`."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.pq import Conninfo

from connectors.addresses import SECRET_PARAMETERS

SHOWN = r"\! tr '\0' ' ' < /proc/$PPID/cmdline; echo; echo $PGPASSWORD"
"""What everybody on the machine reads of psql, and what its user alone does."""


@pytest.mark.long
@pytest.mark.parametrize("password", ["s3cret-4711", "p'w\\ 4711"])
def test_what_a_program_writes_is_private_and_the_password_is_on_no_command_line(
    password: str, database_url: str, tmp_path: Path
) -> None:
    written = password.replace(" ", "%20").replace("\\", "%5C")
    command = ["psql", f"--output={tmp_path / 'rows'}", "--command=SELECT 4712", f"-c{SHOWN}"]
    done = subprocess.run(
        [sys.executable, "-m", "connectors.postgres.tools", *command],
        env=os.environ
        | {
            "RECON_HOME": str(tmp_path / "home"),
            "RECON_DATABASE_URL": re.sub(":?@", lambda _: f":{written}@", database_url, count=1),
        },
        capture_output=True,
        text=True,
        umask=0o022,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line, given = done.stdout.splitlines()
    assert "--command=SELECT 4712" in line
    assert "4711" not in line
    assert given == password
    assert "4712" in (tmp_path / "rows").read_text()
    assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == 0o600


OF_SERVICE = r"\! tr '\0' ' ' < /proc/$PPID/cmdline; echo; stat -c %a $PGSERVICEFILE"


@pytest.mark.long
@pytest.mark.parametrize("name", ["sslpassword", "oauth_client_secret"])
def test_no_other_secret_of_an_address_is_on_a_command_line(
    name: str, database_url: str, tmp_path: Path
) -> None:
    """Only for a password is there a variable; the others go by a file that is gone afterwards."""
    secret, file = "s3cret-4711", r"\! cat $PGSERVICEFILE; echo $PGSERVICEFILE"
    done = tool(
        *("psql", f"-c{OF_SERVICE}", f"-c{file}"),
        RECON_HOME=str(tmp_path / "home"),
        RECON_DATABASE_URL=f"{database_url}{'&' if '?' in database_url else '?'}{name}={secret}",
    )
    assert done.returncode == 0, done.stderr
    line, mode, *told, place = done.stdout.splitlines()
    assert (secret in line, mode, told) == (False, "600", ["[recon]", f"{name}={secret}"])
    assert not Path(place).parent.exists()


@pytest.mark.long
def test_a_secret_beside_a_service_is_refused_with_where_it_belongs(tmp_path: Path) -> None:
    done = tool(
        "psql",
        RECON_HOME=str(tmp_path),
        RECON_DATABASE_URL="postgresql:///recon?service=ours&sslpassword=s3cret-4711",
    )
    assert (done.returncode, "4711" in done.stderr) == (2, False)
    assert "Write these into the file of the service" in done.stderr


def test_what_libpq_hides_of_an_address_is_known_as_secret() -> None:
    hidden = {one.keyword.decode() for one in Conninfo.get_defaults() if one.dispchar == b"*"}
    assert hidden <= {*SECRET_PARAMETERS}


def tool(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "connectors.postgres.tools", *command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_an_address_that_cannot_be_read_is_told_without_its_password(tmp_path: Path) -> None:
    done = tool(
        "psql",
        RECON_HOME=str(tmp_path),
        RECON_DATABASE_URL="postgresql://owner:s3cret-4711@db/recon?colour=red",
    )
    assert done.returncode == 2
    assert "RECON_DATABASE_URL" in done.stderr
    assert "4711" not in done.stderr
    assert "Traceback" not in done.stderr
