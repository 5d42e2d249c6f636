"""When two cells are the same, and how far apart they are when they are not."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.compare.parquet_side import parquet_side
from connectors.errors import SidesRefused
from flows.stages.comparing.compare import compared_columns
from flows.stages.comparing.compare_run import asked
from flows.steps.match.cells import Leeway, differing, plain_moments
from flows.steps.match.comparison import canonical_texts
from flows.steps.match.value_texts import texts
from schemas.cells.readings import Reading, reading_of

CEST = timezone(timedelta(hours=2))
CELL, NUMBER = Reading.CELL, Reading.NUMBER

CELLS = [
    # left, right: the same, or the difference between them; None: not the same, no difference
    ("a", "a", True),
    ("a", "b", None),
    ("", None, None),
    (None, None, True),
    (None, "a", None),
    ("10.0", "10.00", True),
    ("1e3", "1000", True),
    ("+5", "5", True),
    ("-0", "0", True),
    ("007", "7", None),
    (".5", "0.50", True),
    ("-.5", "-0.5", True),
    ("5.", "5", True),
    ("+.1234567890123456789", "0.1234567890123456788", "-0.0000000000000000001"),
    (".", "0", None),
    ("1.10", "1.2", "0.1"),
    ("1000000.00", "1000000.03", "0.03"),
    ("9007199254740993", "9007199254740992", "-1"),
    ("9000000000000000.01", "9000000000000000.00", "-0.01"),
    ("123456789012345678901234567890.1", "123456789012345678901234567890.10", True),
    ("123456789012345678901234567890.1", "123456789012345678901234567890.2", "0.1"),
    ("99999999999999999999", "-99999999999999999999", "-199999999999999999998"),
    ("0.1234567890123456789", "0.1234567890123456788", "-0.0000000000000000001"),
    ("nan", "NaN", None),
    (" 1", "1", None),
    ("1,5", "1.5", None),
    (" 2026-01-02", "2026-01-02", None),
    ("2026-01-02T03:04:05Z ", "2026-01-02T03:04:05Z", None),
    ("2026-01-02T03:04:05.1234567Z", "2026-01-02T05:04:05.123456700+02:00", True),
    ("2026-01-02T03:04:05.123456789Z", "2026-01-02T05:04:06.123456+02:00", "0.999999211 s"),
    ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05.1234567", None),
    ("Infinity", "inf", None),
    ("2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", True),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z", True),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "1 s"),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05", None),
    ("2026-01-02", "2026-01-02T00:00:00", True),
    ("2026-01-02", "2026-01-03", "86400 s"),
    ("true", "True", None),
]


@pytest.mark.parametrize(("left", "right", "same"), CELLS)
def test_csv_cells(left: str | None, right: str | None, same: bool | str | None) -> None:
    cells = differing(_texts(left), _texts(right), (CELL, CELL), None)
    assert cells["delta"].to_list() == ([] if same is True else [same])


I64, U64, F64, F32 = pl.Int64(), pl.UInt64(), pl.Float64(), pl.Float32()
TZ, WALL, TEXT = pl.Datetime("us", "UTC"), pl.Datetime("us"), pl.String()
TYPED: list[tuple[Any, pl.DataType, Any, pl.DataType, bool | str | None]] = [
    (2**53, I64, 2**53 + 1, I64, "1"),
    (2**53 + 1, I64, 2**53 + 1, pl.Int128(), True),
    (2**63 + 1, U64, 2**63, pl.Int128(), "-1"),
    (1, I64, 1, pl.Int8(), True),
    (0.1 + 0.2, F64, 0.3, F64, "-0.00000000000000004"),
    (0.1, F64, 0.1, F32, True),
    (float("nan"), F64, float("nan"), F64, True),
    (1e-7, F64, Decimal("0.0000001"), pl.Decimal(38, 10), True),
    (1e22, F64, "1e22", CELL, True),
    (10.5, F64, "10.50", CELL, True),
    (10.5, F64, Decimal("10.50"), pl.Decimal(10, 2), True),
    (0.1, F64, Decimal("0.1"), pl.Decimal(38, 18), True),
    (9e15, F64, Decimal("9000000000000000.01"), pl.Decimal(38, 18), "0.01"),
    (Decimal("1.10"), pl.Decimal(10, 2), Decimal("1.1"), pl.Decimal(38, 18), True),
    (Decimal("1.10"), pl.Decimal(10, 2), "1.1", NUMBER, True),
    (5, I64, "5.0", NUMBER, True),
    (5, I64, "5", TEXT, True),  # text that reads the same is the same
    (5, I64, "05", TEXT, None),
    (5, I64, "5.0", TEXT, None),
    ("", TEXT, None, TEXT, None),
    (True, pl.Boolean(), "t", CELL, True),
    (True, pl.Boolean(), "0", CELL, None),
    (datetime(2026, 1, 2, tzinfo=UTC), TZ, "2026-01-02T02:00:00+02:00", CELL, True),
    (datetime(2026, 1, 2, tzinfo=UTC), TZ, datetime(2026, 1, 2, 2, tzinfo=CEST),
     pl.Datetime("ms", "Europe/Helsinki"), True),
    (datetime(2026, 1, 2), WALL, datetime(2026, 1, 2), pl.Datetime("ns"), True),  # noqa: DTZ001
    (datetime(2026, 1, 2), WALL, datetime(2026, 1, 2, tzinfo=UTC), TZ, None),  # noqa: DTZ001
    (date(2026, 1, 2), pl.Date(), "2026-01-02", CELL, True),
    (date(2026, 1, 2), pl.Date(), datetime(2026, 1, 2), WALL, True),  # noqa: DTZ001
    ([1, 2], pl.List(I64), [1, 2], pl.List(I64), True),
    ([1, 2], pl.List(I64), [1, None], pl.List(I64), None),
    (None, pl.List(I64), [], pl.List(I64), None),
    ({"a": 1}, pl.Struct({"a": I64}), {"a": 2}, pl.Struct({"a": I64}), None),
    (b"\x00", pl.Binary(), b"\x00", pl.Binary(), True),
    (float("inf"), F64, "Infinity", NUMBER, True),
    (float("-inf"), F64, "-Infinity", CELL, True),
    (float("-inf"), F64, "Infinity", NUMBER, None),
    (datetime(2026, 1, 2), pl.Datetime("ns"), "2026-01-02T00:00:00.000000001", CELL,  # noqa: DTZ001
     "0.000000001 s"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "left_type", "right", "right_type", "same"), TYPED)
def test_typed_cells(
    left: Any, left_type: Any, right: Any, right_type: Any, same: bool | str | None
) -> None:
    sides = [_typed(left, left_type), _typed(right, right_type)]
    readings = tuple(
        kind if isinstance(kind, Reading) else reading_of(kind) for kind in (left_type, right_type)
    )
    cells = differing(sides[0], sides[1], (readings[0], readings[1]), None)
    assert cells["delta"].to_list() == ([] if same is True else [same])
    back = differing(sides[1], sides[0], (readings[1], readings[0]), None)
    assert back.height == cells.height


LEEWAYS = [
    ("10.00", "10.01", Leeway(absolute=Decimal("0.01")), True),
    ("10.00", "9.99", Leeway(absolute=Decimal("0.01")), True),
    ("10.00", "10.011", Leeway(absolute=Decimal("0.01")), False),
    ("100", "101", Leeway(relative=Decimal("0.01")), True),
    ("100", "101.01", Leeway(relative=Decimal("0.01")), False),
    ("1" + "0" * 30, "1" + "0" * 29 + "1", Leeway(absolute=Decimal(1)), True),
    ("a", "b", Leeway(absolute=Decimal(1)), False),
    (None, "1", Leeway(absolute=Decimal(1)), False),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z", Leeway(seconds=Decimal(2)), True),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:07.1Z", Leeway(seconds=Decimal(2)), False),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", Leeway(absolute=Decimal(9)), False),
    ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:07.1234567Z", Leeway(seconds=Decimal(2)),
     True),
    ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:07.1234568Z", Leeway(seconds=Decimal(2)),
     False),
    ("0", "0.000000000000000001", Leeway(absolute=Decimal("6E-19")), False),
    ("0", "0.000000000000000001", Leeway(absolute=Decimal("1E-18")), True),
    ("0", "0.0000000000000000006", Leeway(absolute=Decimal("6E-19")), True),
    ("0.0000000000000006", "0.000000000000000601", Leeway(relative=Decimal("0.001")), False),
    ("0.000000000000001", "0.000000000000001001", Leeway(relative=Decimal("0.001")), True),
    ("1", "1.000000000000000001", Leeway(relative=Decimal("6E-19")), False),
    ("10", "10.000000000000000006", Leeway(relative=Decimal("6E-19")), True),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "leeway", "within"), LEEWAYS)
def test_a_leeway_reaches_as_far_as_it_says(
    left: str | None, right: str | None, leeway: Leeway, within: bool
) -> None:
    cells = differing(_texts(left), _texts(right), (CELL, CELL), leeway)
    assert cells["within"].to_list() == [within]


def test_numbers_of_any_length_are_apart_by_every_digit() -> None:
    """PostgreSQL's numeric has up to 131,072 digits."""
    left, right = _texts("2" + "0" * 2999 + "2"), _texts("3" + "0" * 2998 + "30")
    for share, within in (("0.500000000000000000000000000001", True), ("0.5", False)):
        cells = differing(left, right, (NUMBER, NUMBER), Leeway(relative=Decimal(share)))
        assert cells["delta"].to_list() == ["1" + "0" * 2998 + "28"]
        assert cells["within"].to_list() == [within]


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4, max_value=10**25)


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(NUMBERS, NUMBERS)
def test_numbers_are_the_same_exactly_when_their_decimals_are(one: Decimal, other: Decimal) -> None:
    cells = differing(_texts(f"{one:f}"), _texts(f"{other:f}"), (CELL, CELL), None)
    assert cells.is_empty() == (one == other)
    if one != other:
        with localcontext(prec=100):
            assert Decimal(cells["delta"][0]) == other - one


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_its_shortest_text(value: float) -> None:
    side = pl.Series("v", [value], dtype=pl.Float64)
    assert differing(side, _texts(repr(value)), (Reading.FLOAT, CELL), None).is_empty()


def _texts(value: str | None) -> pl.Series:
    return pl.Series("v", [value], dtype=pl.String)


def _typed(value: Any, kind: Any) -> pl.Series:
    return pl.Series("v", [value], dtype=pl.String() if isinstance(kind, Reading) else kind)


DAY, BYTES = timedelta(days=1), b"\xff\x00"
ARROW = {
    "duration": pl.Series([DAY, None], dtype=pl.Duration("us")),
    "duration in ns": pl.Series([DAY, None], dtype=pl.Duration("ns")),
    "time": pl.Series([time(3, 4, 5), None]),
    "binary": pl.Series([BYTES, None]),
    "null": pl.Series([None, None], dtype=pl.Null),
    "categorical": pl.Series(["x", None], dtype=pl.Categorical),
    "enum": pl.Series(["x", None], dtype=pl.Enum(["x"])),
    "decimal": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(38, 2)),
    "int128": pl.Series([2**90, None], dtype=pl.Int128),
    "list": pl.Series([[1, None], None]),
    "list of durations": pl.Series([[DAY], None]),
    "list of binaries": pl.Series([[BYTES, None], None]),
    "array of binaries": pl.Series([[BYTES], None], dtype=pl.Array(pl.Binary, 1)),
    "struct": pl.Series([{"a": 1, "b": Decimal("1.5")}, None]),
    "struct of binaries": pl.Series([{"a": BYTES, "b": DAY, "c": [BYTES]}, None]),
    "list of structs": pl.Series([[{"a": BYTES, "b": [BYTES]}], None]),
}


@pytest.mark.parametrize("values", ARROW.values(), ids=ARROW)
def test_every_type_of_a_column_has_a_text(values: pl.Series) -> None:
    """Beside a column of another type it is compared as text, and a difference shows it."""
    shown = texts(values)
    assert shown.dtype == pl.String
    assert shown.to_list()[1] is None
    other = pl.Series("v", ["z", None])
    cells = differing(values, other, (reading_of(values.dtype), Reading.TEXT), None)
    assert cells["left"].to_list() == shown.to_list()[:1]
    same = differing(values, values, (reading_of(values.dtype),) * 2, None)
    assert same.is_empty()


PARTS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "null": None, "1": 1.0}
NESTED: list[tuple[pl.DataType, Callable[[float | None], Any]]] = [
    (pl.List(F64), lambda part: [part]),
    (pl.Array(F64, 2), lambda part: [part, 1.0]),
    (pl.Struct({"a": F64}), lambda part: {"a": part}),
    (pl.List(pl.Struct({"a": F64})), lambda part: [{"a": part}]),
    (pl.Struct({"a": pl.List(F64), "b": pl.Binary()}), lambda part: {"a": [part], "b": b"x"}),
]


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "whole"), NESTED, ids=[str(dtype) for dtype, _ in NESTED])
def test_numbers_in_nested_values_are_told_apart(
    dtype: pl.DataType, whole: Callable[[float | None], Any]
) -> None:
    for name, part in PARTS.items():
        for other_name, other in PARTS.items():
            sides = [pl.Series([whole(one)], dtype=dtype) for one in (part, other)]
            cells = differing(*sides, (Reading.OTHER, Reading.OTHER), None)
            assert cells.is_empty() == (name == other_name), (name, other_name)
    zeros = [pl.Series([whole(zero), None, whole(None)], dtype=dtype) for zero in (0.0, -0.0)]
    assert differing(*zeros, (Reading.OTHER, Reading.OTHER), None).is_empty()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"Id": [2], "v": ["x"]}, "the column 'v', String there and Int64 in a.parquet"),
        ({"Id": [2]}, "the column 'v', missing there and Int64"),
        ({"v": [2], "Id": [2]}, "the order of its columns"),
    ],
)
def test_files_of_a_folder_that_are_not_one_table_are_told(
    tmp_path: Path, other: dict[str, list[Any]], told: str
) -> None:
    pl.DataFrame({"Id": [1], "v": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame(other).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SidesRefused, match=re.escape(told)):
        parquet_side(tmp_path)


UNITS = [
    ("1s", pl.Int64(), "is Int64 of whole numbers"),
    ("1s", pl.Float64(), "is Float64"),
    ("1s", pl.String(), "is String"),
    ("1", pl.Datetime("us"), "is Datetime"),
    ("1%", pl.Date(), "is Date"),
    ("1", pl.String(), "is String"),
    ("0s", pl.Int64(), "is Int64 of whole numbers"),
    ("0", pl.Datetime("us"), "is Datetime"),
    ("1", pl.Int64(), None),
    ("1%", pl.Decimal(38, 2), None),
    ("1s", pl.Datetime("us"), None),
    ("0s", pl.Datetime("us"), None),
    ("0", pl.Int64(), None),
]


@pytest.mark.parametrize(("unit", "dtype", "told"), UNITS)
def test_a_tolerance_has_the_unit_of_its_column(
    tmp_path: Path, unit: str, dtype: pl.DataType, told: str | None
) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"Id": [1], "v": pl.Series([None], dtype=dtype)}).write_parquet(path)
    side = parquet_side(path)
    question = asked("Id", [f"v={unit}"], ())
    if told is None:
        assert compared_columns(side, side, question) == ["v"]
        return
    with pytest.raises(SidesRefused, match=f"--tolerance v: .*{told}"):
        compared_columns(side, side, question)


def test_a_tolerance_is_as_exact_as_it_is_written() -> None:
    digits = "0." + "0123456789" * 4 + "1"
    told = {unit: asked("Id", [f"v={digits}{unit}"], ()).leeways["v"] for unit in ("", "%", "m")}
    with localcontext(prec=100):
        assert told[""].absolute == Decimal(digits)
        assert told["%"].relative == Decimal(digits) / 100
        assert told["m"].seconds == Decimal(digits) * 60


def test_a_tolerance_of_a_column_that_is_not_compared_asks_for_no_unit(tmp_path: Path) -> None:
    sides = []
    for name, columns in (("a", ["Id", "v", "w"]), ("b", ["Id", "w"])):
        path = tmp_path / f"{name}.parquet"
        pl.DataFrame([pl.Series(one, ["1"]) for one in columns]).write_parquet(path)
        sides.append(parquet_side(path))
    question = asked("Id", ["v=1s", "w=1s"], ["w"])
    assert compared_columns(sides[0], sides[1], question) == []


def test_a_time_is_found_beside_cells_without_one() -> None:
    times = pl.Series("t", ["2026-01-02T03:04:05.1234567Z", None, "later", "2026-01"])
    exact = ["2026-01-02T03:04:05.1234567+00:00", None, "later", "2026-01"]
    assert plain_moments(times, zone=True).to_list() == exact
    times = pl.Series("t", ["2026-01-02T04:04:05+01:00", None])
    assert plain_moments(times, zone=True).to_list() == ["2026-01-02T03:04:05+00:00", None]


def test_doubles_have_the_text_of_their_decimals() -> None:
    doubles = pl.Series([1.5, None, 1e22, float("inf"), float("nan")])
    assert canonical_texts(doubles).to_list() == ["1.5", None, "1" + "0" * 22, "inf", "nan"]
