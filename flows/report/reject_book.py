"""The rows with errors of a batch as a workbook, one line each; no delivered text is a formula."""

from collections.abc import Iterable
from typing import IO

from flows.report.reconciled.break_rows import cell_text
from flows.report.reconciled.workbook_cells import new_book

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
"""Lines of a sheet; a workbook has no room for many more."""

RejectLine = tuple[str, int, str, int, str, str, str, str, int | None]
"""A line by COLUMNS."""


def write_reject_book(into: IO[bytes], title: str, lines: Iterable[RejectLine]) -> int:
    """Write the workbook; gives how many lines it has. Equal lines make equal bytes."""
    book = new_book(into, title)
    bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
    sheet = book.add_worksheet("Rejects")
    for place, (name, width) in enumerate(COLUMNS):
        sheet.set_column(place, place, width)
        sheet.write_string(0, place, name, bold)
    sheet.freeze_panes(1, 0)
    written = 0
    for line in lines:
        if written == MOST:
            sheet.write_string(MOST + 1, 0, "There are more; the files to correct have all.", bold)
            break
        written += 1
        for place, value in enumerate(line):
            if isinstance(value, str):
                sheet.write_string(written, place, cell_text(value), wrapped)
            elif value is not None:
                sheet.write_number(written, place, value)
    sheet.autofilter(0, 0, max(1, written), len(COLUMNS) - 1)
    book.close()
    return written
