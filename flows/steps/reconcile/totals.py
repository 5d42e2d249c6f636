"""Totals of a reconciliation: controls per tenant and currency, the difference proof, the chain.

Money is exact and never added across currencies; what is unexplained is reported to the cent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import polars as pl

from flows.steps.breaks.make import money
from flows.steps.frames.beyond import exact_sum
from flows.steps.reconcile.answers import NOT_ASKED
from flows.steps.reconcile.sums import Cell, Group, Sides, added
from flows.steps.rules.rules import Rules
from flows.steps.totals import Totals
from schemas.breaks import Status
from schemas.derived.views import ERRORS
from schemas.field import Table

Amounts = Mapping[str, Decimal]
"""Amount field -> exact sum."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    record: str
    status: str
    rows: int


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One stage of the completeness chain of a record kind, in one currency."""

    record: str
    stage: str
    currency: str
    rows: int
    amounts: Amounts
    keys: int
    """Sum of the keys, as a hash total."""
    rows_change: int
    amounts_change: Amounts
    explained: str
    residual_rows: int
    residual: Amounts
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Amount field -> number of rows in which it cannot be read."""


@dataclass(frozen=True, slots=True)
class ControlLine:
    record: str
    tenant: int | None
    currency: str
    expected_rows: int
    found_rows: int
    expected: Amounts
    found: Amounts
    expected_keys: int
    found_keys: int
    explained: Amounts
    """The part of the difference found - expected that breaks and other statuses explain."""
    residual: Amounts
    residual_rows: int
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Amount field -> number of extract rows in which it cannot be read."""


@dataclass(frozen=True, slots=True)
class ProofLine:
    """One line of the difference proof, in the form of a bank reconciliation."""

    text: str
    """Text of the line: total per extract, + missing in extract, - missing in target ..."""
    rows: int
    amount: Decimal
    total: bool = False
    """Whether the line is the sum of those above it."""
    gross: Decimal = Decimal(0)
    """For breaks, the money of records of which none is known to be missing."""
    unreadable: int = 0
    """Number of rows with an unreadable amount, which is in no sum."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof from the total per extract to the total per target, for a field and currency."""

    record: str
    field: str
    currency: str
    lines: tuple[ProofLine, ...]
    unexplained: Decimal

    @property
    def left_out(self) -> Decimal:
        """The signed sum of delivered amounts that are left out, by their state or by a rule."""
        return exact_sum(
            one.amount for one in self.lines if one.text.startswith(PROOF_TEXTS[Status.EXCLUDED])
        )

    @property
    def target(self) -> ProofLine:
        """The total of the target without what rules leave out there."""
        there = self.lines[-1]
        excluded = [one for one in self.lines if one.text.startswith(EXCLUDED_THERE)]
        if not excluded:
            return there
        amount = exact_sum((there.amount, *(one.amount.copy_negate() for one in excluded)))
        return replace(there, rows=there.rows - sum(one.rows for one in excluded), amount=amount)

    @property
    def difference(self) -> Decimal:
        """The target less the extracts, each only with what counts."""
        expected = (self.lines[0].amount, self.left_out)
        return exact_sum((self.target.amount, *(one.copy_negate() for one in expected)))


@dataclass(frozen=True, slots=True)
class ExcludedLine:
    rule: str
    record: str
    rows: int
    reason: str


def status_counts(statuses: pl.DataFrame) -> pl.DataFrame:
    """The number of records (`len`) by `status` and `rule`, for the statuses of any part."""
    return statuses.group_by("status", "rule").len()


def status_lines(table: Table, counts: pl.DataFrame) -> tuple[StatusLine, ...]:
    """The number of records by status, in the order of `Status`.

    `counts` are the results of `status_counts` for all parts.
    """
    counted = dict(counts.group_by("status").agg(pl.col("len").sum()).iter_rows())
    return tuple(
        StatusLine(table.name, status.value, counted[status.value])
        for status in Status
        if status.value in counted
    )


def excluded_lines(table: Table, counts: pl.DataFrame, rules: Rules) -> tuple[ExcludedLine, ...]:
    """The number of records each rule left out; a rule of no rule file stands for a state of rows.

    `counts` is that of `status_lines`.
    """
    reasons = {exclusion.id: exclusion.reason for exclusion in rules.exclusions}
    left_out = counts.filter(pl.col("status") == Status.EXCLUDED)
    by_rule = left_out.group_by(pl.col("rule").cast(pl.String)).agg(pl.col("len").sum())
    return tuple(
        ExcludedLine(rule, table.name, rows, reasons.get(rule, ""))
        for rule, rows in by_rule.sort("rule").iter_rows()
    )


def control_lines(sides: Sides) -> tuple[ControlLine, ...]:
    """Both sides per tenant and currency, with the explained part of their difference."""
    return tuple(_control(sides, cell) for cell in sides.cells)


def _control(sides: Sides, cell: Cell) -> ControlLine:
    expected = sides.delivered.get(cell, Totals())
    found = sides.counted.get(cell, Totals())
    explained = sides.explained(cell, _explains)
    residual = found - expected - explained
    return ControlLine(
        record=sides.table.name,
        tenant=cell.tenant,
        currency=cell.currency,
        expected_rows=expected.rows,
        found_rows=found.rows,
        expected=_amounts(sides.table, expected, cell.currency),
        found=_amounts(sides.table, found, cell.currency),
        expected_keys=expected.keys,
        found_keys=found.keys,
        explained=_amounts(sides.table, explained, cell.currency),
        residual=_amounts(sides.table, residual, cell.currency),
        residual_rows=residual.rows,
        unreadable=_unreadable(expected),
    )


def _explains(group: Group) -> bool:
    """Whether a group may explain a difference; the sides of exact matches have to be equal."""
    return group.status != Status.MATCHED_EXACT


def _amounts(table: Table, totals: Totals, currency: str) -> dict[str, Decimal]:
    sums = totals.amounts.get(currency, {})
    return {name: money(sums.get(name, Decimal(0))) for name in table.amounts}


def _unreadable(totals: Totals) -> dict[str, int]:
    return {name: abs(count) for name, count in totals.unreadable.items() if count}


PROOF_TEXTS: dict[Status, str] = {
    Status.MISSING_IN_EXTRACT: "+ missing in extract",
    Status.MISSING_IN_TARGET: "- missing in target",
    Status.MISMATCH: "+/- amounts and currencies that differ",
    Status.MATCHED_TOLERANCE: "+/- differences inside tolerance",
    Status.MATCHED_MANUAL: "+/- differences that were accepted",
    Status.DUPLICATE: "+/- duplicates",
    Status.REJECTED: "- rejected",
    Status.EXCLUDED: "- excluded",
    Status.PENDING: "- timing: inside the window",
    Status.NOT_SENT: "- not sent yet",
    Status.SENT_UNCONFIRMED: "- sent, not confirmed",
    Status.IN_DOUBT: "- in doubt",
    Status.UNPROVEN: "+/- of a delivery that cannot be shown",
    Status.UNKNOWN: "+/- without a key or an exact amount",
}
"""Lines of the difference proof, in their order."""
EXCLUDED_THERE = "+ excluded in the target"
"""The line, per rule, of what rules leave out of the target."""


def proofs(sides: Sides) -> tuple[Proof, ...]:
    """The proofs from extract to target, per amount field and currency."""
    return tuple(
        _proof(sides.of_currency(currency), field, currency)
        for field in sides.table.amounts
        for currency in sides.currencies
    )


def _proof(sides: Sides, field: str, currency: str) -> Proof:
    cell = Cell(None, currency)

    def line(text: str, totals: Totals, *, total: bool = False) -> ProofLine:
        amount = _amounts(sides.table, totals, currency)[field]
        unread = _unreadable(totals).get(field, 0)
        return ProofLine(text, totals.rows, amount, total, unreadable=unread)

    delivered, counted = sides.delivered[cell], sides.counted[cell]
    lines = [line("total per extract", delivered)]
    reached = delivered
    for text, part in _steps(sides, cell):
        reached += part
        step = line(text, part)
        if step.rows or step.amount:
            lines.append(step)
    lines.append(line("= total per target", reached, total=True))
    lines.append(line("counted in the target", counted))
    unexplained = _amounts(sides.table, counted - reached, currency)[field]
    return Proof(sides.table.name, field, currency, tuple(lines), unexplained)


def _steps(sides: Sides, cell: Cell) -> Iterable[tuple[str, Totals]]:
    """Yield the lines of a proof; exclusions have a line per rule and side."""
    rules = sorted({g.rule for g in (*sides.expected, *sides.found) if g.status == Status.EXCLUDED})
    for status, text in PROOF_TEXTS.items():
        if status is not Status.EXCLUDED:
            yield text, sides.explained(cell, _ended(status))
            continue
        for rule in rules:
            ended = _ended(status, rule)
            yield f"{text}: {rule}", Totals() - added(sides.expected, cell, ended)
            yield f"{EXCLUDED_THERE}: {rule}", added(sides.found, cell, ended)


def _ended(status: Status, rule: str | None = None) -> Callable[[Group], bool]:
    """A test of whether a group ended in a status and, if one is given, by this rule."""
    return lambda group: group.status == status and rule in (None, group.rule)


def chain_lines(sides: Sides, *, service: bool) -> tuple[ChainLine, ...]:
    """The completeness chain per currency: delivered, accepted, counting, in the target, pushed."""
    return tuple(
        line
        for currency in sides.currencies
        for line in _chain(sides.of_currency(currency), currency, service)
    )


def _chain(sides: Sides, currency: str, service: bool) -> list[ChainLine]:
    cell = Cell(None, currency)

    def refused(group: Group) -> bool:
        return group.state in ERRORS

    def left_out(group: Group) -> bool:
        return not refused(group) and group.status == Status.EXCLUDED

    def counting(group: Group) -> bool:
        return not refused(group) and group.status != Status.EXCLUDED

    def unpushed(group: Group) -> bool:
        return group.answer != "acknowledged" and (_explains(group) or group.answer == NOT_ASKED)

    nothing, counted = Totals(), sides.counted[cell]
    accepted = added(sides.expected, cell, lambda group: not refused(group))
    expected = added(sides.expected, cell, counting)
    in_error, out = (nothing - added(sides.expected, cell, of) for of in (refused, left_out))
    matched = sides.explained(cell, lambda group: counting(group) and _explains(group))
    other = matched + added(sides.found, cell, lambda group: not counting(group))
    stages = [
        ("delivered", sides.delivered[cell], "", nothing),
        ("accepted", accepted, "rejected and conflict", in_error),
        ("to be found", expected, "superseded, stale and left out by rules", out),
        ("in the target", counted, "breaks, timing, and what rules leave out there", other),
    ]
    if service:
        pushed = added(sides.found, cell, lambda group: group.answer == "acknowledged")
        why = "not confirmed there, or to no service"
        without = nothing - added(sides.found, cell, unpushed)
        stages.append(("acknowledged by the service", pushed, why, without))
    return list(_links(sides.table, currency, stages))


def _links(
    table: Table, currency: str, stages: list[tuple[str, Totals, str, Totals]]
) -> Iterable[ChainLine]:
    before = stages[0][1]
    for stage, totals, explained, accounted in stages:
        change = totals - before
        residual = change - accounted
        yield ChainLine(
            record=table.name,
            stage=stage,
            currency=currency,
            rows=totals.rows,
            amounts=_amounts(table, totals, currency),
            keys=totals.keys,
            rows_change=change.rows,
            amounts_change=_amounts(table, change, currency),
            explained=explained,
            residual_rows=residual.rows,
            residual=_amounts(table, residual, currency),
            unreadable=_unreadable(totals),
        )
        before = totals
