"""Which row is which: every row of both sides is told exactly once."""

from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.match import keys
from flows.steps.match.keys import KeyFrames, Partners, comparable, partners
from schemas.cells.readings import Reading


def test_rows_are_paired_by_key() -> None:
    left = pl.DataFrame({"k": [3, 1, 2, 5, 5, None]})
    right = pl.DataFrame({"k": [1, 3, 4, None, 5, 6, 6]})
    found = partners(left, right)
    assert _told(found) == {
        "pairs": [(0, 1), (1, 0)],
        "only": ([2], [2]),
        "repeated": ([3, 4], [4, 5, 6]),
        "keyless": ([5], [3]),
    }


IDS = [
    # first and second part of the key on both sides; which pair
    ([(5, 1), (7, 2), (6, 1)], [(6, 1), (5, 1), (9, 1)], [(0, 1), (2, 0)]),
    ([(5, 1), (7, 2), (6, 1)], [(6, 2), (5, 1), (7, 2)], [(0, 1), (1, 2)]),
    ([(5, 1), (5, 2), (6, 1)], [(6, 1), (5, 2), (5, 3)], [(1, 1), (2, 0)]),
    ([(5, 1), (5, 1), (6, 1)], [(6, 1), (5, 1)], [(2, 0)]),
    ([(5, 1), (6, 1)], [(6, 1), (5, 1), (6, 1)], [(0, 1)]),
    ([(5, 1), (6, 1)], [(10**9, 1), (5, 1)], [(0, 1)]),
    ([(-5, 0), (0, 0)], [(0, 0), (-5, 1)], [(1, 0)]),
    ([(5, 1), (None, 1)], [(None, 1), (5, 1)], [(0, 1)]),
]


@pytest.mark.parametrize(("left", "right", "pairs"), IDS)
def test_numbers_that_lie_close_together_are_paired_like_any_others(
    left: list[tuple[int, int]], right: list[tuple[int, int]], pairs: list[tuple[int, int]]
) -> None:
    keys_of = KeyFrames()
    for part in (0, 1):
        keys_of.add(*(pl.Series([key[part] for key in side]) for side in (left, right)))
    found = partners(*keys_of.frames(), keys_of.behind)
    assert _told(found)["pairs"] == pairs
    assert _told(found) == _told(partners(*keys_of.frames()))
    texts = [frame.cast(pl.String) for frame in keys_of.frames()]
    assert _told(found) == _told(partners(*texts))


def test_equal_sides_in_order_are_paired_without_looking_further() -> None:
    side = pl.DataFrame({"k": [1, 2, 9]})
    found = partners(side, side.clone())
    assert _told(found)["pairs"] == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("column", [[1, 1], [1, 1, 2], [0, 1, 1], [2, 1], [None, 1], [1, None]])
def test_equal_sides_are_not_taken_for_paired_when_they_are_not(column: list[int | None]) -> None:
    side = pl.DataFrame({"k": column})
    found = partners(side, side.clone())
    told = _told(found)
    if column.count(1) == 2:
        first = column.index(1)
        assert told["repeated"] == ([first, first + 1], [first, first + 1])
        assert len(told["pairs"]) == len(column) - 2
    else:
        assert len(told["pairs"]) + len(told["keyless"][0]) == 2


KEYS = st.lists(
    st.tuples(st.sampled_from([None, 1, 2, 2**53, 2**53 + 1]), st.sampled_from(["a", "b", None])),
    max_size=12,
)


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(KEYS, KEYS, st.sampled_from([2, 1000]))
def test_every_row_is_told_once_whatever_the_parts(
    left: list[tuple[int, str]], right: list[tuple[int, str]], rows: int
) -> None:
    schema = {"a": pl.Int64, "b": pl.String}
    sides = [pl.DataFrame(side, schema=schema, orient="row") for side in (left, right)]
    before = keys.PART_ROWS
    try:
        keys.PART_ROWS = rows
        found = partners(sides[0], sides[1])
    finally:
        keys.PART_ROWS = before
    for side, rest in (("left", left), ("right", right)):
        parts = [getattr(found, side), *(getattr(found, f"{kind}_{side}")
                 for kind in ("only", "repeated", "keyless"))]  # fmt: skip
        assert sorted(row for part in parts for row in part) == list(range(len(rest)))
    for mine, theirs in zip(found.left, found.right, strict=True):
        assert left[mine] == right[theirs]
        assert left.count(left[mine]) == right.count(left[mine]) == 1


TYPES = [
    # values and readings of both sides; whether they are the same key
    ((2**53, 2**53 + 1), (Reading.INTEGER, Reading.INTEGER), False),
    (("9007199254740993", 9007199254740993), (Reading.CELL, Reading.INTEGER), True),
    (("007", "7"), (Reading.CELL, Reading.CELL), False),
    (("007", 7), (Reading.CELL, Reading.INTEGER), False),
    (("18446744073709551615", "18446744073709551614"), (Reading.CELL, Reading.CELL), False),
    (("a", "a"), (Reading.TEXT, Reading.CELL), True),
    (("", None), (Reading.CELL, Reading.CELL), False),
]


@pytest.mark.parametrize(("values", "readings", "same"), TYPES)
def test_keys_of_two_types(
    values: tuple[object, object], readings: tuple[Reading, Reading], same: bool
) -> None:
    types = [pl.Int64 if isinstance(value, int) else pl.String for value in values]
    left, right = (pl.Series("k", [v], dtype=t) for v, t in zip(values, types, strict=True))
    one, other = comparable(left, right, readings)
    assert one.dtype == other.dtype
    assert (one[0] == other[0]) is same


def test_packing_keeps_keys_apart() -> None:
    keys_of = KeyFrames()
    keys_of.add(pl.Series([-5, 0, 3, None]), pl.Series([3, 2, -5, 0]))
    keys_of.add(pl.Series([7, -7, 7, 0]), pl.Series([7, 8, 7, -7]))
    one, other = keys_of.frames()
    assert one.width == other.width == 1
    assert one.to_series().drop_nulls().n_unique() == 3
    assert one.to_series()[3] is None
    assert one.to_series().to_list()[:3] == [other.to_series()[n] for n in (2, 3, 0)]


def test_numbers_too_wide_to_pack_stay_apart() -> None:
    wide, narrow = pl.Series([-(2**62), 2**62]), pl.Series([0, 1])
    for columns in ((wide, narrow), (narrow, wide), (wide, wide)):
        keys_of = KeyFrames()
        for column in columns:
            keys_of.add(column, column)
        assert keys_of.frames()[0].width == 2


def _told(found: Partners) -> dict[str, object]:
    return {
        "pairs": list(zip(found.left, found.right, strict=True)),
        "only": (found.only_left.to_list(), found.only_right.to_list()),
        "repeated": (found.repeated_left.to_list(), found.repeated_right.to_list()),
        "keyless": (found.keyless_left.to_list(), found.keyless_right.to_list()),
    }


@pytest.mark.parametrize(
    ("left", "right", "readings", "same"),
    [
        ([0.0, -0.0], [-0.0, 0.0], (Reading.FLOAT, Reading.FLOAT), True),
        ([0.0], [0], (Reading.FLOAT, Reading.INTEGER), True),
        (["10.50", "1e3", "+7", "-0"], ["10.5", "1000", "7", "0"], "cell number", True),
        ([".50", "-.5", "50.", "-.0"], ["0.5", "-0.5", "50", "0"], "cell number", True),
        (["10.50"], ["10.5"], "text text", False),
        (["10.50"], ["10.5"], "cell cell", False),
        (["007"], ["7"], "cell number", False),
        (["TRUE", "f"], [True, False], (Reading.CELL, Reading.BOOLEAN), True),
        (["2026-01-02T01:00:00+01:00"], [datetime(2026, 1, 2, tzinfo=UTC)], "cell instant", True),
        (["2026-01-02T00:00:00"], [datetime(2026, 1, 2, tzinfo=UTC)], "cell instant", False),
        (["2026-01-02 00:00:00.50"], [datetime(2026, 1, 2, 0, 0, 0, 500000)], "cell wall", True),  # noqa: DTZ001
        ([None], ["a"], "cell number", False),
        ([date(2026, 1, 2)], [datetime(2026, 1, 2)], "date wall", True),  # noqa: DTZ001
        ([date(2026, 1, 2)], [datetime(2026, 1, 2, 1)], "date wall", False),  # noqa: DTZ001
        ([date(2026, 1, 2)], [datetime(2026, 1, 2, tzinfo=UTC)], "date instant", False),
        (
            ["2026-01-02T00:00:00", "2026-01-03"],
            [date(2026, 1, 2), date(2026, 1, 3)],
            "cell date",
            True,
        ),
        (["soon"], [date(2026, 1, 2)], "cell date", False),
        (
            ["2026-01-02T01:00:00.1234567+01:00"],
            ["2026-01-02T00:00:00.1234567+00:00"],
            "cell instant",
            True,
        ),
        (["Infinity", "-Infinity"], [float("inf"), float("-inf")], "number float", True),
        (["7"], pl.Series([7], dtype=pl.Int128), "cell integer", True),
        (["7", "1"], pl.Series([2**64, 1], dtype=pl.Int128), "cell integer", False),
        ([str(2**64)], pl.Series([2**64], dtype=pl.Int128), "cell integer", True),
        ([[1.0, None]], [[1.0, None]], "other other", True),
    ],
)
def test_keys_are_the_same_when_they_are_one_value(
    left: list[object], right: list[object], readings: str | tuple[Reading, Reading], same: bool
) -> None:
    if isinstance(readings, str):
        mine, theirs = (Reading[name.upper()] for name in readings.split())
    else:
        mine, theirs = readings
    for one, other, each in ((left, right, (mine, theirs)), (right, left, (theirs, mine))):
        a, b = comparable(pl.Series(one), pl.Series(other), each)
        assert (a.to_list() == b.to_list()) is same


def test_texts_in_categories_stay_texts() -> None:
    coded = pl.Series(["1", "1.0", "a"], dtype=pl.Categorical)
    left, right = comparable(coded, pl.Series(["1", "1.0", "a"]), (Reading.TEXT, Reading.TEXT))
    assert left.to_list() == right.to_list() == ["1", "1.0", "a"]


def test_a_csv_key_without_values_is_no_integer_for_the_other_side() -> None:
    empty = pl.Series([None], dtype=pl.Int64)
    left, right = comparable(empty, pl.Series([True]), (Reading.CELL, Reading.BOOLEAN))
    assert left.dtype == right.dtype == pl.String
