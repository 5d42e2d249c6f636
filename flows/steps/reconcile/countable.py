"""Which of the gathered rows count: once, for this scope, and with amounts that can be added up."""

from collections.abc import Collection, Iterable
from decimal import Decimal

import polars as pl

from flows.steps.frames.beyond import beyond_of, beyond_texts
from flows.steps.frames.sources import are_among
from flows.steps.match.comparison import canonical_texts
from flows.steps.match.pairing import pair, written_frame
from schemas.amounts import BEYOND
from schemas.derived.left_out import OWN, SUPERSEDED
from schemas.derived.views import AGAIN, APPLIED, LISTED
from schemas.field import Table
from schemas.frame_types import WORD

MOST_ADDED = 2e19
"""Sums below this fit an exact decimal column, and so do results of a few of them."""
_PLACE = ["batch_id", "extract_id", "row"]
_LEFT_OUT = [state for state in OWN if state != LISTED]
"""End states of rows that are not compared; rows of a listing have their own comparison."""


def counted_once(rows: pl.DataFrame, again: Collection[tuple[int, int, int]]) -> pl.DataFrame:
    """Mark the rows in error whose record is counted with another attempt (`again`)."""
    if not again:
        return rows
    places = pl.DataFrame(list(again), schema=_PLACE, orient="row")
    return _marked(rows, places.cast({name: rows.schema[name] for name in _PLACE}), AGAIN)


def not_overtaken(rows: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Mark the extract rows at these places as superseded.

    A batch that was received before theirs was applied after it, and overwrote their record.
    """
    return rows if places.is_empty() else _marked(rows, places, SUPERSEDED)


def _marked(rows: pl.DataFrame, places: pl.DataFrame, word: str) -> pl.DataFrame:
    """Give the rows at these places this state."""
    here = are_among(rows, places.select(_PLACE))
    return rows.with_columns(
        pl.when(here).then(pl.lit(word, WORD)).otherwise("state").alias("state")
    )


def _compared(rows: pl.DataFrame) -> pl.Expr:
    """Which rows are compared; the check has already reported the rejected ones, to the digit.

    A rejected row that was corrected since stays in its extract for good.
    """
    if "state" not in rows.columns:
        return pl.lit(value=True)
    return ~pl.col("state").is_in(_LEFT_OUT).fill_null(value=False)


def unfit(table: Table, *sides: pl.DataFrame) -> int:
    """How many rows to compare have an amount that no exact column holds, but a text beside it."""
    return sum(
        frame.filter(pl.any_horizontal(pl.col(texts).is_not_null()), _compared(frame)).height
        for frame in sides
        if (texts := [name + BEYOND for name in beyond_of(frame, table.amounts)])
    )


def no_numbers(table: Table, *sides: pl.DataFrame) -> int:
    """How many amounts to compare cannot be added up, because they are NaN or infinite."""
    return sum(
        frame.filter(_compared(frame), pl.col(name + BEYOND).str.contains("(?i)nan|inf")).height
        for frame in sides
        for name in beyond_of(frame, table.amounts)
    )


def add_up(most: float) -> bool:
    """Whether amounts whose absolute sum is at most `most` can be added up in any groups."""
    return most < MOST_ADDED


def most_added(rows: pl.DataFrame, name: str) -> float:
    """An upper bound of the absolute sum of a field's amounts."""
    amounts = rows[name]
    ends = [end for end in (amounts.min(), amounts.max()) if isinstance(end, Decimal)]
    most = float(max(map(abs, ends), default=0)) * rows.height
    return most if add_up(most) else float(amounts.cast(pl.Float64).abs().sum())


def addable(table: Table, *sides: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
    """Sides whose amounts can be added up in any groups, and how many compared ones were left out.

    An amount that is left out is null with its text beside it (`BEYOND`), like an amount that no
    exact decimal column holds.
    """
    frames, left_out = list(sides), 0
    for name in table.amounts:
        if all(add_up(most_added(frame, name)) for frame in frames):
            continue
        sizes = [frame[name].cast(pl.Float64).abs() for frame in frames]
        most = MOST_ADDED / max(frame.height for frame in frames)
        for number, (frame, size) in enumerate(zip(frames, sizes, strict=True)):
            over = size >= most
            if not over.any():
                continue
            left_out += frame.filter(over, _compared(frame)).height
            large = pl.when(over).then(canonical_texts(frame[name]))
            texts = large.otherwise(beyond_texts(frame, name))
            kept = pl.when(~over).then(name).alias(name)
            frames[number] = frame.with_columns(texts.alias(name + BEYOND), kept)
    return frames, left_out


def disputed(
    table: Table, expected: pl.DataFrame, found: pl.DataFrame, batches: Collection[int]
) -> pl.DataFrame:
    """Extract rows that are marked as applied although the database does not confirm it.

    Their record is not there, or names a later batch outside the scope as its writer: `writer`.
    """
    there = expected.filter(applied())
    others = found.filter(~_of(found, batches)).sort("batch_id", descending=True, nulls_last=True)
    writer = others["batch_id"].gather(_partner(table, there, others)).alias("writer")
    later = (writer > there["batch_id"]).fill_null(value=False)
    gone = ~among(table, there, found)
    return there.with_columns(writer.set(~later, None)).filter(later | gone)


def spoken_of(
    table: Table,
    expected: pl.DataFrame,
    records: Iterable[pl.DataFrame],
    batches: Collection[int],
) -> pl.DataFrame:
    """The records of the database that `of_batches` needs, filtered as they are read.

    These are records that the batches wrote, and records of the batches' rows (`expected`).
    """
    parts = [some.filter(_of(some, batches) | among(table, some, expected)) for some in records]
    return pl.concat(parts, how="diagonal")


def of_batches(
    table: Table,
    expected: pl.DataFrame,
    found: pl.DataFrame,
    batches: Collection[int],
    wrote: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both sides of a partial scope; the database side has only the records of the scope.

    A row that a later batch outside the scope has overwritten is not this scope's any more. `wrote`
    are the rows of such batches that wrote records; the writer that a record names is not proof,
    because whoever changed the record last could have set it.
    """
    newest = wrote.sort("batch_id", descending=True, nulls_last=True)
    writer = newest["batch_id"].gather(_partner(table, expected, newest))
    later = (writer > expected["batch_id"]).fill_null(value=False)
    superseded = pl.when(later & applied()).then(pl.lit(SUPERSEDED, WORD))
    expected = expected.with_columns(superseded.otherwise("state").alias("state"))
    # A record for which no row of the scope counts any more belongs to the batch that wrote it.
    theirs = ~_of(found, batches) & ~among(table, found, expected.filter(applied()))
    return expected, found.filter(~theirs)


def _of(rows: pl.DataFrame, batches: Collection[int]) -> pl.Series:
    return rows["batch_id"].is_in(list(batches)).fill_null(value=False)


def applied() -> pl.Expr:
    """Whether the record of an extract row is in the database as delivered."""
    return pl.col("state").is_in(APPLIED).fill_null(value=False)


def among(table: Table, rows: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """Which rows belong to the same record of the database as any of `others`.

    A time with another offset makes another record, and so does another text of an amount that no
    exact column holds. A missing key equals nothing; a record of a kind without keys is identified
    by its whole content.
    """
    return _partner(table, rows, others).is_not_null()


def _partner(table: Table, rows: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """The row number in `others` of the first row with the same record, for each row."""
    sides = [
        written_frame(table, side)
        .select(pl.exclude("place"))
        .with_columns(
            beyond_texts(side, name).alias(name + BEYOND)
            for name in table.identity
            if table.by_name[name].amount
        )
        for side in (rows, others)
    ]
    return pair(*sides, nulls_equal=not table.key).partner
