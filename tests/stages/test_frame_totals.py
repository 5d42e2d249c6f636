"""Control totals of the amounts of a chunk: exact, however large or fine these are."""

import random
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest

from flows.steps.validate.frame_totals import totals_by
from schemas.tables import EXTRACTS

PAYMENT = EXTRACTS["payment"]


def total_of(amounts: list[str]) -> Decimal:
    assert PAYMENT.currency is not None
    height = len(amounts)
    columns = dict.fromkeys(PAYMENT.amounts, amounts)
    known = {"state": ["ready"] * height, PAYMENT.key[0]: range(height)}
    rows = pl.DataFrame({**known, PAYMENT.currency: [978] * height, **columns})
    return totals_by(PAYMENT, rows, "state")["ready"].amounts["978"]["PaidAmount"]


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    "amount",
    ["10000000000000000", "99999999999999999", "9999999999.9999999", "0.0000000000000001", "1.5"],
)
def test_a_sum_of_many_is_exact_and_fits(amount: str, sign: str) -> None:
    assert total_of([sign + amount] * 20_000) == Decimal(sign + amount) * 20_000


def test_amounts_of_all_sizes_are_added_up() -> None:
    chance = random.Random(5)
    amounts = [
        f"{chance.choice(('', '-'))}{chance.randrange(10 ** chance.randint(1, 20))}"
        f".{chance.randrange(10**9):09}{'0' * chance.choice((0, 9, 20))}"
        for _ in range(2_000)
    ]
    assert Fraction(total_of(amounts)) == sum(map(Fraction, amounts))
