"""Breaks of the joins are told at the file and line of the row that wrote the record."""

from datetime import date
from typing import Any

import polars as pl

from flows.steps.frames.sources import Sources
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL
from tests.reconcile.records import database, extract

PLACES: dict[Table, tuple[str, int, list[dict[str, Any]]]] = {
    PAYMENT: ("payments.csv", 1, [{"DebtsId": 71, "Id": 9}, {"CurrencyRatesId": 99}]),
    CURRENCY_RATE: ("rates.csv", 2, [{"Id": 5}, {"Id": 6, "ExchangeRate": -1.0}]),
    INVOICE_FILE: ("invoices.csv", 3, [{"DebtsId": 71}, {"Id": 2, "DebtsId": 500}]),
    PAYMENT_PLAN_DETAIL: ("details.csv", 4, [{}, {"PaymentsId": 1234}, {}]),
}
"""Record -> its file, the number of its extract, and rows of which the last ones are faulty."""


def sides(table: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What was delivered, and the same records in the target, which knows the writers only."""
    file, number, rows = PLACES[table]
    placed = [{"file": file, "extract_id": number, **row} for row in rows]
    written = [{"extract_id": number, "row": at, **row} for at, row in enumerate(rows, start=1)]
    return extract(table, *placed), database(table, *reversed(written))


def test_the_row_that_wrote_the_record_is_named() -> None:
    both = {table.name: sides(table) for table in PLACES}
    sources = Sources(
        {name: delivered for name, (delivered, _) in both.items()},
        {name: there for name, (_, there) in both.items()},
    )
    breaks = reconcile_sources(sources, Rules(), date(2026, 1, 9), service=False).breaks
    found = {
        (code, record, key): (file, line)
        for code, record, key, file, line in breaks.select(
            "code", "record", "key", "file", "line"
        ).iter_rows()
    }
    payment, detail = PAYMENT.name, PAYMENT_PLAN_DETAIL.name
    assert found["RATE_MISSING", payment, "1/1"] == ("payments.csv", 3)
    assert found["RATE_NONPOSITIVE", CURRENCY_RATE.name, "6/1"] == ("rates.csv", 3)
    assert found["INV_UNPAID", INVOICE_FILE.name, "2/1"] == ("invoices.csv", 3)
    assert found["PLAN_ORPHAN", detail, "1/2026-01-02/10/978/1234/1"] == ("details.csv", 3)
    # Of two details that read alike the one delivered first is meant.
    assert found["PLAN_DUPLICATE", detail, "1/2026-01-02/10/978/1/1"] == ("details.csv", 2)
    assert found["INV_NONE", payment, "70"] == (None, None)
