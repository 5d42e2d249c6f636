"""What the page about production says to do first, done in its order on an empty server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from connectors.postgres.server.embedded import embedded_url
from connectors.postgres.server.postmaster import Postmaster
from connectors.postgres.server.programs import installed_programs
from schemas.guards.roles import statements
from tests.stages.payments import line, write

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "production.md").read_text()
SECTION = PAGE.split("## Set it up\n")[1].split("\n## ")[0]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", SECTION, re.DOTALL)
PASSWORD = "pw-4711\npw-4711\n"
"""As `\\password` asks for it, twice."""


def test_roles_of_a_schema_that_is_not_there_say_what_makes_it(server: str) -> None:
    with psycopg.connect(server) as connection, pytest.raises(psycopg.Error, match="recon status"):
        connection.execute(";".join(statements()).encode())


@pytest.mark.long
def test_the_page_leads_to_a_worker_that_looks_into_its_inbox(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    admin = embedded_url(folder, "postgres")
    try:
        assert [kind for kind, _ in BLOCKS[:2]] == ["sql", "sh"]
        for number in ("", "2"):  # A second owner on one server, whose roles are there.
            first, *others = (_here(text, tmp_path, number) for _, text in BLOCKS)
            asked = re.sub(r"(\\password.*\n)", lambda found: found[0] + PASSWORD, first)
            _done(
                [str(installed_programs() / "bin" / "psql"), "-vON_ERROR_STOP=1", admin], asked, {}
            )
            as_owner = ["bash", "-e", "-o", "pipefail", "-c"]
            *before, _ = others[0].splitlines()
            _done([*as_owner, "\n".join(before)], "", {})
            if number:  # What it may do beyond its own database has to be given to it.
                (grant,) = re.findall(r"`(GRANT recon_loader.*?)`", PAGE)
                with psycopg.connect(admin, autocommit=True) as connection:
                    connection.execute(grant.encode())
            _done([*as_owner, others[0]], PASSWORD, {})
            worker = next(text for text in others if "PREFECT_WORKER_" in text)
            given = dict(re.findall(r"(RECON_[A-Z_]+)=(\S+)", worker))
            _done(["recon", "watch", "--once"], "", given)
            write(Path(given["RECON_HOME"]) / "inbox" / "a.csv", line(1))
            assert "started" in _done(["recon", "watch", "--once", "--settle=0"], "", given)
    finally:
        Postmaster(folder).stop()


def _here(text: str, folder: Path, number: str) -> str:
    """The text of the page about this server and this folder."""
    for name in ("owner", "worker"):
        text = re.sub(rf"(?<![\w/]){name}(?=[ ;'\n])", f"{name}{number}", text)
        at = f"postgresql://{name}{number}@/recon{number}?host={folder}/postgres"
        text = text.replace(f"postgresql://{name}:...@db/recon", at)
    text = text.replace("DATABASE recon ", f"DATABASE recon{number} ")
    return text.replace("/srv/recon", str(folder / f"home{number}"))


def _done(command: list[str], given: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        env=os.environ
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        | environment,
        input=given,
        capture_output=True,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # Without a terminal psql asks its input for a password.
        check=False,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout
