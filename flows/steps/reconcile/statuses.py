"""Statuses: the frame that says what became of every record, one line each."""

import polars as pl

from flows.steps.reconcile.breaks import AMOUNT
from flows.steps.reconcile.sources import PLACE, record_schema
from schemas.breaks import Status
from schemas.field import Table
from schemas.kinds import WORD, Dtype

STATUS = pl.Enum(Status)
"""One of the statuses, in a byte."""
EXPECTED, FOUND = "_expected", "_found"
"""Suffixes of an amount field's two columns in a frame of statuses."""


def status_schema(table: Table) -> dict[str, Dtype]:
    """Columns of a frame of statuses.

    `rule` is the exclusion's id; `currency_found` the currency the target has the record in; `date`
    its business date; `in_target` whether the target has it; `state` and `answer` are the end state
    of the extract row and of its send.
    """
    schema = record_schema(table)
    return {
        **{name: schema[name] for name in table.identity},
        "tenant": pl.Int32(),
        "status": STATUS,
        "rule": WORD,
        "currency": pl.Int32(),
        "currency_found": pl.Int32(),
        **{name + side: AMOUNT for name in table.amounts for side in (EXPECTED, FOUND)},
        "date": pl.Date(),
        "in_target": pl.Boolean(),
        "answer": WORD,
        **PLACE,
    }


def found_columns(table: Table) -> list[pl.Expr]:
    currency = number(table.currency, "currency_found")
    return [currency, *(pl.col(name).alias(name + FOUND) for name in table.amounts)]


def number(name: str | None, alias: str) -> pl.Expr:
    return (pl.col(name) if name else pl.lit(None)).cast(pl.Int32).alias(alias)
