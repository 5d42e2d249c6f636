"""A sheet of an OpenDocument workbook (`.ods`), read as the document writes its values.

Numbers keep the document's text; days and times keep their ISO 8601. Repeated rows and cells are
written out, except empty ones after the last value.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from xml.etree import ElementTree

from connectors.files.sheets.cell_values import clock_text, moment_text, number_text
from connectors.files.sheets.sheet_rows import (
    MOST_COLUMNS,
    MOST_ROWS,
    Row,
    SheetFacts,
    SheetNotes,
    letters,
    line_of,
)
from connectors.files.sheets.workbook_parts import MOST_BYTES, broken_refused, chosen, opened
from connectors.files.text.content import Content, refused
from schemas.cells.sheet_cells import NOT_READ, remarked
from schemas.currency_codes import code_of_sign

PART, MANIFEST = "content.xml", "META-INF/manifest.xml"
_OFFICE, _TABLE, _TEXT, _STYLE = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("office", "table", "text", "style")
)
_CURRENCY = f"{_OFFICE}currency"
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
_ERROR = re.compile(r"#[A-Z/0-9]+[!?]|#N/A|Err:[0-9]+")
"""The display of a formula that has no value."""
_ZEROS = re.compile(r"-?0[0-9]+$")
"""A number displayed with leading zeros."""
_HIDDEN = {"collapse", "filter"}


def facts_of(content: Content) -> SheetFacts:
    """Facts about a sheet besides its cells.

    Raises ExtractRefused if it cannot be read, has a formula that was never computed, or is larger
    than a sheet may be.
    """
    with reading(content) as reader:
        rows = width = size = 0
        for row in reader.rows():
            rows, width = rows + row.repeated, max(width, len(row.cells))
            size += row.repeated * (len(line_of(row.cells)) + 1)
            if rows > MOST_ROWS and row.cells:
                detail = f"a sheet with more than {MOST_ROWS} rows"
                raise refused("too_large", content.name, detail=detail)
            if row.cells and size > MOST_BYTES:
                detail = f"a sheet whose repeated cells come to more than {MOST_BYTES} bytes"
                raise refused("too_large", content.name, detail=detail)
        return reader.notes.facts(content, width)


def is_encrypted(parts: zipfile.ZipFile) -> bool:
    """Whether its parts are encrypted, which the archive itself does not say."""
    return MANIFEST in parts.namelist() and b"encryption-data" in parts.read(MANIFEST)


@contextmanager
def reading(content: Content) -> Iterator["_Reader"]:
    """A reader of the workbook's sheet, while it is open; raises ExtractRefused as `facts_of`."""
    with opened(content) as file, broken_refused(content), zipfile.ZipFile(file) as parts:
        names, visible = _sheets(parts)
        place = chosen(content, names, visible)
        hidden = [name for at, name in enumerate(names) if at not in visible]
        with parts.open(PART) as part:
            yield _Reader(part, place, SheetNotes(hidden))


def _sheets(parts: zipfile.ZipFile) -> tuple[list[str], list[int]]:
    """The names of all sheets, and the indices of the visible ones."""
    names: list[str] = []
    styles: list[str] = []
    hidden: set[str] = set()
    depth, style = 0, ""
    with parts.open(PART) as part:
        # No entities can expand: a part that defines any was refused.
        for event, one in ElementTree.iterparse(part, events=("start", "end")):  # noqa: S314
            if one.tag == f"{_TABLE}table":
                depth += 1 if event == "start" else -1
                if event == "start" and depth == 1:
                    names.append(one.get(f"{_TABLE}name", ""))
                    styles.append(one.get(f"{_TABLE}style-name", ""))
            elif event == "start" and one.tag == f"{_STYLE}style":
                style = one.get(f"{_STYLE}name", "")
            elif one.tag == f"{_STYLE}table-properties" and (
                one.get(f"{_TABLE}display") == "false"
            ):
                hidden.add(style)
            if event == "end" and one.tag in {f"{_TABLE}table-row", f"{_TABLE}table"}:
                one.clear()
    return names, [place for place, of in enumerate(styles) if of not in hidden]


class _Reader:
    """Reads the rows of one sheet and notes facts about it."""

    def __init__(self, part: IO[bytes], place: int, notes: SheetNotes) -> None:
        self.notes = notes
        self._part, self._place = part, place

    def rows(self) -> Iterator[Row]:
        """The rows of the sheet, including those after the last value."""
        place = depth = columns = rows = 0
        above: list[ElementTree.Element] = []
        events = ElementTree.iterparse(self._part, events=("start", "end"))  # noqa: S314
        for event, one in events:
            if one.tag == f"{_TABLE}table":
                depth += 1 if event == "start" else -1
                place += event == "end" and depth == 0
                if depth > 1:
                    raise ValueError("a table within a table")
            elif depth == 0 or place != self._place or event == "start":
                pass
            elif one.tag == f"{_TABLE}table-column":
                columns += self._column(one, columns)
            elif one.tag == f"{_TABLE}table-row":
                row = self._row(one, rows)
                rows += row.repeated
                yield row
            if event == "start":
                above.append(one)
                continue
            above.pop()
            if above and one.tag in {f"{_TABLE}table-row", f"{_TABLE}table"}:
                above[-1].remove(one)  # Frees it while the rest is read.

    def _column(self, column: ElementTree.Element, before: int) -> int:
        count = _repeated(column, "number-columns-repeated")
        if column.get(f"{_TABLE}visibility") in _HIDDEN:
            self.notes.hidden_columns.append(f"{before + 1} to {before + count}")
        return count

    def _row(self, row: ElementTree.Element, before: int) -> Row:
        repeated = _repeated(row, "number-rows-repeated")
        if row.get(f"{_TABLE}visibility") in _HIDDEN:
            more = f" to {before + repeated}" if repeated > 1 else ""
            self.notes.hidden_rows.append(f"{before + 1}{more}")
        cells: list[str] = []
        currencies: list[tuple[int, str]] = []
        column = size = 0
        for cell in row:
            if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
                continue
            count = _repeated(cell, "number-columns-repeated")
            spans = (cell.get(f"{_TABLE}number-{of}-spanned", "1") for of in ("columns", "rows"))
            if set(spans) != {"1"}:
                self.notes.merged.append(f"{letters(column + 1)}{before + 1}")
            kind = cell.get(f"{_OFFICE}value-type")
            if kind is None and cell.get(f"{_TABLE}formula") is not None:
                self.notes.note_formula(f"{letters(column + 1)}{before + 1}", has_value=False)
            displayed = "\n".join(_paragraphs(cell))
            if text := _text(cell, kind, displayed):
                if kind == "float" and _ZEROS.match(displayed):
                    self.notes.zeros.update(range(column + 1, column + count + 1))
                size += count * len(text)
                if column + count > MOST_COLUMNS or size > MOST_BYTES:
                    raise ValueError(f"row {before + 1} is larger than one of a sheet")
                cells += [""] * (column - len(cells)) + [text] * count
                if kind == "currency" and (code := code_of_sign(cell.get(_CURRENCY, ""))):
                    currencies += [(at, code) for at in range(column, column + count)]
            column += count
        return Row(cells, repeated, currencies)


def _repeated(one: ElementTree.Element, name: str) -> int:
    count = int(one.get(f"{_TABLE}{name}", "1"))
    if count < 1:
        raise ValueError(f"{name} is {count}")
    return count


def _text(cell: ElementTree.Element, kind: str | None, displayed: str) -> str:
    """A cell's value as text that the readers of cells understand; `displayed` is what is seen."""
    if cell.get(f"{_CALC}value-type") == "error" or (
        cell.get(f"{_TABLE}formula") is not None and _ERROR.match(displayed)
    ):
        return displayed
    if kind in {"float", "currency", "percentage"}:
        return number_text(cell.attrib[f"{_OFFICE}value"])
    if kind == "date":
        return moment_text(cell.attrib[f"{_OFFICE}date-value"])
    if kind == "time":
        return clock_text(cell.attrib[f"{_OFFICE}time-value"])
    if kind == "boolean":
        return {"true": "True", "false": "False"}[cell.attrib[f"{_OFFICE}boolean-value"]]
    if kind not in {None, "string"}:
        return remarked(kind, NOT_READ)
    stated = cell.get(f"{_OFFICE}string-value")
    return displayed if stated is None else stated


def _paragraphs(cell: ElementTree.Element) -> Iterator[str]:
    """The paragraphs of a cell and its lists; those of a note are left out."""
    for one in cell:
        if one.tag in {f"{_TEXT}p", f"{_TEXT}h"}:
            yield _paragraph(one)
        elif one.tag == f"{_TEXT}list":
            for entry in one:
                yield from _paragraphs(entry)


def _paragraph(one: ElementTree.Element) -> str:
    """The text of a paragraph, whose blanks, tabs and line breaks are separate elements."""
    text = one.text or ""
    for part in one:
        if part.tag == f"{_TEXT}s":
            text += " " * _blanks(part)
        elif part.tag in {f"{_TEXT}tab", f"{_TEXT}line-break"}:
            text += "\t" if part.tag == f"{_TEXT}tab" else "\n"
        elif part.tag != f"{_OFFICE}annotation":
            text += _paragraph(part)  # The content of a field, such as a date, is its text.
        text += part.tail or ""
        if len(text) > MOST_BYTES:
            raise ValueError("a text of a cell is larger than a workbook")
    return text


def _blanks(one: ElementTree.Element) -> int:
    count = int(one.get(f"{_TEXT}c", "1"))
    if not 0 <= count <= MOST_COLUMNS:
        raise ValueError(f"{count} blanks")
    return count
