"""What of the rows that were gathered counts: once, for this scope, and in amounts that add up."""

from collections.abc import Collection, Sequence
from decimal import Decimal

import polars as pl

from flows.steps.frames.beyond import beside, beyond_of
from flows.steps.match.comparison import text
from schemas.amounts import BEYOND
from schemas.derived.views import AGAIN, APPLIED
from schemas.field import Table
from schemas.frame_types import WORD

MOST_ADDED = 2e19
"""Sums below it fit an exact decimal column, and so does what is made of several of them."""


def counted_once(rows: pl.DataFrame, again: Collection[tuple[int, int, int]]) -> pl.DataFrame:
    """Rows of which those in error that count with another attempt say so."""
    if not again:
        return rows
    places = pl.DataFrame(list(again), schema=["batch_id", "extract_id", "row"], orient="row")
    keys = ["batch_id", "extract_id", "row"]
    places = places.cast({name: rows.schema[name] for name in keys}).with_columns(again=True)
    marked = rows.join(places, on=keys, how="left", maintain_order="left")
    state = pl.when("again").then(pl.lit(AGAIN, WORD)).otherwise("state").alias("state")
    return marked.with_columns(state).drop("again")


def unfit(table: Table, *sides: pl.DataFrame) -> int:
    """How many rows have an amount that no exact column holds, whose text is beside it."""
    return sum(
        int(frame.select(pl.any_horizontal(texts).sum()).item())
        for frame in sides
        if (
            texts := [
                pl.col(name + BEYOND).is_not_null() for name in beyond_of(frame, table.amounts)
            ]
        )
    )


def no_numbers(table: Table, *sides: pl.DataFrame) -> int:
    """How many amounts cannot be added at all: somebody wrote a NaN or an infinity."""
    return sum(
        int(frame[name + BEYOND].str.contains("(?i)nan|inf").sum() or 0)
        for frame in sides
        for name in beyond_of(frame, table.amounts)
    )


def add_up(most: float) -> bool:
    """Whether amounts that come to no more than this can be added up, in any groups of them."""
    return most < MOST_ADDED


def most_added(rows: pl.DataFrame, name: str) -> float:
    """What the amounts of a field come to at most, whatever their signs."""
    most = float(_most(rows[name])) * rows.height
    return most if add_up(most) else float(rows[name].cast(pl.Float64).abs().sum())


def addable(table: Table, *sides: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
    """Sides whose amounts can be added up in any groups, and how many had to be left out for that.

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
            left_out += int((size >= most).sum())
            over = size >= most
            if not over.any():
                continue
            told = pl.when(over).then(text(frame[name])).otherwise(beside(frame, name))
            kept = pl.when(~over).then(name).alias(name)
            frames[number] = frame.with_columns(told.alias(name + BEYOND), kept)
    return frames, left_out


def _most(amounts: pl.Series) -> Decimal:
    """The largest of some amounts, without its sign."""
    ends = [end for end in (amounts.min(), amounts.max()) if isinstance(end, Decimal)]
    return max(map(abs, ends), default=Decimal(0))


def of_batches(
    table: Table, expected: pl.DataFrame, found: pl.DataFrame, batches: Sequence[int]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both sides of a scope that is not everything: of the database, what the scope speaks of.

    A row that a later batch outside of the scope has overwritten is not this scope's any more.
    """
    key = list(table.identity)
    # A key that is not there is equal to nothing; without keys a record is its whole content.
    same = not table.key
    mine = pl.col("batch_id").is_in(list(batches))
    known = found.join(expected.select(key).unique(), on=key, how="semi", nulls_equal=same)
    written = found.join(known.select(key), on=key, how="anti", nulls_equal=same).filter(mine)
    later = known.filter(~mine).select(*key, pl.col("batch_id").alias("later"))
    told = expected.join(later, on=key, how="left", nulls_equal=same, maintain_order="left")
    overwritten = (pl.col("later") > pl.col("batch_id")) & pl.col("state").is_in(APPLIED)
    expected = told.with_columns(
        pl.when(overwritten).then(pl.lit("superseded", WORD)).otherwise("state").alias("state")
    ).drop("later")
    gone = later.join(
        expected.filter(pl.col("state").is_in(APPLIED)).select(key),
        on=key,
        how="anti",
        nulls_equal=same,
    )
    found = pl.concat([known, written])
    return expected, found.join(gone.select(key), on=key, how="anti", nulls_equal=same)
