"""What breaks add to totals, against its definition break by break."""

from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.counted import additions
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.money import BASIS, COUNTED, COUNTED_BEYOND, basis
from flows.steps.frames.beyond import fits, from_both, number_of
from flows.steps.frames.parts import PartedRows
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import BREAKS, Money
from schemas.tables import PAYMENT
from tests.examples import examples

RANK = [*BREAKS]
POOL = "note"
"""A column to tell pools by: any will do."""
LARGE = Decimal(10) ** 20 - 1
TEXTS = ("1000000000000000000000", "0.0000000000000000001", "NaN")

Row = dict[str, Any]


def breaks(seed: int, amounts: tuple[Decimal | str | None, ...]) -> pl.DataFrame:
    """Breaks about two payments and two debts, several about each."""
    chance, rows = Random(seed), []
    for _ in range(chance.choice([1, 5, 40])):
        amount = chance.choice(amounts)
        rows.append(
            {
                "code": chance.choice(["AMOUNT", "ECHO", "RATE_STALE", "REJECTED", *OF_DEBTS]),
                "record": PAYMENT.name,
                "tenant": chance.choice([7, 8]),
                "key": chance.choice(["1/7", "2/7", "70/978", "70", "71", "a.csv:3"]),
                "field": chance.choice(["", "PaidAmount", "DiscountAmount", "DebtsId", None]),
                "side": chance.choice(["D", "A"]),
                "currency": chance.choice([978, 978, None]),
                "amount": amount if isinstance(amount, Decimal) else None,
                f"amount{BEYOND}": amount if isinstance(amount, str) else None,
                "debt": chance.choice([70, 71, None]),
                POOL: chance.choice(["", "", "another"]),
            }
        )
    return gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])


OF_DEBTS = ("INV_NONE", "DEBT_OVER", "DISCOUNT_GT_PAID")


def by_definition(found: pl.DataFrame) -> list[tuple[str, Decimal | str | None]]:
    """Of each break the kind of its money, and what it adds."""
    rows = found.with_columns(basis()).to_dicts()
    added: dict[int, Decimal | str | None] = {}
    told: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        told.setdefault(unit(row), []).append(at)
    for several in told.values():
        largest = Decimal(0)
        for nth, at in enumerate(sorted(several, key=lambda at: order(rows[at]))):
            amount = amount_of(rows[at])
            number = None if amount is None else number_of(str(amount))
            more = None if number is None else max(EXACT.subtract(number, largest), Decimal(0))
            added[at] = amount if nth == 0 or amount is None else more or Decimal(0)
            largest = max(largest, number or Decimal(0))
    said: dict[tuple[Any, ...], Decimal] = {}
    for at, row in enumerate(rows):
        number = number_of(str(added[at])) if added[at] is not None else None
        if row["code"] not in OF_DEBTS and row["debt"] is not None and number is not None:
            said[debt(row)] = EXACT.add(said.get(debt(row), Decimal(0)), number)
    for at, row in sorted(enumerate(rows), key=lambda one: in_turn(one[1])):
        amount = amount_of(row)
        number = None if amount is None else number_of(str(amount))
        if row["code"] in OF_DEBTS and number is not None:
            before = said.get(debt(row), Decimal(0))
            added[at] = max(EXACT.subtract(number, before), Decimal(0))
            said[debt(row)] = max(number, before)
    return [(row[BASIS], added[at]) for at, row in enumerate(rows)]


def amount_of(row: Row) -> Decimal | str | None:
    held: Decimal | None = row["amount"]
    text: str | None = row[f"amount{BEYOND}"]
    return text if held is None else held


def unit(row: Row) -> tuple[Any, ...]:
    money = row["field"] in PAYMENT.amounts
    field = row["field"] if money else PAYMENT.amounts[0]
    return (
        row["code"] in OF_DEBTS, row[POOL], row["tenant"], row["key"], row["currency"],
        row[BASIS], field if row[BASIS] == Money.DIFFERENCE else "",
    )  # fmt: skip


def debt(row: Row) -> tuple[Any, ...]:
    first = row["key"].split("/")[0]
    own = int(first) if first.isdigit() else None
    of = own if row["code"] in OF_DEBTS else row["debt"]
    return row[POOL], row["tenant"], of, row["currency"], row[BASIS]


def order(row: Row) -> tuple[Any, ...]:
    field = (row["field"] is None, row["field"] or "")
    return amount_of(row) is None, RANK.index(row["code"]), row["side"], field, row["id"]


def in_turn(row: Row) -> tuple[Any, ...]:
    field = (row["field"] is None, row["field"] or "")
    return RANK.index(row["code"]), row["key"], field, row["side"], row["id"]


def in_parts(frame: pl.DataFrame, rows: int) -> PartedRows:
    return PartedRows(frame.columns, lambda names: frame.select(names).iter_slices(rows))


def same(one: Decimal | str | None, other: Decimal | str | None) -> bool:
    if one is None or other is None:
        return one is other
    numbers = number_of(str(one)), number_of(str(other))
    return str(one) == str(other) if None in numbers else numbers[0] == numbers[1]


@pytest.mark.long(but=("texts",))
@pytest.mark.parametrize(
    "amounts",
    [
        pytest.param((Decimal(5), Decimal("7.25"), Decimal(12), None), id="numbers"),
        pytest.param((Decimal(5), LARGE, None), id="large numbers"),
        pytest.param((Decimal(5), *TEXTS, LARGE, None), id="texts"),
    ],
)
@settings(deadline=None, max_examples=examples(300, 25))
@given(st.integers(0, 1_000_000), st.sampled_from([1, 3, 100]))
def test_each_break_adds_what_the_definition_says(
    amounts: tuple[Decimal | str | None, ...], seed: int, rows: int
) -> None:
    found = breaks(seed, amounts)
    added = additions(in_parts(found, rows), pl.col(POOL))
    told = [
        (kind, from_both(amount, text) if text is None or number_of(text) is not None else text)
        for kind, amount, text in added.select(BASIS, COUNTED, COUNTED_BEYOND).iter_rows()
    ]
    expected = by_definition(found)
    assert [kind for kind, _ in told] == [kind for kind, _ in expected]
    for at, ((_, one), (_, other)) in enumerate(zip(told, expected, strict=True)):
        assert same(one, other), f"{found.row(at, named=True)}: {one}, not {other}"
    assert all(fits(one) for one in added[COUNTED] if one is not None)
