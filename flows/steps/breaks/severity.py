"""Severity: how much a break matters, from its money and its age."""

from datetime import date
from decimal import Decimal

import polars as pl

from flows.steps.breaks.ageing import begin
from flows.steps.breaks.money import has_amount, has_unreadable, is_unreadable
from flows.steps.frames.beyond import reaches
from flows.steps.rules.rules import Rules
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Severity
from schemas.frame_types import AMOUNT

ALWAYS_LOW = ("OFFSET",)
"""Codes that never involve money."""
_EACH = r"(?:, |^)[^ ]+ ([^ ,]+)"
"""Each entry of `amounts`: a name and a number."""


def severities(breaks: pl.DataFrame, rules: Rules, as_of: date) -> pl.Series:
    """The Severity of each carried break.

    Its money is its amount, difference or gross, or a larger amount of the same record; its age is
    the calendar days shown in reports. The severer of the two decides.
    """
    asked = rules.severities
    age = (pl.lit(as_of) - begin()).dt.total_days()
    high, medium = (
        is_about(amount) | (age >= days).fill_null(value=False)
        for amount, days in (
            (asked.high_amount, asked.high_age_days),
            (asked.medium_amount, asked.medium_age_days),
        )
    )
    always = {code: Severity.HIGH.value for code, of in BREAKS.items() if of.of_class.grave}
    fixed = pl.col("code").replace_strict(
        always | dict.fromkeys(ALWAYS_LOW, Severity.LOW.value), default=None, return_dtype=pl.String
    )
    by_limits = (
        pl.when(high)
        .then(pl.lit(Severity.HIGH.value))
        .when(medium)
        .then(pl.lit(Severity.MEDIUM.value))
        .otherwise(pl.lit(Severity.LOW.value))
    )
    return breaks.select(pl.coalesce(fixed, by_limits).alias("severity")).to_series()


def is_about(limit: Decimal) -> pl.Expr:
    """Whether an amount of a break, or of the record that it is about, reaches a limit.

    Further amounts follow the break's own in `amounts`, as in `break_money.LARGEST`; the note tells
    of amounts that are not numbers, as in `break_money.NO_AMOUNT`.
    """
    own = pl.when(has_amount()).then(1).otherwise(0)
    of_record = ~has_amount() | (pl.col("field").fill_null("") == "")
    others = pl.col("amounts").str.extract_all(_EACH).list.slice(own)
    number = pl.element().str.extract(_EACH, 1).cast(AMOUNT, strict=False)
    reached = others.list.eval(number.abs().ge(limit).fill_null(value=True)).list.any()
    largest = (of_record & reached) | has_unreadable()
    return is_at_least(limit) | largest.fill_null(value=False)


def is_at_least(limit: Decimal) -> pl.Expr:
    """Whether the absolute amount of a break reaches a limit in its currency.

    An amount that was not delivered as a number reaches any limit, so two people have to accept it.
    """
    size = pl.col("amount").abs()
    beyond = pl.col(f"amount{BEYOND}").map_batches(
        lambda texts: reaches(texts, limit), return_dtype=pl.Boolean
    )
    return pl.coalesce(size >= limit, beyond, is_unreadable())
