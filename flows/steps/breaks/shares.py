"""Shares of groups of breaks by currency: their number and their money, each kind by itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

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
from schemas.breaks import Money

OF_MONEY = ("currency", BASIS, COUNTED, COUNTED_BEYOND)
"""Columns of breaks that say what each adds to totals."""


@dataclass(frozen=True, slots=True)
class Share:
    """The breaks of a group in one currency."""

    breaks: int
    sums: Sums
    kinds: frozenset[str]
    """The kinds of money among the breaks; the sum of any other kind is None, not zero."""

    @property
    def difference(self) -> Decimal | None:
        """The sum of differences; None if no break has one."""
        return self.sums.difference if Money.DIFFERENCE in self.kinds else None

    @property
    def gross(self) -> Decimal | None:
        """The sum of gross money; None if no break has any."""
        return self.sums.gross if Money.GROSS in self.kinds else None

    def plus(self, other: "Share") -> "Share":
        sums, kinds = self.sums.plus(other.sums), self.kinds | other.kinds
        return Share(self.breaks + other.breaks, sums, kinds)


Shares = Mapping[str, Share]
"""Shares by currency as text; the empty key is for breaks without a currency."""


def shares_by(breaks: pl.DataFrame, *by: pl.Expr) -> dict[tuple[str, ...], Shares]:
    """The shares of each group of breaks with OF_MONEY; `by` are texts.

    A break without an amount has no kind of money, even if its code has one.
    """
    of_money = pl.col(BASIS).cast(pl.String)
    bare = pl.all_horizontal(pl.col(COUNTED, COUNTED_BEYOND).is_null())
    bare &= of_money != Money.UNREADABLE.value
    kind = pl.when(bare).then(pl.lit(Money.NONE.value)).otherwise(of_money)
    asked = breaks.with_columns(kind.alias(BASIS))
    found: dict[tuple[str, ...], dict[str, Share]] = {}
    for (*group, currency), basis, rows, sums in sums_by(asked, *by, currency_text()):
        shares, more = found.setdefault((*group,), {}), Share(rows, sums, frozenset({basis}))
        shares[currency] = shares[currency].plus(more) if currency in shares else more
    return {key: _sorted(shares) for key, shares in found.items()}


def together(several: Iterable[Shares]) -> Shares:
    parts: dict[str, list[Share]] = {}
    for shares in several:
        for currency, share in shares.items():
            parts.setdefault(currency, []).append(share)
    return _sorted({currency: reduce(Share.plus, part) for currency, part in parts.items()})


def count_of(shares: Shares) -> int:
    return sum(share.breaks for share in shares.values())


def most_money_first(shares: Shares) -> tuple[tuple[bool, Decimal, Decimal], int]:
    """Sort key for groups, ascending: by `largest_money`, then by number of breaks, most first."""
    return largest_money(share.sums for share in shares.values()), -count_of(shares)


def _sorted(shares: Mapping[str, Share]) -> dict[str, Share]:
    return dict(sorted(shares.items(), key=lambda one: (len(one[0]), one[0])))
