"""Records dated after the day of the report, shown apart because they are in none of its totals.

Page one has a line per record kind and currency, with its first amount; the annex has a line per
side and amount field.
"""

from collections.abc import Callable
from decimal import Decimal

from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    DATE,
    MONEY,
    RECORD,
    WORD,
    Cell,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.words import currency_label, readable, sources
from flows.report.spelling import record_title, ungrouped
from flows.steps.reconcile.cut_off import AfterLine
from flows.steps.reconcile.report import ReconciliationReport
from schemas.tables import EXTRACTS

SIDES = {"E": "delivered", "D": "in the database", "G": "listed"}
"""Names of the sides on page one, in order."""
TITLE = "After the cut-off"
NONE = "Nothing is dated after the day of this report."
NOTE = "Delivered counts every row of the extracts, also where one record came several times."
BARE = "without money"
"""Shown as the currency of a record kind without amounts."""


def after_text(report: ReconciliationReport) -> str:
    """Say how many records are dated after the day, by record kind and side."""
    lines = report.cover.after
    counts: dict[str, dict[str, int]] = {}
    for line in lines:
        sides = counts.setdefault(line.record, {})
        sides[line.side] = sides.get(line.side, 0) + line.rows
    listed = "; ".join(
        f"{record_title(record)}: "
        + ", ".join(f"{ungrouped(sides[side])} {of}" for side, of in SIDES.items() if side in sides)
        for record, sides in counts.items()
    )
    first, last = min(line.first for line in lines), max(line.last for line in lines)
    days = first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
    # A signed record that is dated later now has breaks that say so, but no other breaks.
    return f"{listed}. Dated {days}; in no total, and in no break but of what was signed"


def after_cut_off(report: ReconciliationReport) -> ReportTable:
    """The table for page one: a line per record kind and currency, with sides as columns."""
    lines: dict[tuple[str, str], dict[str, AfterLine]] = {}
    for line in _in_order(report):
        lines.setdefault((line.record, line.currency), {})[line.side] = line
    every = [line for sides in lines.values() for line in sides.values()]
    there = [side for side in SIDES if any(line.side == side for line in every)]
    moneyed = [side for side in there if any(line.side == side and line.amounts for line in every)]
    unread = any(_unreadable(line) for line in every)
    columns = (
        ReportColumn("Record", WORD, 34),
        CURRENCY,
        *(ReportColumn(SIDES[side].capitalize(), COUNT, 14) for side in there),
        *(ReportColumn(f"Money {SIDES[side]}", MONEY, 22) for side in moneyed),
        *([ReportColumn("Not readable", COUNT, 12)] if unread else []),
    )

    def cells(
        sides: dict[str, AfterLine], of: list[str], what: Callable[[AfterLine], Cell]
    ) -> list[Cell]:
        return [what(sides[side]) if side in sides else None for side in of]

    rows = [
        TableRow(
            (
                ", ".join([record_title(record), *_fields(record)[:1]]),
                _currency(report, record, currency),
                *cells(sides, there, lambda line: line.rows),
                *cells(sides, moneyed, _money),
                *([sum(map(_unreadable, sides.values())) or None] if unread else []),
            )
        )
        for (record, currency), sides in lines.items()
    ]
    return ReportTable("after_cut_off", TITLE, columns, rows, groups=1, none=NONE)


def after(report: ReconciliationReport) -> ReportTable:
    """The table for the annex: a line per side and amount field."""
    columns = (
        RECORD,
        CURRENCY,
        ReportColumn("Side", WORD, 24),
        ReportColumn("Records", COUNT, 12),
        ReportColumn("First day", DATE, 12),
        ReportColumn("Last day", DATE, 12),
        ReportColumn("Amount field", WORD, 18),
        ReportColumn("Amount", MONEY, 24),
        ReportColumn("Not readable", COUNT, 12),
    )
    rows: list[TableRow] = []
    for line in _in_order(report):
        head = (record_title(line.record), _currency(report, line.record, line.currency))
        of = (sources(line.side), line.rows, line.first, line.last)
        rows += [
            TableRow((*head, *of, name, _readable(line, name), line.unreadable.get(name)))
            for name in line.amounts
        ] or [TableRow((*head, *of, None, None, None))]
    return ReportTable("after", TITLE, columns, rows, groups=2, none=NONE)


def _in_order(report: ReconciliationReport) -> list[AfterLine]:
    """The lines by record kind in their given order, then by currency and side."""
    kinds = list(dict.fromkeys(line.record for line in report.cover.after))
    sides = list(SIDES)
    return sorted(
        report.cover.after,
        key=lambda line: (
            *(kinds.index(line.record), len(line.currency), line.currency),
            sides.index(line.side),
        ),
    )


def _currency(report: ReconciliationReport, record: str, currency: str) -> str:
    return currency_label(report, currency) if currency or _fields(record) else BARE


def _fields(record: str) -> tuple[str, ...]:
    return EXTRACTS[record].amounts if record in EXTRACTS else ()


def _money(line: AfterLine) -> Decimal | None:
    """The first amount of a line; None if no row has a readable one."""
    name = next(iter(line.amounts), None)
    return None if name is None else _readable(line, name)


def _readable(line: AfterLine, name: str) -> Decimal | None:
    return readable(line.amounts[name], line.rows, line.unreadable.get(name, 0))


def _unreadable(line: AfterLine) -> int:
    name = next(iter(line.amounts), "")
    return line.unreadable.get(name, 0)
