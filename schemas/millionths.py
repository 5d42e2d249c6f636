"""Amounts as whole numbers of millionths: every digit after the sixth decimal is zero."""

import polars as pl

from schemas.amounts import MICRO_DIGITS, MILLIONTHS, MOST_SCALE
from schemas.field import Kind, Table
from schemas.kinds import SCALE

_ALWAYS_PLAIN = 8
"""A decimal with this many characters or fewer has at most six decimal digits."""


def plain_rows(table: Table, frame: pl.DataFrame) -> pl.Series:
    """Mark rows whose doubles all fit in millionths; columns missing from the frame are ignored."""
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
    """Convert every decimal of `plain_rows` to an integer, and add its number of decimal digits.

    The digit counts are columns of their own, after the others.
    """
    doubles = [
        field.name
        for field in table.delivered
        if field.kind is Kind.DOUBLE and field.name in frame.columns
    ]
    return frame.with_columns(
        part
        for name in doubles
        for part in (scale_of(pl.col(name)).alias(name + SCALE), millionths_of(pl.col(name)))
    )


def scale_of(amount: pl.Expr) -> pl.Expr:
    """The number of decimal digits of a text; 0 if it has no point.

    Every text with too many digits to be such an amount gets the same number.
    """
    behind = amount.str.len_bytes() - amount.str.find(".", literal=True) - 1
    return behind.fill_null(0).clip(upper_bound=MOST_SCALE + 1).cast(pl.Int8)


def millionths_of(amount: pl.Expr) -> pl.Expr:
    """The text of an amount in `MILLIONTHS` as an integer."""
    return amount.cast(pl.Decimal(18, MICRO_DIGITS)).to_physical().cast(pl.Int64)


def written_out(millionths: pl.Expr, scale: pl.Expr) -> pl.Expr:
    """The text of a number of millionths with `scale` decimal digits."""
    size, unit = millionths.abs(), 10**MICRO_DIGITS
    part = (size % unit).cast(pl.String).str.zfill(MICRO_DIGITS).str.pad_end(MOST_SCALE, "0")
    return pl.concat_str(
        pl.when(millionths < 0).then(pl.lit("-")).otherwise(pl.lit("")),
        (size // unit).cast(pl.String),
        pl.when(scale > 0).then(pl.lit(".") + part.str.head(scale)).otherwise(pl.lit("")),
    )
