"""The first sheet of a workbook: the verdict and its reasons, the totals, the rules as used."""

from collections.abc import Iterable, Mapping
from datetime import date

from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from flows.report.reconciled.break_rows import cell_text, letter
from flows.report.reconciled.checks import Check, checked_columns
from flows.report.reconciled.first_page import NOTES, parts, to_sign, totals
from flows.report.reconciled.table import NUMERIC, Cell, ColumnKind, ReportColumn, ReportTable
from flows.report.reconciled.tables import facts
from flows.report.reconciled.words import verdict_of
from flows.report.reconciled.workbook_cells import (
    SHEETS,
    Formats,
    lay_out,
    make_high,
    over_rows,
    whole,
    write_cell,
    write_day,
    write_text,
)
from flows.steps.reconcile.report import ReconciliationReport
from schemas.counting import quantity

WIDTHS = (26, 72, 20, 20, 20, 20, 20, 20, 20)


def write_cover(
    sheet: Worksheet,
    report: ReconciliationReport,
    every: Iterable[ReportTable],
    checked: Mapping[str, list[tuple[Check, ...]]],
    formats: Formats,
) -> None:
    """Write the verdict and its reasons, the facts, the totals, and the rules that were used."""
    for place, width in enumerate(WIDTHS):
        sheet.set_column(place, place, width)
    lay_out(sheet, heads=False)
    verdict = verdict_of(report)
    sheet.write_string(0, 0, cell_text(report.cover.title), formats["title"])
    sheet.write_string(2, 0, "Verdict", formats["label"])
    sheet.write_string(2, 1, cell_text(verdict.word), formats[verdict.tone])
    sheet.write_string(3, 1, verdict.meaning)
    line = 4
    sign_off = [("Sign-off", one) for one in to_sign(report)]
    for name, text in (*sign_off, *(("Because", one) for one in report.cover.because)):
        line = _fact(sheet, line, name, text, formats)
    line += 1
    for name, value in facts(report):
        if isinstance(value, date):
            sheet.write_string(line, 0, name, formats["label"])
            write_day(sheet, line, 1, value, formats["fact day"])
            line += 1
        else:
            line = _fact(sheet, line, name, str(value), formats)
    self_test = report.self_test
    found = f"{self_test.found} of {quantity(self_test.planted, 'planted fault')} found"
    line = _fact(sheet, line, "Self-test", found, formats)
    _overall(sheet, line, every, checked, formats)
    line += 2
    for table in (totals(report), *parts(report)):
        line = _small(sheet, line + 1, table, formats)
    line += 1
    sheet.write_string(line, 0, "Rules as used", formats["head"])
    for text in report.cover.rules_text.splitlines():
        line = write_text(sheet, line, text, WIDTHS[1], formats)


def _fact(sheet: Worksheet, line: int, name: str, text: str, formats: Formats) -> int:
    sheet.write_string(line, 0, name, formats["label"])
    return write_text(sheet, line, text, WIDTHS[1], formats)


def _small(sheet: Worksheet, line: int, table: ReportTable, formats: Formats) -> int:
    """Write a table among others on one sheet, with figures as numbers; return the next line."""
    sheet.write_string(line, 0, cell_text(table.title), formats["section"])
    line += 1
    if not table.rows:
        sheet.write_string(line, 1, table.none, formats["note"])
        return line + 1
    if table.name in NOTES:
        line = write_text(sheet, line, NOTES[table.name], WIDTHS[1], formats)
    make_high(sheet, line, zip((one.name for one in table.columns), WIDTHS, strict=False))
    for place, column in enumerate(table.columns):
        head = formats["head n" if column.kind in NUMERIC else "head"]
        sheet.write_string(line, place, column.name, head)
    for row in table.rows:
        displayed = [_display(*one) for one in zip(row.cells, table.columns, strict=True)]
        for cells in over_rows(displayed, WIDTHS):
            line += 1
            texts = ((one, width) for one, width in zip(cells, WIDTHS, strict=False))
            make_high(sheet, line, [(one, width) for one, width in texts if isinstance(one, str)])
            for place, (cell, column) in enumerate(zip(cells, table.columns, strict=True)):
                if isinstance(cell, str):
                    sheet.write_string(line, place, cell, formats["cell"])
                else:
                    write_cell(sheet, line, place, cell, column.kind, formats)
    return line + 1


def _display(cell: Cell, column: ReportColumn) -> Cell:
    if not isinstance(cell, str):
        return cell
    return whole(cell) if column.kind is ColumnKind.TEXT else cell_text(cell)


def _overall(
    sheet: Worksheet,
    line: int,
    every: Iterable[ReportTable],
    checked: Mapping[str, list[tuple[Check, ...]]],
    formats: Formats,
) -> None:
    """Write how many lines have recomputed figures, and how many of these lines are OK."""
    done = [(table, _fitting(checked[table.name])) for table in every]
    ranges = [
        f"COUNTIF('{SHEETS[table.name]}'!{_check_column(table, checked[table.name])},\"OK\")"
        for table, found in done
        if found
    ]
    count = sum(len(found) for _, found in done)
    holding = sum(all(one.holds for one in line) for _, found in done for line in found)
    sheet.write_string(line, 0, "Lines recomputed", formats["label"])
    sheet.write_number(line, 1, count, formats["fact number"])
    sheet.write_string(line + 1, 0, "of these OK", formats["label"])
    if ranges:
        formula = f"={'+'.join(ranges)}"
        sheet.write_formula(line + 1, 1, formula, formats["fact number"], holding)
    else:
        sheet.write_number(line + 1, 1, 0, formats["fact number"])


def _fitting(every: Iterable[tuple[Check, ...]]) -> list[list[Check]]:
    """The checks of each line that a spreadsheet can compute, without lines that have none."""
    lines = ([one for one in line if one.fits] for line in every)
    return [line for line in lines if line]


def _check_column(table: ReportTable, every: Iterable[tuple[Check, ...]]) -> str:
    """The range of the column of checks, for use in a formula."""
    place = letter(len(table.columns) + len(checked_columns(every)))
    return f"{place}:{place}"
