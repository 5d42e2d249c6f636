"""Amounts that are whole numbers of millionths: what is behind the sixth digit is zeros."""

import polars as pl

from schemas.amounts import MILLIONTHS
from schemas.field import Kind, Table
from schemas.kinds import SCALE

_ALWAYS_PLAIN = 8
"""A decimal of so few characters has at most six behind the point."""


def plain_rows(table: Table, frame: pl.DataFrame) -> pl.Series:
    """Which rows have no decimal of too many digits; of the columns that the frame has."""
    amounts = [
        field.name
        for field in table.delivered
        if field.kind is Kind.DOUBLE
        and field.name in frame.columns
        and frame.select((pl.col(field.name).str.len_bytes() > _ALWAYS_PLAIN).any()).item()
    ]
    if not amounts:
        return pl.Series("plain", [True]).new_from_index(0, frame.height)
    plain = [pl.col(name).is_null() | pl.col(name).str.contains(MILLIONTHS) for name in amounts]
    return frame.select(pl.all_horizontal(plain).alias("plain"))["plain"]


def in_millionths(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """`plain_rows` with every decimal as an integer, and the number of digits it was written with.

    Those are columns of their own, behind the others.
    """
    doubles = [
        field.name
        for field in table.delivered
        if field.kind is Kind.DOUBLE and field.name in frame.columns
    ]
    return frame.with_columns(
        part
        for name in doubles
        for part in (
            # A decimal without a point has none behind it.
            (pl.col(name).str.len_bytes() - pl.col(name).str.find(".", literal=True) - 1)
            .fill_null(0)
            .cast(pl.Int8)
            .alias(name + SCALE),
            pl.col(name).cast(pl.Decimal(18, 6)).to_physical().cast(pl.Int64),
        )
    )
