"""What housekeeping removed is listed beside the archive, for as long as somebody may need it."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from connectors.files.archived import removed_contents
from connectors.files.archived.removed_contents import (
    LISTED,
    REMOVED_LIST,
    forget_long_removed,
    list_removed,
    listed_as_removed,
)

NOW = datetime(2026, 11, 28, tzinfo=UTC)
LATELY, LONG_AGO = NOW - timedelta(days=1), NOW - LISTED - timedelta(days=1)


def lines(archive: Path) -> list[str]:
    return (archive / REMOVED_LIST).read_text().splitlines()


def test_the_list_does_not_grow_for_ever(tmp_path: Path) -> None:
    for sha256, at in (("old", LONG_AGO), ("new", LATELY), ("twice", LONG_AGO), ("twice", LATELY)):
        list_removed(tmp_path, sha256, at)
    for _ in range(3):
        list_removed(tmp_path, "back", LATELY)
        list_removed(tmp_path, "back", LATELY, kept=True)
    forget_long_removed(tmp_path, NOW)
    assert listed_as_removed(tmp_path) == {"new": LATELY, "twice": LATELY}
    assert len(lines(tmp_path)) == 2
    before = (tmp_path / REMOVED_LIST).stat()
    forget_long_removed(tmp_path, NOW)
    assert (tmp_path / REMOVED_LIST).stat().st_ino == before.st_ino, "nothing to leave out"
    assert before.st_mode & 0o077 == 0


def test_where_nothing_was_removed_no_list_is_made(tmp_path: Path) -> None:
    forget_long_removed(tmp_path / "archive", NOW)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.long
def test_what_is_listed_while_it_is_written_anew_stays_listed(tmp_path: Path) -> None:
    """Whoever imports adds to it while housekeeping leaves lines out."""
    names = [f"content {number}" for number in range(200)]

    def add(sha256: str) -> None:
        list_removed(tmp_path, sha256, LATELY)
        list_removed(tmp_path, "old", LONG_AGO)

    def forget(_: str) -> None:
        forget_long_removed(tmp_path, NOW)

    both = [(work, name) for name in names for work in (add, forget)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda one: one[0](one[1]), both))
    assert listed_as_removed(tmp_path).keys() - {"old"} == {*names}


def test_a_process_that_hangs_while_it_writes_the_list_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    list_removed(tmp_path, "one", LONG_AGO)
    monkeypatch.setattr(removed_contents, "LOCK_SECONDS", 0.1, raising=False)
    with (tmp_path / REMOVED_LIST).open() as hangs, ThreadPoolExecutor(1) as thread:
        fcntl.flock(hangs, fcntl.LOCK_EX)
        for work in (
            partial(list_removed, tmp_path, "two", LATELY),
            partial(forget_long_removed, tmp_path, NOW),
        ):
            waits = thread.submit(work)
            try:
                waits.result(20)
            finally:
                if not waits.done():
                    fcntl.flock(hangs, fcntl.LOCK_UN)
    assert "another process has it locked. The removal of two is not noted there" in caplog.text
    assert "could not be shortened and stays as it is: another process" in caplog.text
    assert listed_as_removed(tmp_path) == {"one": LONG_AGO}
