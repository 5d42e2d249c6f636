"""A comparison in partitions finds the same as one in one go: every file has the same bytes."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from connectors.compare import differences
from connectors.compare.results import RESULTS
from connectors.errors import SidesRefused
from connectors.settings import Limits
from flows.stages.comparing import compare
from flows.stages.comparing.compare_run import run_comparison
from tests.compare.tables import csv_file
from tests.examples import ALL

KEYS = ["7", "7.0", "007", "-0", "0", "", "a", "12", "1e1", "10", "9007199254740993", "x y"]
"""Some are the same key of numbers, and none the same text."""
AMOUNTS = ["1.00", "1", "1.01", "-1.01", "99999999999999999999", "-99999999999999999999", "n/a", ""]
MOMENTS = ["2026-01-02T00:00:00Z", "2026-01-02T01:00:00+01:00", "2026-01-02T00:00:01Z", "soon"]
MOST = 64 if ALL else 8
"""Partitions at most; eight are of fewer rows than are put in order at once, too."""


def _csv(random: Random, rows: int) -> str:
    """Rows with keys that lack a part, are there twice, or are the same number or not."""
    lines = ["id,part,amount,paid,name,kept"]
    for number in random.sample(range(240), rows):
        key = random.choice([str(number)] * 6 + [f"{number}.0", f"{number}.50", f"{number}e0"])
        key = random.choice(KEYS) if random.random() < 0.1 else key
        part = random.choice(["1", "2", "3", ""]) if random.random() < 0.1 else "1"
        name = random.choice(["Ann", '"a ""b"", c"', '"two\nlines"', '""', "", "é"])
        amount, paid = random.choice(AMOUNTS), random.choice(MOMENTS)
        lines.append(f"{key},{part},{amount},{paid},{name},{random.randrange(3)}")
    lines.insert(rows // 2, "1,2,3")
    return "\n".join(lines) + "\n"


def _parquet(path: Path, random: Random, rows: int, key: pl.DataType) -> Path:
    ids: list[Any] = random.sample(range(240), rows)
    if key == pl.String:
        ids = [random.choice(KEYS) if random.random() < 0.1 else str(one) for one in ids]
    if key.is_float() or key.is_decimal():
        ids = [one + 0.5 if random.random() < 0.2 else float(one) for one in ids]
    if key.is_float():
        ids = [random.choice([0.0, -0.0]) if random.random() < 0.02 else one for one in ids]
    ids = [None if random.random() < 0.02 else one for one in ids]
    ids += random.sample(ids, 5)
    start = datetime(2026, 1, 2, tzinfo=UTC)
    columns = {
        "id": pl.Series(ids).cast(key),
        "part": pl.Series([random.choice([1, 1, 1, 2]) for _ in ids], dtype=pl.Int16),
        "amount": pl.Series([Decimal(random.randrange(99, 102)) / 100 for _ in ids]),
        "paid": [start + timedelta(seconds=random.randrange(2)) for _ in ids],
        "name": [random.choice(["Ann", None, ""]) for _ in ids],
        "kept": pl.Series([random.randrange(3) for _ in ids], dtype=pl.Float64),
    }
    pl.DataFrame(columns).write_parquet(path, row_group_size=50)
    return path


def _sides(folder: Path, kind: str) -> tuple[Path, ...]:
    random = Random(kind)
    left = csv_file(folder / "l.csv", _csv(random, 200))
    types: dict[str, pl.DataType] = {
        "integer": pl.Int64(),
        "wide": pl.UInt64(),
        "text": pl.String(),
        "double": pl.Float64(),
        "exact": pl.Decimal(20, 2),
    }
    if kind == "csv":
        return left, csv_file(folder / "r.csv", _csv(random, 180))
    if kind == "parquet":
        return tuple(_parquet(folder / f"{side}.parquet", random, 200, pl.Int32()) for side in "lr")
    if kind == "doubles":
        return tuple(
            _parquet(folder / f"{side}.parquet", random, 200, pl.Float64()) for side in "lr"
        )
    return left, _parquet(folder / "r.parquet", random, 180, types[kind])


KINDS = ["csv", "integer", "wide", "text", "double", "exact", "parquet", "doubles"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_partitions_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """With repeated, missing and equal keys of two types, tolerances, and rows in no order."""
    sides = [str(side) for side in _sides(tmp_path, kind)]
    # Small enough that runs lie between each other and are put in order window by window.
    monkeypatch.setattr(differences, "ROWS_AT_ONCE", 16)
    monkeypatch.setattr(compare, "BLOCK_ROWS", 70)
    told = {}
    for partitions in (1, 2, MOST):
        out = tmp_path / f"out-{partitions}"
        told[partitions] = run_comparison(
            *sides,
            key="id,part",
            tolerances=["amount=1%", "paid=1s"],
            folder=out,
            limits=Limits(block_bytes=500),
            partitions=partitions,
        )
    assert told[1] == told[2] == told[MOST]
    assert told[1].pairs > 40
    assert all(told[1].repeated)
    assert all(told[1].keyless)
    files = sorted((tmp_path / "out-1").iterdir())
    assert len(files) == len(RESULTS)
    for file in files:
        for partitions in (2, MOST):
            assert file.read_bytes() == (tmp_path / f"out-{partitions}" / file.name).read_bytes()


@pytest.mark.long
def test_how_much_is_compared_at_once_is_a_setting(tmp_path: Path) -> None:
    """Partitions are written beside the results, and nothing is left of them."""
    rows = "".join(f"{number},{number % 7}\n" for number in range(5000))
    left = csv_file(tmp_path / "l.csv", f"id,v\n{rows}")
    right = csv_file(tmp_path / "r.csv", f"id,v\n{rows.replace(',0', ',9')}")
    found = []
    for name, limits in (("one", Limits()), ("many", Limits(compare_bytes=20_000))):
        out = tmp_path / name
        found.append(run_comparison(str(left), str(right), key="id", folder=out, limits=limits))
        assert len([*out.iterdir()]) == len(RESULTS)
    assert found[0] == found[1] == run_comparison(str(left), str(right), key="id", partitions=3)
    assert found[0].differences == 715


@pytest.mark.long
def test_a_side_without_rows_has_partitions_too(tmp_path: Path) -> None:
    empty, some = (
        csv_file(tmp_path / "l.csv", "id,v\n"),
        csv_file(tmp_path / "r.csv", "id,v\n1,2\n"),
    )
    for sides in ((empty, some), (some, empty), (empty, empty)):
        whole, shared = (
            run_comparison(*map(str, sides), key="id", partitions=count) for count in (1, 3)
        )
        assert whole == shared


def test_a_column_that_nobody_asked_for_is_not_read(tmp_path: Path) -> None:
    """Sides are measured by what is compared; a column that cannot be read is named."""
    rows = {"id": list(range(5000)), "a": [1] * 5000, "b": [f"{n:09}" for n in range(5000)]}
    good, bad = tmp_path / "l.parquet", tmp_path / "r.parquet"
    for path in (good, bad):
        pl.DataFrame(rows).write_parquet(path, compression="uncompressed", statistics=False)
    content = bad.read_bytes()
    # The page of texts begins with the length of the first of them.
    at = content.index(b"\t\0\0\x00000000000")
    bad.write_bytes(content[:at] + b"\xff\xff\xff\x7f" + content[at + 4 :])
    sides = str(good), str(bad)
    assert run_comparison(*sides, key="id,id", ignore=["b"], partitions=3).agrees
    for count in (None, 1, 3):
        with pytest.raises(SidesRefused, match=r"r\.parquet: the column 'b' cannot be read"):
            run_comparison(*sides, key="id", partitions=count)
