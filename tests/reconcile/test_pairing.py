"""Pairs of keys of several columns: by their hashes, and by a join where these do not tell."""

import random
from datetime import datetime
from decimal import Decimal

import polars as pl
import pytest

from flows.steps.match.pairing import pair, repeated

SCHEMA: dict[str, pl.DataType] = {
    "day": pl.Datetime("us"),
    "amount": pl.Decimal(38, 18),
    "text": pl.String(),
}


def records(chance: random.Random, rows: int) -> pl.DataFrame:
    drawn = [
        (
            chance.choice([None, datetime(2026, 1, 1), datetime(2026, 1, 2)]),  # noqa: DTZ001
            chance.choice([None, Decimal("0.1"), Decimal(2**60)]),
            chance.choice([None, "", "a", "a text of more than twelve bytes"]),
        )
        for _ in range(rows)
    ]
    return pl.DataFrame(drawn, schema=SCHEMA, orient="row")


def expected(left: pl.DataFrame, right: pl.DataFrame) -> list[int | None]:
    first: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(right.iter_rows()):
        first.setdefault(row, number)
    return [first.get(row) for row in left.iter_rows()]


@pytest.mark.parametrize("distinct", [True, False], ids=["each once", "some twice"])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_equal_record_is_the_partner(seed: int, distinct: bool) -> None:
    chance = random.Random(seed)
    left, right = records(chance, 40), records(chance, 20)
    if distinct:
        right = right.unique(maintain_order=True)
    found = pair(left, right)
    assert found.partner.to_list() == expected(left, right), f"seed {seed}"
    partners = {*found.partner.drop_nulls()}
    assert found.lone.to_list() == [n for n in range(right.height) if n not in partners]
    again = repeated(right)
    several = right.is_duplicated()
    assert (again is None and not several.any()) or (again is not None and again.equals(several))
