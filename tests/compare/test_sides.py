"""What is a side: the very files that were named, all of them, or a refusal that says why."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from connectors.compare.csv_side import csv_source
from connectors.compare.parquet_side import parquet_side
from connectors.errors import SidesRefused
from connectors.settings import Limits
from flows.__main__ import main
from tests.compare.tables import another_user, becomes, compared, counts, csv_file, parquet_file

PATTERNS = ["q*", "q?", "q[1]", "q[", "{q,r}", "~", "%71"]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_name_is_a_name_and_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As a file, as a folder, as that of the results and of what is written meanwhile."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    other = parquet_file(tmp_path / "right.parquet", {"id": [1, 2, 3, 4]})
    for file, ids in ((f"{name}.parquet", [1, 2]), ("q1.parquet", [3]), ("qq.parquet", [3, 4])):
        parquet_file(tmp_path / file, {"id": ids})
    result = compared(f"{name}.parquet", other, folder=folder / "out")
    assert counts(result) == {"MATCHED_EXACT": 2, "MISSING_IN_EXTRACT": 2}
    assert parquet_side(folder / "out").rows == 2
    assert parquet_side(Path(name, "out", "differences.parquet")).rows == 2
    left, right = tmp_path / f"{name}.csv", tmp_path / "right.csv"
    left.write_text('id,v\n1,"a\nb"\n2\n3,c\n')
    right.write_text("id,v\n3,c\n")
    assert counts(compared(f"{name}.csv", right, partitions=3)) == {
        "MATCHED_EXACT": 1,
        "MISSING_IN_TARGET": 1,
    }


ADDRESSES = [
    "POSTGRESQL://ann:hunter@2@h/db?table=x",
    "Postgres://ann:hunter%2@h/db?table=x",
    " postgresql://ann:hunter@2@h/db?table=x",
    "postgresql+psycopg://ann:hunter@2@h/db?table=x",
    "mysql://ann:hunter#2@h/db",
    "postgresql:/ann:hunter2@h/db?table=x",
    "postgresql//ann:hunter2@h/db?table=x",
    "ann:hunter2@h/db",
    "host=h password = hunter2",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_of_an_address_that_is_not_read_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    other = str(parquet_file(tmp_path / "a.parquet", {"id": [1]}))
    for sides in ((address, other), (other, address)):
        with pytest.raises(SystemExit) as ended:
            main(["compare", *sides, "--key", "id"])
        assert ended.value.code == 2
        with pytest.raises(SidesRefused) as refused:
            compared(*sides)
        told = capsys.readouterr().err + str(refused.value)
        assert "hunter" not in told
        assert "PGPASSWORD" in told or "An address of a table cannot be read" in told


def test_a_file_may_be_called_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    for name in ("a:b@c.parquet", "s3:/a.parquet"):
        parquet_file(tmp_path / name, {"id": [1]})
        assert compared(name, name).agrees
    with pytest.raises(SidesRefused, match=r"s3/b\.parquet does not exist"):
        compared("s3/b.parquet", "s3/b.parquet")


def _folder(path: Path, *rows: int) -> Path:
    path.mkdir(parents=True)
    for row in rows:
        parquet_file(path / f"{row}.parquet", {"id": [row]})
    return path


def test_a_folder_is_read_behind_links_as_well(tmp_path: Path) -> None:
    folder, elsewhere = _folder(tmp_path / "a", 1), _folder(tmp_path / "b" / "c", 2)
    (folder / "deep").mkdir()
    (folder / "deep" / "link").symlink_to(elsewhere.parent)
    (folder / "three.parquet").symlink_to(parquet_file(tmp_path / "3.pq", {"id": [3]}))
    assert parquet_side(folder).rows == 3
    (tmp_path / "all").symlink_to(folder)
    assert parquet_side(tmp_path / "all").rows == 3


LEFT_OUT = [
    # what a link in the folder leads to, its name, what is said
    (".", "again", "again and {folder} are the same folder"),
    ("..", "deep/again", "are the same folder"),
    ("1", "twice", "twice and {folder}/1 are the same folder"),
    ("nowhere", "gone.parquet", "gone.parquet: cannot be read: No such file"),
    ("nowhere", "gone", "gone: cannot be read: No such file"),
    ("round", "round", "round: cannot be read: Too many levels"),
    ("/dev/null", "null.parquet", "null.parquet is no regular file"),
]


@pytest.mark.parametrize(("target", "name", "told"), LEFT_OUT)
def test_nothing_is_left_out_of_a_folder(tmp_path: Path, target: str, name: str, told: str) -> None:
    folder = _folder(tmp_path / "a", 1)
    _folder(folder / "1", 2)
    (folder / "deep").mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(SidesRefused) as refused:
        parquet_side(folder)
    assert told.format(folder=folder) in str(refused.value)


@becomes
def test_a_folder_without_rights_is_named() -> None:
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = _folder(Path(place, "a"), 1)
        folder.chmod(0o755)
        closed = _folder(folder / "closed", 2)
        closed.chmod(0o700)
        for side in (folder, closed):
            with another_user(), pytest.raises(SidesRefused) as refused:
                parquet_side(side)
            assert f"{closed}: cannot be read: Permission denied. Give the" in str(refused.value)


def test_of_csv_only_the_columns_that_are_asked_for_are_kept(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "a.csv", "id,long,v\n" + f"1,{'x' * 5000},2\n" * 99)
    source = csv_source(path, tmp_path / "scratch", None, Limits())
    assert [*source.columns] == ["id", "long", "v"]
    side = source.side(["v", "id"])
    assert side.frame(["id", "v"], 5, 7).rows() == [(1, 2), (1, 2)]
    assert side.size(["id", "v"]) < 5000
    assert compared(path, path, key="id,v", ignore=["long"]).left.only_columns == ()


BROKEN = [(-594, 0), (-376, 5), (-367, 255), (-402, 9)]
"""Bytes of the file below, from its end, and what polars panics over in their place."""


@pytest.mark.parametrize(("place", "byte"), BROKEN)
def test_a_file_that_polars_panics_over_is_refused(tmp_path: Path, place: int, byte: int) -> None:
    path = tmp_path / "a.parquet"
    rows = pl.DataFrame({"id": [1, 2], "v": ["a", "b"]})
    rows.write_parquet(path, compression="uncompressed", statistics=False)
    content = bytearray(path.read_bytes())
    content[place] = byte
    path.write_bytes(content)
    refused = r"a\.parquet: .*cannot be read.*: its content is broken$"
    with pytest.raises(SidesRefused, match=refused):
        compared(path, path)
    rows.write_parquet(tmp_path / "Z.parquet")
    rows.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SidesRefused, match=refused):
        compared(tmp_path, tmp_path)


CUT = [
    (0, "a.parquet: cannot be read as Parquet: "),
    (-10, "a.parquet: cannot be read as Parquet: "),
    (4, "a.parquet: the column 'id' cannot be read: "),
]
"""From where on a file of a folder has no content any more, and how it is refused."""


@pytest.mark.parametrize(("place", "told"), CUT)
def test_of_a_folder_the_broken_file_is_named(tmp_path: Path, place: int, told: str) -> None:
    rows = pl.DataFrame({"id": [1, 2], "v": ["a", "b"]})
    for name in ("Z.parquet", "a.parquet", "b.parquet"):
        rows.write_parquet(tmp_path / name, compression="uncompressed")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(
        content[:4] + b"\xff" * 50 + content[54:] if place == 4 else content[:place]
    )
    with pytest.raises(SidesRefused) as refused:
        compared(tmp_path, tmp_path)
    assert str(refused.value).startswith(f"{tmp_path}/{told}")


QUOTED_NAMES = [
    ('id,"a ""b"" c",d', ['a "b" c', "d"]),
    ('"id";"""a""";"b,c"', ['"a"', "b,c"]),
    ('"id"|" ""a ""b"', ['"a "b']),
    ('id,"a;""b;c;d"', ['a;"b;c;d']),
    ('id;a"b;c', ['a"b', "c"]),
]


@pytest.mark.parametrize(("header", "names"), QUOTED_NAMES)
def test_a_name_may_have_quotes_in_it(tmp_path: Path, header: str, names: list[str]) -> None:
    """Written as CSV writes a quote in a cell; what is read with another delimiter is no name."""
    side = csv_file(tmp_path / "a.csv", header + "\n")
    assert [one.name for one in compared(side, side).columns] == names


def test_a_quote_that_is_not_closed_is_no_part_of_a_name(tmp_path: Path) -> None:
    side = csv_file(tmp_path / "a.csv", 'id;"a\n1;2\n')
    with pytest.raises(SidesRefused, match="quotes are not closed"):
        compared(side, side)
