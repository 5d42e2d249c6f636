"""Questions about the state of a carried break, for runs and for readers of their breaks."""

from functools import cache

import polars as pl

from schemas.life import ASIDE, OPEN

BEFORE = "_before"
"""Suffix of columns as the previous run left them."""
AGES = ("age_days", "age_business_days")
"""Columns with the age of a break."""
RULES, SOURCE = "rules", "source"
"""Why a break is set aside: other rules, or missing sources."""


@cache
def is_open() -> pl.Expr:
    """Whether a carried break asks for action."""
    return pl.col("state").is_in(OPEN)


@cache
def is_aside() -> pl.Expr:
    """Whether a carried break was not found because the run looked at less."""
    return pl.col("state").is_in(ASIDE)


def is_unseen(*, accepted: bool = False) -> pl.Expr:
    """Whether a carried break lacks a source and is not accepted or, with `accepted`, is."""
    nobody = pl.col("accepted_by").is_null()
    return (
        is_aside()
        & (pl.col("aside_by") != RULES).fill_null(value=True)
        & (~nobody if accepted else nobody)
    )
