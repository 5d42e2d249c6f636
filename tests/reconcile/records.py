"""Rows of truth sources, written as little as a case needs."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from flows.steps.frames.sources import ANSWER, DELIVERED, LINEAGE, Sources, record_schema
from flows.steps.reconcile.records import Matched, match
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.tables import AVATAR, CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL

AS_OF = date(2026, 1, 9)
"""A Friday, one week after the records' day."""
DAY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DEFAULTS: dict[str, dict[str, Any]] = {
    PAYMENT.name: {
        "Id": 1,
        "TenantsId": 1,
        "ActionsId": 7,
        "DebtsId": 70,
        "PaymentDate": DAY,
        "PaymentDate_offset": 60,
        "PaidAmount": Decimal("10.00"),
        "DiscountAmount": Decimal(0),
        "CurrenciesId": 978,
        "CurrencyRatesId": 5,
    },
    CURRENCY_RATE.name: {
        "Id": 1,
        "TenantsId": 1,
        "FromCurrenciesId": 978,
        "ToCurrenciesId": 840,
        "ExchangeRate": 1.1,
        "EffectiveDate": datetime(2026, 1, 2),  # noqa: DTZ001
        "EffectiveDate_offset": None,
    },
    INVOICE_FILE.name: {"Id": 1, "TenantsId": 1, "DebtsId": 70, "InvoiceUrl": "https://i/1.pdf"},
    PAYMENT_PLAN_DETAIL.name: {
        "PaymentPlansId": 1,
        "PlannedDate": datetime(2026, 1, 2),  # noqa: DTZ001
        "PlannedDate_offset": None,
        "PlannedAmount": Decimal("10.00"),
        "PlannedCurrenciesId": 978,
        "PaymentsId": 1,
        "StatusCodesId": 1,
    },
    AVATAR.name: {"TenantsId": 1, "Name": "Ann"},
}


def extract(table: Table, *rows: dict[str, Any]) -> pl.DataFrame:
    """E: rows of one file of one batch, all inserted, unless a row says otherwise."""
    lines = [
        {"state": "inserted", "file": "a.csv", "line": number + 1, "row": number, "extract_id": 1,
         "batch_id": 1, **DEFAULTS.get(table.name, {}), **row}
        for number, row in enumerate(rows, start=1)
    ]  # fmt: skip
    return pl.DataFrame(lines, schema=record_schema(table) | DELIVERED)


def database(table: Table, *rows: dict[str, Any]) -> pl.DataFrame:
    """D: rows as the extract rows of the same numbers wrote them, unless a row says otherwise."""
    lines = [
        {"row": number, "extract_id": 1, "batch_id": 1, **DEFAULTS.get(table.name, {}), **row}
        for number, row in enumerate(rows, start=1)
    ]
    return pl.DataFrame(lines, schema=record_schema(table) | LINEAGE)


def new(breaks: pl.DataFrame) -> pl.DataFrame:
    """Breaks as they are carried when nobody has seen them before; when that was is not told."""
    return breaks.with_columns(pl.lit(None, pl.Date).alias("first_seen"))


def answers(*rows: dict[str, Any]) -> pl.DataFrame:
    """A: acknowledged with 200, unless a row says otherwise."""
    lines = [
        {
            "row": number,
            "extract_id": 1,
            "state": "acknowledged",
            "status": 200,
            "echo": None,
            **row,
        }
        for number, row in enumerate(rows, start=1)
    ]
    return pl.DataFrame(lines, schema=ANSWER)


def matched(
    table: Table,
    extracted: pl.DataFrame,
    found: pl.DataFrame | None,
    *,
    rules: Rules | None = None,
    sent: pl.DataFrame | None = None,
    listed: pl.DataFrame | None = None,
    lost: pl.DataFrame | None = None,
    zone: str = "UTC",
    near: pl.DataFrame | None = None,
) -> Matched:
    """Match one record kind on what is given."""

    def of(frame: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
        return {} if frame is None else {table.name: frame}

    zones = {table.name: zone}
    sources = Sources(of(extracted), of(found), of(sent), of(listed), lost=of(lost), zones=zones)
    return match(table, sources, rules or Rules(), AS_OF, service=sent is not None, near=near)


def statuses(result: Matched) -> list[str]:
    """The statuses in order, an exclusion with its rule."""
    lines = result.statuses.select("status", "rule").iter_rows()
    return [f"{status} {rule}".strip() for status, rule in lines]


def told(result: Matched) -> list[tuple[str, str, str, str]]:
    """The breaks as (code, key, field, side)."""
    return result.breaks.select("code", "key", "field", "side").rows()
