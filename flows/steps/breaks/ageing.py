"""Ageing: how long breaks have been there, in calendar and business days, and the matrix of it."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.money import BASIS, counted, currency_text
from flows.steps.frames.beyond import exact_sum
from flows.steps.rules.calendar import business_ages, calendar_ages
from schemas.tables import EXTRACTS

UPPER = (1, 3, 7, 30, 60, 90)
"""Last day of every bucket of `BUCKETS` but the open one."""


BUCKETS = ("0-1", "2-3", "4-7", "8-30", "31-60", "61-90", "> 90")
"""Ages of breaks in calendar days."""

_OF_CONTENT = [name for name, table in EXTRACTS.items() if not table.key]
"""Record kinds without a key, which are what they say."""


@dataclass(frozen=True, slots=True)
class AgeingLine:
    code: str
    currency: str
    basis: str
    """What the amounts are, as of a break."""
    counts: tuple[int, ...]
    """One per bucket of BUCKETS."""
    amounts: tuple[Decimal, ...]


def begin() -> pl.Expr:
    """The day a break ages from: its business date, or when it was first seen if that is earlier.

    What moves the date on, such as one more payment for a debt, makes no break younger. A record
    without a key would be another one on another day: it ages from its own.
    """
    own = pl.col("record").is_in(_OF_CONTENT)
    earlier = pl.min_horizontal("date", "first_seen")
    return pl.when(own).then(pl.coalesce("date", "first_seen")).otherwise(earlier)


def with_ages(carried: pl.DataFrame, as_of: date, calendar: str | None) -> pl.DataFrame:
    """Add AGES, from the day that a break begins.

    A break about a day to come has no age yet: 0.
    """
    since = carried.select(begin()).to_series()
    return carried.with_columns(
        calendar_ages(since, as_of).clip(0).alias("age_days"),
        business_ages(since, as_of, calendar).clip(0).alias("age_business_days"),
    )


def bucket() -> pl.Expr:
    """Place of the age of a break in BUCKETS."""
    return pl.lit(pl.Series(UPPER)).search_sorted(pl.col("age_days"), side="left")


def ageing(aged: pl.DataFrame) -> tuple[AgeingLine, ...]:
    """Open breaks of every code and currency by age in calendar days, as `money` counts them."""
    open_ones = aged.filter(is_open())
    by = ("code", currency_text(), BASIS, bucket().alias("bucket"))
    groups = open_ones.group_by(by).agg(pl.len(), *counted(open_ones))
    found: dict[tuple[str, str, str], dict[int, tuple[int, Decimal]]] = {}
    for code, currency, basis, place, rows, amounts, beyond in groups.iter_rows():
        found.setdefault((code, currency, basis), {})[place] = (rows, exact_sum(amounts, beyond))
    nothing, places = (0, Decimal(0)), range(len(BUCKETS))
    return tuple(
        AgeingLine(
            *of,
            counts=tuple(cells.get(place, nothing)[0] for place in places),
            amounts=tuple(cells.get(place, nothing)[1] for place in places),
        )
        for of, cells in sorted(
            found.items(), key=lambda one: (one[0][0], len(one[0][1]), one[0][1:])
        )
    )
