"""Differences as they are written and shown: all of them, in order, and the largest ones."""

import csv
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.compare.tables import compared, counts, csv_file, parquet_file


@pytest.mark.long
def test_differences_beyond_one_slice_are_all_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 1000
    left = parquet_file(tmp_path / "l.parquet", {"id": range(rows), "v": [Decimal(1)] * rows})
    right = parquet_file(
        tmp_path / "r.parquet",
        {"id": range(rows - 1, -1, -1), "v": [Decimal(n % 2) for n in range(rows)]},
    )
    monkeypatch.setattr("flows.stages.comparing.compare.SLICE_ROWS", 64)
    monkeypatch.setattr("flows.steps.match.keys.PART_ROWS", 100)
    result = compared(left, right, folder=tmp_path / "out")
    assert counts(result) == {"MATCHED_EXACT": 500, "MISMATCH": 500}
    lines = pl.read_parquet(tmp_path / "out" / "differences.parquet")
    assert lines["id"].cast(pl.Int64).to_list() == [
        n for n in range(rows) if (rows - 1 - n) % 2 == 0
    ]
    assert lines.select(pl.col("left_at") == pl.col("id").cast(pl.Int64) + 1).to_series().all()


def test_no_difference_is_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    """Numbers stay numbers, deltas too; Parquet has the texts as they are."""
    left = csv_file(tmp_path / "l.csv", "=k,v,n\n@a,=1+1,5\n+b,x,-7\n")
    right = csv_file(tmp_path / "r.csv", '=k,v,n\n@a,"\t-x",3\n+b,x,-9.5\n')
    out = tmp_path / "out"
    assert not compared(left, right, key="=k", folder=out).agrees
    with (out / "differences.csv").open(newline="") as file:
        title, *lines = [line[1:6] for line in csv.reader(file)]
    assert title == ["'=k", "column", "left", "right", "delta"]
    assert sorted(lines) == [
        ["'+b", "n", "-7", "-9.5", "-2.5"],
        ["'@a", "n", "5", "3", "-2"],
        ["'@a", "v", "'=1+1", "'\t-x", ""],
    ]
    exact = pl.read_parquet(out / "differences.parquet")
    assert exact.filter(column="v").select("=k", "left", "right").row(0) == ("@a", "=1+1", "\t-x")


def test_two_columns_of_the_key_stay_two_when_one_is_no_formula_any_more(tmp_path: Path) -> None:
    left = parquet_file(tmp_path / "l.parquet", {"=a": [1], "'=a": [2], "v": [1]})
    right = parquet_file(tmp_path / "r.parquet", {"=a": [1], "'=a": [2], "v": [2]})
    compared(left, right, key="=a,'=a", folder=tmp_path / "out")
    with (tmp_path / "out" / "differences.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["''=a"], line["'=a"]) == ("1", "2")


LARGEST = [
    # values of the right side beside a zero on the left, in the order they are shown
    (["90071992547409920000", "90071992547409920001", "-90071992547409920002"], [2, 1, 0]),
    (["1e900", "1e999", "-1e998"], [1, 2, 0]),
    (["0.30000000000000000001", "0.3", "0.30000000000000000002"], [2, 0, 1]),
    (["-5", "5", "5.0", "x", "6"], [4, 0, 1, 2, 3]),
    ([f"1{n:018}" for n in range(40)], [*range(39, 29, -1)]),
    (["7"] * 30, [*range(10)]),
]


@pytest.mark.parametrize(("numbers", "shown"), LARGEST)
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_largest_differences_are_the_largest_to_the_digit(
    tmp_path: Path, numbers: list[str], shown: list[int], partitions: int
) -> None:
    sides = [
        csv_file(
            tmp_path / f"{side}.csv", "id,v\n" + "".join(f"{n},{v}\n" for n, v in enumerate(of))
        )
        for side, of in (("l", ["0"] * len(numbers)), ("r", numbers))
    ]
    result = compared(*sides, partitions=partitions)
    assert [line["id"] for line in result.shown] == [str(number) for number in shown]
    (column,) = result.columns
    assert Decimal(column.largest or "") == Decimal(numbers[shown[0]])


NAMES = [
    # columns of the key, what they are called among ours
    ("place", ["place"]),
    ("status,status (key)", ["status (key) (key)", "status (key)"]),
    ("left,place,column", ["left (key)", "place", "column (key)"]),
]


@pytest.mark.parametrize(("key", "titles"), NAMES)
def test_a_column_of_the_key_may_have_any_name(tmp_path: Path, key: str, titles: list[str]) -> None:
    names = key.split(",")
    values = {name: [str(number)] for number, name in enumerate(names)}
    left = parquet_file(tmp_path / "l.parquet", values | {"v": [1]})
    right = parquet_file(tmp_path / "r.parquet", values | {"v": [2]})
    compared(left, right, key=key, folder=tmp_path / "out")
    (line,) = pl.read_parquet(tmp_path / "out" / "differences.parquet").to_dicts()
    assert [line[title] for title in titles] == [str(number) for number in range(len(names))]
    assert list(line)[1 : len(names) + 1] == titles
