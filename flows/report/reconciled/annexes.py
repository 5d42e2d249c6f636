"""The annexes as tables: rates, plans, debts, batches, tolerances, causes, exclusions."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol, TypeVar

from flows.report.reconciled.pools import pooled_causes
from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    DATE,
    MONEY,
    NUMBER,
    RECORD,
    TENANT,
    TEXT,
    WORD,
    Column,
    Row,
    Table,
)
from flows.report.reconciled.words import currency_label, record_title
from flows.steps.reconcile.report import ReconciliationReport


def rates(report: ReconciliationReport) -> Table:
    """Every rate that payments used, a line per currency paid under it."""
    columns = (
        Column("Rate", TEXT, 14),
        TENANT,
        Column("From", WORD, 14),
        Column("To", WORD, 14),
        Column("Value", MONEY, 16),
        Column("Effective", DATE, 12),
        Column("Payments", COUNT, 10),
        Column("Paid in", WORD, 14),
        Column("Amount", MONEY, 20),
        Column("Youngest use (days)", COUNT, 10),
        Column("Oldest use (days)", COUNT, 10),
        Column("Flags", WORD, 30),
        Column("Nearest rate", TEXT, 14),
        Column("Effect of nearest", MONEY, 18),
    )
    rows = []
    for one in flagged_first(report.rates):
        pair = (currency_label(report, one.source), currency_label(report, one.target))
        paid: list[tuple[str | None, Decimal | None]] = [
            (currency_label(report, currency), amount) for currency, amount in one.amounts.items()
        ]
        for currency, amount in paid or [(None, None)]:
            rows.append(
                Row(
                    (
                        one.rate,
                        one.tenant,
                        *pair,
                        one.value,
                        one.effective,
                        one.payments,
                        currency,
                        amount,
                        one.age_min,
                        one.age_max,
                        ", ".join(one.flags),
                        one.nearest,
                        one.rerated,
                    )
                )
            )
    return Table("rates", "Exchange rates used", columns, rows, none="No payment used a rate.")


def plans(report: ReconciliationReport) -> Table:
    """Payment plans: planned, paid, outstanding, overdue."""
    columns = (
        Column("Plan", TEXT, 14),
        TENANT,
        CURRENCY,
        Column("Details", COUNT, 9),
        Column("Planned", MONEY, 18),
        Column("Paid", MONEY, 18),
        Column("Outstanding", MONEY, 18),
        Column("Overdue", MONEY, 18),
        Column("Status codes", WORD, 14),
        Column("Flags", WORD, 34),
    )
    rows = [
        Row(
            (
                one.plan,
                one.tenant,
                currency_label(report, one.currency),
                one.details,
                one.planned,
                one.paid,
                one.outstanding,
                one.overdue,
                ", ".join(map(str, one.status_codes)),
                ", ".join(one.flags),
            )
        )
        for one in flagged_first(report.plans)
    ]
    return Table("plans", "Payment plans", columns, rows, none="No plan details were compared.")


def debts(report: ReconciliationReport) -> Table:
    """Debts: what was paid, what was planned, which invoice files there are."""
    columns = (
        Column("Debt", TEXT, 14),
        TENANT,
        CURRENCY,
        Column("Payments", COUNT, 10),
        Column("Paid", MONEY, 18),
        Column("Discount", MONEY, 18),
        Column("Planned", MONEY, 18),
        Column("Invoice files", COUNT, 10),
        Column("Flags", WORD, 34),
    )
    rows = [
        Row(
            (
                one.debt,
                one.tenant,
                currency_label(report, one.currency),
                one.payments,
                one.paid,
                one.discount,
                one.planned,
                one.invoices,
                ", ".join(one.flags),
            )
        )
        for one in flagged_first(report.debts)
    ]
    return Table("debts", "Debts and documents", columns, rows, none="No debt was compared.")


def batches(report: ReconciliationReport) -> Table:
    """Insert-batch data by BatchId."""
    columns = (
        Column("BatchId", NUMBER, 10),
        Column("Sent", COUNT, 10),
        Column("Listed", COUNT, 10),
        Column("Merged", COUNT, 10),
        Column("Errors", COUNT, 10),
        Column("Contradictions", COUNT, 14),
        Column("Run it again", WORD, 44),
    )
    rows = [
        Row(
            (
                one.batch,
                one.sent,
                one.listed,
                one.merged,
                one.errors,
                one.contradictions,
                one.rerun,
            )
        )
        for one in report.batches
    ]
    none = "No insert-batch data was compared."
    return Table("batches", "Insert-batch data", columns, rows, none=none)


def tolerances(report: ReconciliationReport) -> Table:
    """What was waved through, against its limits."""
    columns = (
        Column("Rule", TEXT, 36),
        CURRENCY,
        Column("Differences", COUNT, 12),
        Column("Limit", COUNT, 12),
        Column("Amount", MONEY, 18),
        Column("Amount limit", MONEY, 18),
        Column("Within", WORD, 12),
    )
    rows = [
        Row(
            (
                one.rule,
                currency_label(report, one.currency),
                one.count,
                one.count_limit,
                one.amount,
                one.amount_limit,
                "within" if one.within else "over the limit",
            ),
            bad=not one.within,
        )
        for one in report.tolerances
    ]
    none = "No difference was inside a tolerance: nothing was waved through."
    return Table("tolerances", "Tolerance budget", columns, rows, none=none)


def causes(report: ReconciliationReport) -> Table:
    """Breaks that read as one cause, a line per currency."""
    columns = (
        Column("Cause", WORD, 20),
        Column("What they have in common", TEXT, 60),
        Column("Breaks", COUNT, 10),
        Column("Of these open", COUNT, 10),
        CURRENCY,
        Column("Difference", MONEY, 20),
        Column("Gross", MONEY, 20),
        Column("First break", WORD, 20),
    )
    rows: list[Row] = []
    todo = pooled_causes(report)["open"]
    for one in report.causes:
        shares = todo[one.id].shares if one.id in todo else {}
        rows += [
            Row(
                (
                    *(one.id, one.title, one.counts[key]),
                    shares[key].breaks if key in shares else 0,
                    currency_label(report, key) if key or len(one.counts) > 1 else None,
                    *(one.amounts.get(key), one.gross.get(key), one.first),
                )
            )
            for key in sorted(one.counts, key=lambda key: (len(key), key))
        ]
    none = "No two breaks read as one cause."
    return Table("causes", "Cause groups", columns, rows, none=none)


def excluded(report: ReconciliationReport) -> Table:
    """Records that rules left out."""
    columns = (
        Column("Rule", TEXT, 30),
        RECORD,
        Column("Records", COUNT, 12),
        Column("Reason", TEXT, 60),
    )
    rows = [
        Row((one.rule, record_title(one.record), one.rows, one.reason)) for one in report.excluded
    ]
    return Table("excluded", "Excluded records", columns, rows, none="No record was left out.")


class _Flagged(Protocol):
    @property
    def flags(self) -> tuple[str, ...]: ...


_F = TypeVar("_F", bound=_Flagged)


def flagged_first(lines: Sequence[_F]) -> list[_F]:
    """Lines of an annex with those that have a flag in front, otherwise as they were."""
    return sorted(lines, key=lambda one: not one.flags)
