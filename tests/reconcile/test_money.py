"""The money of breaks: what each amount is, and that no total holds one of them twice."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.steps.breaks.ageing import ageing, with_ages
from flows.steps.breaks.causes import find_causes
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.lifecycle import DECISIONS, carry, nothing_before
from flows.steps.breaks.money import Sums, basis, of_debts, sum_money
from flows.steps.breaks.saved import from_saved
from flows.steps.breaks.severity import severities
from flows.steps.frames.parts import held, held_rows
from flows.steps.reconcile.roll_forward import roll_forward
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS, Money
from schemas.tables import PAYMENT
from tests.governance.runs import to_saved, with_counted, with_counts
from tests.reconcile.records import DEFAULTS, database, new

PAGE = Path(__file__).parents[2] / "docs" / "governance.md"
DAY = date(2026, 1, 31)
NOBODY = pl.DataFrame(schema=DECISIONS)
UNCHANGED = pl.DataFrame(schema={"id": pl.String(), "side": pl.String()})

Told = tuple[str, str, str, str | None]
"""Code, key, field and amount of a break; a difference in an amount field has that as its delta."""


def breaks(*told: Told | tuple[str, str, str, str | None, dict[str, Any]]) -> pl.DataFrame:
    rows = []
    for code, key, field, amount, *more in told:
        money = None if amount is None else Decimal(amount)
        rows.append(
            {
                "code": code,
                "record": "payment",
                "tenant": 7,
                "key": key,
                "field": field,
                "side": "D",
                "currency": 978,
                "amount": money,
                "delta": money if field in PAYMENT.amounts else None,
            }
            | (more[0] if more else {})
        )
    return gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])


WHOLE = ""
PAID, RATE = "PaidAmount", "CurrencyRatesId"


@pytest.mark.long
@pytest.mark.parametrize(
    ("told", "difference", "gross"),
    [
        # A difference beside the money of its record: never one sum.
        ([("AMOUNT", "1/7", PAID, "5"), ("RATE_STALE", "1/7", RATE, "100")], "5", "100"),
        # One payment, three flags of its rate.
        (
            [
                ("RATE_MISSING", "1/7", RATE, "100"),
                ("RATE_PAIR", "1/7", RATE, "100"),
                ("VALUE", "1/7", "DebtsId", "100"),
                ("RATE_MISSING", "2/7", "CurrencyRatesId", "30"),
            ],
            "0",
            "130",
        ),
        # The target has another amount, so the plan is short of it: one difference.
        ([("AMOUNT", "1/7", PAID, "-5"), ("PLAN_UNDER", "1/7", PAID, "-5")], "5", "0"),
        # A service that answered with the other amount, and a signed record that changed by it.
        (
            [
                ("AMOUNT", "1/7", PAID, "5"),
                ("ECHO", "1/7", PAID, "5", {"side": "A"}),
                ("CHANGED_AFTER_SIGNOFF", "1/7", PAID, "5"),
            ],
            "5",
            "0",
        ),
        # Two amounts of one record are two differences.
        ([("AMOUNT", "1/7", PAID, "5"), ("AMOUNT", "1/7", "DiscountAmount", "3")], "8", "0"),
        # A whole record, missing in the database and under another tenant.
        ([("MISSING_IN_TARGET", "1/7", WHOLE, "9"), ("TENANT_CROSS", "1/7", "Id", "9")], "9", "9"),
        # A signed record that differs in a field without money has changed, not its money.
        ([("CHANGED_AFTER_SIGNOFF", "1/7", "DebtsId", "9")], "0", "9"),
        ([("CHANGED_AFTER_SIGNOFF", "1/7", WHOLE, "9")], "9", "0"),
        # An answer that cannot be read says nothing of money.
        ([("ECHO", "1/7", WHOLE, "9")], "0", "9"),
        # Two records, one of them without an amount.
        ([("AMOUNT", "1/7", PAID, "5"), ("AMOUNT", "2/7", PAID, None)], "5", "0"),
        # The first that explains it has no amount: another one tells it.
        ([("AMOUNT", "1/7", PAID, None), ("PLAN_UNDER", "1/7", PAID, "-4")], "4", "0"),
        # A number of tenants or currencies is another record, or another sum.
        (
            [
                ("RATE_STALE", "1/7", RATE, "100"),
                ("RATE_STALE", "1/8", RATE, "100", {"tenant": 8}),
            ],
            "0",
            "200",
        ),
        # Breaks of a debt add only what those of its payments do not say.
        (
            [
                ("RATE_STALE", "1/7", RATE, "100", {"debt": 70}),
                ("INV_NONE", "70", "DebtsId", "130"),
            ],
            "0",
            "130",
        ),
        (
            [
                ("PLAN_OVER", "1/7", PAID, "20", {"debt": 70}),
                ("DEBT_OVER", "70/978", PAID, "20"),
                ("INV_NONE", "70", "DebtsId", "130"),
                ("DISCOUNT_GT_PAID", "70/978", "DiscountAmount", None, {"amount": Decimal(140)}),
            ],
            "20",
            "140",
        ),
        ([("AMOUNT", "70/978", PAID, "5"), ("DEBT_OVER", "70/978", PAID, "20")], "25", "0"),
    ],
)  # fmt: skip
def test_each_record_counts_once(told: list[Any], difference: str, gross: str) -> None:
    found = breaks(*told)
    expected = {"978": Sums(Decimal(difference), Decimal(gross))}
    assert sum_money(with_counted(found)) == expected
    shuffled = found.sample(fraction=1, shuffle=True, seed=3)
    assert sum_money(with_counted(shuffled)) == expected, "whatever their order"
    carried = with_counts(carry(found, nothing_before(), NOBODY, UNCHANGED, DAY))
    (forward,) = roll_forward(carried)
    closing = forward.lines[-1]
    assert (closing.amount, closing.gross) == (Decimal(difference), Decimal(gross))
    aged = ageing(with_ages(carried, DAY, None))
    for kind, total in ((Money.DIFFERENCE, difference), (Money.GROSS, gross)):
        assert sum(sum(one.amounts) for one in aged if one.basis == kind) == Decimal(total)
    causes = find_causes(held_rows(carried)).lines
    assert sum(one.amounts.get("978", Decimal(0)) for one in causes) <= Decimal(difference)
    assert sum(one.gross.get("978", Decimal(0)) for one in causes) <= Decimal(gross)


def test_money_moves_to_the_break_that_is_left() -> None:
    """The break that explained a difference is gone, another of its record stays."""
    both = breaks(("AMOUNT", "1/7", PAID, "5"), ("PLAN_UNDER", "1/7", PAID, "-5"))
    first = with_counts(carry(both, nothing_before(), NOBODY, UNCHANGED, DAY))
    left = from_saved(to_saved(first))
    second = with_counts(
        carry(breaks(("PLAN_UNDER", "1/7", PAID, "-5")), left, NOBODY, UNCHANGED, DAY)
    )
    (forward,) = roll_forward(second)
    assert (forward.residual_rows, forward.residual, forward.residual_gross) == (0, 0, 0)
    assert [line.amount for line in (forward.lines[0], forward.lines[-1])] == [5, 5]


def test_what_an_earlier_version_saved_is_counted_the_same_way() -> None:
    """Facts without a column of today are read as without a value."""
    first = with_counts(
        carry(breaks(("AMOUNT", "1/7", PAID, "5")), nothing_before(), NOBODY, UNCHANGED, DAY)
    )
    saved = to_saved(first).with_columns(pl.col("facts").str.replace('"debt":null,', ""))
    assert '"debt"' not in saved["facts"].item()
    assert sum_money(with_counted(from_saved(saved)))["978"].difference == 5


def test_a_rate_is_no_money() -> None:
    """The difference of two exchange rates has no currency and makes no break severe."""
    rate = {"record": "currency_rate", "currency": None, "delta": Decimal(900_000)}
    found = breaks(("VALUE", "1/7", "ExchangeRate", None, rate))
    assert sum_money(with_counted(found)) == {"": Sums()}
    assert severities(new(found), Rules(), DAY).to_list() == ["low"]


@pytest.mark.parametrize("code", BREAKS)
def test_every_code_says_what_its_amount_is(code: str) -> None:
    kinds = breaks(
        (code, "1/7", WHOLE, "1"), (code, "1/7", "DebtsId", "1"), (code, "1/7", PAID, "1")
    )
    told = dict(kinds.select("field", basis()).iter_rows())
    assert told[WHOLE] == (BREAKS[code].whole or BREAKS[code].money)
    assert told["DebtsId"] != Money.DIFFERENCE
    assert told[PAID] == BREAKS[code].money


@pytest.mark.parametrize("money", [Money.DIFFERENCE, Money.GROSS])
def test_the_page_names_every_code_by_its_money(money: Money) -> None:
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| {money} |"))
    codes = {code for code, told in BREAKS.items() if told.money is money}
    assert set(row.split("|")[3].replace(" ", "").split(",")) == codes, f"name them in {PAGE.name}"


def test_the_debt_of_a_payment_is_looked_up() -> None:
    payments = database(
        PAYMENT, {"Id": 1, "TenantsId": 7}, {"Id": 2, "TenantsId": 7, "DebtsId": 71}
    )
    found = breaks(
        ("AMOUNT", "1/7", PAID, "1"),
        ("AMOUNT", "2/7#6:b.csv:2", PAID, "1"),
        ("AMOUNT", "3/7", PAID, "1"),
        ("INV_NONE", "2", "DebtsId", "1"),
        ("KEY_MISSING", "5:a.csv:1", WHOLE, None),
    )
    told = dict(of_debts(found, [held(payments)]).select("key", "debt").iter_rows())
    default = DEFAULTS[PAYMENT.name]["DebtsId"]
    assert told == {"1/7": default, "2/7#6:b.csv:2": 71, "3/7": None, "2": None, "5:a.csv:1": None}
    assert of_debts(found.clear(), [held(payments)]).is_empty()
