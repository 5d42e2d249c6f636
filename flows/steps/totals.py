"""Control totals: count, money per currency and the hash total of keys, exact, at every stage.

Money is summed as decimals, never as doubles, and never across currencies.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact
from typing import Any

import polars as pl

from schemas.amounts import MICRO_DIGITS
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Kind, Table
from schemas.frame_types import AMOUNT
from schemas.kinds import EXACT

NO_CURRENCY = ""
"""Amounts whose row names no currency; shown as such."""
# Wide enough for any sum of doubles; a digit lost would raise.
_EXACT = Context(prec=2000, traps=[Inexact])
_SAFE_CHARACTERS = 17
"""A plain decimal this short fits Decimal(38, 18) without rounding."""

Amounts = Mapping[str, Mapping[str, Decimal]]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a set of rows adds up to."""

    rows: int = 0
    keys: int = 0
    """Hash total: the sum of the integer keys, or of 60 bits of each identity."""
    amounts: Amounts = field(default_factory=dict)
    """Currency -> amount field -> exact sum."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Amount field -> in how many of the rows it cannot be read, and is in no sum.

    Reconciliation counts these; a batch names their reasons.
    """

    def __add__(self, other: "Totals") -> "Totals":
        amounts = {currency: dict(sums) for currency, sums in self.amounts.items()}
        for currency, sums in other.amounts.items():
            mine = amounts.setdefault(currency, {})
            for name, value in sums.items():
                mine[name] = _EXACT.add(mine.get(name, Decimal(0)), value)
        unread = {
            name: self.unreadable.get(name, 0) + other.unreadable.get(name, 0)
            for name in (*self.unreadable, *other.unreadable)
        }
        return Totals(self.rows + other.rows, self.keys + other.keys, amounts, unread)

    def __sub__(self, other: "Totals") -> "Totals":
        negated = {
            currency: {name: value.copy_negate() for name, value in sums.items()}
            for currency, sums in other.amounts.items()
        }
        unread = {name: -count for name, count in other.unreadable.items()}
        return self + Totals(-other.rows, -other.keys, negated, unread)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left: the residual of a stage that ties."""
        money = (value for sums in self.amounts.values() for value in sums.values())
        return not (self.rows or self.keys or any(money))

    def as_json(self) -> dict[str, Any]:
        """Exact and canonical: numbers as plain decimal text, empty sums left out."""
        amounts = {
            currency: {name: plain(value) for name, value in sorted(sums.items())}
            for currency, sums in sorted(self.amounts.items())
            if sums
        }
        return {"rows": self.rows, "keys": str(self.keys), "amounts": amounts}

    @classmethod
    def from_json(cls, shape: Mapping[str, Any]) -> "Totals":
        """What `as_json` wrote."""
        amounts = {
            currency: {name: Decimal(value) for name, value in sums.items()}
            for currency, sums in shape["amounts"].items()
        }
        return cls(int(shape["rows"]), int(shape["keys"]), amounts)


def plain(value: Decimal) -> str:
    """A decimal without exponent and without zeros at its end."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def add(totals: Iterable[Totals]) -> Totals:
    """The sum of totals; nothing adds up to nothing."""
    result = Totals()
    for one in totals:
        result += one
    return result


def totals_by_state(
    table: Table, typed: pl.DataFrame, identity: pl.Series, states: Mapping[str, pl.Series]
) -> dict[str, Totals]:
    """The control totals of typed rows by state, each a mask; unreadable values are left out."""
    amounts = [name + EXACT for name in table.amounts]
    key = [] if key_columns(table) == (IDENTITY,) else [table.key[0]]
    currency = [table.currency] if table.currency else []
    counted = identity.to_frame().with_columns(typed[name] for name in (*key, *currency, *amounts))
    totals = {}
    for state, mask in states.items():
        rows = counted.filter(mask)
        totals[state] = Totals(rows.height, _keys(table, rows), _amounts(table, rows))
    return totals


def totals_of_millionths(table: Table, rows: pl.DataFrame) -> Totals:
    """The control totals of typed rows whose amounts are integers, in millionths."""
    amounts: dict[str, dict[str, Decimal]] = {}
    if table.amounts and not rows.is_empty():
        assert table.currency is not None
        # A sum of many amounts may need more than 64 bits.
        sums = rows.group_by(table.currency).agg(pl.col(table.amounts).cast(pl.Int128).sum())
        for currency, *found in sums.iter_rows():
            values = (Decimal(value).scaleb(-MICRO_DIGITS, _EXACT) for value in found)
            amounts[str(currency)] = dict(zip(table.amounts, values, strict=True))
    return Totals(rows.height, _keys(table, rows), amounts)


def _keys(table: Table, typed: pl.DataFrame) -> int:
    if key_columns(table) == (IDENTITY,):
        bits = typed[IDENTITY].str.slice(0, 15).str.to_integer(base=16, dtype=pl.Int64)
        return int(bits.cast(pl.Int128).sum() or 0)
    return int(typed[table.key[0]].cast(pl.Int128).sum() or 0)


def _amounts(table: Table, typed: pl.DataFrame) -> dict[str, dict[str, Decimal]]:
    if not table.amounts or typed.is_empty():
        return {}
    assert table.currency is not None
    assert all(table.by_name[name].kind is Kind.DOUBLE for name in table.amounts)
    exact = [pl.col(name + EXACT) for name in table.amounts]
    short = [text.str.len_bytes() <= _SAFE_CHARACTERS for text in exact]
    sums = (
        typed.lazy()
        .group_by(pl.col(table.currency).cast(pl.String).fill_null(NO_CURRENCY).alias("currency"))
        .agg(
            pl.when(fits).then(text).cast(AMOUNT).sum().name.keep()
            for text, fits in zip(exact, short, strict=True)
        )
        .collect()
    )
    result = {
        row["currency"]: {name: row[name + EXACT] or Decimal(0) for name in table.amounts}
        for row in sums.iter_rows(named=True)
    }
    for name, text, fits in zip(table.amounts, exact, short, strict=True):
        long = typed.filter(~fits).select(
            pl.col(table.currency).cast(pl.String).fill_null(NO_CURRENCY), text
        )
        for currency, digits in long.iter_rows():
            result[currency][name] = _EXACT.add(result[currency][name], Decimal(digits))
    return result
