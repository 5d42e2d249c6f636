"""What the state of a carried break says of it: what every run, and whoever reads one, asks."""

from functools import cache

import polars as pl

from schemas.life import ASIDE, OPEN

BEFORE = "_before"
"""Suffix: as the run before left it."""
AGES = ("age_days", "age_business_days")
"""Columns that say how old a break is."""
RULES, SOURCE = "rules", "source"
"""What sets a break aside: other rules, or less to look at."""


@cache
def is_open() -> pl.Expr:
    """Whether a carried break asks for action."""
    return pl.col("state").is_in(OPEN)


@cache
def is_aside() -> pl.Expr:
    """Whether a carried break was not found because the run looked less far."""
    return pl.col("state").is_in(ASIDE)


def is_unseen(*, accepted: bool = False) -> pl.Expr:
    """Whether a source of a carried break is not there, and nobody has accepted it as it was.

    `accepted`: whether somebody has.
    """
    nobody = pl.col("accepted_by").is_null()
    return (
        is_aside()
        & (pl.col("aside_by") != RULES).fill_null(value=True)
        & (~nobody if accepted else nobody)
    )
