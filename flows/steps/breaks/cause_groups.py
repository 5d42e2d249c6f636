"""Breaks by cause and by what became of them, those of most money first.

A break that is in no cause group stands with the others of its code: what is alone may be the
largest of all. Pages, texts and lists ask here, so that they name the same ones in one order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from flows.steps.breaks.money import (
    BASIS,
    COUNTED,
    COUNTED_BEYOND,
    Sums,
    currency_text,
    largest_money,
    sums_by,
)
from schemas.breaks import BREAKS, Money
from schemas.life import OPEN, BreakState

POOLS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "accepted": (BreakState.ACCEPTED,)}
"""What breaks with a cause are, in the order reports show it, and their states."""
MOST_MONEY = 10
"""Groups that lists begin with: the causes among them are kept, however few breaks they have."""
GROUPED_BY = ("state", "cause", "code", "currency", BASIS, COUNTED, COUNTED_BEYOND)
"""Columns of breaks that say what groups they make."""


@dataclass(frozen=True, slots=True)
class Share:
    """The breaks of a group in one currency."""

    breaks: int
    sums: Sums
    kinds: frozenset[str]
    """The kinds of money there are among them: what there is none of is not even zero."""

    @property
    def difference(self) -> Decimal | None:
        """None where no break of it has any."""
        return self.sums.difference if Money.DIFFERENCE in self.kinds else None

    @property
    def gross(self) -> Decimal | None:
        """None where no break of it has any."""
        return self.sums.gross if Money.GROSS in self.kinds else None

    def plus(self, other: "Share") -> "Share":
        """Both."""
        sums, kinds = self.sums.plus(other.sums), self.kinds | other.kinds
        return Share(self.breaks + other.breaks, sums, kinds)


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Breaks of one cause; or of one code, where they are in no cause group."""

    cause: str
    """Its id, or empty."""
    code: str
    """Empty where there is a cause: it may have several."""
    shares: Mapping[str, Share]
    """By currency, as text; empty: of those that have none."""

    @property
    def name(self) -> str:
        """What reports call it by."""
        return self.cause or self.code

    @property
    def breaks(self) -> int:
        """In all currencies."""
        return sum(share.breaks for share in self.shares.values())

    def title(self, causes: Mapping[str, str]) -> str:
        """What its breaks have in common; `causes` are titles by id."""
        if self.cause:
            return causes.get(self.cause, self.cause)
        told = BREAKS.get(self.code)
        return f"{told.title[:1].upper()}{told.title[1:]}" if told else self.code


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
    found: dict[tuple[str, str], dict[str, Share]] = {}
    of_money = pl.col(BASIS).cast(pl.String)
    bare = pl.all_horizontal(pl.col(name).is_null() for name in (COUNTED, COUNTED_BEYOND))
    bare &= of_money != Money.UNREADABLE.value
    asked = breaks.select(GROUPED_BY).with_columns(
        pl.when(bare).then(pl.lit(Money.NONE.value)).otherwise(of_money).alias(BASIS)
    )
    for (group, of, currency), basis, rows, sums in sums_by(asked, cause, code, currency_text()):
        shares, more = found.setdefault((group, of), {}), Share(rows, sums, frozenset({basis}))
        shares[currency] = shares[currency].plus(more) if currency in shares else more
    groups = [
        CauseGroup(*key, dict(sorted(shares.items(), key=lambda one: (len(one[0]), one[0]))))
        for key, shares in found.items()
    ]
    return most_money(groups)


def most_money(groups: Iterable[CauseGroup]) -> list[CauseGroup]:
    """Groups in the order of `cause_groups`."""
    return sorted(groups, key=_order)


def _order(group: CauseGroup) -> tuple[tuple[bool, Decimal, Decimal], int, str]:
    sums = largest_money(share.sums for share in group.shares.values())
    return sums, -group.breaks, group.name
