"""Tolerance lines: the differences that the rules tolerate, against the budget for them."""

from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from flows.steps.breaks.make import Annex, joined, make_breaks, money
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.statuses import Lines
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.frame_types import AMOUNT, Dtype

EVERY = "all tolerances"
TOLERATED_SCHEMA: dict[str, Dtype] = {
    "tolerance": pl.String(),
    "record": pl.String(),
    "tenant": pl.Int32(),
    "key": pl.String(),
    "field": pl.String(),
    "currency": pl.Int32(),
    "expected": pl.String(),
    "found": pl.String(),
    "delta": AMOUNT,
}
"""One line per tolerated difference; `delta` is null unless it is that of an amount."""


@dataclass(frozen=True, slots=True)
class ToleranceLine:
    rule: str
    currency: str
    count: int
    amount: Decimal
    count_limit: int | None
    amount_limit: Decimal | None

    @property
    def within(self) -> bool:
        return (self.count_limit is None or self.count <= self.count_limit) and (
            self.amount_limit is None or self.amount <= self.amount_limit
        )


def tolerated_differences(table: Table, lines: Lines, differences: pl.DataFrame) -> pl.DataFrame:
    """The differences that have a `tolerance`, as `TOLERATED_SCHEMA`."""
    tolerated = differences.filter(pl.col("tolerance").is_not_null())
    return tolerated.with_columns(
        pl.lit(table.name).alias("record"),
        line_key(table, lines.frame[tolerated["row"]]),
        pl.when(pl.col("field").is_in(table.amounts)).then("delta"),
    ).select(pl.col(name).cast(dtype) for name, dtype in TOLERATED_SCHEMA.items())


def reconcile_tolerated(tolerated: pl.DataFrame, rules: Rules) -> Annex[ToleranceLine]:
    """Lines per rule and currency, then the sums that the budget limits, and breaks for those over.

    `tolerated` is a frame of `TOLERATED_SCHEMA`. The limit of amounts applies per currency, the
    limit of the number of differences to all of them.
    """
    sizes = tolerated.with_columns(
        pl.col("currency").cast(pl.String).fill_null(""), pl.col("delta").abs().alias("size")
    )
    numbers = (pl.col("currency").str.len_chars(), pl.col("currency"))
    sums = [pl.len().alias("count"), pl.col("size").sum()]
    each = sizes.group_by("tolerance", "currency").agg(sums).sort("tolerance", *numbers)
    whole = sizes.group_by("currency").agg(sums).sort(*numbers)
    lines = [
        ToleranceLine(rule, currency, count, money(size or Decimal(0)), None, None)
        for rule, currency, count, size in each.iter_rows()
    ]
    if rules.budget.amount is not None:
        lines += [
            ToleranceLine(EVERY, currency, count, money(size), None, rules.budget.amount)
            for currency, count, size in whole.iter_rows()
            if size
        ]
    if rules.budget.count is not None:
        lines.append(ToleranceLine(EVERY, "", sizes.height, Decimal(0), rules.budget.count, None))
    over = [line for line in lines if not line.within]
    return Annex(_breaks(over), lines=tuple(lines), rows=tolerated)


def _breaks(over: list[ToleranceLine]) -> pl.DataFrame:
    rows = [
        (None, "count", str(line.count_limit), str(line.count), None)
        if line.count_limit is not None
        else (
            int(line.currency) if line.currency else None,
            *("amount", format(line.amount_limit or 0, "f"), f"{line.amount:f}", line.amount),
        )
        for line in over
    ]
    texts = dict.fromkeys(("name", "expected", "found"), pl.String())
    schema = {"currency": pl.Int32(), **texts, "amount": AMOUNT}
    return make_breaks(
        "TOLERANCE_BUDGET",
        "",
        pl.DataFrame(rows, schema=schema, orient="row"),
        key=joined("name", "currency"),
        currency=pl.col("currency"),
        expected=pl.format("at most {}", "expected"),
        found=pl.col("found"),
        amount=pl.col("amount"),
    )
