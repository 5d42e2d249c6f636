"""Breaks grouped by cause and state, those with most money first.

A break without a cause is grouped with others of its code: a single break may be the largest of
all. Pages, texts and lists all use this module, so that they name the same groups in one order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.shares import OF_MONEY, Shares, count_of, most_money_first, shares_by
from schemas.breaks import BREAKS
from schemas.life import OPEN, BreakState

POOLS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "accepted": (BreakState.ACCEPTED,)}
"""Pools of breaks in the order reports show them, and the states of each."""
MOST_MONEY = 10
"""Groups at the head of lists: causes among them are kept, however few breaks they have."""
GROUPED_BY = ("state", "cause", "code", *OF_MONEY)
"""Columns of breaks that groups are made from."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Breaks of one cause, or those of one code that have no cause."""

    cause: str
    """Id of the cause, or empty."""
    code: str
    """Empty if there is a cause, which may have several codes."""
    shares: Shares

    @property
    def name(self) -> str:
        """The group's name in reports."""
        return self.cause or self.code

    @property
    def breaks(self) -> int:
        """Number of breaks in all currencies."""
        return count_of(self.shares)

    def title(self, causes: Mapping[str, str]) -> str:
        """What the breaks have in common; `causes` are titles by id."""
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
    """The groups of breaks with GROUPED_BY in any state, most money first (`largest_money`).

    Groups with equal money are sorted by number of breaks, most first, and then by name.
    """
    cause = pl.col("cause").cast(pl.String).fill_null("")
    code = pl.when(cause == "").then(pl.col("code").cast(pl.String)).otherwise(pl.lit(""))
    found = shares_by(breaks.select(GROUPED_BY), cause, code)
    return most_money(CauseGroup(group, of, shares) for (group, of), shares in found.items())


def most_money(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    return sorted(groups, key=lambda one: (most_money_first(one.shares), one.name))
