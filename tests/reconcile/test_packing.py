"""Whole numbers as one: grouped by it, and told apart again, as if they had never been."""

import random

import polars as pl
import pytest

from flows.steps.match.packing import grouped, packing

COLUMNS = {"a": pl.Int32, "b": pl.Int64, "c": pl.Int32}


def frame(*rows: tuple[int | None, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("low", [0, -(2**31), 2**31 - 5], ids=str)
def test_groups_are_those_of_the_columns(seed: int, low: int) -> None:
    chance = random.Random(seed)
    rows = frame(
        *(
            (low + chance.randrange(5), 10**12 * chance.randrange(-3, 3), chance.randrange(-9, 9))
            for _ in range(300)
        )
    )
    assert packing(rows, [*COLUMNS]) is not None
    found = grouped(rows, {"a": "x", "b": "y", "c": "z"}, [pl.len()])
    expected = rows.rename({"a": "x", "b": "y", "c": "z"}).group_by("x", "y", "z").len()
    assert found.sort("x", "y", "z").equals(expected.sort("x", "y", "z")), f"seed {seed}"
    assert found.schema == expected.schema


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(frame(), id="no rows"),
        pytest.param(frame((1, None, 2), (1, 2, 2), (1, None, 2)), id="a null"),
        pytest.param(frame((1, -(2**63), 1), (1, 2**63 - 1, 1)), id="too wide a column"),
        pytest.param(frame((-(2**31), 0, 0), (2**31 - 1, 2**31, 3)), id="too wide together"),
    ],
)
def test_what_does_not_fit_one_number_is_grouped_as_it_stands(rows: pl.DataFrame) -> None:
    assert packing(rows, [*COLUMNS]) is None
    found = grouped(rows, {"a": "a", "b": "b", "c": "c"}, [pl.len()])
    assert found.sort("b").equals(rows.group_by("a", "b", "c").len().sort("b"))
