"""Pairs of records: by their keys, by hashes or by a join, and of one moment by how it is told."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from flows.steps.match.pairing import pair, repeated
from schemas.field import Field, Table
from schemas.kinds import Kind
from schemas.tables import PAYMENT_PLAN_DETAIL
from tests.reconcile.records import database, extract, matched, statuses, told

SCHEMA: dict[str, pl.DataType] = {
    "day": pl.Datetime("us"),
    "amount": pl.Decimal(38, 18),
    "text": pl.String(),
}


def records(chance: random.Random, rows: int) -> pl.DataFrame:
    drawn = [
        (
            chance.choice([None, datetime(2026, 1, 1), datetime(2026, 1, 2)]),  # noqa: DTZ001
            chance.choice([None, Decimal("0.1"), Decimal(2**60)]),
            chance.choice([None, "", "a", "a text of more than twelve bytes"]),
        )
        for _ in range(rows)
    ]
    return pl.DataFrame(drawn, schema=SCHEMA, orient="row")


def expected(left: pl.DataFrame, right: pl.DataFrame) -> list[int | None]:
    first: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(right.iter_rows()):
        first.setdefault(row, number)
    return [first.get(row) for row in left.iter_rows()]


@pytest.mark.parametrize("distinct", [True, False], ids=["each once", "some twice"])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_equal_record_is_the_partner(seed: int, distinct: bool) -> None:
    chance = random.Random(seed)
    left, right = records(chance, 40), records(chance, 20)
    if distinct:
        right = right.unique(maintain_order=True)
    found = pair(left, right)
    assert found.partner.to_list() == expected(left, right), f"seed {seed}"
    partners = {*found.partner.drop_nulls()}
    assert found.unmatched.to_list() == [n for n in range(right.height) if n not in partners]
    again = repeated(right)
    several = right.is_duplicated()
    assert (again is None and not several.any()) or (again is not None and again.equals(several))


REFUND = Table(
    "refund",
    "Refund",
    (
        Field("Id", Kind.INTEGER64, required=True),
        Field("At", Kind.DATETIME_OFFSET, required=True),
        Field("Amount", Kind.DOUBLE, required=True, amount=True),
        Field("CurrenciesId", Kind.INTEGER),
    ),
    key=("Id", "At"),
    currency="CurrenciesId",
)
WALL = replace(REFUND, fields=(REFUND.fields[0], Field("At", Kind.DATETIME, required=True),
                               *REFUND.fields[2:]))  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 2], ids=["delivered at once", "one after the other"])
@pytest.mark.parametrize("table", [PAYMENT_PLAN_DETAIL, REFUND, WALL])
def test_one_moment_with_two_offsets_is_two_records_as_in_the_database(
    table: Table, batch: int
) -> None:
    zone, rows = UTC if table is REFUND else None, list[dict[str, object]]()
    for wall, offset, amount in ((1, 60, 5), (0, 0, 7)):
        moment = datetime(2026, 1, 2, 0 if zone else wall, tzinfo=zone)
        if table is PAYMENT_PLAN_DETAIL:
            rows.append({"PlannedDate": moment, "PlannedDate_offset": offset})
        else:
            rows.append({"Id": 1, "At": moment, "At_offset": offset, "Amount": Decimal(amount)})
    rows[1] |= {"batch_id": batch, "extract_id": batch}
    result = matched(table, extract(table, *rows), database(table, *rows[::-1]))
    assert (statuses(result), told(result)) == (["MATCHED_EXACT"] * 2, [])
    # One that the other side does not have is not there; of one each they are one record.
    assert statuses(matched(table, extract(table, rows[1]), database(table, *rows))) == [
        "MATCHED_EXACT",
        "MISSING_IN_EXTRACT",
    ]
    assert sorted(statuses(matched(table, extract(table, *rows), database(table, rows[1])))) == [
        "MATCHED_EXACT",
        "MISSING_IN_TARGET",
    ]
    other = matched(table, extract(table, rows[0]), database(table, rows[1]))
    assert len(statuses(other)) == 1


@pytest.mark.long
def test_a_server_lists_two_offsets_of_one_moment_by_its_own() -> None:
    table = PAYMENT_PLAN_DETAIL
    moment = datetime(2026, 1, 2)  # noqa: DTZ001
    told_as = {"PlannedDate": moment, "PlannedDate_offset": 0}
    rows = [{"PlannedDate": moment.replace(hour=1), "PlannedDate_offset": 60}, told_as]

    def listing(number: int) -> list[str]:
        listed = extract(table, *[told_as] * number)
        return statuses(
            matched(table, extract(table, *rows), database(table, *rows), listed=listed)
        )

    both = ["MATCHED_EXACT"] * 2
    assert sorted(listing(1)) == ["MATCHED_EXACT", "MISSING_IN_TARGET"]
    assert (listing(2), listing(3)) == (both, [*both, "DUPLICATE"])
