"""What of breaks and annexes is about a scope: more is known than is shown."""

from dataclasses import dataclass

import polars as pl

from flows.steps.frames.parts import Change

DEBT = ("tenant", "debt")


def _all(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


@dataclass(frozen=True)
class Own:
    """What is the scope's own; all of it, where it is not told."""

    breaks: Change = _all
    """The breaks among some that are about its records, and the debts of its payments."""
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
"""Of a scope that is everything."""
