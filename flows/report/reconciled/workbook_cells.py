"""Cells of a workbook: their formats, page layout, and row heights."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import zip_longest
from typing import IO

import xlsxwriter  # type: ignore[import-untyped]
from xlsxwriter.format import Format  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from flows.report.reconciled.break_rows import FIRST_DAY, cell_text, is_held
from flows.report.reconciled.checks import survives
from flows.report.reconciled.table import Cell, ColumnKind
from flows.report.spelling import ungrouped
from flows.steps.totals import plain
from schemas.amounts import MOST_CHARACTERS

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
Formats = Mapping[str, Format]
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 -- Workbooks know no time zone.
"""Creation date of every workbook, so that equal reports give equal files."""
LINE = 15
"""Height in points of a row with one line of text."""
MOST_LINES = 27
"""Lines of text in a row of the greatest height in spreadsheets, 409 points."""


def new_book(into: IO[bytes], title: str) -> xlsxwriter.Workbook:
    """A book that is written line by line, in which no text is a formula or a link."""
    never = {"strings_to_formulas": False, "strings_to_numbers": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(into, {"constant_memory": True, **never})
    book.set_properties({"title": cell_text(title), "created": CREATED})
    return book


def make_formats(book: xlsxwriter.Workbook) -> Formats:
    """The formats of cells by name or kind."""
    money = "#,##0.00##################"
    wrap = {"text_wrap": True, "valign": "top"}
    head = {"bold": True, "bottom": 1, **wrap, "bg_color": "#EEF1F4"}
    looks: Mapping[str, Mapping[str, object]] = {
        "head": {**head, "align": "left", "indent": 1},
        "head n": {**head, "align": "right"},
        "title": {"bold": True, "font_size": 15, "font_color": "#1D3B57"},
        "section": {"bold": True, "font_size": 12, "font_color": "#1D3B57"},
        "label": {"font_color": "#56616E", "valign": "top"},
        "wrap": {**wrap, "quote_prefix": True},
        "cell": {**wrap, "quote_prefix": True, "align": "left", "indent": 1},
        "cell number": {"num_format": "0", "align": "left", "valign": "top", "indent": 1},
        "fact day": {"num_format": "yyyy-mm-dd", "align": "left"},
        "fact number": {"num_format": "0", "align": "left"},
        "good": {"bold": True, "font_size": 14, "font_color": "#1C6644"},
        "warn": {"bold": True, "font_size": 14, "font_color": "#7D5200"},
        "bad": {"bold": True, "font_size": 14, "font_color": "#9C2B1D"},
        # The prefix keeps a cell text even when it is edited: our own words may begin with + or =
        # too, in a statement.
        ColumnKind.WORD: {"quote_prefix": True, "indent": 1},
        ColumnKind.TEXT: {"quote_prefix": True, "indent": 1},
        ColumnKind.NUMBER: {"num_format": "0", "align": "left", "indent": 1},
        # A long figure is shrunk, because cut digits in a narrow column would look like another
        # figure.
        ColumnKind.COUNT: {"num_format": "#,##0", "align": "right", "shrink": True},
        ColumnKind.MONEY: {"num_format": money, "align": "right", "shrink": True},
        "digits": {"quote_prefix": True, "align": "right", "shrink": True},
        ColumnKind.DATE: {"num_format": "yyyy-mm-dd", "align": "left", "indent": 1},
        "ok": {"font_color": "#1C6644", "bold": True, "indent": 1},
        "check": {"font_color": "#9C2B1D", "bold": True, "indent": 1},
        "note": {"italic": True, "font_color": "#56616E"},
    }
    totals = {"bold": True, "top": 1}
    return {
        **{name: book.add_format(dict(look)) for name, look in looks.items()},
        **{
            f"total {kind}": book.add_format({**looks[kind], **totals})
            for kind in (*ColumnKind, "digits")
        },
    }


def lay_out(sheet: Worksheet, *, heads: bool = True) -> None:
    """Lay out for A4 landscape, one page wide, with the header on each page."""
    sheet.set_paper(9)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    if heads:
        sheet.repeat_rows(0)
    sheet.set_footer("&L&A&R&P / &N")


def write_cell(
    sheet: Worksheet,
    line: int,
    place: int,
    cell: Cell,
    kind: ColumnKind,
    formats: Formats,
    *,
    total: bool = False,
) -> None:
    """Write a figure as a number if a cell holds its digits, a day as a day, all else as text."""
    total_of = "total " if total else ""
    look = formats[f"{total_of}{kind}"]
    match cell:
        case None:
            if total:
                sheet.write_blank(line, place, None, look)
        case str():
            text = cell_text(cell) if kind is not ColumnKind.TEXT else whole(cell)
            sheet.write_string(line, place, text, look)
        case date():
            write_day(sheet, line, place, cell, look)
        case int() | Decimal() if not survives(cell):
            sheet.write_string(line, place, number_text(cell), formats[f"{total_of}digits"])
        case int() | Decimal():
            # A count in a column of money stays a count.
            if kind is not ColumnKind.NUMBER:
                kind = ColumnKind.MONEY if isinstance(cell, Decimal) else ColumnKind.COUNT
            sheet.write_number(line, place, float(cell), formats[f"{total_of}{kind}"])


def write_text(sheet: Worksheet, line: int, text: str, width: float, formats: Formats) -> int:
    """Write a long text in the second column, over as many rows as needed; return the row below."""
    for (part,) in over_rows([cell_text(text)], [width]):
        make_high(sheet, line, [(str(part), width)])
        sheet.write_string(line, 1, str(part), formats["wrap"])
        line += 1
    return line


def number_text(value: int | Decimal) -> str:
    """A number that a cell does not hold, in plain digits if these are few enough to read."""
    text = plain(Decimal(value))
    return cell_text(text if len(text) <= MOST_CHARACTERS else ungrouped(value))


def write_day(sheet: Worksheet, line: int, place: int, day: date, look: Format) -> None:
    """Write a day as such, or as text if workbooks do not know it."""
    if day < FIRST_DAY:
        sheet.write_string(line, place, day.isoformat(), look)
    else:
        at = datetime(day.year, day.month, day.day)  # noqa: DTZ001 -- Workbooks know no time zone.
        sheet.write_datetime(line, place, at, look)


def whole(text: str) -> str:
    """Delivered text as it is, except for invisible characters and text that a cell cannot hold."""
    return text if text.isprintable() and is_held(text) else cell_text(text)


def make_high(sheet: Worksheet, line: int, texts: Iterable[tuple[str, float]]) -> None:
    """Make a row as high as its texts need in columns of these widths, up to the greatest height.

    Not every program that opens a workbook does so itself, and lines would overlap. Call this
    before anything is written below.
    """
    lines = max((_lines(text, width) for text, width in texts), default=1)
    if lines > 1:
        sheet.set_row(line, LINE * min(lines, MOST_LINES))


def over_rows(cells: Sequence[Cell], widths: Iterable[float]) -> Iterator[tuple[Cell, ...]]:
    """Cells as rows that are high enough for their texts; longer texts continue in the next row."""
    parts = [
        _parts(cell, width) if isinstance(cell, str) else [cell]
        for cell, width in zip(cells, widths, strict=False)
    ]
    return zip_longest(*parts)


def _parts(text: str, width: float) -> list[str]:
    """A text in parts, each of which fits into a row."""
    if _lines(text, width) <= MOST_LINES:
        return [text]
    # Half of the room, because wrapped lines do not fill their width.
    room = int(width) * (MOST_LINES // 2)
    return textwrap.wrap(text, room, drop_whitespace=False, replace_whitespace=False)


@lru_cache(maxsize=1024)
def _lines(text: str, width: float) -> int:
    # A shortcut, because most texts are short and there may be a million lines.
    if len(text) <= width and text.isprintable():
        return 1
    return sum(len(textwrap.wrap(one, int(width))) or 1 for one in text.splitlines())
