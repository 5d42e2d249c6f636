"""Results under their names: all of one comparison, or all of the one before."""

import json
import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from connectors.compare.results import RESULTS
from connectors.errors import SidesRefused
from flows.__main__ import main
from tests.compare.tables import another_user, becomes, compared, csv_file, parquet_file
from tests.recon import run


def _sides(folder: Path, value: int) -> list[str]:
    return [
        str(csv_file(folder / f"{side}{value}.csv", f"id,v\n1,{number}\n"))
        for side, number in (("l", 0), ("r", value))
    ]


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *arguments, "--key", "id"])
    return int(ended.value.code or 0)


@pytest.mark.long(but=("differences.parquet",))
@pytest.mark.parametrize("name", RESULTS)
def test_what_cannot_have_its_name_leaves_the_results_of_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    out = tmp_path / "out"
    assert _run(*_sides(tmp_path, 1), "--out", str(out)) == 1
    (out / name).unlink()
    (out / name / "kept").mkdir(parents=True)
    before = {file: file.read_bytes() for file in out.iterdir() if file.is_file()}
    assert len(before) == len(RESULTS) - 1
    assert _run(*_sides(tmp_path, 2), "--out", str(out)) == 2
    assert f"{out / name} is a folder, and a result is to have its name" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.iterdir() if file.is_file()} == before


def _results(folder: Path) -> dict[str, bytes]:
    """The results in a folder, and nothing else may be there that a reader sees."""
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name[0] != "."}


POINTS = ("names-free", *(f"file-renamed:{number}" for number in range(1, len(RESULTS) + 1)))


@pytest.mark.long(but=("file-renamed:2",))
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_leaves_files_of_one_comparison_and_a_report_only_with_all(
    tmp_path: Path, point: str
) -> None:
    out, whole = tmp_path / "out", {}
    for value in (1, 2):
        _run(*_sides(tmp_path, value), "--out", str(tmp_path / f"out{value}"))
        whole[value] = _results(tmp_path / f"out{value}")
    _run(*_sides(tmp_path, 1), "--out", str(out))
    again = ("compare", *_sides(tmp_path, 2), "--key", "id", "--out", str(out))
    killed = run("", tmp_path / "home", *again, CRASH_AT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = _results(out)
    assert left.items() <= whole[2].items(), sorted(left)
    assert "report.html" not in left or left == whole[2]
    assert _run(*again[1:3], "--out", str(out)) == 1
    assert sorted(one.name for one in out.iterdir()) == sorted(RESULTS)
    assert _results(out) == whole[2]


def test_a_file_whose_name_is_no_text_is_told_by_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = _sides(tmp_path, 1)
    odd, out = str(tmp_path / os.fsdecode(b"s\xe9.csv")), tmp_path / "out"
    Path(left).rename(odd)
    assert _run(odd, right, "--out", str(out)) == 1
    assert sorted(file.name for file in out.iterdir()) == sorted(RESULTS)
    assert json.loads((out / "summary.json").read_text())["left"]["name"] == odd
    assert r"s\udce9.csv" in (out / "report.html").read_text()
    capsys.readouterr()
    assert _run(odd, right, "--json") == 1
    assert json.loads(capsys.readouterr().out)["left"]["name"] == odd
    folder = tmp_path / os.fsdecode(b"\xe9")
    parquet_file(tmp_path / "a.parquet", {"id": [1]}).rename(tmp_path / os.fsdecode(b"\xe9.pq"))
    capsys.readouterr()
    assert _run(odd, right, "--out", str(folder)) == 2
    assert "a part of its name is no text in UTF-8. Name another" in capsys.readouterr().err
    assert _run(str(tmp_path / os.fsdecode(b"\xe9.pq")), right) == 2
    assert "its name is no text in UTF-8. Rename it." in capsys.readouterr().err


def test_a_name_that_is_too_long_is_that_of_its_side(tmp_path: Path) -> None:
    left, _ = _sides(tmp_path, 1)
    for sides in ((left, "x" * 300), ("x" * 300, left)):
        with pytest.raises(SidesRefused, match=r"^x{300}: cannot be read: File name too long"):
            compared(*sides)


@becomes
def test_who_may_not_read_or_write_is_told_where() -> None:
    with TemporaryDirectory() as place:
        open_one, closed = Path(place, "open"), Path(place, "closed")
        for folder, mode in ((Path(place), 0o755), (open_one, 0o777), (closed, 0o700)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        left, right = _sides(open_one, 1)
        inner, _ = _sides(closed, 2)
        for readable in (left, right, inner):
            Path(readable).chmod(0o644)
        for sides, out, told in (
            ((inner, right), None, rf"^{inner}: cannot be read: Permission denied\. Give the"),
            ((left, inner), open_one / "out", rf"^{inner}: cannot be read: Permission denied"),
            ((left, right), closed / "out", r"closed/out: Permission denied.*another folder with"),
            ((left, right), closed / "a" / "out", r"a/out: Permission denied.*another folder with"),
        ):
            with another_user(), pytest.raises(SidesRefused, match=told):
                compared(*sides, folder=out)
