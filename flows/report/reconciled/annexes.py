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
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.words import currency_label
from flows.report.spelling import record_title
from flows.steps.reconcile.report import ReconciliationReport


def rates(report: ReconciliationReport) -> ReportTable:
    """Every rate that payments used, a line per currency paid under it."""
    columns = (
        ReportColumn("Rate", TEXT, 14),
        TENANT,
        ReportColumn("From", WORD, 14),
        ReportColumn("To", WORD, 14),
        ReportColumn("Value", MONEY, 16),
        ReportColumn("Effective", DATE, 12),
        ReportColumn("Payments", COUNT, 10),
        ReportColumn("Paid in", WORD, 14),
        ReportColumn("Amount", MONEY, 20),
        ReportColumn("Youngest use (days)", COUNT, 10),
        ReportColumn("Oldest use (days)", COUNT, 10),
        ReportColumn("Flags", WORD, 30),
        ReportColumn("Nearest rate", TEXT, 14),
        ReportColumn("Effect of nearest", MONEY, 18),
    )
    rows = []
    for one in flagged_first(report.rates):
        pair = (currency_label(report, one.source), currency_label(report, one.target))
        paid: list[tuple[str | None, Decimal | None]] = [
            (currency_label(report, currency), amount) for currency, amount in one.amounts.items()
        ]
        for currency, amount in paid or [(None, None)]:
            rows.append(
                TableRow(
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
    return ReportTable(
        "rates", "Exchange rates used", columns, rows, none="No payment used a rate."
    )


def plans(report: ReconciliationReport) -> ReportTable:
    """Payment plans: planned, paid, outstanding, overdue."""
    columns = (
        ReportColumn("Plan", TEXT, 14),
        TENANT,
        CURRENCY,
        ReportColumn("Details", COUNT, 9),
        ReportColumn("Planned", MONEY, 18),
        ReportColumn("Paid", MONEY, 18),
        ReportColumn("Outstanding", MONEY, 18),
        ReportColumn("Overdue", MONEY, 18),
        ReportColumn("Status codes", WORD, 14),
        ReportColumn("Flags", WORD, 34),
    )
    rows = [
        TableRow(
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
    return ReportTable(
        "plans", "Payment plans", columns, rows, none="No plan details were compared."
    )


def debts(report: ReconciliationReport) -> ReportTable:
    """Debts: what was paid, what was planned, which invoice files there are."""
    columns = (
        ReportColumn("Debt", TEXT, 14),
        TENANT,
        CURRENCY,
        ReportColumn("Payments", COUNT, 10),
        ReportColumn("Paid", MONEY, 18),
        ReportColumn("Discount", MONEY, 18),
        ReportColumn("Planned", MONEY, 18),
        ReportColumn("Invoice files", COUNT, 10),
        ReportColumn("Flags", WORD, 34),
    )
    rows = [
        TableRow(
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
    return ReportTable("debts", "Debts and documents", columns, rows, none="No debt was compared.")


def batches(report: ReconciliationReport) -> ReportTable:
    """Insert-batch data by BatchId."""
    columns = (
        ReportColumn("BatchId", NUMBER, 10),
        ReportColumn("Sent", COUNT, 10),
        ReportColumn("Listed", COUNT, 10),
        ReportColumn("Merged", COUNT, 10),
        ReportColumn("Errors", COUNT, 10),
        ReportColumn("Contradictions", COUNT, 14),
        ReportColumn("Run it again", WORD, 44),
    )
    rows = [
        TableRow(
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
    return ReportTable("batches", "Insert-batch data", columns, rows, none=none)


def tolerances(report: ReconciliationReport) -> ReportTable:
    """What was waved through, against its limits."""
    columns = (
        ReportColumn("Rule", TEXT, 36),
        CURRENCY,
        ReportColumn("Differences", COUNT, 12),
        ReportColumn("Limit", COUNT, 12),
        ReportColumn("Amount", MONEY, 18),
        ReportColumn("Amount limit", MONEY, 18),
        ReportColumn("Within", WORD, 12),
    )
    rows = [
        TableRow(
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
    return ReportTable("tolerances", "Tolerance budget", columns, rows, none=none)


def causes(report: ReconciliationReport) -> ReportTable:
    """Breaks that read as one cause, a line per currency."""
    columns = (
        ReportColumn("Cause", WORD, 20),
        ReportColumn("What they have in common", TEXT, 60),
        ReportColumn("Breaks", COUNT, 10),
        ReportColumn("Of these open", COUNT, 10),
        CURRENCY,
        ReportColumn("Difference", MONEY, 20),
        ReportColumn("Gross", MONEY, 20),
        ReportColumn("First break", WORD, 20),
    )
    rows: list[TableRow] = []
    todo = pooled_causes(report)["open"]
    for one in report.causes:
        shares = todo[one.id].shares if one.id in todo else {}
        rows += [
            TableRow(
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
    return ReportTable("causes", "Cause groups", columns, rows, none=none)


def excluded(report: ReconciliationReport) -> ReportTable:
    """Records that rules left out."""
    columns = (
        ReportColumn("Rule", TEXT, 30),
        RECORD,
        ReportColumn("Records", COUNT, 12),
        ReportColumn("Reason", TEXT, 60),
    )
    rows = [
        TableRow((one.rule, record_title(one.record), one.rows, one.reason))
        for one in report.excluded
    ]
    return ReportTable(
        "excluded", "Excluded records", columns, rows, none="No record was left out."
    )


class _Flagged(Protocol):
    @property
    def flags(self) -> tuple[str, ...]: ...


_F = TypeVar("_F", bound=_Flagged)


def flagged_first(lines: Sequence[_F]) -> list[_F]:
    """Lines of an annex with those that have a flag in front, otherwise as they were."""
    return sorted(lines, key=lambda one: not one.flags)
