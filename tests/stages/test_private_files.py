"""Whatever a run writes is for its user alone, from the moment it is there."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.addresses import is_loopback
from connectors.files.disk.atomic import open_private, private_folder, write_file
from flows.__main__ import build_app
from tests.stages.payments import line, write

SAMPLES = Path(__file__).parents[2] / "data_samples"


@contextmanager
def masked(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(*folders: Path) -> list[str]:
    """Everything below and including these that somebody else could read, write or look into."""
    found = [one for folder in folders for one in (folder, *folder.rglob("*"))]
    assert sum(one.is_file() for one in found) > 1, found
    return [
        f"{stat.S_IMODE(one.lstat().st_mode):o} {one}"
        for one in found
        if one.lstat().st_mode & 0o077 and not one.is_symlink() and not one.is_socket()
    ]


@pytest.mark.long
@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_nothing_a_run_writes_is_for_others(
    mask: int, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the umask the command line sets: every write has its own mode."""
    home, places = tmp_path / "home", {name: tmp_path / name for name in ("fix", "diff", "inbox")}
    monkeypatch.setenv("RECON_HOME", str(home))
    monkeypatch.setenv("RECON_DATABASE_URL", database_url)
    other = write(tmp_path / "other.csv", line(1), line(2, amount="7"))
    places["inbox"].mkdir()
    write(places["inbox"] / "new.csv", line(5), line(6, amount="x"))
    with masked(mask):
        for command in (
            ["import", str(SAMPLES / "dirty" / "payments.csv")],
            ["rejects", "1", "--out", str(places["fix"])],
            ["watch", str(places["inbox"]), "--settle", "0", "--once"],
            ["reconcile", "--as-of", "2026-07-01"],
            [
                *("compare", other, write(tmp_path / "third.csv", line(1), line(2, amount="8"))),
                *("--key", "Id", "--out", str(places["diff"])),
            ],
        ):
            build_app(command)(command, result_action="return_value", exit_on_error=False)
        kept = private_folder(home / "a" / "b" / "c")
        with open_private(kept / "log", append=True) as file:
            assert os.fstat(file.fileno()).st_mode & 0o077 == 0
    assert open_to_others(home, places["fix"], places["diff"], places["inbox"] / ".recon") == []
    assert (places["inbox"] / "archive").stat().st_mode & 0o077 == 0


def test_what_somebody_opened_stays_so_and_what_we_write_does_not(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    assert private_folder(shared / "ours").stat().st_mode & 0o077 == 0
    assert stat.S_IMODE(shared.stat().st_mode) == 0o770
    left = shared / "up.log"
    left.write_bytes(b"before")
    left.chmod(0o644)
    with open_private(left, append=True) as file:
        assert os.fstat(file.fileno()).st_mode & 0o077 == 0
        file.write(b" after")
    assert left.read_bytes() == b"before after"
    report = shared / "report.html"
    report.write_bytes(b"old")
    report.chmod(0o666)
    write_file(report, b"new")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    (shared / "link").symlink_to(left)
    with pytest.raises(OSError, match="symbolic links"):
        open_private(shared / "link", follow=False)


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.9.9.9", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, ours: bool) -> None:
    assert is_loopback(host) is ours
