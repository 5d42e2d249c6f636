"""Invoice files against payments: one case per code, and a neighbour that raises nothing."""

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.reconcile.debts import roll_up
from flows.steps.reconcile.documents import cover, reconcile_documents
from flows.steps.reconcile.left_out import AROUND
from schemas.tables import INVOICE_FILE, PAYMENT
from tests.reconcile.records import database, extract

Rows = list[dict[str, Any]]
FAR = 2**53 + 1
CASES: list[tuple[list[tuple[str, str]], Rows, Rows]] = [
    # breaks, payments, invoice files
    ([], [{}], [{}]),
    ([], [], []),
    ([("INV_NONE", "70")], [{}], []),
    ([("INV_NONE", "70")], [{"Id": 1}, {"Id": 2}], []),
    ([("INV_UNPAID", "1/1")], [], [{}]),
    # Debts apart by one, beyond what a double tells apart.
    (
        [("INV_NONE", str(FAR)), ("INV_UNPAID", "1/1")],
        [{"DebtsId": FAR}],
        [{"DebtsId": FAR - 1}],
    ),
    ([("INV_MULTI", "70")], [{}], [{}, {"Id": 2, "InvoiceUrl": "https://i/2.pdf"}]),
    # The same address twice is a duplicate, which matching tells.
    ([], [{}], [{}, {"Id": 2}]),
    ([], [{}], [{}, {"Id": 2, "InvoiceUrl": "HTTPS://I:443/1.pdf"}]),
    ([("INV_MULTI", "70")], [{}], [{}, {"Id": 2, "InvoiceUrl": "https://i/1.PDF"}]),
    ([("INV_MULTI", "70")], [{}], [{}, {"Id": 2, "InvoiceUrl": None}]),
    ([], [{}, {"Id": 2, "DebtsId": 71}], [{}, {"Id": 2, "DebtsId": 71, "InvoiceUrl": "x"}]),
    ([("INV_TENANT", "1/2"), ("TENANT_CROSS", "2/1")], [{}], [{"TenantsId": 2}]),
    # A debt number that two tenants use is two debts.
    ([], [{}, {"TenantsId": 2}], [{}, {"TenantsId": 2}]),
    ([("INV_NONE", "70")], [{}, {"TenantsId": 2}], [{"TenantsId": 2}]),
]


@pytest.mark.parametrize(("breaks", "payments", "files"), CASES)
def test_documents(breaks: list[tuple[str, str]], payments: Rows, files: Rows) -> None:
    rolled = roll_up(extract(PAYMENT, *payments))
    found = reconcile_documents([cover(rolled, database(INVOICE_FILE, *files))])
    assert sorted(found.select("code", "key").iter_rows()) == breaks


@pytest.mark.parametrize(("near", "first"), [((False, True), 1), ((True, False), 2)])
def test_addresses_that_others_brought_count_for_the_file_of_the_scope(
    near: tuple[bool, bool], first: int
) -> None:
    files = database(INVOICE_FILE, {"batch_id": 1}, {"Id": 2, "InvoiceUrl": "x", "batch_id": 2})
    found = cover(roll_up(extract(PAYMENT, {})), files.with_columns(pl.Series(AROUND, near)))
    told = reconcile_documents([found]).select("code", "key", "found", "batch_id").rows()
    assert told == [("INV_MULTI", "70", "2", first)]


def test_files_of_others_alone_are_theirs() -> None:
    files = database(INVOICE_FILE, {}, {"Id": 2, "InvoiceUrl": "x"}, {"Id": 3, "DebtsId": 71})
    near = files.with_columns(pl.Series(AROUND, [True, True, False]))
    paid = extract(PAYMENT, {}, {"Id": 2, "DebtsId": 71})
    assert reconcile_documents([cover(roll_up(paid), near)]).is_empty()


def test_of_several_tenants_that_have_the_debt_the_least_is_named() -> None:
    rolled = roll_up(extract(PAYMENT, {"TenantsId": 3}, {"TenantsId": 1}))
    found = reconcile_documents([cover(rolled, database(INVOICE_FILE, {"TenantsId": 2}))])
    told = found.filter(pl.col("code") == "INV_TENANT").select("expected", "found").rows()
    assert told == [("1", "2")]


def test_the_money_without_a_file_is_that_of_a_debt_in_one_currency() -> None:
    payments = extract(
        PAYMENT,
        {"DebtsId": 1, "PaidAmount": -10},
        {"Id": 2, "DebtsId": 2},
        {"Id": 3, "DebtsId": 2, "CurrenciesId": 1, "PaidAmount": Decimal("-0.5")},
    )
    rolled = roll_up(payments)
    found = reconcile_documents([cover(rolled, database(INVOICE_FILE))])
    assert [
        (row["key"], row["currency"], row["amount"], row["amounts"])
        for row in found.sort("key").to_dicts()
    ] == [
        ("1", 978, -10, "paid -10"),
        ("2", None, None, "paid -0.5 in currency 1, paid 10 in currency 978"),
    ]
