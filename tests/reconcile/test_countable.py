"""What of both sides a scope of some batches speaks of."""

import gc
import weakref
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.frames.sources import Sources
from flows.steps.reconcile.countable import disputed, not_overtaken, of_batches, spoken_of
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Rules
from schemas.amounts import BEYOND
from schemas.field import Table
from schemas.tables import PAYMENT, PAYMENT_PLAN_DETAIL
from tests.reconcile.records import AS_OF, database, extract

OFFSETS = {2: None, 3: 0, 4: 60}
"""By batch, the offset with which it told the day of one and the same detail."""


def detail(batch: int, **fields: Any) -> dict[str, Any]:
    own = {"PlannedDate_offset": OFFSETS[batch], "PaymentsId": None}
    return {"batch_id": batch, "extract_id": batch, "row": 1, **own, **fields}


def states(rows: pl.DataFrame) -> list[tuple[int, str]]:
    return [(batch, str(state)) for batch, state in rows.select("batch_id", "state").iter_rows()]


def by_records(
    table: Table, delivered: pl.DataFrame, there: pl.DataFrame, batch: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What a scope of one batch speaks of, where every record was written by whom it names."""
    return of_batches(table, delivered, there, [batch], there.filter(pl.col("batch_id") != batch))


@pytest.mark.parametrize("batch", OFFSETS)
def test_a_day_that_is_told_with_another_offset_is_of_another_record(batch: int) -> None:
    delivered = extract(PAYMENT_PLAN_DETAIL, detail(batch))
    there = database(PAYMENT_PLAN_DETAIL, *map(detail, OFFSETS))
    expected, found = by_records(PAYMENT_PLAN_DETAIL, delivered, there, batch)
    assert expected.equals(delivered)
    assert found.rows() == there.filter(pl.col("batch_id") == batch).rows()


def test_no_row_is_delivered_more_often_than_it_was() -> None:
    # Of amounts that no column holds the texts tell the records apart.
    rows = [detail(2, PlannedAmount=None), detail(3, PlannedAmount=None, PlannedDate_offset=None)]
    texts = pl.Series("PlannedAmount" + BEYOND, ["1e30", "2e30"])
    there = database(PAYMENT_PLAN_DETAIL, *rows).with_columns(texts)
    delivered = extract(PAYMENT_PLAN_DETAIL, rows[0]).with_columns(texts.head(1))
    expected, found = by_records(PAYMENT_PLAN_DETAIL, delivered, there, 2)
    assert states(expected) == [(2, "inserted")]
    assert found["batch_id"].to_list() == [2]


@pytest.mark.parametrize(
    ("batch", "told", "left"),
    [
        (1, [(1, "superseded"), (1, "inserted")], [2]),
        (2, [(2, "inserted")], [1]),
        # A row that found its record as it is takes part in what was written before.
        (3, [(3, "unchanged")], [1]),
    ],
)
def test_a_record_is_of_the_scope_until_another_batch_writes_over_it(
    batch: int, told: list[tuple[int, str]], left: list[int]
) -> None:
    rows = [
        {"Id": 1, "batch_id": 1},
        {"Id": 2, "batch_id": 1},
        {"Id": 1, "batch_id": 2, "PaidAmount": Decimal(20)},
        {"Id": 1, "batch_id": 3, "PaidAmount": Decimal(20), "state": "unchanged"},
    ]
    delivered = extract(PAYMENT, *(row for row in rows if row["batch_id"] == batch))
    there = database(PAYMENT, rows[2], rows[1])
    expected, found = by_records(PAYMENT, delivered, there, batch)
    assert states(expected) == told
    assert found["Id"].to_list() == left


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_records_that_a_scope_does_not_speak_of_are_left_as_they_are_read(batch: int) -> None:
    """What is said of the scope is the same, and one part after the other is let go."""
    rows = [{"Id": one % 7, "batch_id": one % 3 + 1, "row": one} for one in range(20)]
    beyond = pl.Series("PaidAmount" + BEYOND, ["1e30"] * 4)
    delivered = extract(PAYMENT, {"Id": 3, "batch_id": batch}, {"Id": None, "batch_id": batch})
    held: list[weakref.ref[pl.DataFrame]] = []

    def part(at: int) -> pl.DataFrame:
        made = database(PAYMENT, *rows[at : at + 4])
        return made.with_columns(beyond) if at == 8 else made

    def parts() -> Iterator[pl.DataFrame]:
        for at in range(0, 20, 4):
            some = part(at)
            held.append(weakref.ref(some))
            yield some
            del some
            gc.collect()
            assert sum(one() is not None for one in held) <= 1

    every = pl.concat([part(at) for at in range(0, 20, 4)], how="diagonal")
    few = spoken_of(PAYMENT, delivered, parts(), [batch])
    assert few.height < every.height

    def said(there: pl.DataFrame) -> list[pl.DataFrame]:
        claims = disputed(PAYMENT, delivered, there, [batch])
        return [claims, *of_batches(PAYMENT, delivered, there, [batch], claims.drop("writer"))]

    for left, right in zip(said(few), said(every), strict=True):
        assert left.equals(right)


def test_what_was_written_over_has_written_over_nothing() -> None:
    rows: list[dict[str, Any]] = [
        {"Id": 1, "batch_id": batch, "extract_id": batch, "row": 1} for batch in (1, 2)
    ]
    there = database(PAYMENT, rows[1])
    over = there.select("batch_id", "extract_id", "row")
    delivered = [extract(PAYMENT, row) for row in rows]
    assert [states(not_overtaken(one, over)) for one in delivered] == [
        [(1, "inserted")],
        [(2, "superseded")],
    ]
    # Who put the record of batch 2 back did not make it later than that of batch 1.
    claims = disputed(PAYMENT, delivered[0], there, [1])
    assert claims.select("row", "writer").rows() == [(1, 2)]
    for wrote, state, left in ((there, "superseded", 0), (there.clear(), "inserted", 1)):
        expected, found = of_batches(PAYMENT, delivered[0], there, [1], wrote)
        assert (states(expected), found.height) == ([(1, state)], left)


def test_what_a_record_does_not_say_of_its_rows_is_disputed() -> None:
    """It is gone, or is said to be of a later batch."""
    delivered = extract(PAYMENT, *({"Id": one, "batch_id": 2, "row": one} for one in range(1, 6)))
    writers: dict[int, int | None] = {1: 1, 2: 2, 3: 3, 4: None}
    there = database(PAYMENT, *({"Id": one, "batch_id": of} for one, of in writers.items()))
    claims = disputed(PAYMENT, delivered, there, [2])
    assert claims.select("Id", "writer").rows() == [(3, 3), (5, None)]


@pytest.mark.long(but=("4-T00:00:00+01:00",))
@pytest.mark.parametrize(
    ("batch", "offset"), [(2, ""), (3, "T00:00:00+00:00"), (4, "T00:00:00+01:00")]
)
def test_what_is_said_of_one_of_several_that_are_nearly_alike_is_its_own(
    batch: int, offset: str
) -> None:
    def of(table: Table, *batches: int) -> dict[str, pl.DataFrame]:
        return {table.name: database(table, *map(detail, batches))}

    table = PAYMENT_PLAN_DETAIL
    delivered = {table.name: extract(table, detail(batch))}
    others = [one for one in OFFSETS if one != batch]
    sources = Sources(delivered, of(table, batch), around=of(table, *others))
    done = reconcile_sources(sources, Rules(), AS_OF, service=False)
    told = [(code, key) for code, key in done.breaks.select("code", "key").iter_rows()]
    assert told == [("PLAN_UNPAID", f"1/2026-01-02{offset}/10/978//1")]
