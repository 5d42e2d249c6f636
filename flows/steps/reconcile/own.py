"""The part of breaks and annexes that is about a scope: joins know more than a report shows."""

from dataclasses import dataclass

import polars as pl

from flows.steps.frames.parts import Change

DEBT = ("tenant", "debt")


def _all(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


@dataclass(frozen=True)
class Own:
    """Filters for what is the scope's own; by default they keep everything."""

    breaks: Change = _all
    """Keeps the breaks about the scope's records and about the debts of its payments."""
    plans: pl.Series | None = None
    debts: pl.DataFrame | None = None

    def of_plans(self, rows: pl.DataFrame) -> pl.DataFrame:
        if self.plans is None:
            return rows
        return rows.filter(pl.col("PaymentPlansId").is_in(self.plans.implode(), nulls_equal=True))

    def of_debts(self, rows: pl.DataFrame) -> pl.DataFrame:
        if self.debts is None:
            return rows
        return rows.join(self.debts, on=DEBT, how="semi", nulls_equal=True, maintain_order="left")


EVERY = Own()
"""The filters of a scope that is everything."""
