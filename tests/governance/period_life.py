"""What becomes of breaks from run to run, in plain Python, written from the pages alone."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from tests.governance.period_batches import Batches
from tests.governance.period_facts import ASIDE, COUNTS, GONE, RANK, SIGNED, Break, Key, Rules, Run


@dataclass
class Life:
    batches: Batches
    chain: list[Run]
    decided: list[tuple[str, dict[str, Any]]]
    as_of: date
    rules: Rules
    apart: set[Key]
    found_by: dict[Rules, set[Any]] = field(default_factory=dict)
    """What rules of earlier runs find in what is there now."""

    def carried(self, found: list[Break], previous: Run | None, signed_since: bool) -> list[Break]:
        """The breaks of this run, and those that are gone since the run before."""
        before = {one.id: one for run in self.chain for one in run.breaks}
        now = {one.id for one in found}
        for one in found:
            self._still_there(one, before.get(one.id))
        came = {(one.key, one.field) for one in found
                if one.code in ("INSTANT", "OFFSET", "VALUE", "AMOUNT")
                and (one.before is None or one.before in GONE)}  # fmt: skip
        gone = []
        for was in previous.breaks if previous else ():
            if was.id not in now and was.state not in GONE:
                assert previous is not None
                gone.append(self._gone(was, came, previous, signed_since))
        return [*found, *gone]

    def _gone(
        self, was: Break, came: set[tuple[Key, str]], previous: Run, signed_since: bool
    ) -> Break:
        left = replace(was, before=was.state, was=was, by_rules=False)
        choice, terms = self._choice(was)
        settled = was.code in SIGNED and signed_since
        left.state, left.by_rules = self._aside(was, settled)
        if not left.state:
            changed = was.code in ("INSTANT", "OFFSET") and (was.key, was.field) in came
            side = "RESOLVED_NEITHER" if settled else self._side(was, previous)
            left.state = "CHANGED_INTO" if changed else side
            if choice == "resolve" and left.state in ("RESOLVED_SOURCE", "RESOLVED_SERVICE"):
                left.state = f"RESOLVED_{terms['at'].upper()}"
        kept = was.state == "ACCEPTED" or (was.state in ASIDE and was.accepted)
        if left.state in ASIDE and choice == "accept":
            _accept(left, was, terms)
        elif left.state in GONE or choice or not kept:
            left.until, left.by, left.seen = None, "", None
        if left.until is not None and left.until < self.as_of:
            left.until, left.by, left.seen = None, "", None
        return left

    def _aside(self, was: Break, settled: bool) -> tuple[str, bool]:
        """The state of a break that this run could not find, and whether that is by its rules."""
        other = was.rules if was.rules != self.rules else None
        if other is not None and was.id in self.found_by[other]:
            let = was.code == "AMOUNT" and was.field == "PaidAmount" and self._passes(was.key)
            return "WAIVED_BY_RULE" if let else "NOT_LOOKED_AT", True
        if was.key in self.apart and was.code != "CHANGED_AFTER_SIGNOFF" and not settled:
            return "NOT_LOOKED_AT", False
        if was.batch in self.batches.taken_back and not self.batches.of(was.key):
            return "NOT_LOOKED_AT", False
        return "", False

    def _passes(self, key: Key) -> bool:
        row, there = self.batches.counting(key), self.batches.target.get(key)
        if row is None or there is None or self.rules.leave_out(row.payment):
            return False
        return abs(there.paid - row.payment.paid) <= self.rules.tolerance

    def _side(self, was: Break, previous: Run) -> str:
        mine = self.batches.of(was.key)
        counting = [row for row in mine if row.verdict in COUNTS]
        if was.code in SIGNED:
            new = any(self.batches.applied.get(row.batch, 0) > previous.step for row in counting)
            return "RESOLVED_SOURCE" if new else "RESOLVED_SERVICE"
        rows = [row for row in mine if not row.bad] if was.side == "E" else counting
        # What is delivered is another row than the one it was about.
        new = any(row.batch > (was.batch or 0) for row in rows)
        new |= bool(rows) and was.batch in self.batches.taken_back
        return "RESOLVED_SOURCE" if new else "RESOLVED_SERVICE"

    def _choice(self, was: Break) -> tuple[str, dict[str, Any]]:
        mine = [one for one in self.decided if one[1]["id"] == was.id]
        return mine[-1] if mine and was.state not in GONE else ("", {})

    def _still_there(self, one: Break, was: Break | None) -> None:
        one.was, one.before = was, was.state if was else None
        one.first = was.first if was else self.as_of
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
        elif one.accepted and (one.until or self.as_of) < self.as_of:
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


def count(breaks: list[Break]) -> None:
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
