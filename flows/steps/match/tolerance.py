"""Tolerance: which differences the rules wave through, and under which of their lines."""

import polars as pl

from flows.steps.rules.rules import Offset, Rules, Tolerance
from schemas.frame_types import AMOUNT

_DAY_SECONDS = 86_400


def judged(record: str, differences: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """The differences with `tolerance`: the name of the rule that waves one through, else null.

    `differences` has, beside its own columns, the row's `currency` and `tenant`. Of several rules
    the one that says most about the row decides, even where a wider one would let it pass.
    """
    name = pl.lit(None, pl.String)
    for tolerance in sorted(rules.tolerances, key=_breadth, reverse=True):
        if tolerance.record == record:
            # The narrowest rule is wrapped last, so that it is asked first.
            name = (
                pl.when(_about(tolerance))
                .then(pl.when(_within(tolerance)).then(pl.lit(tolerance.name)))
                .otherwise(name)
            )
    if rules.offset is not Offset.DIFFERS:
        told = pl.concat_str(pl.lit(f"{record}."), pl.col("field"), pl.lit(" offset"))
        name = pl.when(pl.col("code") == "OFFSET").then(told).otherwise(name)
    return differences.with_columns(name.alias("tolerance"))


def _breadth(tolerance: Tolerance) -> int:
    return (tolerance.currency is None) + 2 * (tolerance.tenant is None)


def _about(tolerance: Tolerance) -> pl.Expr:
    about = pl.col("field") == tolerance.field
    if tolerance.currency is not None:
        about &= pl.col("currency").eq_missing(tolerance.currency)
    if tolerance.tenant is not None:
        about &= pl.col("tenant").eq_missing(tolerance.tenant)
    return about


def _within(tolerance: Tolerance) -> pl.Expr:
    if tolerance.days:
        most = pl.lit(tolerance.days * _DAY_SECONDS, AMOUNT)
        return (pl.col("code") == "INSTANT") & (pl.col("seconds").abs() <= most)
    delta, size = pl.col("delta"), pl.col("base").abs()
    above = pl.max_horizontal(
        pl.lit(tolerance.above, AMOUNT), _share(size, tolerance.above_relative)
    )
    below = pl.max_horizontal(
        pl.lit(tolerance.below, AMOUNT), _share(size, tolerance.below_relative)
    )
    inside = pl.when(delta >= 0).then(delta <= above).otherwise(-delta <= below)
    return inside.fill_null(value=False)


def _share(size: pl.Expr, share: object) -> pl.Expr:
    return (size * pl.lit(share, AMOUNT)).cast(AMOUNT)
