"""Ageing: the age of breaks in calendar and business days, and the ageing matrix."""

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
"""Last day of every bucket of `BUCKETS` except the last, which is open."""


BUCKETS = ("0-1", "2-3", "4-7", "8-30", "31-60", "61-90", "> 90")
"""Ages of breaks in calendar days."""

_OF_CONTENT = [name for name, table in EXTRACTS.items() if not table.key]
"""Record kinds without a key, identified by their whole content."""


@dataclass(frozen=True, slots=True)
class AgeingLine:
    code: str
    currency: str
    basis: str
    """The Money of the amounts, as for a single break."""
    counts: tuple[int, ...]
    """One per bucket of BUCKETS."""
    amounts: tuple[Decimal, ...]


def begin() -> pl.Expr:
    """The day a break ages from: its business date, or the day it was first seen if earlier.

    A change that moves the date on, such as one more payment for a debt, makes no break younger. A
    record without a key would be another record on another day, so it ages from its own date.
    """
    own = pl.col("record").is_in(_OF_CONTENT)
    earlier = pl.min_horizontal("date", "first_seen")
    return pl.when(own).then(pl.coalesce("date", "first_seen")).otherwise(earlier)


def with_ages(carried: pl.DataFrame, as_of: date, calendar: str | None) -> pl.DataFrame:
    """Add AGES, counted from `begin`; a break about a future day has age 0."""
    since = carried.select(begin()).to_series()
    return carried.with_columns(
        calendar_ages(since, as_of).clip(0).alias("age_days"),
        business_ages(since, as_of, calendar).clip(0).alias("age_business_days"),
    )


def bucket() -> pl.Expr:
    """Index in BUCKETS of the age of a break."""
    return pl.lit(pl.Series(UPPER)).search_sorted(pl.col("age_days"), side="left")


def ageing(aged: pl.DataFrame) -> tuple[AgeingLine, ...]:
    """Open breaks of every code and currency by age in calendar days, counted as in `money`."""
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
