"""Control totals at every stage: rows, money per currency and the hash total of keys, all exact.

Money is summed as decimals, never as doubles, and never across currencies.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from schemas.amounts import EXACT

NO_CURRENCY = ""
"""Key of amounts whose row names no currency."""

Amounts = Mapping[str, Mapping[str, Decimal]]


def in_currency(currency: str, code: str | None = None) -> str:
    """A currency by its CurrenciesId, and its code if that is known."""
    if currency == NO_CURRENCY:
        return "no currency"
    return f"{currency} {code}" if code else f"currency {currency}"


@dataclass(frozen=True, slots=True)
class Totals:
    rows: int = 0
    keys: int = 0
    """Hash total: the sum of the integer keys, or of 60 bits of each identity."""
    amounts: Amounts = field(default_factory=dict)
    """Currency -> amount field -> exact sum."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Amount field, or KEYS -> number of rows in which it cannot be read and is in no sum.

    An empty cell is not unreadable: it adds nothing to any sum. Reconciliation and the comparison
    of a file with its stated totals use these counts; batch reports name the reasons.
    """

    def __add__(self, other: "Totals") -> "Totals":
        amounts = {currency: dict(sums) for currency, sums in self.amounts.items()}
        for currency, sums in other.amounts.items():
            mine = amounts.setdefault(currency, {})
            for name, value in sums.items():
                mine[name] = EXACT.add(mine.get(name, Decimal(0)), value)
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
        """Whether rows, keys and amounts are all zero, as in the residual of a stage that ties."""
        money = (value for sums in self.amounts.values() for value in sums.values())
        return not (self.rows or self.keys or any(money))

    def as_json(self) -> dict[str, Any]:
        """Exact canonical JSON: numbers as plain decimal text, empty sums left out."""
        amounts = {
            currency: {name: plain(value) for name, value in sorted(sums.items())}
            for currency, sums in sorted(self.amounts.items())
            if sums
        }
        return {"rows": self.rows, "keys": str(self.keys), "amounts": amounts}

    def as_receipt(self) -> dict[str, Any]:
        """As `as_json`, with the numbers of unreadable values, if there are any."""
        unread = {name: count for name, count in sorted(self.unreadable.items()) if count}
        return self.as_json() | ({"unreadable": unread} if unread else {})

    @classmethod
    def from_json(cls, shape: Mapping[str, Any]) -> "Totals":
        """Read what `as_json` or `as_receipt` wrote."""
        amounts = {
            currency: {name: Decimal(value) for name, value in sums.items()}
            for currency, sums in shape["amounts"].items()
        }
        unread = shape.get("unreadable", {})
        return cls(int(shape["rows"]), int(shape["keys"]), amounts, unread)


def plain(value: Decimal) -> str:
    """A decimal without exponent and without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def add(totals: Iterable[Totals]) -> Totals:
    """The sum of totals; zero totals if there are none."""
    result = Totals()
    for one in totals:
        result += one
    return result
