"""Programs of PostgreSQL on the database of recon: `python -m connectors.postgres.tools`."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SHOWN = r"\! tr '\0' ' ' < /proc/$PPID/cmdline; echo; echo $PGPASSWORD"
"""What everybody on the machine reads of psql, and what its user alone does."""


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


def test_an_address_that_cannot_be_read_is_told_without_its_password(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "connectors.postgres.tools", "psql"],
        env=os.environ
        | {
            "RECON_HOME": str(tmp_path),
            "RECON_DATABASE_URL": "postgresql://owner:s3cret-4711@db/recon?colour=red",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "RECON_DATABASE_URL" in done.stderr
    assert "4711" not in done.stderr
    assert "Traceback" not in done.stderr
