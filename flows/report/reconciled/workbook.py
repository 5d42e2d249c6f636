"""The report as a workbook: a sheet per section, real numbers and days, totals that are checked.

XlsxWriter writes the book; the rows of the sheet of breaks, which may be a hundred thousand, are
put into it afterwards. Nothing in it is a link, and no delivered text is ever a formula.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import xlsxwriter  # type: ignore[import-untyped]
from xlsxwriter.format import Format  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from flows.report.reconciled.break_rows import FIRST_DAY, LONGEST, cell_text, letter
from flows.report.reconciled.break_sheet import BREAK_COLUMNS, MOST, columns_of, with_breaks
from flows.report.reconciled.checks import Check, checked_columns, checks, survives
from flows.report.reconciled.data import breaks_frame
from flows.report.reconciled.first_page import MONEY_NOTE, parts, to_sign, totals
from flows.report.reconciled.table import NUMERIC, Cell, ColumnKind, ReportColumn, ReportTable
from flows.report.reconciled.tables import facts, tables
from flows.report.reconciled.words import verdict_of
from flows.report.reconciled.workbook_chart import add_charts
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.totals import plain
from schemas.counting import agree, quantity

ANNEX = 20_000
"""Lines of any other table."""
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 -- Workbooks know no time zone.
"""Workbooks carry a day; every one carries this, so that equal reports are equal files."""

SHEETS: Mapping[str, str] = {
    "truths": "Sources",
    "inputs": "Input files",
    "after": "After the cut-off",
    "statuses": "Statuses",
    "chain": "Chain",
    "controls": "Control totals",
    "proof": "Difference proof",
    "ageing": "Ageing",
    "roll_forward": "Roll-forward",
    "accepted_forward": "Accepted",
    "aside_forward": "Set aside",
    "rates": "Rates",
    "plans": "Plans",
    "debts": "Debts",
    "batches": "Insert-batch data",
    "tolerances": "Tolerances",
    "causes": "Causes",
    "excluded": "Excluded",
}
BREAKS = "Breaks"
Formats = Mapping[str, Format]


def render_workbook(report: ReconciliationReport, frame: pl.DataFrame | None = None) -> bytes:
    """The workbook's bytes; equal reports give equal bytes. `frame` is `breaks_frame(report)`."""
    content = io.BytesIO()
    book = xlsxwriter.Workbook(
        content,
        {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_numbers": False,
            "strings_to_urls": False,
        },
    )
    book.set_properties({"title": cell_text(report.cover.title), "created": CREATED})
    book.set_calc_mode("auto")
    formats = _formats(book)
    every = tables(report)
    checked = {table.name: checks(table) for table in every}
    _cover(book.add_worksheet("Cover"), report, every, checked, formats)
    for table in every:
        sheet = book.add_worksheet(SHEETS[table.name])
        _table(sheet, table, checked[table.name], formats)
        if table.name == "roll_forward":
            add_charts(book, report)
        if table.name == "proof":
            sheet = book.add_worksheet(BREAKS)
            _head(sheet, [one for _, one in BREAK_COLUMNS], formats, len(report.breaks))
            sheet.fit_to_pages(2, 0)
    _sign_off(book.add_worksheet("Sign-off"), report, formats)
    book.close()
    place = next(i for i, one in enumerate(book.worksheets(), 1) if one.get_name() == BREAKS)
    rows = breaks_frame(report) if frame is None else frame
    told = columns_of(report, rows)
    left = rows.height - told.height
    return with_breaks(content.getvalue(), f"xl/worksheets/sheet{place}.xml", told, left)


def _formats(book: xlsxwriter.Workbook) -> Formats:
    money = "#,##0.00##################"
    looks: Mapping[str, Mapping[str, object]] = {
        "head": {
            "align": "left",
            "bold": True,
            "bottom": 1,
            "text_wrap": True,
            "valign": "top",
            "bg_color": "#EEF1F4",
            "indent": 1,
        },
        "head n": {
            "bold": True,
            "bottom": 1,
            "text_wrap": True,
            "valign": "top",
            "align": "right",
            "bg_color": "#EEF1F4",
        },
        "title": {"bold": True, "font_size": 15, "font_color": "#1D3B57"},
        "section": {"bold": True, "font_size": 12, "font_color": "#1D3B57"},
        "label": {"font_color": "#56616E", "valign": "top"},
        "wrap": {"text_wrap": True, "valign": "top", "quote_prefix": True},
        "good": {"bold": True, "font_size": 14, "font_color": "#1C6644"},
        "warn": {"bold": True, "font_size": 14, "font_color": "#7D5200"},
        "bad": {"bold": True, "font_size": 14, "font_color": "#9C2B1D"},
        ColumnKind.WORD: {"indent": 1},
        # The sign that what follows is text also when somebody edits the cell.
        ColumnKind.TEXT: {"quote_prefix": True, "indent": 1},
        ColumnKind.NUMBER: {"num_format": "0", "align": "left", "indent": 1},
        ColumnKind.COUNT: {"num_format": "#,##0"},
        ColumnKind.MONEY: {"num_format": money},
        ColumnKind.DATE: {"num_format": "yyyy-mm-dd", "align": "left", "indent": 1},
        "ok": {"font_color": "#1C6644", "bold": True, "indent": 1},
        "check": {"font_color": "#9C2B1D", "bold": True, "indent": 1},
        "note": {"italic": True, "font_color": "#56616E"},
    }
    totals = {"bold": True, "top": 1}
    return {
        **{name: book.add_format(dict(look)) for name, look in looks.items()},
        **{f"total {kind}": book.add_format({**looks[kind], **totals}) for kind in ColumnKind},
    }


def _cover(
    sheet: Worksheet,
    report: ReconciliationReport,
    every: Iterable[ReportTable],
    checked: Mapping[str, list[tuple[Check, ...]]],
    formats: Formats,
) -> None:
    sheet.set_column(0, 0, 26)
    sheet.set_column(1, 1, 72)
    sheet.set_column(2, 8, 20)
    _page(sheet, heads=False)
    verdict = verdict_of(report)
    sheet.write_string(0, 0, cell_text(report.cover.title), formats["title"])
    sheet.write_string(2, 0, "Verdict", formats["label"])
    sheet.write_string(2, 1, cell_text(verdict.word), formats[verdict.tone])
    sheet.write_string(3, 1, verdict.meaning)
    line = 4
    for told in to_sign(report):
        sheet.write_string(line, 0, "Sign-off", formats["label"])
        sheet.write_string(line, 1, cell_text(told), formats["wrap"])
        line += 1
    for because in report.cover.because:
        sheet.write_string(line, 0, "Because", formats["label"])
        sheet.write_string(line, 1, cell_text(because), formats["wrap"])
        line += 1
    line += 1
    for name, value in facts(report):
        sheet.write_string(line, 0, name, formats["label"])
        if isinstance(value, date):
            _day(sheet, line, 1, value, formats[ColumnKind.DATE])
        else:
            sheet.write_string(line, 1, cell_text(str(value)), formats["wrap"])
        line += 1
    self_test = report.self_test
    sheet.write_string(line, 0, "Self-test", formats["label"])
    sheet.write_string(
        line, 1, f"{self_test.found} of {quantity(self_test.planted, 'planted fault')} found"
    )
    _overall(sheet, line + 1, every, checked, formats)
    line += 3
    for table in (totals(report), *parts(report)):
        line = _small(sheet, line + 1, table, formats)
    sheet.write_string(line + 1, 0, "Rules as used", formats["head"])
    for offset, text in enumerate(report.cover.rules_text.splitlines()):
        sheet.write_string(line + 1 + offset, 1, cell_text(text), formats["wrap"])


def _small(sheet: Worksheet, line: int, table: ReportTable, formats: Formats) -> int:
    """A table among others on one sheet, every figure a number; returns the line behind it."""
    sheet.write_string(line, 0, cell_text(table.title), formats["section"])
    line += 1
    if not table.rows:
        sheet.write_string(line, 1, table.none, formats["note"])
        return line + 1
    if table.name == "money":
        sheet.write_string(line, 1, MONEY_NOTE, formats["wrap"])
        line += 1
    for place, column in enumerate(table.columns):
        head = formats["head n" if column.kind in NUMERIC else "head"]
        sheet.write_string(line, place, column.name, head)
    for row in table.rows:
        line += 1
        for place, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            if isinstance(cell, str):
                shown = _whole(cell) if column.kind is ColumnKind.TEXT else cell_text(cell)
                sheet.write_string(line, place, shown[:LONGEST], formats["wrap"])
            else:
                _write(sheet, line, place, cell, column.kind, formats)
    return line + 1


def _overall(
    sheet: Worksheet,
    line: int,
    every: Iterable[ReportTable],
    checked: Mapping[str, list[tuple[Check, ...]]],
    formats: Formats,
) -> None:
    """How many lines have figures that were computed again, and of how many all are OK."""
    done = [(table, _fitting(checked[table.name])) for table in every]
    ranges = [
        f"COUNTIF('{SHEETS[table.name]}'!{_check_column(table, checked[table.name])},\"OK\")"
        for table, found in done
        if found
    ]
    count = sum(len(found) for _, found in done)
    holding = sum(all(one.holds for one in line) for _, found in done for line in found)
    sheet.write_string(line, 0, "Lines recomputed", formats["label"])
    sheet.write_number(line, 1, count, formats[ColumnKind.NUMBER])
    sheet.write_string(line + 1, 0, "of these OK", formats["label"])
    if ranges:
        formula = f"={'+'.join(ranges)}"
        sheet.write_formula(line + 1, 1, formula, formats[ColumnKind.NUMBER], holding)
    else:
        sheet.write_number(line + 1, 1, 0, formats[ColumnKind.NUMBER])


def _fitting(every: Iterable[tuple[Check, ...]]) -> list[list[Check]]:
    """The checks that a spreadsheet can compute, of each line that has one."""
    lines = ([one for one in line if one.fits] for line in every)
    return [line for line in lines if line]


def _check_column(table: ReportTable, every: Iterable[tuple[Check, ...]]) -> str:
    """The cells that say OK, as a formula names them."""
    place = letter(len(table.columns) + len(checked_columns(every)))
    return f"{place}:{place}"


def _table(
    sheet: Worksheet, table: ReportTable, checked: list[tuple[Check, ...]], formats: Formats
) -> None:
    again = checked_columns(checked)
    rows = table.rows[:ANNEX]
    _head(sheet, table.columns, formats, len(rows), again)
    for line, (row, found) in enumerate(zip(rows, checked, strict=False), 1):
        for place, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            _write(sheet, line, place, cell, column.kind, formats, total=row.total)
        _recomputed(sheet, line, len(table.columns), again, found, formats)
    if not rows:
        sheet.write_string(1, 0, table.none, formats["note"])
    elif len(table.rows) > len(rows):
        left = len(table.rows) - len(rows)
        more = f"{quantity(left, 'more line')} {agree(left, 'is', 'are')} in totals.json."
        sheet.write_string(len(rows) + 1, 0, more, formats["note"])


def _head(
    sheet: Worksheet,
    columns: Sequence[ReportColumn],
    formats: Formats,
    rows: int,
    again: Sequence[int] = (),
) -> None:
    names = [column.name for column in columns]
    for place, column in enumerate(columns):
        sheet.set_column(place, place, column.width, formats[column.kind])
    if again:
        last = len(names) + len(again)
        sheet.set_column(len(names), last - 1, 20, formats[ColumnKind.MONEY])
        sheet.set_column(last, last, 10)
        names += [f"{columns[one].name} recomputed" for one in again] + ["Check"]
    sheet.freeze_panes(1, 0)
    if rows:
        sheet.autofilter(0, 0, min(rows, MOST), len(names) - 1)
    numbers = [column.kind in NUMERIC for column in columns]
    numbers += [True] * len(again) + [False]
    for place, (name, number) in enumerate(zip(names, numbers, strict=False)):
        sheet.write_string(0, place, name, formats["head n" if number else "head"])
    _page(sheet)


def _page(sheet: Worksheet, *, heads: bool = True) -> None:
    """A4 across, as many pages down as it takes, the header on each."""
    sheet.set_paper(9)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    if heads:
        sheet.repeat_rows(0)
    sheet.set_footer("&L&A&R&P / &N")


def _write(
    sheet: Worksheet,
    line: int,
    place: int,
    cell: Cell,
    kind: ColumnKind,
    formats: Formats,
    *,
    total: bool = False,
) -> None:
    look = f"total {kind}" if total else str(kind)
    match cell:
        case None:
            if total:
                sheet.write_blank(line, place, None, formats[look])
        case str():
            shown = cell_text(cell) if kind is not ColumnKind.TEXT else _whole(cell)
            sheet.write_string(line, place, shown[:LONGEST], formats[look])
        case date():
            _day(sheet, line, place, cell, formats[look])
        case int() | Decimal():
            # A count in a column of money stays a count.
            money = kind is ColumnKind.MONEY and isinstance(cell, Decimal)
            kind = kind if money or kind is ColumnKind.NUMBER else ColumnKind.COUNT
            look = f"total {kind}" if total else str(kind)
            if isinstance(cell, Decimal):
                look = look.replace(ColumnKind.COUNT, ColumnKind.MONEY)
            if survives(cell):
                sheet.write_number(line, place, float(cell), formats[look])
            else:
                sheet.write_string(line, place, plain(Decimal(cell)), formats[ColumnKind.WORD])


def _day(sheet: Worksheet, line: int, place: int, day: date, look: Format) -> None:
    if day < FIRST_DAY:
        sheet.write_string(line, place, day.isoformat(), look)
    else:
        at = datetime(day.year, day.month, day.day)  # noqa: DTZ001 -- Workbooks know no time zone.
        sheet.write_datetime(line, place, at, look)


def _whole(text: str) -> str:
    """Delivered text as it is, but for what a spreadsheet cannot hold."""
    return text if text.isprintable() else cell_text(text)


def _recomputed(
    sheet: Worksheet,
    line: int,
    first: int,
    again: Sequence[int],
    found: Iterable[Check],
    formats: Formats,
) -> None:
    """The sums of a line by formula, from column `first` on, and whether all are what they were."""
    same: list[str] = []
    holds = True
    for check in found:
        place = first + again.index(check.column)
        if not check.fits:
            sheet.write_string(line, place, "more digits than a cell holds", formats["note"])
            continue
        terms = "".join(
            f"{'+' if term.sign > 0 else '-'}{letter(term.column)}{term.row + 2}"
            for term in check.terms
        )
        look = formats[ColumnKind.COUNT if check.counts else ColumnKind.MONEY]
        formula = f"={terms.removeprefix('+')}"
        sheet.write_formula(line, place, formula, look, float(check.value))
        same.append(f"ABS({letter(place)}{line + 1}-{letter(check.column)}{line + 1})<0.005")
        holds = holds and check.holds
    if same:
        alike = same[0] if len(same) == 1 else f"AND({','.join(same)})"
        look, told = (formats["ok"], "OK") if holds else (formats["check"], "CHECK")
        place = first + len(again)
        sheet.write_formula(line, place, f'=IF({alike},"OK","CHECK")', look, told)


def _sign_off(sheet: Worksheet, report: ReconciliationReport, formats: Formats) -> None:
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 80)
    _page(sheet)
    sheet.write_string(0, 0, "Sign-off", formats["head"])
    sheet.write_string(0, 1, "The last report of this scope", formats["head"])
    sign = report.sign_off
    lines: list[tuple[str, str]] = [("", "No report of this scope has been signed before.")]
    if sign:
        lines = [
            ("Prepared by", sign.prepared_by or "nobody"),
            ("Approved by", sign.approved_by or "nobody"),
            ("Comment", sign.comment),
            ("Report hash", sign.report_hash),
            ("Chain hash", sign.chain_hash),
            ("Records changed since", str(sign.changed_since)),
        ]
    lines.append(("This report", "Its hashes are in manifest.json beside it."))
    for line, (name, text) in enumerate(lines, 1):
        sheet.write_string(line, 0, name, formats["label"])
        sheet.write_string(line, 1, cell_text(text), formats["wrap"])
