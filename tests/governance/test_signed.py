"""What was signed and is another now: every field, old and new, to the last digit."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.report.reconciled.data import GROUP, write_parquet, write_parts
from flows.steps.frames.beyond import money_text
from flows.steps.frames.parts import PartedSide, held
from flows.steps.frames.sources import DELIVERED, LINEAGE, Sources, complete, record_schema
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.signed import (
    ELSEWHERE,
    PART,
    changed_after_signoff,
    packed_parts,
    packed_schema,
    unpack_records,
)
from schemas.tables import EXTRACTS
from tests.governance.runs import pack_records

PAYMENT = EXTRACTS["payment"]
PAYMENT_PLAN_DETAIL = EXTRACTS["payment_plan_detail"]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def frame(record: str, *rows: dict[str, Any]) -> pl.DataFrame:
    schema = {**record_schema(EXTRACTS[record]), **LINEAGE}
    return pl.DataFrame(list(rows), schema=schema)


def payment(number: int = 2**53, **values: Any) -> dict[str, Any]:
    return {
        "Id": number, "TenantsId": 7, "ActionsId": 1, "DebtsId": 2, "PaymentDate": NOON,
        "PaymentDate_offset": 60, "PaidAmount": Decimal("10.50"), "DiscountAmount": None,
        "CurrenciesId": 1, "CurrencyRatesId": 9, "row": 1, "extract_id": 1, "batch_id": 1,
    } | values  # fmt: skip


def breaks(signed: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    return changed_after_signoff(PAYMENT, signed, now)


CHANGES = [
    # field, signed, now -> as told
    ("PaidAmount", Decimal("10.50"), Decimal("10.51"), ("10.5", "10.51", Decimal("0.01"))),
    (
        "PaidAmount",
        Decimal(9000000000000000),
        Decimal("9000000000000000.01"),
        ("9000000000000000", "9000000000000000.01", Decimal("0.01")),
    ),
    ("PaidAmount", Decimal("0.1"), Decimal("0.100000000000000001"), None),
    ("DiscountAmount", None, Decimal(0), (None, "0", None)),
    ("DebtsId", 2**53, 2**53 + 1, ("9007199254740992", "9007199254740993", None)),
    ("CurrenciesId", 1, 2, ("1", "2", None)),
    ("PaymentDate", NOON, NOON.replace(microsecond=1), None),
    ("PaymentDate_offset", 60, 120, None),
]


@pytest.mark.parametrize(("field", "old", "new", "told"), CHANGES)
def test_a_changed_field_is_one_break(field: str, old: Any, new: Any, told: Any) -> None:
    found = breaks(
        frame("payment", payment(**{field: old}), payment(5)),
        frame("payment", payment(5), payment(**{field: new})),
    )
    line = found.row(0, named=True)
    assert found.height == 1
    assert (line["code"], line["record"], line["side"]) == ("CHANGED_AFTER_SIGNOFF", "payment", "D")
    assert (line["tenant"], line["field"]) == (7, field.removesuffix("_offset"))
    assert str(2**53) in line["key"]
    assert line["expected"] != line["found"]
    if told is not None:
        assert (line["expected"], line["found"], line["delta"]) == told


@pytest.mark.parametrize(
    ("old", "new", "amounts"),
    [
        ({"DiscountAmount": Decimal(5)}, {"DiscountAmount": Decimal(6), "PaidAmount": 20},
         {"PaidAmount": "9.5", "DiscountAmount": "1"}),
        # One that was not there is none of it.
        ({}, {"DiscountAmount": Decimal(-3)}, {"DiscountAmount": "3"}),
        ({"DiscountAmount": Decimal(4)}, {"DiscountAmount": None}, {"DiscountAmount": "4"}),
        # Between two currencies there is no difference.
        ({"DiscountAmount": Decimal(5)},
         {"DiscountAmount": Decimal(6), "PaidAmount": 20, "CurrenciesId": 2},
         {"PaidAmount": None, "DiscountAmount": None, "CurrenciesId": "10.5"}),
        ({}, {"DebtsId": 3}, {"DebtsId": "10.5"}),
    ],
)  # fmt: skip
def test_a_change_comes_to_what_changed_of_its_own_amount(
    old: dict[str, Any], new: dict[str, Any], amounts: dict[str, str | None]
) -> None:
    """The second amount of a record is not told with the money of the first."""
    optional = [replace(one, required=one.name != "DiscountAmount") for one in PAYMENT.fields]
    table = replace(PAYMENT, fields=tuple(optional))
    sides = frame("payment", payment(**old)), frame("payment", payment(**(old | new)))
    found = changed_after_signoff(table, *sides)
    told = found.select("field", money_text(pl.col("amount"))).rows()
    assert dict(told) == amounts


def test_what_is_the_same_is_no_break() -> None:
    """Neither who wrote a row last, nor order, nor records that were never signed."""
    signed = frame("payment", payment(1), payment(2))
    now = frame("payment", payment(3), payment(2, row=9, batch_id=8), payment(1, extract_id=7))
    assert breaks(signed, now).height == 0
    assert breaks(signed.clear(), now).height == 0


@pytest.mark.parametrize("field", ["DiscountAmount", "PaidAmount", "TenantsId", "PaymentDate"])
def test_what_a_record_kind_did_not_have_was_not_signed(field: str) -> None:
    """A field that was added since, and one that no row held and that is of another type now."""
    table = replace(PAYMENT, key=("Id",))
    signed = frame("payment", payment(1), payment(2), payment(3))
    now = frame("payment", payment(1), payment(2, DebtsId=3), payment(9))
    before = signed.drop(field, f"{field}_offset", strict=False)
    retyped = before.with_columns(pl.lit(None, pl.Boolean).alias(field))
    for kept in (before, retyped):
        found = changed_after_signoff(table, kept, now)
        assert found["field"].to_list() == ["DebtsId", ""]
        whole = Sources({}, {"payment": now}, signed={"payment": kept})
        assert cut_off(whole, NOON.date()).kept.signed["payment"].height == 3


def test_a_record_that_is_gone_is_one_break() -> None:
    found = breaks(frame("payment", payment(1), payment(2)), frame("payment", payment(2)))
    (line,) = found.iter_rows(named=True)
    assert (line["field"], line["note"], line["currency"], line["amount"]) == (
        "",
        "the signed record is gone",
        1,
        Decimal("10.50"),
    )
    assert line["batch_id"] is None


def test_a_record_that_has_left_the_scope_is_not_told_as_gone() -> None:
    """Of a feed, what another one delivers is that one's."""
    states = {1: ["superseded"], 2: ["superseded", "inserted"], 3: ["inserted"]}
    rows = [payment(number) | {"state": state} for number in states for state in states[number]]
    delivered = pl.DataFrame(rows, schema={**record_schema(PAYMENT), **DELIVERED})
    signed = frame("payment", *map(payment, states))
    found = changed_after_signoff(PAYMENT, signed, signed.clear(), [held(delivered)])
    gone = "the signed record is gone"
    assert found["note"].to_list() == [ELSEWHERE, gone, gone]


def test_the_same_number_of_another_tenant_is_another_record() -> None:
    found = breaks(frame("payment", payment(1)), frame("payment", payment(1, TenantsId=8)))
    assert found["note"].to_list() == ["the signed record is gone"]


def test_every_record_kind_can_be_held_against_what_was_signed() -> None:
    for name, table in EXTRACTS.items():
        nothing = frame(name)
        assert changed_after_signoff(table, nothing, nothing).height == 0, name


def test_records_are_kept_exactly_and_alike_whatever_their_order(tmp_path: Any) -> None:
    frames = {
        "payment": frame("payment", payment(2), payment(1, DiscountAmount=Decimal("1E-18"))),
        "invoice_file": frame("invoice_file", {"Id": 1, "InvoiceUrl": ""}, {"Id": 2}),
        "currency_rate": frame("currency_rate"),
    }
    packed = pack_records(frames)
    packed.write_parquet(tmp_path / "a.parquet")
    shuffled = {name: one.reverse() for name, one in reversed(frames.items())}
    pack_records(shuffled).write_parquet(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    back = unpack_records(pl.read_parquet(tmp_path / "a.parquet"))
    assert set(back) == set(EXTRACTS)
    for name, one in frames.items():
        assert back[name].schema == one.schema, name
        assert back[name].sort("Id").equals(one.sort("Id")), name
    assert breaks(back["payment"], frames["payment"]).height == 0


@pytest.mark.long
@pytest.mark.parametrize("rows", [0, 3, PART - 1, PART, PART + 5])
def test_records_written_in_parts_are_the_file_of_all_of_them(rows: int, tmp_path: Path) -> None:
    """Of a kind whose first column tells rows apart, and of one where it does not."""
    numbers = pl.DataFrame({"Id": range(rows)}, schema={"Id": pl.Int64}).sample(
        fraction=1.0, shuffle=True, seed=3
    )
    payments = complete(numbers, record_schema(PAYMENT) | LINEAGE)
    details = complete(
        numbers.select(PaymentPlansId=pl.col("Id") // 2),
        record_schema(PAYMENT_PLAN_DETAIL) | LINEAGE,
    )
    frames = {PAYMENT.name: payments, PAYMENT_PLAN_DETAIL.name: details}
    with (tmp_path / "records.parquet").open("w+b") as file:
        schema = packed_schema(frames)
        write_parts(schema, packed_parts(frames, schema), file)
        file.seek(0)
        content = io.BytesIO()
        write_parquet(pack_records(frames), content)
        assert file.read() == content.getvalue() == at_once(pack_records(frames))
    assert pack_records(frames).height == 2 * rows


def at_once(whole: pl.DataFrame) -> bytes:
    """The file that polars itself writes of a frame that is all there."""
    content = io.BytesIO()
    whole.write_parquet(content, compression="zstd", statistics=True, row_group_size=GROUP)
    return content.getvalue()


def test_what_the_columns_are_is_looked_up_once() -> None:
    """A part is read from a file: once for the columns of its kind, and once to be written."""
    numbers = pl.DataFrame({"Id": range(3)}, schema={"Id": pl.Int64})
    frame, read = complete(numbers, record_schema(PAYMENT) | LINEAGE), list[int]()

    def load() -> pl.DataFrame:
        read.append(frame.height)
        return frame

    assert pack_records(PartedSide({PAYMENT.name: [load]})).height == frame.height
    assert len(read) == 2
