"""Both sides of the four records that belong together, with planted faults that are known.

Payments with their exchange rates, their debts' invoice files and payment plan details: what was
delivered (E) and what the database has (D), the latter in another order. Apart from the planted
faults everything agrees: each payment names the rate of its tenant, currency and day, a fifth of
the debts is paid by plan to the cent, and each debt has its file.
"""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from flows.steps.frames.sources import DELIVERED, LINEAGE, record_schema
from schemas.field import Table
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL

SEED = 20260103
AS_OF = date(2026, 1, 2)
BATCH = 1
TABLES = (CURRENCY_RATE, PAYMENT, INVOICE_FILE, PAYMENT_PLAN_DETAIL)
TENANTS, CURRENCIES, DAYS = 5, (2, 3, 4), 365
_FIRST_DAY = (date(2025, 1, 1) - date(1970, 1, 1)).days
_DAY = 86_400_000_000
_MISSING = "__missing"
"""Rows that one side lacks."""

# Per million payments; a debt has at most one fault, so that no fault hides or makes another.
FAULTS = {
    "AMOUNT": 2000,
    "INSTANT": 1000,
    "MISSING_IN_TARGET": 500,
    "MISSING_IN_EXTRACT": 500,
    "RATE_NOT_LATEST": 500,
    "INV_NONE": 500,
    "INV_UNPAID": 500,
    "PLAN_ORPHAN": 500,
    "PLAN_UNPAID": 500,
}


def make_truths(folder: Path, payments: int) -> dict[str, int]:
    """Write E and D of every record as Parquet files, unless they are there; returns the faults."""
    note = folder / "planted.json"
    if not note.exists() or not _fitting(folder):
        folder.mkdir(parents=True, exist_ok=True)
        truths, planted = _truths(payments)
        for name, frame in truths.items():
            # One group of rows is read into one piece of memory, as it is in
            # `connectors.postgres.runs.sources`.
            frame.write_parquet(folder / f"{name}.parquet", row_group_size=frame.height)
        note.write_text(json.dumps(planted, indent=1))
    planted = json.loads(note.read_text())
    return dict(planted)


def _fitting(folder: Path) -> bool:
    """Whether the files have the types that judgements ask for now."""
    asked = {table.name: record_schema(table) | DELIVERED for table in TABLES}
    return all(
        dict(pl.read_parquet_schema(folder / f"E-{name}.parquet")) == schema
        for name, schema in asked.items()
    )


def read_truths(folder: Path) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """E and D by record kind."""
    extract, database = (
        {table.name: pl.read_parquet(folder / f"{side}-{table.name}.parquet") for table in TABLES}
        for side in "ED"
    )
    return extract, database


def _truths(payments: int) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    random = np.random.default_rng(SEED)
    counts = {code: max(1, count * payments // 1_000_000) for code, count in FAULTS.items()}
    debts = payments * 3 // 10
    planned = debts // 5
    # Faults of payments and files are at debts without a plan.
    chosen = random.choice(np.arange(planned, debts - 1), sum(counts.values()), replace=False)
    at = dict(zip(counts, np.split(chosen, np.cumsum([*counts.values()])[:-1]), strict=True))
    sides = {
        "currency_rate": _two_sides(_rates()),
        "payment": _payments(payments, at),
        "invoice_file": _two_sides(_invoices(debts, at)),
        "payment_plan_detail": _two_sides(_details(payments, planned, counts)),
    }
    truths = {}
    for number, table in enumerate(TABLES, 1):
        extract, database = sides[table.name]
        delivered = _placed(extract.drop(_MISSING), table, number)
        truths[f"E-{table.name}"] = delivered.filter(~extract[_MISSING]).select(
            pl.col(name).cast(dtype) for name, dtype in (record_schema(table) | DELIVERED).items()
        )
        there = _placed(database.drop(_MISSING), table, number).filter(~database[_MISSING])
        truths[f"D-{table.name}"] = there.select(
            pl.col(name).cast(dtype) for name, dtype in (record_schema(table) | LINEAGE).items()
        ).sample(fraction=1.0, shuffle=True, seed=SEED)
    return truths, dict(Counter(counts))


def _two_sides(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    both = rows.with_columns(pl.lit(False).alias(_MISSING))
    return both, both


def _placed(rows: pl.DataFrame, table: Table, number: int) -> pl.DataFrame:
    return rows.with_row_index("row", offset=1).with_columns(
        pl.lit("inserted").alias("state"),
        pl.lit(f"{table.name}.csv").alias("file"),
        (pl.col("row") + 1).alias("line"),
        pl.lit(number).alias("extract_id"),
        pl.lit(BATCH).alias("batch_id"),
    )


def _rates() -> pl.DataFrame:
    """A rate per tenant, currency and day against currency 1, wandering by a thousandth a day."""
    numbers = np.arange(TENANTS * len(CURRENCIES) * DAYS)
    pair, day = numbers // DAYS, numbers % DAYS
    return pl.DataFrame(
        {
            "Id": numbers + 1,
            "TenantsId": pair // len(CURRENCIES) + 1,
            "FromCurrenciesId": np.ones_like(numbers),
            "ToCurrenciesId": np.array(CURRENCIES)[pair % len(CURRENCIES)],
            "ExchangeRate": np.round(1 + 0.1 * (pair + 1) + 0.001 * (day % 7), 4),
            "EffectiveDate": pl.Series((day + _FIRST_DAY) * _DAY).cast(pl.Datetime("us")),
            "EffectiveDate_offset": np.zeros_like(numbers),
        }
    )


def _payments(rows: int, at: Mapping[str, np.ndarray]) -> tuple[pl.DataFrame, pl.DataFrame]:
    numbers = np.arange(rows)
    debt = numbers * 3 // 10
    first = np.r_[True, debt[1:] != debt[:-1]]
    pair = debt % (TENANTS * len(CURRENCIES))
    # Not the first days of the year: a payment by an older rate has to find one.
    day = 10 + numbers * 7919 % (DAYS - 10)
    offset = np.array([0, 60, 120, -300])[numbers % 4]
    second = numbers * 104_729 % 86_400
    wall = (day + _FIRST_DAY) * _DAY + second * 1_000_000

    def faulty(code: str) -> np.ndarray:
        return np.asarray(first & np.isin(debt, at[code]))

    whole = pl.DataFrame(
        {
            "Id": numbers + 1,
            "TenantsId": pair // len(CURRENCIES) + 1,
            "ActionsId": numbers * 3 + 1,
            "DebtsId": debt + 1,
            "PaymentDate": pl.Series(wall - offset * 60_000_000).cast(pl.Datetime("us", "UTC")),
            "PaymentDate_offset": offset,
            "PaidAmount": _money(1000 + numbers * 7919 % 1_000_000),
            "DiscountAmount": _money(numbers % 3 * 25),
            "CurrenciesId": np.array(CURRENCIES)[pair % len(CURRENCIES)],
            "CurrencyRatesId": pair * DAYS + day + 1 - faulty("RATE_NOT_LATEST"),
            _MISSING: faulty("MISSING_IN_EXTRACT"),
        }
    )
    later = pl.Series(faulty("INSTANT").astype(np.int64) * 1000).cast(pl.Duration("us"))
    found = whole.with_columns(
        pl.col("PaidAmount") + _money(faulty("AMOUNT").astype(np.int64)),
        pl.col("PaymentDate") + later,
        pl.Series(_MISSING, faulty("MISSING_IN_TARGET")),
    )
    return whole, found


def _money(cents: np.ndarray) -> pl.Series:
    return (pl.Series(cents).cast(pl.Decimal(38, 2)) / 100).cast(pl.Decimal(38, 18))


def _invoices(debts: int, at: Mapping[str, np.ndarray]) -> pl.DataFrame:
    filed = np.setdiff1d(np.arange(debts), at["INV_NONE"])
    unpaid = np.arange(len(at["INV_UNPAID"])) + 2 * debts
    debt = np.concatenate([filed, unpaid])
    return pl.DataFrame(
        {
            "Id": np.arange(len(debt)) + 1,
            "TenantsId": debt % (TENANTS * len(CURRENCIES)) // len(CURRENCIES) + 1,
            "DebtsId": debt + 1,
        }
    ).with_columns(
        pl.format("https://files.example/invoices/{}.pdf", "DebtsId").alias("InvoiceUrl")
    )


def _details(rows: int, planned: int, counts: Mapping[str, int]) -> pl.DataFrame:
    """One per payment of the planned debts, a plan each; faulty ones are of plans of their own."""
    numbers = np.arange(rows)
    own = numbers[numbers * 3 // 10 < planned]
    lost, open_ones = np.arange(counts["PLAN_ORPHAN"]), np.arange(counts["PLAN_UNPAID"])
    day = np.concatenate([10 + own * 7919 % (DAYS - 10), lost % DAYS, open_ones % DAYS])
    pair = (own * 3 // 10) % (TENANTS * len(CURRENCIES))
    others = np.full(len(lost) + len(open_ones), CURRENCIES[0])
    none = [None] * len(open_ones)
    return pl.DataFrame(
        {
            "PaymentPlansId": np.concatenate(
                [own * 3 // 10 + 1, lost + 2 * planned, open_ones + 4 * planned]
            ),
            "PlannedDate": pl.Series((day + _FIRST_DAY) * _DAY).cast(pl.Datetime("us")),
            "PlannedDate_offset": pl.Series([None] * len(day), dtype=pl.Int16),
            "PlannedAmount": _money(
                np.concatenate([1000 + own * 7919 % 1_000_000, lost + 100, open_ones + 100])
            ),
            "PlannedCurrenciesId": np.concatenate(
                [np.array(CURRENCIES)[pair % len(CURRENCIES)], others]
            ),
            "PaymentsId": [*(own + 1).tolist(), *(lost + 2 * rows).tolist(), *none],
            "StatusCodesId": day % 3 + 1,
        }
    )
