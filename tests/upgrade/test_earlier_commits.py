"""A database that an earlier commit made: the current code goes on with it, or says by which way.

The earlier code is run from the history of this repository, in a process of its own. Where there is
no history, or none that reaches back, the test says that it was skipped.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import psycopg
import pytest

from connectors.postgres.schema.revisions import THROUGH
from schemas.guards.roles import statements
from tests import examples
from tests.recon import run
from tests.stages.payments import line, write
from tests.upgrade.catalogue import catalogue, columns, content

ROOT = Path(__file__).parents[2]
SHAPES = (
    "connectors/files/disk/spool.py",
    "connectors/postgres/bulk/binary_copy.py",
    "connectors/tuples.py",
    "connectors/postgres/batches/staging.py",
    "flows/stages/stage.py",
    "flows/steps/validate/key_filter.py",
    "schemas/ledger.py",
    # Where they were before every module had a room.
    "connectors/migrations/versions",
    "connectors/spool.py",
    "connectors/staging.py",
    "flows/steps/sieve.py",
)
"""What a batch under way depends on: a commit that changed one of these may have another form."""
VERSIONS = ("connectors/postgres/migrations/versions", "connectors/migrations/versions")
STATES = {
    # state -> where the earlier code dies, and more options of its import
    "received": ("copy", ()),
    "being staged": ("chunk", ()),
    "staged": ("stage", ()),
    "checked": ("check", ()),
    "being applied": ("apply-chunk", ()),
    "applied": ("applied", ()),
    "held": (None, ("--max-errors", "0")),
    "ended": (None, ()),
}
SECONDS = 120


def _git(*arguments: str) -> bytes:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, check=False, timeout=SECONDS
    )
    return done.stdout if done.returncode == 0 else b""


def migrations(commit: str) -> set[str]:
    """The migrations of a commit, each with the hash of what it says."""
    listed = _git("ls-tree", "-r", commit, *VERSIONS).decode().splitlines()
    return {f"{line.split()[2]} {line.rpartition('/')[2]}" for line in listed}


def made(*, older: bool) -> Iterator[str]:
    """Commits that changed a shape and have all migrations that were before ours, or some of them.

    Newest first; the first one that has all is the one that the message names. A migration that was
    not final yet made a schema that no revision has, and which nothing leads on from.
    """
    every = migrations(THROUGH)
    commits = _git("rev-list", THROUGH, "--", *SHAPES).decode().split()
    if older:
        return (one for one in commits if set() < migrations(one) < every)
    return chain([THROUGH], (one for one in commits if every and migrations(one) == every))


def some(commits: Iterator[str], step: int) -> list[object]:
    """The first of them, and in the long run every so many of the others."""
    first = next(commits, "")
    more = islice(commits, 0, None, step) if examples.ALL else []
    return [pytest.param(one, id=one[:9] or "none") for one in (first, *more)]


@pytest.fixture
def code(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tree of a commit."""
    return unpacked(request.param, tmp_path / "code")


def unpacked(commit: str, folder: Path) -> Path:
    packed = _git("archive", commit, "connectors", "flows", "schemas") if commit else b""
    if not packed:
        pytest.skip("this clone has no history to take earlier code from")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True, timeout=SECONDS)
    return folder


def earlier(code: Path, url: str, home: Path, *arguments: str, **more: str) -> int:
    """Run the earlier code; gives its exit code."""
    environment = dict(os.environ) | {
        "PYTHONPATH": str(code),
        "RECON_DATABASE_URL": url,
        "RECON_HOME": str(home),
    }
    done = subprocess.run(
        [sys.executable, "-m", "flows", *arguments],
        cwd=code,
        env=environment | more,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return done.returncode


@pytest.mark.parametrize("code", some(made(older=False), 3), indirect=True)
def test_its_schema_is_the_one_of_a_new_database(
    code: Path, empty_url: str, database_url: str, tmp_path: Path
) -> None:
    """Eighteen steps led to what is one step now: it is taken over as it is, and goes on."""
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    assert earlier(code, empty_url, tmp_path / "home", "import", path) == 1
    there = columns(empty_url)
    rows = content(empty_url, there)
    assert run(empty_url, tmp_path / "home", "status").returncode == 0
    for url in (empty_url, database_url):
        with psycopg.connect(url, autocommit=True) as owner:
            for statement in statements():
                owner.execute(statement)  # type: ignore[call-overload]
    assert catalogue(empty_url) == catalogue(database_url)
    assert content(empty_url, there) == rows, "no row was written again"
    now = columns(empty_url)
    assert {name: now[name][: len(names)] for name, names in there.items()} == there


@pytest.mark.long
@pytest.mark.parametrize("code", some(made(older=True), 6), indirect=True)
def test_an_older_one_is_left_as_it_is_and_told_the_way(
    code: Path, empty_url: str, tmp_path: Path
) -> None:
    path, home = write(tmp_path / "a.csv", line(1), line(2, amount="x")), tmp_path / "home"
    if earlier(code, empty_url, home, "import", path) != 1:
        pytest.skip("this commit does not import on this machine")
    there = columns(empty_url)
    of_before, rows = catalogue(empty_url), content(empty_url, there)
    told = run(empty_url, home, "status")
    assert told.returncode == 2, told.stderr
    assert told.stderr.startswith("recon: The schema 'recon' is at revision 00"), told.stderr
    assert told.stderr.count("\n") == 1
    assert f"Go through commit {THROUGH} of recon" in told.stderr
    assert (catalogue(empty_url), content(empty_url, there)) == (of_before, rows)
    assert earlier(unpacked(THROUGH, tmp_path / "through"), empty_url, home, "status") == 0
    told = run(empty_url, home, "import", path)
    assert told.returncode == 1, told.stderr
    assert "batch 1" in told.stdout
    assert content(empty_url, there)["payment"] == rows["payment"]


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("code", some(made(older=False), 1), indirect=True)
def test_the_current_code_goes_on(code: Path, empty_url: str, tmp_path: Path, state: str) -> None:
    step, options = STATES[state]
    path = write(tmp_path / "a.csv", *(line(n) for n in range(1, 400)), line(400, amount="x"))
    home = tmp_path / "home"
    small = {"RECON_LIMIT_BLOCK_BYTES": "4096", "RECON_LIMIT_STRICT_BYTES": "1"}
    crash = {"CRASH_AT": step} if step else {}
    before = earlier(code, empty_url, home, "import", path, *options, **small, **crash)
    if before not in (1, -9):
        pytest.skip(f"this commit does not import on this machine (exit code {before})")
    told = run(empty_url, home, "rerun", "1", **small)
    assert "Traceback" not in told.stderr, told.stderr
    if state == "held":
        assert told.returncode == 1, told.stderr
        told = run(empty_url, home, "release", "1", "--reason", "agreed", **small)
    assert told.returncode == 1, told.stderr
    with psycopg.connect(empty_url) as connection:
        found = connection.execute(
            'SELECT count(*), sum("PaidAmount"), min("Id"), max("Id") FROM recon.payment'
        ).fetchone()
        (batch,) = connection.execute("SELECT state FROM recon.batch").fetchall()
    assert found is not None
    assert (found[0], float(found[1]), *found[2:]) == (399, 399 * 10.5, 1, 399)
    assert batch == ("complete_with_errors",)
    # And the other way round: the earlier code refuses what the current one has taken over.
    assert earlier(code, empty_url, home, "status") == 2


@pytest.mark.long
@pytest.mark.parametrize("code", some(made(older=False), 10**6), indirect=True)
def test_what_it_signed_is_no_forgery(code: Path, empty_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = write(tmp_path / "a.csv", line(1), line(2))
    assert earlier(code, empty_url, home, "import", path) == 0
    assert earlier(code, empty_url, home, "reconcile", "--as-of", "2026-03-31") in (0, 1)
    assert earlier(code, empty_url, home, "sign", "prepare", "--by", "ann", PGTZ="Asia/Tokyo") == 0
    told = run(empty_url, home, "archive", "verify")
    assert told.returncode == 0, told.stdout
    assert run(empty_url, home, "audit", "verify").returncode == 0
    # What it left is gone on from.
    told = run(empty_url, home, "reconcile", "--as-of", "2026-03-31")
    assert (told.returncode in (0, 1), told.stderr) == (True, "")
