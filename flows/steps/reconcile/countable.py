"""What of the rows that were gathered counts: once, for this scope, and in amounts that add up."""

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
"""Sums below it fit an exact decimal column, and so does what is made of several of them."""
_PLACE = ["batch_id", "extract_id", "row"]
_LEFT_OUT = [state for state in OWN if state != LISTED]
"""End states of rows that are compared with nothing; a listing has its own comparison."""


def counted_once(rows: pl.DataFrame, again: Collection[tuple[int, int, int]]) -> pl.DataFrame:
    """Rows of which those in error that count with another attempt say so."""
    if not again:
        return rows
    places = pl.DataFrame(list(again), schema=_PLACE, orient="row")
    return _marked(rows, places.cast({name: rows.schema[name] for name in _PLACE}), AGAIN)


def not_overtaken(rows: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Extract rows of which those at some places are superseded.

    A batch that was received before theirs was applied after it, and wrote their record.
    """
    return rows if places.is_empty() else _marked(rows, places, SUPERSEDED)


def _marked(rows: pl.DataFrame, places: pl.DataFrame, word: str) -> pl.DataFrame:
    """The rows, of which those at some places have this state."""
    here = are_among(rows, places.select(_PLACE))
    return rows.with_columns(
        pl.when(here).then(pl.lit(word, WORD)).otherwise("state").alias("state")
    )


def _compared(rows: pl.DataFrame) -> pl.Expr:
    """Which rows are held against others; of what the check rejected it has said so, to the digit.

    A rejected row that was corrected since stays among those of its extract for good.
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
    """How many amounts to compare cannot be added at all: somebody wrote a NaN or an infinity."""
    return sum(
        frame.filter(_compared(frame), pl.col(name + BEYOND).str.contains("(?i)nan|inf")).height
        for frame in sides
        for name in beyond_of(frame, table.amounts)
    )


def add_up(most: float) -> bool:
    """Whether amounts that come to no more than this can be added up, in any groups of them."""
    return most < MOST_ADDED


def most_added(rows: pl.DataFrame, name: str) -> float:
    """What the amounts of a field come to at most, whatever their signs."""
    amounts = rows[name]
    ends = [end for end in (amounts.min(), amounts.max()) if isinstance(end, Decimal)]
    most = float(max(map(abs, ends), default=0)) * rows.height
    return most if add_up(most) else float(amounts.cast(pl.Float64).abs().sum())


def addable(table: Table, *sides: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
    """Sides whose amounts can be added up in any groups, and how many to compare were left out.

    What is left out is null on every side, and its text is beside it (`BEYOND`), as of an amount
    that no exact decimal column holds.
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
    """Extract rows that are said to be in the database, and whose record does not say so.

    It is not there, or it names as its writer a later batch outside of the scope: the column
    `writer`.
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
    """Of the database's records, as they are read, all that `of_batches` looks at.

    They are those that some batches wrote, and those that their rows (`expected`) are of.
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
    """Both sides of a scope that is not everything: of the database, what the scope speaks of.

    A row that a later batch outside of the scope has overwritten is not this scope's any more.
    `wrote` are the rows of such batches that wrote records: whom a record names as its writer is
    the word of whoever changed it last.
    """
    newest = wrote.sort("batch_id", descending=True, nulls_last=True)
    writer = newest["batch_id"].gather(_partner(table, expected, newest))
    later = (writer > expected["batch_id"]).fill_null(value=False)
    superseded = pl.when(later & applied()).then(pl.lit(SUPERSEDED, WORD))
    expected = expected.with_columns(superseded.otherwise("state").alias("state"))
    # What no row of the scope counts for any more is the record of whoever wrote it.
    theirs = ~_of(found, batches) & ~among(table, found, expected.filter(applied()))
    return expected, found.filter(~theirs)


def _of(rows: pl.DataFrame, batches: Collection[int]) -> pl.Series:
    return rows["batch_id"].is_in(list(batches)).fill_null(value=False)


def applied() -> pl.Expr:
    """Whether the record of an extract row is in the database as it was delivered."""
    return pl.col("state").is_in(APPLIED).fill_null(value=False)


def among(table: Table, rows: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """Which rows are of the same record of the database as one of some others.

    A time that is told with another offset is another record, and so is an amount with another text
    where no exact column holds it. A key that is not there is equal to nothing; without keys a
    record is its whole content.
    """
    return _partner(table, rows, others).is_not_null()


def _partner(table: Table, rows: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """For each row the number of the first of some others that is of its record."""
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
