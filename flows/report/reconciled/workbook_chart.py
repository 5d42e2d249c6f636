"""The sheet of charts: native charts of the workbook, over figures beside them."""

from collections.abc import Iterable
from decimal import Decimal

import xlsxwriter  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from flows.report.reconciled.chart import AGES, DOWN, EXPECTED, FOUND, TOTAL, UP, ages_by_class
from flows.report.reconciled.checks import survives
from flows.report.reconciled.table import ColumnKind
from flows.report.reconciled.words import currency_label
from flows.report.reconciled.workbook_cells import Formats, lay_out, number_text
from flows.report.spelling import record_title
from flows.steps.breaks.ageing import BUCKETS
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.roll_forward import RollForward
from flows.steps.reconcile.totals import Proof
from schemas.amounts import EXACT

NAME = "Charts"
WIDTH, HEIGHT = 720, 300
LINES = 16
"""Rows that a chart covers."""
GRID = {"visible": True, "line": {"color": "#D9DEE4", "width": 0.5}}
NO_GRID = {"visible": False}
MOST = 12
"""Most charts of one kind."""


def add_charts(book: xlsxwriter.Workbook, report: ReconciliationReport, formats: Formats) -> None:
    """Add charts of breaks by class and age, of both sides, and a waterfall per currency."""
    sheet = book.add_worksheet(NAME)
    sheet.set_column(0, 0, 34, formats[ColumnKind.WORD])
    sheet.set_column(1, 8, 12)
    lay_out(sheet, heads=False)
    line = _by_class(book, sheet, report)
    for proof in [one for one in report.proofs if one.lines and one.lines[0].amount][:MOST]:
        line = _sides(book, sheet, report, proof, line)
    for forward in [one for one in report.roll_forward if _falls(one)][:MOST]:
        line = _waterfall(book, sheet, report, forward, line)


def _by_class(book: xlsxwriter.Workbook, sheet: Worksheet, report: ReconciliationReport) -> int:
    counts = ages_by_class(report.breaks)
    sheet.write_row(0, 0, ["Open breaks by class and age", *(f"{one} days" for one in BUCKETS)])
    for line, (name, ages) in enumerate(counts.items(), 1):
        sheet.write_row(line, 0, [name, *ages])
    if not counts:
        return 3
    chart = book.add_chart({"type": "bar", "subtype": "stacked"})
    for place, colour in enumerate(AGES, 1):
        chart.add_series({**_series(place, 0, len(counts), colour), "gap": 60})
    chart.set_x_axis({"major_gridlines": GRID})
    chart.set_y_axis({"reverse": True, "major_gridlines": NO_GRID})
    _placed(sheet, chart, "Open breaks by class and age", len(counts) + 2)
    return len(counts) + 3 + LINES


def _sides(
    book: xlsxwriter.Workbook,
    sheet: Worksheet,
    report: ReconciliationReport,
    proof: Proof,
    line: int,
) -> int:
    currency = currency_label(report, proof.currency)
    title = f"{record_title(proof.record)} {proof.field}, {currency}"
    totals = (proof.lines[0].amount, proof.lines[-1].amount)
    sheet.write_row(line, 0, [title, "extract", "target"])
    if not _write(sheet, line + 1, "total", totals):
        return _not_drawn(sheet, line + 2)
    chart = book.add_chart({"type": "bar"})
    for place, colour in ((1, EXPECTED), (2, FOUND)):
        chart.add_series(_series(place, line, line + 1, colour))
    ends = ({"min": 0} if min(totals) >= 0 else {}) | ({"max": 0} if max(totals) <= 0 else {})
    chart.set_x_axis({**ends, "num_format": "#,##0", "major_gridlines": GRID})
    chart.set_y_axis({"major_gridlines": NO_GRID})
    _placed(sheet, chart, title, line + 3, height=180)
    return line + 4 + 10


def _falls(forward: RollForward) -> bool:
    """Whether a waterfall of columns can show it: it has amounts and never falls below zero."""
    reached = Decimal(0)
    for one in forward.lines:
        reached = one.amount if one.total else EXACT.add(reached, one.amount)
        if reached < 0:
            return False
    return any(one.amount for one in forward.lines)


def _waterfall(
    book: xlsxwriter.Workbook,
    sheet: Worksheet,
    report: ReconciliationReport,
    forward: RollForward,
    line: int,
) -> int:
    title = f"Roll-forward of open breaks, {currency_label(report, forward.currency)}"
    sheet.write_row(line, 0, [title, "below", "stands", "added", "gone"])
    reached, drawn = Decimal(0), True
    listed = [one for one in forward.lines if one.total or one.amount]
    for offset, one in enumerate(listed, 1):
        after = one.amount if one.total else EXACT.add(reached, one.amount)
        below = Decimal(0) if one.total else min(reached, after)
        step = EXACT.subtract(after, reached)
        parts = (
            below,
            one.amount if one.total else Decimal(0),
            step if step > 0 and not one.total else Decimal(0),
            step.copy_negate() if step < 0 and not one.total else Decimal(0),
        )
        drawn &= _write(sheet, line + offset, one.text.split(":")[0], parts)
        reached = after
    last = line + len(listed)
    if not drawn:
        return _not_drawn(sheet, last + 1)
    chart = book.add_chart({"type": "column", "subtype": "stacked"})
    for place, colour in ((1, None), (2, TOTAL), (3, UP), (4, DOWN)):
        chart.add_series({**_series(place, line, last, colour), "gap": 40})
    chart.set_legend({"position": "bottom", "delete_series": [0]})
    chart.set_y_axis({"num_format": "#,##0", "major_gridlines": GRID})
    _placed(sheet, chart, title, last + 2)
    return last + 3 + LINES


def _write(sheet: Worksheet, line: int, name: str, figures: Iterable[Decimal]) -> bool:
    """Write a line of figures; return whether cells hold all of them, as text cannot be drawn."""
    sheet.write_string(line, 0, name)
    drawn = True
    for place, figure in enumerate(figures, 1):
        if survives(figure):
            sheet.write_number(line, place, float(figure))
        else:
            sheet.write_string(line, place, number_text(figure))
            drawn = False
    return drawn


def _not_drawn(sheet: Worksheet, line: int) -> int:
    sheet.write_string(line, 0, "Not drawn: more than a cell holds.")
    return line + 2


def _series(place: int, head: int, last: int, colour: str | None) -> dict[str, object]:
    """A series from a column of figures below its name; without a colour it is invisible."""
    return {
        "name": [NAME, head, place],
        "categories": [NAME, head + 1, 0, last, 0],
        "values": [NAME, head + 1, place, last, place],
        "fill": {"color": colour} if colour else {"none": True},
    }


def _placed(
    sheet: Worksheet, chart: xlsxwriter.chart.Chart, title: str, line: int, height: int = HEIGHT
) -> None:
    chart.set_title({"name": title, "name_font": {"size": 11}, "overlay": False})
    chart.set_size({"width": WIDTH, "height": height})
    sheet.insert_chart(line, 0, chart, {"description": title})
