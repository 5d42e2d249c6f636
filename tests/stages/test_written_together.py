"""Several files that belong together: none has its name before all of them are whole."""

import hashlib
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import IO

import pytest

from connectors.errors import ReconError
from connectors.files.disk.atomic import (
    DRAFT,
    OF_MARK,
    Write,
    locked_file,
    place_files,
    write_file,
    write_files,
)
from connectors.files.disk.system_errors import OPEN_FILES


@pytest.mark.parametrize("meanwhile", [None, "below/b.csv"])
def test_files_get_their_names_together_and_their_hashes_are_told(
    tmp_path: Path, meanwhile: str | None
) -> None:
    seen: list[list[str]] = []

    def write(text: bytes) -> Write:
        def into(file: IO[bytes]) -> None:
            seen.append([one.name for one in tmp_path.rglob("*.csv")])
            file.write(text)

        return into

    files = {"a.csv": write(b"a"), "below/b.csv": write(b"b")}
    hashes = write_files(tmp_path, files, meanwhile)
    assert seen == [[], []]
    assert {name: (tmp_path / name).read_bytes() for name in hashes} == {
        "a.csv": b"a",
        "below/b.csv": b"b",
    }
    assert hashes["a.csv"] == hashlib.sha256(b"a").hexdigest()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["a.csv", "b.csv", "below"]


@pytest.mark.parametrize("meanwhile", [None, "a.csv", "b.csv"])
def test_where_one_cannot_be_written_none_is_there_and_what_was_there_stays(
    tmp_path: Path, meanwhile: str | None
) -> None:
    (tmp_path / "a.csv").write_bytes(b"before")

    def full(_: IO[bytes]) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ReconError, match=r"b\.csv could not be written: No space left"):
        write_files(tmp_path, {"a.csv": lambda file: file.write(b"now"), "b.csv": full}, meanwhile)
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_bytes() == b"before"


def test_more_are_written_than_may_be_open_at_once(tmp_path: Path) -> None:
    """As rows to correct of so many batches are: a file each."""
    files: dict[str, Write] = {f"{n}.csv": lambda file: file.write(b"whole") for n in range(200)}
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(OPEN_FILES.iterdir())) + 50, before[1]))
    try:
        write_files(tmp_path, files, meanwhile="7.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert {one.name for one in tmp_path.iterdir()} == set(files)


def test_of_two_results_at_once_one_is_there_whole(tmp_path: Path) -> None:
    names = [f"{number}.csv" for number in range(8)]
    (tmp_path / "out").mkdir()

    def place(result: int, start: Barrier) -> None:
        drafts = {name: tmp_path / f"{result}-{name}" for name in names}
        for draft in drafts.values():
            draft.write_text(str(result))
        start.wait()
        place_files(tmp_path / "out", drafts)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            for _ in range(50):
                start = Barrier(2)
                list(pool.map(place, (1, 2), (start, start)))
                assert len({(tmp_path / "out" / name).read_text() for name in names}) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(
    "left", [(".writing-a1",), (".writing-a1", ".writing-a1~0", ".writing-a1~1")]
)
def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    for name in left:
        (tmp_path / name).write_bytes(b"half")
    mark, lock = locked_file(tmp_path, prefix=DRAFT)
    written = mark.with_name(f"{mark.name}{OF_MARK}0")
    written.write_bytes(b"half")
    write_file(tmp_path / "a.csv", b"whole")
    assert {*tmp_path.iterdir()} == {mark, written, tmp_path / "a.csv"}
    lock.close()
    write_file(tmp_path / "a.csv", b"whole")
    assert {*tmp_path.iterdir()} == {tmp_path / "a.csv"}


@pytest.mark.long
def test_many_may_write_into_one_folder_at_once(tmp_path: Path) -> None:
    """A draft is not taken for that of a killed process between its making and its lock."""

    def write(one: int) -> None:
        for number in range(100):
            write_file(tmp_path / f"{one}-{number}.csv", b"whole")

    before = sys.getswitchinterval()
    # Turns as short as they can be: what can come between two calls does.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"whole"}
    assert len(list(tmp_path.iterdir())) == 400
