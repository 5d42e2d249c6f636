"""The report as a workbook: a sheet per section, real numbers and days, recomputed totals.

XlsxWriter writes the book; the rows of the sheet of breaks, up to a hundred thousand, are inserted
afterwards. Nothing in it is a link, and no delivered text is ever a formula.
"""

import io
from collections.abc import Iterable, Sequence

import polars as pl
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from flows.report.reconciled.break_rows import letter
from flows.report.reconciled.break_sheet import BREAK_COLUMNS, MOST, columns_of, with_breaks
from flows.report.reconciled.checks import Check, checked_columns, checks
from flows.report.reconciled.data import breaks_frame
from flows.report.reconciled.first_page import as_signed
from flows.report.reconciled.table import ANNEX, NUMERIC, ColumnKind, ReportColumn, ReportTable
from flows.report.reconciled.tables import tables
from flows.report.reconciled.workbook_cells import (
    SHEETS,
    Formats,
    lay_out,
    make_formats,
    make_high,
    new_book,
    write_cell,
    write_text,
)
from flows.report.reconciled.workbook_chart import add_charts
from flows.report.reconciled.workbook_cover import write_cover
from flows.steps.reconcile.report import ReconciliationReport
from schemas.counting import agree, quantity

BREAKS = "Breaks"


def render_workbook(report: ReconciliationReport, frame: pl.DataFrame | None = None) -> bytes:
    """Render the workbook; equal reports give equal bytes. `frame` is `breaks_frame(report)`."""
    content = io.BytesIO()
    book = new_book(content, report.cover.title)
    book.set_calc_mode("auto")
    formats = make_formats(book)
    every = tables(report)
    checked = {table.name: checks(table)[:ANNEX] for table in every}
    write_cover(book.add_worksheet("Cover"), report, every, checked, formats)
    for table in every:
        sheet = book.add_worksheet(SHEETS[table.name])
        _table(sheet, table, checked[table.name], formats)
        if table.name == "roll_forward":
            add_charts(book, report, formats)
        if table.name == "proof":
            sheet = book.add_worksheet(BREAKS)
            _head(sheet, [one for _, one in BREAK_COLUMNS], formats, len(report.breaks))
            sheet.fit_to_pages(2, 0)
    _sign_off(book.add_worksheet("Sign-off"), report, formats)
    book.close()
    place = next(i for i, one in enumerate(book.worksheets(), 1) if one.get_name() == BREAKS)
    rows = breaks_frame(report) if frame is None else frame
    listed = columns_of(report, rows)
    left = rows.height - listed.height
    return with_breaks(content.getvalue(), f"xl/worksheets/sheet{place}.xml", listed, left)


def _table(
    sheet: Worksheet, table: ReportTable, checked: list[tuple[Check, ...]], formats: Formats
) -> None:
    again = checked_columns(checked)
    rows = table.rows[:ANNEX]
    _head(sheet, table.columns, formats, len(rows), again)
    for line, (row, found) in enumerate(zip(rows, checked, strict=False), 1):
        for place, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            write_cell(sheet, line, place, cell, column.kind, formats, total=row.total)
        _recomputed(sheet, line, len(table.columns), again, found, formats)
    notes = [table.none] if not rows else []
    if len(table.rows) > len(rows):
        left = len(table.rows) - len(rows)
        notes.append(f"{quantity(left, 'more line')} {agree(left, 'is', 'are')} in totals.json.")
    if table.left:
        notes.append(table.not_listed)
    for line, note in enumerate(notes, len(rows) + 1):
        sheet.write_string(line, 0, note, formats["note"])


def _head(
    sheet: Worksheet,
    columns: Sequence[ReportColumn],
    formats: Formats,
    rows: int,
    again: Sequence[int] = (),
) -> None:
    names, widths = [column.name for column in columns], [column.width for column in columns]
    for place, column in enumerate(columns):
        sheet.set_column(place, place, column.width, formats[column.kind])
    if again:
        last = len(names) + len(again)
        sheet.set_column(len(names), last - 1, 20, formats[ColumnKind.MONEY])
        sheet.set_column(last, last, 10)
        names += [f"{columns[one].name} recomputed" for one in again] + ["Check"]
        widths += [20] * len(again) + [10]
    sheet.freeze_panes(1, 0)
    if rows:
        sheet.autofilter(0, 0, min(rows, MOST), len(names) - 1)
    numbers = [column.kind in NUMERIC for column in columns]
    numbers += [True] * len(again) + [False]
    make_high(sheet, 0, zip(names, widths, strict=True))
    for place, (name, number) in enumerate(zip(names, numbers, strict=False)):
        sheet.write_string(0, place, name, formats["head n" if number else "head"])
    lay_out(sheet)


def _recomputed(
    sheet: Worksheet,
    line: int,
    first: int,
    again: Sequence[int],
    found: Iterable[Check],
    formats: Formats,
) -> None:
    """Write the sums of a line as formulas from column `first` on, and whether all of them hold."""
    same: list[str] = []
    holds = True
    for check in found:
        place = first + again.index(check.column)
        if not check.fits:
            sheet.write_string(line, place, "more than a cell holds", formats["note"])
            continue
        terms = "".join(
            f"{'+' if term.sign > 0 else '-'}{letter(term.column)}{term.row + 2}"
            for term in check.terms
        )
        look = formats[ColumnKind.COUNT if check.counts else ColumnKind.MONEY]
        formula = f"={terms.removeprefix('+')}"
        sheet.write_formula(line, place, formula, look, float(check.value))
        difference = f"ABS({letter(place)}{line + 1}-{letter(check.column)}{line + 1})"
        same.append(f"{difference}<{float(check.limit)!r}".upper())
        holds = holds and check.holds
    if same:
        alike = same[0] if len(same) == 1 else f"AND({','.join(same)})"
        look, word = (formats["ok"], "OK") if holds else (formats["check"], "CHECK")
        place = first + len(again)
        sheet.write_formula(line, place, f'=IF({alike},"OK","CHECK")', look, word)


def _sign_off(sheet: Worksheet, report: ReconciliationReport, formats: Formats) -> None:
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 80)
    lay_out(sheet)
    sheet.write_string(0, 0, "Sign-off", formats["head"])
    sign = report.sign_off
    which = f": {sign.report}" if sign else ""
    sheet.write_string(0, 1, f"The last report of this scope{which}", formats["head"])
    lines: list[tuple[str, str]] = [("", "No report of this scope has been signed before.")]
    if sign:
        lines = [
            ("Prepared by", sign.prepared_by or "nobody"),
            ("Approved by", sign.approved_by or "nobody"),
            ("Comment", sign.comment),
            ("Report hash", sign.report_hash),
            ("Chain hash", sign.chain_hash),
            ("Records changed since", as_signed(sign)),
        ]
    lines.append(("This report", "Its hashes are in manifest.json beside it."))
    line = 1
    for name, text in lines:
        sheet.write_string(line, 0, name, formats["label"])
        line = write_text(sheet, line, text, 80, formats)
