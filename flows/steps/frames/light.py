"""Frames that take little room: what no row has is kept once, and not once for each row."""

import polars as pl

from schemas.frame_types import WORD


def light(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with one null in place of each column that has nothing else.

    A column of nulls takes as much room as a column of texts, and of what can be said of a break
    most is not said of any.
    """
    counts = frame.null_count().row(0, named=True) if frame.height else {}
    types = frame.schema  # Made anew each time it is asked for.
    return frame.with_columns(
        pl.lit(None, types[name]).alias(name)
        for name, nulls in counts.items()
        if nulls == frame.height
    )


def without(frame: pl.DataFrame, unwanted: pl.Expr) -> pl.DataFrame:
    """The frame without some rows; the same frame, and no copy of it, where there are none."""
    found = frame.select(unwanted.fill_null(value=False)).to_series()
    return frame.filter(~found) if found.any() else frame


def flags(height: int, rows: pl.Series) -> pl.Series:
    """Of so many rows, whether each is one of those with these numbers."""
    return pl.Series([False]).new_from_index(0, height).scatter(rows, True)


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as files hold it: a text in place of each word (`WORD`)."""
    return frame.cast({WORD: pl.String})


def looked_up(frame: pl.DataFrame, known: pl.DataFrame, suffix: str = "_right") -> pl.DataFrame:
    """The frame with what is known of each `id`; joined only where anything is known of any."""
    if known.height:
        return light(frame.join(known, on="id", how="left", maintain_order="left", suffix=suffix))
    there = frame.columns
    return frame.with_columns(
        pl.lit(None, dtype).alias(name + suffix if name in there else name)
        for name, dtype in known.schema.items()
        if name != "id"
    )
