"""The causes of breaks by what became of these: the open ones apart from the accepted ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from flows.steps.breaks.causes import CauseLine
from flows.steps.reconcile.report import BreakLine, ReconciliationReport
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

    def add(self, one: BreakLine) -> None:
        """Take a break in, with what it adds to totals."""
        self.breaks += 1
        if one.counted is None:
            return
        if one.basis == Money.GROSS:
            self.gross = EXACT.add(self.gross or Decimal(0), one.counted)
        else:
            self.difference = EXACT.add(self.difference or Decimal(0), one.counted)


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
    found: dict[str, dict[str, Pooled]] = {pool: {} for pool in POOLS}
    for one in report.breaks:
        cause, pool = causes.get(one.cause), pool_of.get(one.state)
        if cause is None or pool is None:
            continue
        pooled = found[pool].setdefault(cause.id, Pooled(cause))
        pooled.shares.setdefault(one.currency, Share()).add(one)
    return found
