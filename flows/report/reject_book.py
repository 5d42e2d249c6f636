"""The rows with errors of a batch as a workbook, a line each; no delivered text is a formula."""

from collections.abc import Iterable
from typing import IO

from flows.report.reconciled.break_rows import cell_text
from flows.report.reconciled.workbook_cells import lay_out, make_formats, make_high, new_book

COLUMNS = (
    ("File", 28),
    ("Line", 9),
    ("Record kind", 20),
    ("Record", 10),
    ("As delivered", 70),
    ("Error", 24),
    ("What is wrong", 60),
    ("What to do", 60),
    ("Repaired by batch", 18),
)
MOST = 1_000_000
"""Most lines of a sheet; a workbook has no room for many more."""

Texts = tuple[str, ...]
RejectLine = tuple[str, int, str, int, str, str, Texts, Texts, int | None]
"""A line of COLUMNS; a row may have several errors, each with what is wrong and what to do."""


def write_reject_book(into: IO[bytes], title: str, lines: Iterable[RejectLine]) -> int:
    """Write the workbook and return its number of lines; equal lines make equal bytes."""
    book = new_book(into, title)
    formats = make_formats(book)
    sheet = book.add_worksheet("Rejects")
    for place, (_, width) in enumerate(COLUMNS):
        sheet.set_column(place, place, width)
    make_high(sheet, 0, COLUMNS)
    for place, (name, _) in enumerate(COLUMNS):
        sheet.write_string(0, place, name, formats["head"])
    lay_out(sheet)
    sheet.freeze_panes(1, 0)
    written = 0
    for line in lines:
        if written == MOST:
            note = "There are more; the files to correct have all."
            sheet.write_string(MOST + 1, 0, note, formats["note"])
            break
        written += 1
        cells = [_cell(one) for one in line]
        widths = zip(cells, COLUMNS, strict=True)
        make_high(sheet, written, [(c, width) for c, (_, width) in widths if isinstance(c, str)])
        for place, value in enumerate(cells):
            if isinstance(value, str):
                sheet.write_string(written, place, value, formats["cell"])
            elif value is not None:
                sheet.write_number(written, place, value, formats["cell number"])
    sheet.autofilter(0, 0, max(1, written), len(COLUMNS) - 1)
    book.close()
    return written


def _cell(value: str | Texts | int | None) -> str | int | None:
    """Several texts as the lines of one cell; line breaks within a text are spelled out."""
    texts = (value,) if isinstance(value, str) else value
    return "\n".join(map(cell_text, texts)) if isinstance(texts, tuple) else texts
