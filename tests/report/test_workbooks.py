"""What every workbook of ours has: texts that stay texts, and pages that can be printed."""

import io
import zipfile
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from flows.report.reconciled.workbook import render_workbook
from flows.report.reject_book import COLUMNS, write_reject_book
from tests.report.reconciliation.sample import accepted, everything
from tests.report.sample_reports import HOSTILE

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LOOKS_LIKE_A_FORMULA = ("=", "+", "-", "@")
NO_TABLES = ("Cover", "Charts")
"""Sheets that have no one head to repeat."""


def rejects() -> bytes:
    content = io.BytesIO()
    texts = [*HOSTILE.values(), "+1", "-1;2", "@SUM(A1)"]
    lines = [
        ("=file.csv", place, "payment", place, text, "Number", (text,), (f"={text}",), None)
        for place, text in enumerate(texts, 2)
    ]
    assert write_reject_book(content, "Rows with errors of batch 1", lines) == len(lines)
    return content.getvalue()


BOOKS: dict[str, Callable[[], bytes]] = {
    "reconciliation": lambda: render_workbook(everything()),
    "accepted": lambda: render_workbook(accepted()),
    "rejects": rejects,
}


class Parts:
    """The sheets of a workbook by name, and which looks mark a text as one."""

    def __init__(self, content: bytes) -> None:
        self.zip = zipfile.ZipFile(io.BytesIO(content))
        self.book = self.read("xl/workbook.xml")
        names = [str(one.get("name")) for one in self.book.iter(f"{MAIN}sheet")]
        self.sheets = {
            name: self.read(f"xl/worksheets/sheet{place}.xml")
            for place, name in enumerate(names, 1)
        }
        looks = self.read("xl/styles.xml").find(f"{MAIN}cellXfs")
        assert looks is not None
        self.marked = {str(at) for at, look in enumerate(looks) if look.get("quotePrefix") == "1"}

    def read(self, part: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.zip.read(part))


@pytest.mark.long(but=("rejects",))
@pytest.mark.parametrize("name", BOOKS)
def test_no_text_becomes_a_formula_when_its_cell_is_edited(name: str) -> None:
    book, seen = Parts(BOOKS[name]()), 0
    for sheet, root in book.sheets.items():
        for cell in root.iter(f"{MAIN}c"):
            text = "".join(one.text or "" for one in cell.iter(f"{MAIN}t"))
            if text.startswith(LOOKS_LIKE_A_FORMULA):
                assert cell.get("s") in book.marked, (sheet, cell.get("r"), text)
                seen += 1
    assert seen > 1


@pytest.mark.long(but=("rejects",))
@pytest.mark.parametrize("name", BOOKS)
def test_every_sheet_prints_across_with_its_head_on_each_page(name: str) -> None:
    book = Parts(BOOKS[name]())
    repeated = {
        str(one.text).partition("!")[0].strip("'")
        for one in book.book.iter(f"{MAIN}definedName")
        if one.get("name") == "_xlnm.Print_Titles"
    }
    for sheet, root in book.sheets.items():
        setup = root.find(f"{MAIN}pageSetup")
        assert setup is not None, sheet
        told = {key: setup.get(key) for key in ("paperSize", "orientation", "fitToHeight")}
        assert told == {"paperSize": "9", "orientation": "landscape", "fitToHeight": "0"}, sheet
        assert root.find(f"{MAIN}sheetPr/{MAIN}pageSetUpPr[@fitToPage='1']") is not None, sheet
        assert root.find(f"{MAIN}headerFooter") is not None, sheet
    assert repeated == {*book.sheets} - {*NO_TABLES}


def test_a_row_with_errors_is_as_high_as_its_longest_text() -> None:
    content = io.BytesIO()
    width = dict(COLUMNS)["What to do"]
    lines = [("f.csv", 2, "payment", 1, "short", "Number", ("short",), ("word " * width,), None)]
    write_reject_book(content, "Rows with errors", lines)
    root = Parts(content.getvalue()).sheets["Rejects"]
    (row,) = (one for one in root.iter(f"{MAIN}row") if one.get("r") == "2")
    assert float(str(row.get("ht"))) >= 15 * 5


def test_each_error_of_a_row_is_a_line_of_its_cell() -> None:
    content = io.BytesIO()
    wrong = ("not\na number", "no currency")
    write_reject_book(content, "Two", [("f.csv", 2, "payment", 1, "x", "A, B", wrong, ("",), None)])
    root = Parts(content.getvalue()).sheets["Rejects"]
    texts = ["".join(one.itertext()) for one in root.iter(f"{MAIN}is")]
    assert "not\\na number\nno currency" in texts
