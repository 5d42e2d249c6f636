"""Who accepted what, until when and why, since the approver answers for all of it."""

from datetime import date

import polars as pl

from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    DATE,
    MONEY,
    TEXT,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.words import currency_label
from flows.steps.breaks.shares import OF_MONEY, Shares, most_money_first, shares_by, together
from flows.steps.reconcile.report import ReconciliationReport
from schemas.counting import quantity
from schemas.life import BreakState

ACCEPTANCES = 20
"""Acceptances with most money that are listed; the others are one line per currency."""
_TERMS = ("accepted_by", "accepted_until", "accepted_reason")


def accepted_by(report: ReconciliationReport) -> ReportTable:
    """The accepted breaks by who accepted them; the sums cover all accepted breaks."""
    columns = (
        ReportColumn("Accepted by", TEXT, 28),
        ReportColumn("Reason", TEXT, 60),
        ReportColumn("Last day", DATE, 12),
        ReportColumn("Breaks", COUNT, 12),
        CURRENCY,
        ReportColumn("Difference", MONEY, 24),
        ReportColumn("Gross", MONEY, 24),
        ReportColumn("Not readable", COUNT, 12),
    )
    breaks = report.breaks.where("state", BreakState.ACCEPTED).frame.select(*OF_MONEY, *_TERMS)
    texts = (pl.col(name).cast(pl.String).fill_null("") for name in _TERMS)
    groups = sorted(
        shares_by(breaks, *texts).items(), key=lambda one: (most_money_first(one[1]), one[0])
    )
    named, others = groups[:ACCEPTANCES], groups[ACCEPTANCES:]
    rows = [
        row
        for (by, until, reason), shares in named
        for row in _rows(report, by, reason, date.fromisoformat(until) if until else None, shares)
    ]
    if others:
        label = quantity(len(others), "other acceptance")
        rows += _rows(
            report, label, "in the list of breaks", None, together(of for _, of in others)
        )
    title = "Accepted by whom"
    return ReportTable("accepted_by", title, columns, rows, none="No break is accepted.")


def _rows(
    report: ReconciliationReport, by: str, reason: str, until: date | None, shares: Shares
) -> list[TableRow]:
    return [
        TableRow(
            (
                *(by, reason, until, share.breaks, currency_label(report, currency)),
                *(share.difference, share.gross, share.sums.unreadable or None),
            )
        )
        for currency, share in shares.items()
    ]
