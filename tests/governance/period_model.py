"""What a reconciliation of payments has to say, in plain Python, written from the pages alone."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from tests.governance.period_batches import Batches
from tests.governance.period_facts import OPEN, Break, Key, Payment, Row, Rules, Run, sums
from tests.governance.period_life import Life, count


@dataclass
class World(Batches):
    chains: dict[date | None, list[Run]] = field(default_factory=lambda: defaultdict(list))
    """The runs by the day they restate; None: they restate nothing."""
    approved: dict[int, int] = field(default_factory=dict)
    """Runs of everything -> when their reports were approved."""
    decided: dict[date | None, list[tuple[str, dict[str, Any]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """About the last run of each chain."""

    def after(self, key: Key, as_of: date) -> bool:
        """Whether a record stands apart, dated after the day."""
        there = self.target.get(key)
        days = [row.payment.day for row in self.of(key)] + ([there.day] if there else [])
        if all(day > as_of for day in days):
            return True
        if all(day <= as_of for day in days):
            return False
        row = self.counting(key)
        says = [one.day for one in (row and row.payment, there) if one]
        return bool(says) and all(day > as_of for day in says)

    def run(self, number: int, as_of: date, rules: Rules, restates: bool) -> Run:
        keys = sorted({row.key for row in self.rows} | set(self.target))
        apart = {key for key in keys if self.after(key, as_of)}
        found, statuses = self._found(keys, apart, as_of, rules)
        of = as_of if restates else None
        chain = self.chains[of]
        previous = chain[-1] if chain else None
        life = Life(self, chain, self.decided[of], as_of, rules, apart)
        asked = {one.rules for one in previous.breaks if one.rules} if previous else set()
        life.found_by = {
            other: {one.id for one in self._found(keys, apart, as_of, other)[0]} for other in asked
        }
        breaks = life.carried(found, previous, self._signed_since(previous, as_of))
        count(breaks)
        counts: dict[str, int] = defaultdict(int)
        for key in keys:
            mine = [one for one in breaks if one.key == key and one.state in (*OPEN, "ACCEPTED")]
            manual = mine and all(one.state == "ACCEPTED" for one in mine)
            for status in statuses[key]:
                mild = status in ("MISMATCH", "MISSING_IN_TARGET", "MISSING_IN_EXTRACT")
                counts["MATCHED_MANUAL" if manual and mild else status] += 1
        there = {key: one for key, one in self.target.items() if key not in apart}
        self.step += 1
        run = Run(
            number, as_of, rules, breaks, dict(counts), there,
            sums([(row.payment, row.bad) for row in self.rows if row.key not in apart]),
            sums([(one, "") for one in there.values()]),
            self._opinion(breaks), self._changes(rules), self.step,
        )  # fmt: skip
        chain.append(run)
        self.decided[of].clear()
        return run

    def _opinion(self, breaks: list[Break]) -> str:
        states = {one.state for one in breaks}
        unseen = any(one.state in ("NOT_LOOKED_AT", "WAIVED_BY_RULE") and not one.by_rules
                     and not one.accepted for one in breaks)  # fmt: skip
        if self.held or unseen:
            return "INCOMPLETE"
        if states & set(OPEN):
            return "NOT_RECONCILED"
        left = states & {"ACCEPTED", "NOT_LOOKED_AT", "WAIVED_BY_RULE"}
        return "RECONCILED_WITH_ACCEPTED" if left else "RECONCILED"

    def _changes(self, rules: Rules) -> tuple[int, dict[str, tuple[str, str]]]:
        main = self.chains[None]
        signed = [one for one in main if one.number in self.approved]
        base = max(signed, key=lambda one: one.number) if signed else main[0] if main else None
        if base is None:
            return 0, {}
        old, new = base.rules.keys, rules.keys
        return base.number, {
            key: (old.get(key, ""), new.get(key, ""))
            for key in old.keys() | new.keys() if old.get(key) != new.get(key)
        }  # fmt: skip

    def _signed(self, as_of: date) -> Run | None:
        runs = [one for one in self.chains[None] if one.number in self.approved]
        return max((one for one in runs if one.as_of <= as_of), key=lambda one: one.number,
                   default=None)  # fmt: skip

    def _signed_since(self, previous: Run | None, as_of: date) -> bool:
        last = self._signed(as_of)
        return bool(previous and last and self.approved[last.number] > previous.step)

    # What is found.

    def _found(
        self, keys: list[Key], apart: set[Key], as_of: date, rules: Rules
    ) -> tuple[list[Break], dict[Key, list[str]]]:
        found: list[Break] = []
        statuses: dict[Key, list[str]] = defaultdict(list)
        for key in keys:
            if key not in apart:
                breaks, statuses[key] = self._record(key, as_of, rules)
                found += breaks
        last = self._signed(as_of)
        if last is not None:
            found += self._changed(last, as_of, rules)
            found += self._late(last, apart, as_of, rules)
        for one in found:
            one.rules = rules
        return found, statuses

    def _record(self, key: Key, as_of: date, rules: Rules) -> tuple[list[Break], list[str]]:
        row, there = self.counting(key), self.target.get(key)
        breaks, said = [], []
        for one in self.of(key):
            if one is row:
                continue
            in_error = one.bad and not self.corrected(one)
            said.append("REJECTED" if in_error else "EXCLUDED")
            if in_error:
                breaks.append(_rejected(one))
        if self.left_out(key, rules):
            return breaks, [*said, "EXCLUDED"]
        if row is None:
            if there is not None:
                said.append("MISSING_IN_EXTRACT")
                breaks.append(_whole("MISSING_IN_EXTRACT", there, "D"))
            return breaks, said
        if there is None:
            waits = rules.wait_for(row.payment, as_of)
            said.append("PENDING" if waits else "MISSING_IN_TARGET")
            if not waits:
                breaks.append(_whole("MISSING_IN_TARGET", row.payment, "D", row.batch))
            return breaks, said
        differ = [*_differences(row.payment, there, row.batch)]
        if rules.offset == "equal":
            differ = [one for one in differ if one.code != "OFFSET"]
        passed = [one for one in differ if within(one, rules)]
        mild = [one for one in differ if one.code == "OFFSET" and rules.offset == "told"]
        hard = [one for one in differ if one not in passed and one not in mild]
        breaks += [one for one in differ if one not in passed]
        status = "MISMATCH" if hard else "MATCHED_TOLERANCE" if differ else "MATCHED_EXACT"
        return breaks, [*said, status]

    def left_out(self, key: Key, rules: Rules) -> bool:
        """By the delivered row that counts, or by the target where none does."""
        row, there = self.counting(key), self.target.get(key)
        one = row.payment if row else there
        return one is not None and rules.leave_out(one)

    def _changed(self, signed: Run, as_of: date, rules: Rules) -> Iterator[Break]:
        for key, then in signed.target.items():
            if then.day > as_of or (self.left_out(key, rules) and rules.leave_out(then)):
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

    def _late(self, signed: Run, apart: set[Key], as_of: date, rules: Rules) -> Iterator[Break]:
        runs = [one for one in self.chains[None]
                if one.number in self.approved and one.as_of <= as_of]  # fmt: skip
        runs.sort(key=lambda one: (one.as_of, one.number))
        for key, there in self.target.items():
            if key in apart or key in signed.target or there.day > runs[-1].as_of:
                continue
            if self.left_out(key, rules):
                continue
            first = next(one for one in runs if one.as_of >= there.day)
            late = _whole("LATE_ARRIVAL", there, "D")
            yield replace(late, basis="gross", says=(*late.says, first.number, first.as_of))


def within(one: Break, rules: Rules) -> bool:
    """Whether a tolerance lets it pass."""
    of_amount = one.code == "AMOUNT" and one.field == "PaidAmount"
    return of_amount and one.delta is not None and abs(one.delta) <= rules.tolerance


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
