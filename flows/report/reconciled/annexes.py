"""The annexes as tables: rates, plans, debts, batches, tolerances, causes, exclusions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

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
    Cell,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.words import currency_label
from flows.report.spelling import record_title
from flows.steps.breaks.cause_groups import MOST_MONEY
from flows.steps.reconcile.report import ReconciliationReport

_L = TypeVar("_L")


def rates(report: ReconciliationReport) -> ReportTable:
    """Every rate that payments used, a line per currency paid under it.

    Values about all payments of a rate are in its first line only, so that columns add up.
    """
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
        ReportColumn("Effect in", WORD, 14),
    )
    rows = []
    for one in _flagged_first(report.rates):
        pair = (currency_label(report, one.source), currency_label(report, one.target))
        paid: list[tuple[str | None, Decimal | None]] = [
            (currency_label(report, currency), amount) for currency, amount in one.amounts.items()
        ]
        into = currency_label(report, one.rerated_in) if one.rerated_in else None
        head = (one.rate, one.tenant, *pair, one.value, one.effective)
        flags = ", ".join(one.flags)
        first = (one.age_min, one.age_max, flags, one.nearest, one.rerated, into)
        later = (None, None, flags, None, None, None)
        for place, (currency, amount) in enumerate(paid or [(None, None)]):
            payments = None if place else one.payments
            rows.append(TableRow((*head, payments, currency, amount, *(later if place else first))))
    none = "No rate of a payment was compared."
    return _table(report, "rates", "Exchange rates used", columns, rows, none)


PLANS = {
    "plan": ReportColumn("Plan", TEXT, 14),
    "tenant": TENANT,
    "currency": CURRENCY,
    "details": ReportColumn("Details", COUNT, 9),
    "planned": ReportColumn("Planned", MONEY, 18),
    "paid": ReportColumn("Paid", MONEY, 18),
    "outstanding": ReportColumn("Outstanding", MONEY, 18),
    "overdue": ReportColumn("Overdue", MONEY, 18),
    "status_codes": ReportColumn("Status codes", WORD, 14),
    "flags": ReportColumn("Flags", WORD, 34),
}
DEBTS = {
    "debt": ReportColumn("Debt", TEXT, 14),
    "tenant": TENANT,
    "currency": CURRENCY,
    "payments": ReportColumn("Payments", COUNT, 10),
    "paid": ReportColumn("Paid", MONEY, 18),
    "discount": ReportColumn("Discount", MONEY, 18),
    "planned": ReportColumn("Planned", MONEY, 18),
    "invoices": ReportColumn("Invoice files", COUNT, 10),
    "flags": ReportColumn("Flags", WORD, 34),
}
BATCHES = {
    "batch": ReportColumn("BatchId", NUMBER, 10),
    "sent": ReportColumn("Sent", COUNT, 10),
    "listed": ReportColumn("Listed", COUNT, 10),
    "merged": ReportColumn("Merged", COUNT, 10),
    "errors": ReportColumn("Errors", COUNT, 10),
    "contradictions": ReportColumn("Contradictions", COUNT, 14),
    "rerun": ReportColumn("Run it again", WORD, 44),
}
TOLERANCES = {
    "rule": ReportColumn("Rule", TEXT, 36),
    "currency": CURRENCY,
    "count": ReportColumn("Differences", COUNT, 12),
    "count_limit": ReportColumn("Limit", COUNT, 12),
    "amount": ReportColumn("Amount", MONEY, 18),
    "amount_limit": ReportColumn("Amount limit", MONEY, 18),
}
EXCLUDED = {
    "rule": ReportColumn("Rule", TEXT, 30),
    "record": RECORD,
    "rows": ReportColumn("Records", COUNT, 12),
    "reason": ReportColumn("Reason", TEXT, 60),
}


ANNEXES: Mapping[str, tuple[str, Mapping[str, ReportColumn], str]] = {
    "plans": ("Payment plans", PLANS, "No plan details were compared."),
    "debts": ("Debts and documents", DEBTS, "No debt was compared."),
    "batches": ("Insert-batch data", BATCHES, "No insert-batch data was compared."),
    "excluded": ("Excluded records", EXCLUDED, "No record was left out."),
}
"""Lists of the report that are shown as they are: title, columns, text for an empty list."""


def annex(report: ReconciliationReport, name: str) -> ReportTable:
    """One of ANNEXES, with flagged lines first."""
    title, columns, none = ANNEXES[name]
    rows = [TableRow(cells(report, columns, one)) for one in _flagged_first(getattr(report, name))]
    return _table(report, name, title, (*columns.values(),), rows, none)


def tolerances(report: ReconciliationReport) -> ReportTable:
    """The tolerated differences, against their limits."""
    columns = (*TOLERANCES.values(), ReportColumn("Within", WORD, 12))
    rows = [
        TableRow(
            (*cells(report, TOLERANCES, one), "within" if one.within else "over the limit"),
            bad=not one.within,
        )
        for one in report.tolerances
    ]
    none = "No difference was inside a tolerance: nothing was waved through."
    return ReportTable("tolerances", "Tolerance budget", columns, rows, none=none)


def causes(report: ReconciliationReport) -> ReportTable:
    """Breaks that look like one cause, a line per currency."""
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
    table = _table(report, "causes", "Cause groups", columns, rows, none)
    chosen = f"those of most breaks are, and in each currency the {MOST_MONEY} of most money"
    return replace(table, chosen=chosen)


def _table(
    report: ReconciliationReport,
    name: str,
    title: str,
    columns: tuple[ReportColumn, ...],
    rows: Sequence[TableRow],
    none: str,
) -> ReportTable:
    left = report.left_out.get(name, 0)
    return ReportTable(name, title, columns, rows, none=none, left=left)


def cells(
    report: ReconciliationReport, columns: Mapping[str, ReportColumn], line: object
) -> tuple[Cell, ...]:
    """The attributes of a line that the columns are for, in the form shown to people."""
    return tuple(_cell(report, columns[name], getattr(line, name)) for name in columns)


def _cell(report: ReconciliationReport, column: ReportColumn, value: Any) -> Cell:
    if column is CURRENCY:
        return currency_label(report, value)
    if column is RECORD:
        return record_title(value)
    cell: Cell = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    return cell


def _flagged_first(lines: Sequence[_L]) -> list[_L]:
    """Lines of an annex with flagged ones first, otherwise in their order."""
    return sorted(lines, key=lambda one: not getattr(one, "flags", ()))
