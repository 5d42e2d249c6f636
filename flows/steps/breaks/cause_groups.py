"""Breaks by cause and by what became of them, those of most money first.

A break that is in no cause group stands with the others of its code: what is alone may be the
largest of all. Pages, texts and lists ask here, so that they name the same ones in one order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.shares import OF_MONEY, Shares, count_of, most_money_first, shares_by
from schemas.breaks import BREAKS
from schemas.life import OPEN, BreakState

POOLS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "accepted": (BreakState.ACCEPTED,)}
"""What breaks with a cause are, in the order reports show it, and their states."""
MOST_MONEY = 10
"""Groups that lists begin with: the causes among them are kept, however few breaks they have."""
GROUPED_BY = ("state", "cause", "code", *OF_MONEY)
"""Columns of breaks that say what groups they make."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Breaks of one cause; or of one code, where they are in no cause group."""

    cause: str
    """Its id, or empty."""
    code: str
    """Empty where there is a cause: it may have several."""
    shares: Shares

    @property
    def name(self) -> str:
        """What reports call it by."""
        return self.cause or self.code

    @property
    def breaks(self) -> int:
        """In all currencies."""
        return count_of(self.shares)

    def title(self, causes: Mapping[str, str]) -> str:
        """What its breaks have in common; `causes` are titles by id."""
        if self.cause:
            return causes.get(self.cause, self.cause)
        known = BREAKS.get(self.code)
        return f"{known.title[:1].upper()}{known.title[1:]}" if known else self.code


def pooled_groups(breaks: pl.DataFrame) -> dict[str, list[CauseGroup]]:
    """The groups of breaks with GROUPED_BY in each of POOLS."""
    state = pl.col("state").cast(pl.String)
    return {
        pool: cause_groups(breaks.filter(state.is_in([*map(str, states)])))
        for pool, states in POOLS.items()
    }


def cause_groups(breaks: pl.DataFrame) -> list[CauseGroup]:
    """The groups of such breaks whatever their state, those of most money first (`largest_money`).

    Of equal ones those of most breaks come first, and then by name.
    """
    cause = pl.col("cause").cast(pl.String).fill_null("")
    code = pl.when(cause == "").then(pl.col("code").cast(pl.String)).otherwise(pl.lit(""))
    found = shares_by(breaks.select(GROUPED_BY), cause, code)
    return most_money(CauseGroup(group, of, shares) for (group, of), shares in found.items())


def most_money(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    return sorted(groups, key=lambda one: (most_money_first(one.shares), one.name))
