"""The causes of breaks by what became of these: the open ones apart from the accepted ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from flows.steps.breaks.causes import CauseLine
from flows.steps.breaks.money import BASIS, COUNTED, COUNTED_BEYOND, counted
from flows.steps.frames.beyond import exact_sum
from flows.steps.reconcile.report import ReconciliationReport
from schemas.amounts import EXACT
from schemas.breaks import Money
from schemas.life import OPEN, BreakState

POOLS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "accepted": (BreakState.ACCEPTED,)}
"""What breaks with a cause are, in the order reports show it, and their states."""


@dataclass(slots=True)
class Share:
    """The breaks of one cause in one pool and currency; money that none of them has is None."""

    breaks: int = 0
    difference: Decimal | None = None
    gross: Decimal | None = None

    def add(self, money: Decimal, *, gross: bool) -> None:
        """Take in what breaks add to totals."""
        if gross:
            self.gross = EXACT.add(self.gross or Decimal(0), money)
        else:
            self.difference = EXACT.add(self.difference or Decimal(0), money)


@dataclass(frozen=True, slots=True)
class Pooled:
    """What a cause has in one pool."""

    cause: CauseLine
    shares: dict[str, Share] = field(default_factory=dict)
    """By currency."""

    @property
    def breaks(self) -> int:
        """In all currencies."""
        return sum(share.breaks for share in self.shares.values())

    @property
    def most(self) -> tuple[Decimal, int, str]:
        """To sort by: its largest difference in one currency, or else gross money, first."""
        differences = [s.difference for s in self.shares.values() if s.difference is not None]
        gross = [share.gross for share in self.shares.values() if share.gross is not None]
        most = max(map(abs, differences or gross), default=Decimal(0))
        return most.copy_negate(), -self.breaks, self.cause.id


def pooled_causes(report: ReconciliationReport) -> dict[str, dict[str, Pooled]]:
    """By pool and cause; a cause that has no break in a pool is not in it."""
    causes = {one.id: one for one in report.causes}
    pool_of = {state: pool for pool, states in POOLS.items() for state in states}
    groups = (
        report.breaks.frame.select("state", "cause", "currency", BASIS, COUNTED, COUNTED_BEYOND)
        .filter(pl.col("cause").is_in(causes))
        .with_columns(
            pl.col("state").cast(pl.String).replace_strict(pool_of, default=None).alias("pool")
        )
        .drop_nulls("pool")
        .group_by("pool", "cause", "currency", BASIS, maintain_order=True)
        .agg(pl.len(), *counted(report.breaks.frame))
    )
    found: dict[str, dict[str, Pooled]] = {pool: {} for pool in POOLS}
    for pool, cause, currency, basis, rows, amounts, beyond in groups.iter_rows():
        pooled = found[pool].setdefault(cause, Pooled(causes[cause]))
        share = pooled.shares.setdefault(currency, Share())
        share.breaks += rows
        if beyond or any(amount is not None for amount in amounts):
            share.add(exact_sum(amounts, beyond), gross=basis == Money.GROSS)
    return found
