"""A restore that was cut off: no command takes what there is for the whole, or makes it whole."""

import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from connectors.errors import DatabaseUnusable
from connectors.postgres.database import is_empty, open_database
from connectors.postgres.schema.revisions import revisions
from connectors.postgres.server.programs import installed_programs
from connectors.settings import Settings
from tests.faults.conftest import Fresh, named

ENTRY = re.compile(r"^\d+; \d+ \d+ (.+?) recon (\S+)", re.MULTILINE)
NO_REVISION = "has no revision. "
FIRST = {
    # the first entry that is not restored -> what is told then
    ("TABLE", "alembic_version"): NO_REVISION,
    ("TABLE", "payment"): NO_REVISION,
    ("TABLE DATA", "alembic_version"): NO_REVISION,
}
SAME = {
    ("TABLE DATA", "batch"): "lacks the trigger ",
    ("CONSTRAINT", "payment"): "lacks the trigger ",
    ("INDEX", "batch_content"): "lacks the trigger ",
    ("TRIGGER", "push_epoch"): "lacks the trigger ",
}
OLDER = {
    ("TABLE DATA", "batch"): "lacks the key of ",
    ("CONSTRAINT", "payment"): "lacks the key of ",
    ("INDEX", "batch_content"): "lacks its triggers. ",
    ("TRIGGER", "batch"): "lacks its triggers. ",
}
"""The same where it is of an earlier version, whose functions and triggers are made anew."""


def pg(program: str, *arguments: str) -> str:
    command = [str(installed_programs() / "bin" / program), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def restored(url: str, dump: Path, entries: list[str]) -> None:
    """So much of a backup, in its order."""
    chosen = dump.with_suffix(".list")
    chosen.write_text("\n".join(entries))
    pg("pg_restore", f"--dbname={url}", "--exit-on-error", f"--use-list={chosen}", str(dump))


@pytest.fixture
def dump(server: str, fresh: Fresh, tmp_path: Path) -> Path:
    """A backup of an empty database of this version."""
    with fresh() as database:
        path = tmp_path / "recon.dump"
        url = named(server, database)
        pg("pg_dump", f"--dbname={url}", "--format=custom", f"--file={path}", "--no-privileges")
        return path


@pytest.mark.own_release
@pytest.mark.long(but=("this version",))
@pytest.mark.parametrize("older", [False, True], ids=["this version", "an older one"])
def test_a_restore_that_was_cut_off_is_told(
    server: str, fresh: Fresh, tmp_path: Path, dump: Path, older: bool
) -> None:
    entries = pg("pg_restore", "--list", str(dump)).splitlines()
    starts = [found and found.groups() for found in map(ENTRY.match, entries)]
    done = 0
    with fresh("template1") as database:
        url = named(server, database)
        settings = Settings(tmp_path / "home", url)
        for cut, told in (FIRST | (OLDER if older else SAME)).items():
            end = starts.index(cut)
            restored(url, dump, entries[done:end])
            done = end
            with psycopg.connect(url, autocommit=True) as connection:
                if older and told != NO_REVISION:
                    connection.execute("UPDATE recon.alembic_version SET version_num = '0038'")
                before = connection.execute("SELECT count(*) FROM pg_depend").fetchone()
                with pytest.raises(DatabaseUnusable, match=f"^The schema 'recon' {told}"):
                    open_database(settings)
                assert connection.execute("SELECT count(*) FROM pg_depend").fetchone() == before
            if told == NO_REVISION:
                with pytest.raises(DatabaseUnusable, match="restored in part"):
                    is_empty(settings)
        if not older:
            restored(url, dump, entries[done:])
            assert open_database(settings).revision == revisions()[-1]
