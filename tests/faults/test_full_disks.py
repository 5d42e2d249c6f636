"""A disk that is full: said so, exit code 2, nothing cut short, and a rerun ends it with room."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import ReconError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.server.embedded import embedded_url
from connectors.postgres.server.postmaster import Postmaster
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from tests.faults.commands import command
from tests.push.conftest import towards
from tests.push.deliveries import tones
from tests.recon import run
from tests.service.faulty_server import FaultyServer, Reply, at
from tests.stages.payments import line, write

ROWS = 3_000
MIB = 1024 * 1024


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of this many bytes; the test is skipped where none can be mounted."""
    folder.mkdir(parents=True)
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root may mount a small disk")
    if subprocess.run([mount, *options], check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take all room but so many bytes."""
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(b"\0" * max(0, free - leave))
    return ballast


@pytest.fixture
def delivery(tmp_path: Path) -> str:
    return write(tmp_path / "payments.csv", *(line(number) for number in range(1, ROWS + 1)))


PLACES = {"archive": 20_000, "reports": 4_000}
"""Bytes that are left of the disk where the folder is: too few for a file of it."""


@pytest.mark.long
def test_small_files_that_find_no_room_name_the_folder(
    database_url: str, tmp_path: Path, rows: Any
) -> None:
    home, folder = tmp_path / "home", tmp_path / "in"
    folder.mkdir()
    for number in range(60):
        write(folder / f"{number:02}.csv", *(line(60 * number + one) for one in range(1, 31)))
    with small_disk(home / "archive", 64 * 1024) as disk:
        code, told = command(database_url, home, "import", str(folder))
        assert code == 2, told
        assert f"{disk}: " in told
        assert "cannot be archived: No space left on device" in told
        assert [path for path in disk.rglob("*.csv") if path.is_file()] == []
    assert command(database_url, home, "import", str(folder))[0] == 0
    assert rows("SELECT count(*) FROM payment") == [(1800,)]


@pytest.mark.long
@pytest.mark.parametrize("size", [4, 100, 200])
def test_a_temporary_folder_without_room_is_named(
    database_url: str, tmp_path: Path, delivery: str, size: int
) -> None:
    """Where a reconciliation puts its sides aside."""
    home = tmp_path / "home"
    assert command(database_url, home, "import", delivery)[0] == 0
    with small_disk(tmp_path / "tmp", size * 1024) as disk:
        limits = {"TMPDIR": str(disk), "RECON_LIMIT_RECONCILE_BYTES": "100000"}
        done = run(database_url, home, "reconcile", **limits)
        assert done.returncode == 2, done.stderr
        assert f"{str(disk)!r}: No space left on device" in done.stderr
        assert "Traceback" not in done.stderr + done.stdout
    assert [*(home / "reports").glob("reconciliation-*")] == []
    assert run(database_url, home, "reconcile").returncode in (0, 1)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_folder_of_ours(
    database_url: str, tmp_path: Path, delivery: str, rows: Any, place: str
) -> None:
    home = tmp_path / "home"
    with small_disk(home / place, 4 * MIB) as disk:
        ballast = fill(disk, PLACES[place])
        code, told = command(database_url, home, "import", delivery)
        assert code == 2, told
        assert "No space left on device" in told
        assert [path for path in disk.rglob("*") if path.is_file()] == [ballast]
        ballast.unlink()
        assert command(database_url, home, "import", delivery)[0] == 0
    assert rows("SELECT count(*) FROM payment") == [(ROWS,)]


@pytest.mark.long
def test_a_spool_that_finds_no_room_is_done_without(
    database_url: str, tmp_path: Path, delivery: str, rows: Any
) -> None:
    home = tmp_path / "home"
    with small_disk(home / "spool", MIB) as disk:
        fill(disk, 8_000)
        assert command(database_url, home, "import", delivery)[0] == 0
    assert rows("SELECT count(*) FROM payment") == [(ROWS,)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("room", "named"), [(0, "push-marker.json"), (2 * 4096, "push-AddMessageTone.windows")]
)
def test_no_room_for_the_records_of_a_push(
    database_url: str, tmp_path: Path, rows: Any, room: int, named: str
) -> None:
    """The marker or the count of POSTs finds no room: nothing is sent.

    Who has the lock and the marker take a block each.
    """
    home = tmp_path / "home"
    delivered = tones(tmp_path / "tones.csv", 50)
    with small_disk(home, 4 * MIB) as disk, FaultyServer() as server:
        service = {
            "RECON_SERVICE_URL": server.url,
            "RECON_SERVICE_USER": "ops",
            "RECON_SERVICE_PASSWORD": "pw-canary",
            "RECON_SERVICE_FORMAT": "json",
        }
        assert command(database_url, home, "import", delivered)[0] == 0
        ballast = fill(disk, room)
        code, told = command(database_url, home, "push", "1", **service)
        assert code == 2, told
        assert named in told
        assert f"on the disk mounted at {disk}" in told
        assert rows("SELECT DISTINCT state, attempts FROM send") in ([], [("unsent", 0)])
        assert server.requests == []
        assert not list(home.glob(".push-marker.json-*"))
        ballast.unlink()
        assert command(database_url, home, "push", "1", **service)[0] == 0
        assert server.twice() == []
    assert rows("SELECT state, count(*) FROM send GROUP BY 1") == [("acknowledged", 50)]


def test_no_room_in_the_middle_of_a_push_leaves_nothing_in_doubt(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    """What is in flight is waited for; the window that could not be counted is given back."""
    import_delivery(workspace, [tones(tmp_path / "tones.csv", 20)], DEFAULT)
    count = workspace.settings.home / "push-AddMessageTone.windows"

    def no_file() -> None:
        """In one step: what is sent side by side writes the file again wherever it finds none."""
        elsewhere = tmp_path / "a-folder"
        elsewhere.symlink_to(tmp_path, target_is_directory=True)
        elsewhere.replace(count)

    with FaultyServer(at({6: Reply(hold=no_file)})) as server:
        place = towards(workspace, server.url, concurrency=2)
        with pytest.raises(ReconError, match="are unsent; make room"):
            push_batch(place, 1)
        done = len(server.effects)
        assert 6 <= done < 20
        assert dict(rows("SELECT state, count(*) FROM send GROUP BY 1")) == {
            "acknowledged": done,
            "unsent": 20 - done,
        }
        count.unlink()
        push_batch(place, 1)
        assert server.twice() == []
    assert rows("SELECT state, count(*) FROM send GROUP BY 1") == [("acknowledged", 20)]


@pytest.mark.long
def test_an_output_that_takes_nothing(database_url: str, tmp_path: Path, delivery: str) -> None:
    for asked in (("import", delivery), ("status",), ("status", "--json")):
        with Path("/dev/full").open("w") as full:
            run = subprocess.run(
                [sys.executable, "-m", "flows", *asked],
                env=os.environ
                | {"RECON_DATABASE_URL": database_url, "RECON_HOME": str(tmp_path / "home")},
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert run.returncode == 2, run.stderr
        assert run.stderr.count("\n") == 1, run.stderr
        assert "No space left on device" in run.stderr


@pytest.mark.long
def test_the_database_s_disk(tmp_path: Path, delivery: str) -> None:
    home = tmp_path / "home"
    with small_disk(tmp_path / "disk", 200 * MIB) as disk:
        url = embedded_url(disk / "postgres")
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("SELECT 1")
        assert command(url, home, "status")[0] == 0
        ballast = fill(disk, 300_000)
        code, told = command(url, home, "import", delivery, RECON_LIMIT_DATABASE_WAIT_SECONDS="1")
        assert code == 2, told
        assert "room left" in told or "was lost" in told or "cannot be used" in told, told
        ballast.unlink()
        embedded_url(disk / "postgres")
        assert command(url, home, "import", delivery)[0] == 0
        with psycopg.connect(url, autocommit=True) as owner:
            assert owner.execute("SELECT count(*) FROM recon.payment").fetchone() == (ROWS,)
        stop(disk / "postgres")


def stop(folder: Path) -> None:
    Postmaster(folder).stop()
