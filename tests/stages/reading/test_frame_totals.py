"""Control totals of the amounts of a chunk: exact, however large or fine these are."""

import random
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest

from flows.steps.totals import NO_CURRENCY
from flows.steps.validate.frame_totals import totals_by, totals_of_millionths
from schemas.field import Field, Kind, Table
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


def test_amounts_without_a_currency_are_added_up_alike_on_both_paths() -> None:
    """Of a kind whose currency is not required; they are shown as such."""
    fields = (
        Field("Id", Kind.INTEGER, required=True),
        Field("Fee", Kind.DOUBLE, amount=True),
        Field("CurrenciesId", Kind.INTEGER),
    )
    fee = Table("fee", "Fee", fields, key=("Id",), currency="CurrenciesId")
    known = {"Id": [1, 2, 3], "CurrenciesId": [978, None, None]}
    types = {"CurrenciesId": pl.Int32}
    rows = pl.DataFrame({**known, "Fee": [5_000_000, 1_500_000, 1_000_000]}, schema_overrides=types)
    texts = {"state": ["ready"] * 3, "Fee": ["5", "1.5", "1"]}
    slow = totals_by(fee, pl.DataFrame({**known, **texts}, schema_overrides=types), "state")
    assert totals_of_millionths(fee, rows) == slow["ready"]
    assert set(slow["ready"].amounts) == {"978", NO_CURRENCY}
