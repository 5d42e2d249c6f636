"""Keys that lie close together are paired by a table, with the same partners as by a join."""

import random

import polars as pl
import pytest

from flows.steps.match.near_keys import distinct, near_partners

Key = int | tuple[int | None, ...] | None


def keys(*values: Key) -> pl.DataFrame:
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    width = max((len(row) for row in rows), default=1)
    schema = {"Id": pl.Int64, "TenantsId": pl.Int32} if width == 2 else {"Id": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def joined(left: pl.DataFrame, right: pl.DataFrame) -> list[int | None]:
    numbered = right.with_row_index("partner")
    both = left.join(numbered, on=left.columns, how="left", maintain_order="left")
    return both["partner"].to_list()


@pytest.mark.long(
    but=(
        "0-0-plain",
        "0-0-with a tenant",
        "0--50-plain",
        "0--50-with a tenant",
        "0-9007199254740993-plain",
        "0-9007199254740993-with a tenant",
    )
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "with a tenant"])
@pytest.mark.parametrize("first", [0, -50, 2**53 + 1, 2**62, -(2**63), 2**63 - 200], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_partners_are_those_of_a_join(seed: int, first: int, packed: bool) -> None:
    chance = random.Random(seed)

    def key(number: int, tenant: int) -> Key:
        number = min(max(first + number, -(2**63)), 2**63 - 1)
        return (number, tenant) if packed else number

    right = keys(*(key(n, chance.randint(1, 3)) for n in chance.sample(range(200), 100)))
    left = keys(*(key(chance.randint(-100, 300), chance.randint(1, 3)) for _ in range(300)))
    found = near_partners(left, right)
    assert found is not None
    assert found.to_list() == joined(left, right), f"seed {seed}"
    assert found.dtype == pl.UInt32
    assert distinct(right)


def test_what_has_no_key_has_no_partner() -> None:
    left = keys((1, None), (None, 1), (1, 1))
    found = near_partners(left, keys((1, 1), (2, 1)))
    assert found is not None
    assert found.to_list() == [None, None, 0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(keys(1), keys(), id="nothing to find"),
        pytest.param(keys(1), keys(1, 1), id="a key twice"),
        pytest.param(keys((1, 1)), keys((1, 1), (1, 2), (2, 0)), id="one Id of two tenants"),
        pytest.param(keys(1), keys(1, 2**60), id="far apart"),
        pytest.param(keys(1), keys(-(2**63), 2**63 - 1), id="as far apart as can be"),
        pytest.param(keys(1), keys(1, None), id="a key that is not there"),
        pytest.param(keys(1).cast(pl.String), keys(1).cast(pl.String), id="texts"),
    ],
)
def test_other_keys_are_left_to_a_join(left: pl.DataFrame, right: pl.DataFrame) -> None:
    assert near_partners(left, right) is None
    assert not distinct(right)
