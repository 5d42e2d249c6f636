"""What must be told apart and what must not, by the reconciliation and `recon compare` alike."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.steps.rules.rules import Offset, Rules
from schemas.tables import AVATAR, CURRENCY_RATE, INVOICE_FILE, PAYMENT
from tests.compare.tables import compared, counts, csv_file, parquet_file
from tests.reconcile.records import DAY, database, extract, matched, statuses

WIDE = pl.Decimal(38, 18)
APART: list[tuple[str, Any, Any, pl.DataType]] = [
    ("64-bit numbers that differ by 1", 2**53, 2**53 + 1, pl.Int64()),
    ("a cent in a million", Decimal("1000000.00"), Decimal("1000000.03"), WIDE),
    ("a cent in 9e15", Decimal("9000000000000000.01"), Decimal("9000000000000000.00"), WIDE),
    ("the last digit", Decimal("0.000000000000000001"), Decimal(0), WIDE),
    ("0.1 + 0.2 and 0.3", 0.1 + 0.2, 0.3, pl.Float64()),
    ("NULL and an empty text", None, "", pl.String()),
    ("a text and the same with a blank", "a", "a ", pl.String()),
    ("a text and the same in capitals", "a", "A", pl.String()),
]


@pytest.mark.parametrize(("what", "one", "other", "dtype"), APART, ids=[row[0] for row in APART])
def test_compare_tells_them_apart(
    what: str, one: Any, other: Any, dtype: pl.DataType, tmp_path: Path
) -> None:
    left = parquet_file(tmp_path / "l.parquet", {"id": [1], "v": [one]}, v=dtype)
    right = parquet_file(tmp_path / "r.parquet", {"id": [1], "v": [other]}, v=dtype)
    assert counts(compared(left, right)) == {"MISMATCH": 1}
    assert counts(compared(left, left)) == {"MATCHED_EXACT": 1}


@pytest.mark.parametrize(("what", "one", "other", "dtype"), APART, ids=[row[0] for row in APART])
def test_compare_tells_them_apart_in_csv(
    what: str, one: Any, other: Any, dtype: pl.DataType, tmp_path: Path
) -> None:
    def cell(value: Any) -> str:
        return "" if value is None else '""' if value == "" else str(value)

    left = csv_file(tmp_path / "l.csv", f"id,v\n1,{cell(one)}\n")
    right = csv_file(tmp_path / "r.csv", f"id,v\n1,{cell(other)}\n")
    assert counts(compared(left, right)) == {"MISMATCH": 1}


RECORDS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("a cent in a million", PAYMENT, {"PaidAmount": Decimal("1000000.00")},
     {"PaidAmount": Decimal("1000000.03")}),
    ("a cent in 9e15", PAYMENT, {"PaidAmount": Decimal("9000000000000000.01")},
     {"PaidAmount": Decimal(9000000000000000)}),
    ("0.1 + 0.2 and 0.3", PAYMENT, {"PaidAmount": Decimal("0.3")},
     {"PaidAmount": Decimal("0.30000000000000004")}),
    ("0.1 + 0.2 and 0.3 as rates", CURRENCY_RATE, {"ExchangeRate": 0.3},
     {"ExchangeRate": 0.1 + 0.2}),
    ("64-bit numbers that differ by 1", PAYMENT, {"DebtsId": 2**53}, {"DebtsId": 2**53 + 1}),
    # What reads as two numbers of opposite signs that no column could subtract.
    ("a sign of a huge rate", CURRENCY_RATE, {"ExchangeRate": 9e19}, {"ExchangeRate": -9e19}),
    ("a sign before digits", INVOICE_FILE, {"InvoiceUrl": f"{9 * 10**19}"},
     {"InvoiceUrl": f"-{9 * 10**19}"}),
    ("a microsecond", PAYMENT, {}, {"PaymentDate": DAY + timedelta(microseconds=1)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "table", "one", "other"), RECORDS, ids=[row[0] for row in RECORDS]
)
def test_matching_tells_them_apart(
    what: str, table: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert statuses(matched(table, extract(table, one), database(table, other))) == ["MISMATCH"]
    assert statuses(matched(table, extract(table, one), database(table, one))) == ["MATCHED_EXACT"]


def test_64_bit_ids_that_differ_by_1_are_two_records(tmp_path: Path) -> None:
    result = matched(PAYMENT, extract(PAYMENT, {"Id": 2**53}), database(PAYMENT, {"Id": 2**53 + 1}))
    assert statuses(result) == ["MISSING_IN_TARGET", "MISSING_IN_EXTRACT"]
    left = csv_file(tmp_path / "l.csv", f"id,v\n{2**53},1\n")
    right = parquet_file(tmp_path / "r.parquet", {"id": [2**53 + 1], "v": [1]})
    assert counts(compared(left, right)) == {"MISSING_IN_TARGET": 1, "MISSING_IN_EXTRACT": 1}


def test_null_and_empty_text_differ_in_a_record() -> None:
    rows, target = extract(AVATAR, {"Name": None}), database(AVATAR, {"Name": ""})
    assert statuses(matched(AVATAR, rows, target)) == ["MISSING_IN_TARGET", "MISSING_IN_EXTRACT"]
    rows = extract(INVOICE_FILE, {"InvoiceUrl": ""})
    assert statuses(matched(INVOICE_FILE, rows, database(INVOICE_FILE, {}))) == ["MISMATCH"]


def test_a_null_key_is_reported(tmp_path: Path) -> None:
    side = csv_file(tmp_path / "l.csv", "id,v\n1,1\n,2\n")
    assert counts(compared(side, side)) == {"MATCHED_EXACT": 1, "UNKNOWN": 2}


def test_a_repeated_key_is_told_and_never_paired_twice(tmp_path: Path) -> None:
    left = csv_file(tmp_path / "l.csv", "id,v\n1,1\n1,2\n2,1\n")
    right = csv_file(tmp_path / "r.csv", "id,v\n1,1\n2,1\n")
    assert counts(compared(left, right)) == {"MATCHED_EXACT": 1, "DUPLICATE": 3}


@pytest.mark.long
def test_the_same_instant_in_another_offset_is_the_same_instant(tmp_path: Path) -> None:
    target = database(PAYMENT, {"PaymentDate_offset": -300})
    rules = Rules(offset=Offset.EQUAL)
    assert statuses(matched(PAYMENT, extract(PAYMENT, {}), target, rules=rules)) == [
        "MATCHED_EXACT"
    ]
    assert statuses(matched(PAYMENT, extract(PAYMENT, {}), target)) == ["MATCHED_TOLERANCE"]
    left = csv_file(tmp_path / "l.csv", "id,v\n1,2026-01-02T03:04:05+02:00\n")
    right = csv_file(tmp_path / "r.csv", "id,v\n1,2026-01-02T01:04:05Z\n")
    assert compared(left, right).agrees
