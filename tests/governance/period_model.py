"""What a reconciliation of payments has to say, in plain Python, written from the pages alone."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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


class Payment(NamedTuple):
    id: int
    tenant: int
    action: int
    at: datetime
    paid: Decimal
    discount: Decimal
    currency: int

    @property
    def key(self) -> tuple[int, int]:
        return self.id, self.tenant

    @property
    def day(self) -> date:
        """On its own clock."""
        return self.at.date()


@dataclass(frozen=True)
class Row:
    batch: int
    payment: Payment
    bad: str = ""
    """`amount`: it is no number; `rate`: another field is wrong."""
    stale: bool = False
    """Older than what the target had."""


class Rules(NamedTuple):
    calendar: str | None = None
    tolerance: Decimal = Decimal(0)
    window: int | None = None

    @property
    def text(self) -> str:
        lines = ['name = "a"', "references = []"]
        lines += [f'calendar = "{self.calendar}"'] if self.calendar else []
        if self.tolerance:
            lines += ["[[tolerance]]", 'record = "payment"', 'field = "PaidAmount"']
            lines += [f"absolute = {self.tolerance}"]
        if self.window is not None:
            lines += ["[[window]]", 'record = "payment"', f"days = {self.window}"]
        return "\n".join(lines) + "\n"


@dataclass
class Break:
    code: str
    key: tuple[int, int]
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

    @property
    def id(self) -> tuple[Any, ...]:
        return self.code, self.key, self.field, self.side

    @property
    def accepted(self) -> bool:
        return self.until is not None

    def begin(self) -> date:
        return min(self.date or self.first, self.first)


@dataclass
class Run:
    number: int
    as_of: date
    breaks: list[Break]
    statuses: dict[str, int]
    target: dict[tuple[int, int], Payment]
    """As of the day: what is signed."""
    delivered: dict[tuple[int | None, str], tuple[int, Decimal, Decimal]]
    found: dict[tuple[int | None, str], tuple[int, Decimal, Decimal]]
    step: int = 0
    """When it was made."""


@dataclass
class World:
    rows: list[Row] = field(default_factory=list)
    target: dict[tuple[int, int], Payment] = field(default_factory=dict)
    chains: dict[date | None, list[Run]] = field(default_factory=lambda: defaultdict(list))
    """The runs by the day they restate; None: they restate nothing."""
    approved: dict[int, int] = field(default_factory=dict)
    """Runs of everything -> when their reports were approved."""
    brought: dict[tuple[int, int], int] = field(default_factory=dict)
    """Key -> when a row of it was delivered last."""
    step: int = 0
    decided: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    # What is found.

    def counting(self, key: tuple[int, int]) -> Row | None:
        mine = (row for row in self.rows if row.payment.key == key)
        good = [row for row in mine if not row.bad and not row.stale]
        return good[-1] if good else None

    def after(self, key: tuple[int, int], as_of: date) -> set[str]:
        """The sides on which rows of a record stand apart."""
        mine = [row for row in self.rows if row.payment.key == key]
        there = self.target.get(key)
        days = [row.payment.day for row in mine] + ([there.day] if there else [])
        if all(day > as_of for day in days):
            return {"E", "D"}
        if all(day <= as_of for day in days):
            return set()
        row = self.counting(key)
        says = [one.day for one in (row and row.payment, there) if one]
        return {"E", "D"} if says and all(day > as_of for day in says) else set()

    def run(self, number: int, as_of: date, rules: Rules, restates: bool) -> Run:
        keys = sorted({row.payment.key for row in self.rows} | set(self.target))
        apart = {key for key in keys if self.after(key, as_of)}
        found: list[Break] = []
        statuses: dict[tuple[int, int], list[str]] = defaultdict(list)
        for key in keys:
            if key not in apart:
                breaks, said = self._record(key, as_of, rules)
                found += breaks
                statuses[key] += said
        last = self._signed(as_of)
        if last is not None:
            found += self._changed(last, as_of)
            found += self._late(last, apart, as_of)
        chain = self.chains[as_of if restates else None]
        breaks = self._carried(found, chain[-1] if chain else None, as_of, apart)
        _count(breaks)
        everything = {of.key for of in (row.payment for row in self.rows)} - apart
        counts: dict[str, int] = defaultdict(int)
        for key in keys:
            mine = [one for one in breaks if one.key == key and one.state in (*OPEN, "ACCEPTED")]
            manual = mine and all(one.state == "ACCEPTED" for one in mine)
            for status in statuses[key]:
                mild = status in ("MISMATCH", "MISSING_IN_TARGET", "MISSING_IN_EXTRACT")
                counts["MATCHED_MANUAL" if manual and mild else status] += 1
        rows = [row for row in self.rows if row.payment.key in everything]
        there = {key: one for key, one in self.target.items() if key not in apart}
        run = Run(
            number, as_of, breaks, dict(counts), there,
            _totals([(row.payment, row.bad) for row in rows]),
            _totals([(one, "") for one in there.values()]), self.step,
        )  # fmt: skip
        chain.append(run)
        self.decided.clear()
        return run

    def _signed(self, as_of: date) -> Run | None:
        runs = [one for one in self.chains[None] if one.number in self.approved]
        return max((one for one in runs if one.as_of <= as_of), key=lambda one: one.number,
                   default=None)  # fmt: skip

    def _record(
        self, key: tuple[int, int], as_of: date, rules: Rules
    ) -> tuple[list[Break], list[str]]:
        rows = [row for row in self.rows if row.payment.key == key]
        row, there = self.counting(key), self.target.get(key)
        breaks, said = [], []
        for one in rows:
            if one is row:
                continue
            fixed = one.bad and any(not other.bad for other in rows[rows.index(one) :])
            said.append("REJECTED" if one.bad and not fixed else "EXCLUDED")
            if one.bad and not fixed:
                breaks.append(_rejected(one))
        if row is None:
            if there is not None:
                said.append("MISSING_IN_EXTRACT")
                breaks.append(_whole("MISSING_IN_EXTRACT", there, "D"))
            return breaks, said
        if there is None:
            ages = business_days(row.payment.day, as_of, rules.calendar)
            waits = rules.window is not None and ages <= rules.window
            said.append("PENDING" if waits else "MISSING_IN_TARGET")
            if not waits:
                breaks.append(_whole("MISSING_IN_TARGET", row.payment, "D", row.batch))
            return breaks, said
        differ = [*_differences(row.payment, there, row.batch)]
        passed = [
            one for one in differ
            if one.code == "AMOUNT" and one.field == "PaidAmount"
            and abs(one.delta or 0) <= rules.tolerance
        ]  # fmt: skip
        mild = [one for one in differ if one.code == "OFFSET"]
        hard = [one for one in differ if one not in passed and one not in mild]
        breaks += [one for one in differ if one not in passed]
        status = "MISMATCH" if hard else "MATCHED_TOLERANCE" if differ else "MATCHED_EXACT"
        return breaks, [*said, status]

    def _changed(self, signed: Run, as_of: date) -> Iterator[Break]:
        for key, then in signed.target.items():
            if then.day > as_of:
                continue
            now = self.target.get(key)
            if now is None:
                yield _whole("CHANGED_AFTER_SIGNOFF", then, "D", dated=False)
                continue
            for one in _differences(then, now, None):
                gross = one.field not in ("PaidAmount", "DiscountAmount")
                yield replace(
                    one, code="CHANGED_AFTER_SIGNOFF", date=None, batch=None,
                    basis="gross" if gross else "difference",
                    amount=then.paid if gross else one.amount, currency=then.currency,
                    says=(*one.says, then.paid, then.discount),
                )  # fmt: skip

    def _late(self, signed: Run, apart: set[tuple[int, int]], as_of: date) -> Iterator[Break]:
        runs = [one for one in self.chains[None]
                if one.number in self.approved and one.as_of <= as_of]  # fmt: skip
        runs.sort(key=lambda one: (one.as_of, one.number))
        for key, there in self.target.items():
            if key in apart or key in signed.target or there.day > runs[-1].as_of:
                continue
            first = next(one for one in runs if one.as_of >= there.day)
            late = _whole("LATE_ARRIVAL", there, "D")
            yield replace(late, basis="gross", says=(*late.says, first.number, first.as_of))

    # What becomes of breaks.

    def _carried(
        self, found: list[Break], previous: Run | None, as_of: date, apart: set[tuple[int, int]]
    ) -> list[Break]:
        before = {one.id: one for one in self._former(previous, as_of)}
        now = {one.id: one for one in found}
        for one in found:
            self._still_there(one, before.get(one.id), as_of)
        came = {(one.key, one.field) for one in found
                if one.code in ("INSTANT", "OFFSET", "VALUE", "AMOUNT")
                and (one.before is None or one.before in GONE)}  # fmt: skip
        gone = []
        for was in previous.breaks if previous else ():
            if was.id in now or was.state in GONE:
                continue
            left = replace(was, before=was.state, was=was)
            choice, terms = self._choice(was)
            if was.key in apart and was.code != "CHANGED_AFTER_SIGNOFF":
                left.state = "NOT_LOOKED_AT"
            else:
                changed = was.code in ("INSTANT", "OFFSET") and (was.key, was.field) in came
                side = self._side(was, previous, as_of)
                left.state = "CHANGED_INTO" if changed else side
                if choice == "resolve" and left.state in ("RESOLVED_SOURCE", "RESOLVED_SERVICE"):
                    left.state = f"RESOLVED_{terms['at'].upper()}"
            kept = was.state == "ACCEPTED" or (was.state in ASIDE and was.accepted)
            if left.state == "NOT_LOOKED_AT" and choice == "accept":
                _accept(left, was, terms)
            elif left.state in GONE or choice or not kept:
                left.until, left.by, left.seen = None, "", None
            if not _covers(left, as_of):
                left.until, left.by, left.seen = None, "", None
            gone.append(left)
        return [*found, *gone]

    def _former(self, previous: Run | None, as_of: date) -> Iterator[Break]:
        """The breaks as they were left last, by whichever run of the chain."""
        for chain in self.chains.values():
            if previous in chain:
                for run in chain:
                    yield from run.breaks

    def _choice(self, was: Break) -> tuple[str, dict[str, Any]]:
        mine = [one for one in self.decided if one[1]["id"] == was.id]
        return mine[-1] if mine and was.state not in GONE else ("", {})

    def _still_there(self, one: Break, was: Break | None, as_of: date) -> None:
        one.was, one.before = was, was.state if was else None
        one.first = was.first if was else as_of
        if was is None:
            one.state = "NEW"
            return
        choice, terms = self._choice(was)
        if was.state in GONE:
            one.state = "REOPENED"
            return
        kept = was.state == "ACCEPTED" or (was.state in ASIDE and was.accepted)
        if choice == "accept":
            _accept(one, was, terms)
        elif kept and not choice:
            one.until, one.by, one.up_to, one.seen = was.until, was.by, was.up_to, was.seen
        if choice in ("reopen", "resolve"):
            one.state = "REOPENED"
        elif one.accepted and (one.until or as_of) < as_of:
            one.state = "EXPIRED"
        elif one.accepted:
            one.state = "ACCEPTED" if _holds(one) else "REOPENED"
        elif was.state == "REOPENED" and was.seen is not None and not choice:
            # It is other than it was accepted, until somebody decides.
            one.state = "REOPENED"
            one.until, one.by, one.up_to, one.seen = was.until, was.by, was.up_to, was.seen
        elif was.state in ("EXPIRED", *ASIDE):
            one.state = "REOPENED"
        else:
            one.state = "OPEN"

    def _side(self, was: Break, previous: Run | None, as_of: date) -> str:
        assert previous is not None
        brought = self.brought.get(was.key, 0) > previous.step
        if was.code in ("CHANGED_AFTER_SIGNOFF", "LATE_ARRIVAL"):
            last = self._signed(as_of)
            if last is not None and self.approved[last.number] > previous.step:
                return "RESOLVED_NEITHER"
        return "RESOLVED_SOURCE" if brought else "RESOLVED_SERVICE"


def _covers(one: Break, as_of: date) -> bool:
    return one.until is not None and one.until >= as_of


def _accept(one: Break, was: Break, terms: dict[str, Any]) -> None:
    one.until, one.by, one.up_to = terms["until"], terms["by"], terms.get("up_to")
    one.seen = was


def _holds(one: Break) -> bool:
    seen = one.seen
    assert seen is not None
    if (one.currency, one.says) == (seen.currency, seen.says):
        return True
    now, then = (of.amount if of.delta is None else of.delta for of in (one, seen))
    if one.up_to is None or now is None or then is None or one.currency != seen.currency:
        return False
    alike = now * then > 0 and one.code in ("AMOUNT", "CHANGED_AFTER_SIGNOFF")
    return alike and one.delta is not None and abs(now) <= one.up_to


def _differences(one: Payment, other: Payment, batch: int | None) -> Iterator[Break]:
    def differs(code: str, name: str, basis: str, **facts: Any) -> Break:
        says = (*facts.pop("both"), basis)
        return Break(code, one.key, name, "D", one.currency, basis, date=one.day, says=says,
                     batch=batch, **facts)  # fmt: skip

    for name, was, now in (
        ("PaidAmount", one.paid, other.paid), ("DiscountAmount", one.discount, other.discount)
    ):  # fmt: skip
        if was != now:
            yield differs("AMOUNT", name, "difference", both=(was, now), amount=abs(now - was),
                          delta=now - was)  # fmt: skip
    if one.action != other.action:
        yield differs("VALUE", "ActionsId", "gross", both=(one.action, other.action, one.paid,
                      one.discount), amount=one.paid)  # fmt: skip
    if one.at != other.at:
        yield differs("INSTANT", "PaymentDate", "none", amount=None,
                      both=(one.at.isoformat(), other.at.isoformat()))  # fmt: skip
    elif one.at.utcoffset() != other.at.utcoffset():
        yield differs("OFFSET", "PaymentDate", "none", amount=None,
                      both=(one.at.isoformat(), other.at.isoformat()))  # fmt: skip


def _whole(
    code: str, one: Payment, side: str, batch: int | None = None, *, dated: bool = True
) -> Break:
    says = (one.paid, one.discount, one.day if code == "LATE_ARRIVAL" else None)
    return Break(code, one.key, "", side, one.currency, "difference", one.paid,
                 one.day if dated else None, says, batch=batch, more=(one.discount,))  # fmt: skip


def _rejected(row: Row) -> Break:
    one = row.payment
    basis, amount = ("not readable", None) if row.bad == "amount" else ("difference", one.paid)
    says = (row.bad, one.paid, one.discount)
    return Break("REJECTED", one.key, "", "E", one.currency, basis, amount, one.day, says,
                 batch=row.batch, more=(one.discount,))  # fmt: skip


def _count(breaks: list[Break]) -> None:
    """A difference once for each record and field, gross money once for each record."""
    units: dict[Any, list[Break]] = defaultdict(list)
    for one in breaks:
        one.counted = None
        if one.state in GONE:
            continue
        own = one.field if one.field in ("PaidAmount", "DiscountAmount") else "PaidAmount"
        where = own if one.basis == "difference" else ""
        units[one.state in ASIDE, one.key, one.currency, one.basis, where].append(one)
    for group in units.values():
        said = Decimal(0)
        for one in sorted(
            group, key=lambda of: (of.amount is None, RANK[of.code], of.side, of.field)
        ):
            if one.amount is not None:
                one.counted = max(one.amount - said, Decimal(0)) if said else one.amount
                said = max(said, one.amount)


def _totals(payments: list[tuple[Payment, str]]) -> Any:
    found: dict[Any, tuple[int, Decimal, Decimal]] = {}
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
