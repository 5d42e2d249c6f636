"""The line of the page restores a backup: on servers of every release, and for any account."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.guards.roles import statements
from tests.older_server import older_server
from tests.stages.payments import line, write

PAGE = Path(__file__).parents[3] / "docs" / "upgrade.md"
OWNER = "owner_of_backup"
"""Also the name of its database."""
SOURCE = "backed_up"


def tools(url: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "connectors.postgres.tools", *arguments],
        env=os.environ | {"RECON_DATABASE_URL": url, "RECON_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def restore(url: str, home: Path, dump: Path) -> subprocess.CompletedProcess[str]:
    """As the page says."""
    (options,) = re.findall(r"postgres\.tools pg_restore (.*) recon\.dump\n", PAGE.read_text())
    return tools(url, home, "pg_restore", *options.split(), str(dump))


@pytest.fixture(
    params=[
        pytest.param("15", marks=pytest.mark.long),
        pytest.param("16", marks=pytest.mark.long),
        "of this version",
    ]
)
def place(request: pytest.FixtureRequest, server: str) -> Iterator[str]:
    """A server with the roles, and on it an empty database of an account of another name."""
    older = request.param != "of this version"
    place: AbstractContextManager[str] = (
        older_server(request.param) if older else nullcontext(server)
    )
    with place as url, psycopg.connect(url, autocommit=True) as administrator:
        for statement in statements():
            if "CREATE ROLE" in statement:
                administrator.execute(statement)
        administrator.execute(f"CREATE ROLE {OWNER} LOGIN")
        administrator.execute(f"CREATE DATABASE {OWNER} OWNER {OWNER}")
        administrator.execute(f"CREATE DATABASE {SOURCE}")
        try:
            yield url
        finally:
            for name in (OWNER, SOURCE):
                administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
            administrator.execute(f"DROP ROLE {OWNER}")


def test_a_backup_is_restored_as_a_whole_by_whoever_is_to_own_it(
    place: str, tmp_path: Path
) -> None:
    home, dump, part = tmp_path / "home", tmp_path / "recon.dump", tmp_path / "part.dump"
    source = place.replace("/postgres?", f"/{SOURCE}?")
    settings = Settings(home, source)
    workspace = Workspace(settings, open_database(settings))
    with psycopg.connect(source, autocommit=True) as administrator:
        for statement in statements():
            administrator.execute(statement)
    import_delivery(workspace, [write(tmp_path / "1.csv", line(1))], DEFAULT)
    tools(source, home, "pg_dump", "--format=custom", f"--file={dump}").check_returncode()

    url = re.sub(r"//postgres:?@/postgres\?", f"//{OWNER}@/{OWNER}?", place)
    part.write_bytes(dump.read_bytes()[: -dump.stat().st_size // 4])
    assert restore(url, home, part).returncode
    with psycopg.connect(url) as owner:
        assert owner.execute("SELECT to_regnamespace('recon')").fetchone() == (None,)
    done = restore(url, home, dump)
    assert (done.returncode, done.stderr) == (0, "")
    of_owner = Settings(home, url)
    workspace = Workspace(of_owner, open_database(of_owner))
    batch = import_delivery(workspace, [write(tmp_path / "2.csv", line(2))], DEFAULT).batch
    assert (batch.id, batch.state) == (2, "complete")
    again = restore(url, home, dump)
    assert again.returncode
    assert "already exists" in again.stderr
