"""Debts some at a time say what all of them at once say, and how many are not listed."""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.stages.reconcile.put_aside import keeper
from flows.steps.breaks.frame import gather
from flows.steps.frames.parts import held
from flows.steps.reconcile.allotment import PLANNED_SCHEMA, PlanAnnex
from flows.steps.reconcile.debt_ranges import reconcile_all_debts
from flows.steps.rules.rules import Rules
from schemas.tables import INVOICE_FILE, PAYMENT
from tests.examples import examples
from tests.reconcile.records import database

TENANTS, DEBTS, CURRENCIES = st.integers(1, 3), st.integers(1, 9), st.sampled_from([840, 978])
AMOUNTS = st.sampled_from([Decimal(text) for text in ("-3", "0", "0.01", "5", "7.25", "1e21")])
PAYMENTS = st.lists(
    st.fixed_dictionaries(
        {
            "TenantsId": TENANTS,
            "DebtsId": DEBTS,
            "CurrenciesId": CURRENCIES,
            "PaidAmount": AMOUNTS,
            "DiscountAmount": AMOUNTS,
        }
    ),
    min_size=1,
    max_size=12,
)
FILES = st.lists(
    st.fixed_dictionaries(
        {
            "Id": st.integers(1, 3),
            "TenantsId": TENANTS,
            "DebtsId": DEBTS | st.none(),
            "InvoiceUrl": st.sampled_from("ab"),
        }
    ),
    max_size=8,
)
PLANNED = st.lists(
    st.tuples(TENANTS, DEBTS, CURRENCIES, AMOUNTS),
    max_size=6,
    unique_by=lambda one: one[:3],
)


def paid(tenant: int, debt: int, amount: str = "-3") -> dict[str, object]:
    amounts = {"PaidAmount": Decimal(amount), "DiscountAmount": Decimal(-3)}
    return {"TenantsId": tenant, "DebtsId": debt, "CurrenciesId": 840} | amounts


def file(tenant: int, debt: int | None) -> dict[str, object]:
    return {"Id": 1, "TenantsId": tenant, "DebtsId": debt, "InvoiceUrl": "a"}


@settings(max_examples=examples(40))
@example([paid(1, 1), paid(1, 2), paid(1, 3), paid(2, 1)], [file(1, None), file(1, 1)], [], 2)
@example([paid(1, 1)] * 2 + [paid(1, 2)] * 2, [file(1, None), file(2, 2), file(2, 1)], [], 2)
@example(
    [paid(1, 1, "1"), paid(1, 2), paid(1, 3, "1"), paid(2, 1, "1")], [file(1, 1), file(2, 4)], [], 2
)
@given(PAYMENTS, FILES, PLANNED, st.integers(2, 5))
def test_ranges_of_debts_change_nothing(
    payments: list[dict[str, object]],
    files: list[dict[str, object]],
    planned: list[tuple[object, ...]],
    parts: int,
) -> None:
    rows = database(PAYMENT, *payments)
    invoices = database(INVOICE_FILE, *files)
    asked = PlanAnnex(planned=pl.DataFrame(planned, PLANNED_SCHEMA, orient="row"))
    found = []
    with pytest.MonkeyPatch.context() as few:
        for module in ("reconcile.debts", "breaks.make"):
            few.setattr(f"flows.steps.{module}.LINES", 3)
        for some, keep in ((1, held), (parts, keeper(0))):
            sides = [
                [held(side.gather_every(some, offset)) for offset in range(some)]
                for side in (rows, invoices)
            ]
            annex = reconcile_all_debts(sides[0], asked, sides[1], Rules(), keep=keep)
            found.append((gather([annex.every_break()]), annex.lines, annex.left))
    (breaks, lines, left), (other_breaks, *others) = found
    assert other_breaks.equals(breaks)
    assert others == [lines, left]
    every = reconcile_all_debts([held(rows)], asked, [held(invoices)], Rules())
    assert (len(every.lines), every.left) == (len(lines) + left, 0)
