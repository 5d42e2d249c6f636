"""Keys that lie close together are paired by a table, with the same partners as by a join."""

import random

import polars as pl
import pytest

from flows.steps.reconcile.near_keys import near_partners

TENANT = 2**32


def keys(*values: int | None) -> pl.DataFrame:
    return pl.DataFrame({"key": pl.Series(values, dtype=pl.Int128)})


def joined(left: pl.DataFrame, right: pl.DataFrame) -> list[int | None]:
    numbered = right.with_row_index("partner")
    return left.join(numbered, on="key", how="left", maintain_order="left")["partner"].to_list()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "behind a tenant"])
@pytest.mark.parametrize("first", [0, -50, 2**53 + 1, 2**62], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_partners_are_those_of_a_join(seed: int, first: int, packed: bool) -> None:
    chance = random.Random(seed)

    def key(number: int, tenant: int) -> int:
        return (first + number) * TENANT + tenant if packed else first + number

    right = keys(*(key(n, chance.randint(1, 3)) for n in chance.sample(range(200), 100)))
    left = keys(*(key(chance.randint(-100, 300), chance.randint(1, 3)) for _ in range(300)))
    found = near_partners(left, right)
    assert found is not None
    assert found.to_list() == joined(left, right), f"seed {seed}"
    assert found.dtype == pl.UInt32


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(keys(1), keys(), id="nothing to find"),
        pytest.param(keys(1), keys(1, 1), id="a key twice"),
        pytest.param(
            keys(TENANT + 1), keys(TENANT + 1, TENANT + 2, 2 * TENANT), id="one Id of two tenants"
        ),
        pytest.param(keys(1), keys(1, 2**80), id="far apart"),
        pytest.param(keys(1), keys(1, None), id="a key that is not there"),
        pytest.param(keys(None), keys(1), id="asked for nothing"),
        pytest.param(keys(1).cast(pl.String), keys(1).cast(pl.String), id="texts"),
        pytest.param(
            keys(1).with_columns(other=1), keys(1).with_columns(other=1), id="keys of two parts"
        ),
    ],
)
def test_other_keys_are_left_to_a_join(left: pl.DataFrame, right: pl.DataFrame) -> None:
    assert near_partners(left, right) is None
