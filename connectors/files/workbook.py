"""A sheet of a workbook as CSV: what is delivered stays as it is, and this is how it is read.

Row N of the sheet is line N, as long as no cell above it holds a line break; rows that are empty
are lines without a value. Numbers are what a spreadsheet shows of them: 15 digits, and integers as
long as the file holds them exactly. Times are ISO 8601, a formula is the value it was saved with.
"""

import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from connectors.files import open_document
from connectors.files.content import HEAD_BYTES, Content, refused
from connectors.files.number_formats import currency_of
from connectors.files.workbook_parts import (
    MOST_BYTES,
    NOT_READ,
    SHOWN,
    TOO_EARLY,
    SheetFacts,
    SheetRow,
    broken_refused,
    chosen,
    line_of,
    number_text,
    opened,
    remarked,
)
from connectors.settings import Limits
from schemas.counting import first_of, quantity

FIRST_DAY = date(1900, 3, 1)
"""Before it spreadsheets disagree about the days."""
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def check_workbook(content: Content, limits: Limits) -> SheetFacts:
    """Read a sheet once; raises ExtractRefused for one that cannot be read, or is too large."""
    if _check_size(content, limits):
        return open_document.facts_of(content)
    return _facts(content)


def sheet_rows(content: Content) -> Iterator[SheetRow]:
    """The rows of a sheet, each with as many cells as its widest row has."""
    if _is_open_document(content):
        yield from open_document.rows_of(content, open_document.facts_of(content).width)
        return
    facts = _facts(content)
    width, codes = facts.width, facts.codes
    with _sheet(content) as (found, _):
        for row in found.iter_rows(values_only=not codes):
            values = [one.value for one in row] if codes else row
            cells = [_cell(value) for value in values[:width]]
            line = line_of([*cells, *[""] * (width - len(cells))] if any(cells) else [])
            yield SheetRow(line, [*_currencies(row, codes)] if codes else ())


def _currencies(row: Sequence[Any], codes: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """The columns of a row whose cells are numbers in a format that names a currency."""
    for column, cell in enumerate(row):
        number = isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
        if number and (code := codes.get(cell._style_id)):
            yield column, code


def _codes(sheet: Any, styles: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The styles whose formats name a currency, each with its code."""
    from openpyxl.cell.read_only import ReadOnlyCell  # type: ignore[import-untyped]  # noqa: PLC0415

    for style in (one for one in styles if one >= 0):
        try:
            number_format = ReadOnlyCell(sheet, 1, 1, None, style_id=style).number_format
        except IndexError:
            continue  # It points nowhere, which takes nothing from the number.
        if code := currency_of(number_format):
            yield style, code


def _facts(content: Content) -> SheetFacts:
    with _sheet(content) as (found, hidden):
        styles: set[str] = set()
        remarks = *hidden, *_remarks(content, found, styles)
        width = 0
        for row in found.iter_rows(values_only=True):
            width = max([width, *(at for at, value in enumerate(row, 1) if value is not None)])
        return SheetFacts(found.title, width, remarks, dict(_codes(found, map(int, styles))))


def _cell(value: Any) -> str:
    """What a cell shows, as text that the readers of cells know."""
    match value:
        case None:
            return ""
        case bool() | str():
            return str(value)
        case int() | float():
            return number_text(value)
        case datetime() | date():
            day = value.date() if isinstance(value, datetime) else value
            if day < FIRST_DAY:
                return remarked(value.isoformat(), TOO_EARLY)
            midnight = not isinstance(value, datetime) or value.time() == time()
            return day.isoformat() if midnight else value.isoformat()
        case time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return remarked(value, NOT_READ)


@contextmanager
def _sheet(content: Content) -> Iterator[tuple[Any, list[str]]]:
    # It takes longer to import than most commands to run.
    from openpyxl import load_workbook  # type: ignore[import-untyped]  # noqa: PLC0415

    with opened(content) as file, broken_refused(content):
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        shown = [one for one in book.worksheets if one.sheet_state == "visible"]
        names = [one.title for one in book.worksheets]
        visible = [at for at, one in enumerate(book.worksheets) if one in shown]
        place = chosen(content, names, visible)
        sheet = book.worksheets[place]
        sheet.reset_dimensions()  # Some writers state fewer rows and columns than there are.
        yield sheet, _hidden(book.worksheets, shown)


def _hidden(sheets: Any, shown: Any) -> list[str]:
    names = [one.title for one in sheets if one not in shown]
    return [f"hidden sheets: {', '.join(names)}"] if names else []


def _remarks(content: Content, sheet: Any, styles: set[str]) -> Iterator[str]:
    """What the reader of cells does not tell: merged cells, and rows and columns that are hidden.

    The styles that cells have are added to `styles`.

    Raises ExtractRefused for what it would leave out: rows and cells that stand twice or in no
    order, and formulas that were saved without their values.
    """
    found: dict[str, list[str]] = {"merged": [], "hidden rows": [], "hidden columns": []}
    unsaved: list[str] = []
    number = 0
    with (
        opened(content) as file,
        zipfile.ZipFile(file) as parts,
        parts.open(sheet._worksheet_path) as part,
    ):
        # Nothing expands in it: a part that defines entities was refused.
        for _, one in ElementTree.iterparse(part, events=("end",)):  # noqa: S314
            hidden = one.get("hidden") in {"1", "true"}
            if one.tag == f"{_MAIN}mergeCell":
                found["merged"].append(one.get("ref", ""))
            elif one.tag == f"{_MAIN}col" and hidden:
                found["hidden columns"].append(f"{one.get('min')} to {one.get('max')}")
            elif one.tag == f"{_MAIN}row":
                if hidden:
                    found["hidden rows"].append(one.get("r", "?"))
                number = _next_row(content, one, number)
                unsaved += _unsaved(one, number)
                styles.update(cell.get("s") or "0" for cell in one)
                one.clear()
    if unsaved:
        detail = f"formulas that were saved without their values, {first_of(unsaved, SHOWN)}: "
        detail += "open the workbook with a spreadsheet program and save it"
        raise refused("unsupported_format", content.name, detail=detail)
    for what, places in found.items():
        if places:
            yield f"{what}: {first_of(places, SHOWN)}"


def _next_row(content: Content, row: ElementTree.Element, above: int) -> int:
    """The number of a row; raises ExtractRefused where rows or cells do not follow each other."""
    number = int(float(row.get("r", above + 1)))
    columns = [0]
    for cell in row:
        place = cell.get("r")
        columns.append(_column(place) if place else columns[-1] + 1)
    if number <= above or any(later <= one for one, later in pairwise(columns)):
        detail = f"row {number} of its sheet, or a cell of it, stands twice or in no order"
        raise refused("unsupported_format", content.name, detail=detail)
    return number


def _column(place: str) -> int:
    from openpyxl.utils.cell import coordinate_to_tuple  # type: ignore[import-untyped]  # noqa: PLC0415

    return int(coordinate_to_tuple(place)[1])


def _unsaved(row: ElementTree.Element, number: int) -> Iterator[str]:
    for at, cell in enumerate(row, 1):
        saved = cell.get("t") == "str" or cell.findtext(f"{_MAIN}v")
        if cell.find(f"{_MAIN}f") is not None and not saved:
            yield cell.get("r") or f"cell {at} of row {number}"


def _is_open_document(content: Content) -> bool:
    with opened(content) as file, zipfile.ZipFile(file) as parts:
        return _has_parts(parts.namelist(), open_document.PART)


def _has_parts(names: Collection[str], part: str) -> bool:
    """Whether an archive is a workbook of the format that has its content in this part."""
    beside = "mimetype" if part == open_document.PART else "[Content_Types].xml"
    return {part, beside} <= {*names}


def _check_size(content: Content, limits: Limits) -> bool:
    """Whether it is an OpenDocument; what is no workbook, or unpacks to too much, is refused.

    A part is never read further than the size that its archive states of it.
    """
    with broken_refused(content), opened(content) as file, zipfile.ZipFile(file) as parts:
        members = parts.infolist()
        defines = any(_defines_entities(parts, one) for one in members)
        names = parts.namelist()
        of_document = _has_parts(names, open_document.PART)
        sealed = any(one.flag_bits & 1 for one in members)
        sealed = sealed or (of_document and open_document.is_encrypted(parts))
    packed = max(1, sum(one.compress_size for one in members))
    size = sum(one.file_size for one in members)
    most = min(MOST_BYTES, limits.file_bytes)
    code, detail = "too_large", ""
    if not (of_document or _has_parts(names, "xl/workbook.xml")):
        code, detail = "unsupported_format", "a zip archive and no workbook"
    elif sealed:
        code, detail = "unsupported_format", "an encrypted workbook"
    elif defines:
        code, detail = "unsupported_format", "a workbook with a document type, which none has"
    elif len(members) > limits.archive_members:
        detail = f"a workbook of {quantity(len(members), 'part')}"
    elif size > most:
        detail = f"a workbook that unpacks to {quantity(size, 'byte')}, and not {most} at most"
    elif size > limits.block_bytes and size > limits.compression_ratio * packed:
        detail = f"it unpacks to more than {quantity(limits.compression_ratio, 'time')} its size"
    if detail:
        raise refused(code, content.name, detail=detail)
    return of_document


def _defines_entities(parts: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    if member.flag_bits & 1 or not member.filename.endswith((".xml", ".rels")):
        return False
    with parts.open(member) as part:
        return b"<!DOCTYPE" in part.read(HEAD_BYTES)
