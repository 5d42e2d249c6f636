"""What a period is made of, in plain Python: payments, rows, rules, breaks, runs, business days."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import holidays

from schemas.breaks import BREAKS

RANK = {code: number for number, code in enumerate(BREAKS)}
OPEN = ("NEW", "OPEN", "REOPENED", "EXPIRED")
ASIDE = ("NOT_LOOKED_AT", "WAIVED_BY_RULE")
GONE = {
    "RESOLVED_SOURCE": "- resolved at the source",
    "RESOLVED_SERVICE": "- resolved at the target",
    "RESOLVED_NEITHER": "- gone, neither",
    "CHANGED_INTO": "- changed into",
}
SIGNED = ("CHANGED_AFTER_SIGNOFF", "LATE_ARRIVAL")
"""Codes of what is held against signed records."""
COUNTS = ("inserted", "updated", "unchanged", "pending")
"""Verdicts of a row that counts for its record."""
Key = tuple[int, int]


class Payment(NamedTuple):
    id: int
    tenant: int
    action: int
    at: datetime
    paid: Decimal
    discount: Decimal
    currency: int

    @property
    def key(self) -> Key:
        return self.id, self.tenant

    @property
    def day(self) -> date:
        """On its own clock."""
        return self.at.date()

    def same(self, other: "Payment") -> bool:
        """Whether it is the other one to the last sign, its offset included."""
        return self == other and self.at.utcoffset() == other.at.utcoffset()


class Row(NamedTuple):
    payment: Payment
    bad: str = ""
    """`amount`: it is no number; `rate`: another field is wrong."""
    batch: int = 0
    number: int = 0
    """Of the record in its file."""
    verdict: str = ""

    @property
    def key(self) -> Key:
        return self.payment.key


class Rules(NamedTuple):
    calendar: str | None = None
    tolerance: int = 0
    window: int | None = None
    business: bool = True
    offset: str = "told"
    out: int = 0
    """Payments of this ActionsId are left out; 0: of none."""
    high: int = 10_000
    medium: int = 100

    @property
    def keys(self) -> dict[str, str]:
        """Every key that is set, as page one of a report names it."""
        found = {"offset": self.offset, "severities: high_amount": str(self.high),
                 "severities: medium_amount": str(self.medium)}  # fmt: skip
        if self.calendar:
            found["calendar"] = self.calendar
        sections: dict[str, dict[str, object]] = {}
        if self.tolerance:
            both = {"above": self.tolerance, "below": self.tolerance}
            sections["tolerance payment PaidAmount"] = {"field": "PaidAmount", **both}
        if self.window is not None:
            sections["window payment"] = {
                "days": self.window, "business": str(self.business).lower(),
            }  # fmt: skip
        if self.out:
            sections["exclude out"] = {"id": "out", "field": "ActionsId", "reason": "no",
                                       "values": f'"{self.out}"'}  # fmt: skip
        for title, section in sections.items():
            for key, value in {"record": "payment", **section}.items():
                found[f"{title}: {key}"] = str(value)
        return found

    @property
    def text(self) -> str:
        lines = ['name = "a"', "references = []", f'offset = "{self.offset}"']
        lines += [f'calendar = "{self.calendar}"'] if self.calendar else []
        lines += ["[severities]", f"high_amount = {self.high}", f"medium_amount = {self.medium}"]
        if self.tolerance:
            lines += ["[[tolerance]]", 'record = "payment"', 'field = "PaidAmount"']
            lines += [f"absolute = {self.tolerance}"]
        if self.window is not None:
            lines += ["[[window]]", 'record = "payment"', f"days = {self.window}"]
            lines += [f"business = {str(self.business).lower()}"]
        if self.out:
            lines += ["[[exclude]]", 'id = "out"', 'record = "payment"', 'field = "ActionsId"']
            lines += [f'values = ["{self.out}"]', 'reason = "no"']
        return "\n".join(lines) + "\n"

    def leave_out(self, one: Payment) -> bool:
        return one.action == self.out

    def wait_for(self, one: Payment, as_of: date) -> bool:
        """Whether it may still be missing."""
        if self.window is None:
            return False
        age = (as_of - one.day).days
        if self.business:
            age = business_days(one.day, as_of, self.calendar)
        return age <= self.window


@dataclass
class Break:
    code: str
    key: Key
    field: str
    side: str
    currency: int | None
    basis: str
    amount: Decimal | None
    date: date | None
    says: tuple[Any, ...]
    """All that an acceptance is bound to."""
    delta: Decimal | None = None
    batch: int | None = None
    more: tuple[Decimal, ...] = ()
    """Other amounts of a whole record."""
    state: str = ""
    before: str | None = None
    was: "Break | None" = None
    first: date = date.min
    counted: Decimal | None = None
    until: date | None = None
    by: str = ""
    up_to: Decimal | None = None
    seen: "Break | None" = None
    rules: Rules | None = None
    """Those that found it last."""
    by_rules: bool = False
    """Whether rules set it aside."""

    @property
    def id(self) -> tuple[Any, ...]:
        return self.code, self.key, self.field, self.side

    @property
    def accepted(self) -> bool:
        return self.until is not None

    def begin(self) -> date:
        return min(self.date or self.first, self.first)


Sums = dict[tuple[int | None, str], tuple[int, Decimal, Decimal]]
"""By tenant and currency: rows, PaidAmount, DiscountAmount."""


@dataclass
class Run:
    number: int
    as_of: date
    rules: Rules
    breaks: list[Break]
    statuses: dict[str, int]
    target: dict[Key, Payment]
    """As of the day: what is signed."""
    delivered: Sums
    found: Sums
    verdict: str
    changes: tuple[int, dict[str, tuple[str, str]]]
    """The run it is held against, 0 for none, and the keys of rules that differ, old and new."""
    step: int
    """When it was made."""


def sums(payments: list[tuple[Payment, str]]) -> Sums:
    found: Sums = {}
    for one, bad in payments:
        cell = one.tenant, str(one.currency)
        rows, paid, discount = found.get(cell, (0, Decimal(0), Decimal(0)))
        paid += Decimal(0) if bad == "amount" else one.paid
        found[cell] = rows + 1, paid, discount + one.discount
    return found


@cache
def _works(day: date, calendar: str | None) -> bool:
    if calendar is None:
        return day.weekday() < 5
    return bool(_calendar(calendar).is_working_day(day))


@cache
def _calendar(name: str) -> Any:
    country, _, part = name.partition("-")
    return holidays.country_holidays(country, subdiv=part or None, years=range(2020, 2028))


def business_days(first: date, last: date, calendar: str | None) -> int:
    if last < first:
        return -business_days(last, first, calendar)
    days = ((first + timedelta(number + 1)) for number in range((last - first).days))
    return sum(_works(day, calendar) for day in days)
