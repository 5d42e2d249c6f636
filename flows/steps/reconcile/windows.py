"""Windows: which missing records are still within the time that a rule gives them."""

from datetime import date

import polars as pl

from flows.steps.rules.calendar import business_ages, calendar_ages
from flows.steps.rules.rules import Rules
from schemas.field import Kind, Table
from schemas.kinds import OFFSET

_MINUTE = 60_000_000


def business_date(table: Table, rows: pl.DataFrame) -> pl.Series:
    """The business date of each record on its own clock; null if it has none.

    Other times of a record, such as a date of birth, say nothing about the age of a break.
    """
    name = table.business_date
    if name is None:
        return pl.Series("date", [None] * rows.height, dtype=pl.Date)
    moment = pl.col(name)
    if table.by_name[name].kind is Kind.DATETIME_OFFSET:
        shift = pl.col(name + OFFSET).fill_null(0).cast(pl.Int64) * _MINUTE
        moment = (moment.cast(pl.Int64) + shift).cast(pl.Datetime("us"))
    return rows.select(moment.cast(pl.Date).alias("date")).to_series()


def waiting(record: str, dates: pl.Series, rules: Rules, as_of: date) -> pl.Series:
    """Which records may still be missing without being an exception."""
    inside = pl.Series("waiting", [False]).new_from_index(0, dates.len())
    for window in rules.windows:
        if window.record == record:
            ages = calendar_ages(dates, as_of)
            if window.business:
                ages = business_ages(dates, as_of, rules.calendar)
            inside |= (ages <= window.days).fill_null(value=False)
    return inside
