"""Frames that take little memory: a column of nulls is stored as one null, not one per row."""

import polars as pl

from schemas.frame_types import WORD


def light(frame: pl.DataFrame) -> pl.DataFrame:
    """Replace each column that has only nulls by a single null.

    A column of nulls takes as much room as a column of texts, and most columns of breaks are
    often null in every break.
    """
    counts = frame.null_count().row(0, named=True) if frame.height else {}
    types = frame.schema  # Built again on every access.
    return frame.with_columns(
        pl.lit(None, types[name]).alias(name)
        for name, nulls in counts.items()
        if nulls == frame.height
    )


def without(frame: pl.DataFrame, unwanted: pl.Expr) -> pl.DataFrame:
    """The frame without the unwanted rows; the same frame, not a copy, if there are none."""
    found = frame.select(unwanted.fill_null(value=False)).to_series()
    return frame.filter(~found) if found.any() else frame


def flags(height: int, rows: pl.Series) -> pl.Series:
    """A flag for each of `height` rows: whether its number is in `rows`."""
    return pl.Series([False]).new_from_index(0, height).scatter(rows, True)


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as files hold it, with strings in place of categorical words (`WORD`)."""
    return frame.cast({WORD: pl.String})


def looked_up(frame: pl.DataFrame, known: pl.DataFrame, suffix: str = "_right") -> pl.DataFrame:
    """The frame with the known columns of each `id`; nothing is joined if `known` is empty."""
    if known.height:
        return light(frame.join(known, on="id", how="left", maintain_order="left", suffix=suffix))
    there = frame.columns
    return frame.with_columns(
        pl.lit(None, dtype).alias(name + suffix if name in there else name)
        for name, dtype in known.schema.items()
        if name != "id"
    )
