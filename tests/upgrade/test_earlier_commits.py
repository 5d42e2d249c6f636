"""A home that an earlier commit made, in every state of a batch: the current code goes on with it.

The earlier code is run from the history of this repository, in a process of its own. Where there is
no history, or none that reaches back, the test says that it was skipped.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import examples
from tests.recon import run
from tests.stages.payments import line, write

ROOT = Path(__file__).parents[2]
SHAPES = (
    "connectors/files/spool.py",
    "connectors/postgres/binary_copy.py",
    "connectors/tuples.py",
    "connectors/postgres/staging.py",
    "connectors/postgres/migrations/versions",
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


def earlier_commits() -> list[str]:
    """The commits that changed a shape, from the first one with a command line on; oldest first."""
    return _git("rev-list", "--reverse", "HEAD", "--", *SHAPES).decode().split()


def chosen() -> list[str]:
    """Every third of those before the form was written down, in the long run; else none."""
    commits = earlier_commits()
    forms = _git("rev-list", "HEAD", "--", "connectors/forms.py").decode().split()
    before = [one for one in commits if not forms or one not in forms]
    if examples.ALL:
        now = migrations("HEAD", "connectors/postgres/migrations/versions/")
        then = "connectors/migrations/versions/"
        # Code that has all of them is no earlier one; a migration that was not final yet made a
        # schema that no revision of ours has.
        return [one for one in before if set() < migrations(one, then) < now][::3] or [""]
    return []


def migrations(commit: str, folder: str) -> set[str]:
    """The migrations of a commit, each with the hash of what it says."""
    listed = _git("ls-tree", commit, folder).decode().splitlines()
    return {f"{line.split()[2]} {line.rpartition('/')[2]}" for line in listed}


@pytest.fixture
def code(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tree of a commit."""
    commit: str = request.param
    packed = _git("archive", commit, "connectors", "flows", "schemas") if commit else b""
    if not packed:
        pytest.skip("this clone has no history to take earlier code from")
    folder = tmp_path / "code"
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True, timeout=SECONDS)
    return folder


@pytest.fixture
def empty_url(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database without a schema, for the earlier code to make its own."""
    name = f"earlier_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[call-overload]


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


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("code", chosen(), indirect=True, ids=lambda commit: commit[:9] or "none")
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
    if told.returncode == 2:
        # Refused, and the way out is named: nothing of it may be applied in part.
        assert told.stderr.startswith("recon: "), told.stderr
        return
    assert told.returncode == 1, told.stderr
    with psycopg.connect(empty_url) as connection:
        found = connection.execute(
            'SELECT count(*), sum("PaidAmount"), min("Id"), max("Id") FROM recon.payment'
        ).fetchone()
        (batch,) = connection.execute("SELECT state FROM recon.batch").fetchall()
    assert found is not None
    assert (found[0], float(found[1]), *found[2:]) == (399, 399 * 10.5, 1, 399)
    assert batch == ("complete_with_errors",)
    # And the other way round: the earlier code refuses what the current one has migrated.
    assert earlier(code, empty_url, home, "status") == 2
