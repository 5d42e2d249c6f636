"""Tolerance lines: what the rules waved through, against the budget for it."""

from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from flows.steps.breaks.make import Annex, make_breaks, money
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
"""One line per difference that a rule waved through; `delta` is that of an amount."""


@dataclass(frozen=True, slots=True)
class ToleranceLine:
    """What one tolerance waved through."""

    rule: str
    currency: str
    count: int
    amount: Decimal
    count_limit: int | None
    amount_limit: Decimal | None

    @property
    def within(self) -> bool:
        """Whether neither limit is passed."""
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
    """Lines per rule and currency, then the sums the budget limits, and breaks of the latter.

    `tolerated` holds one line per difference, as `TOLERATED_SCHEMA`. The limit of amounts
    holds in each currency, that of differences over all of them.
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
    counted = [line.count_limit is not None for line in over]
    rows = pl.DataFrame(
        {
            "currency": [int(line.currency) if line.currency else None for line in over],
            "name": ["count" if count else "amount" for count in counted],
            "expected": [
                str(line.count_limit) if count else format(line.amount_limit or 0, "f")
                for line, count in zip(over, counted, strict=True)
            ],
            "found": [
                str(line.count) if count else format(line.amount, "f")
                for line, count in zip(over, counted, strict=True)
            ],
            "amount": [None if line.count_limit is not None else line.amount for line in over],
        },
        schema={
            "currency": pl.Int32(),
            "name": pl.String(),
            "expected": pl.String(),
            "found": pl.String(),
            "amount": AMOUNT,
        },
    )
    return make_breaks(
        "TOLERANCE_BUDGET",
        "",
        rows,
        key=pl.concat_str("name", pl.col("currency").cast(pl.String).fill_null(""), separator="/"),
        currency=pl.col("currency"),
        expected=pl.format("at most {}", "expected"),
        found=pl.col("found"),
        amount=pl.col("amount"),
    )
