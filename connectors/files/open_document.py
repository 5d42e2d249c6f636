"""A sheet of an OpenDocument workbook (`.ods`), read as the document writes its values.

A number is the text that the document has for it, a day or a time the ISO 8601 it is kept in. What
a row or a cell is repeated for is written out, but for what is empty behind the last value.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import IO, NamedTuple
from xml.etree import ElementTree

from connectors.files.content import Content, refused
from connectors.files.workbook_parts import (
    DIGITS,
    EXACT_BELOW,
    MOST_BYTES,
    NOT_READ,
    SHOWN,
    TOO_LARGE,
    SheetFacts,
    SheetRow,
    broken_refused,
    chosen,
    line_of,
    number_text,
    opened,
    remarked,
)
from schemas.counting import first_of
from schemas.currency_codes import code_of_sign

PART, MANIFEST = "content.xml", "META-INF/manifest.xml"
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""A sheet has no more of them."""
MOST_DIGITS = 400
"""No number of a spreadsheet has more."""
_OFFICE, _TABLE, _TEXT, _STYLE = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("office", "table", "text", "style")
)
_CURRENCY = f"{_OFFICE}currency"
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"(\d{4,}-\d\d-\d\d)(T\d\d:\d\d:\d\d(?:\.\d+)?)?")
_TIME = re.compile(r"(-?)PT(\d+)H(\d+)M(\d+)(?:[.,](\d+))?S")
_ERROR = re.compile(r"#[A-Z/0-9]+[!?]|#N/A|Err:[0-9]+")
"""What a formula shows that has no value."""
_HIDDEN = {"collapse", "filter"}


class _Row(NamedTuple):
    cells: list[str]
    """Without those behind the last value."""
    repeated: int
    currencies: list[tuple[int, str]]
    """Columns whose cells name the currency of their number."""


def facts_of(content: Content) -> SheetFacts:
    """What is said of a sheet beside its cells.

    Raises ExtractRefused for one that cannot be read, has a formula that was never computed, or is
    larger than a sheet may be.
    """
    with _reading(content) as reader:
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
        if reader.unsaved:
            detail = "formulas that were saved without their values, "
            detail += f"{first_of(reader.unsaved, SHOWN)}: open the workbook with a spreadsheet "
            detail += "program and save it"
            raise refused("unsupported_format", content.name, detail=detail)
        return SheetFacts(reader.name, width, tuple(reader.remarks()))


def rows_of(content: Content, width: int) -> Iterator[SheetRow]:
    """The rows of a sheet, each with as many cells as its widest row has."""
    empty = 0
    with _reading(content) as reader:
        for row in reader.rows():
            if not row.cells:
                empty += row.repeated
                continue
            # Rows that are empty are lines only where a value follows.
            for _ in range(empty):
                yield SheetRow(b"\n")
            empty = 0
            line = line_of([*row.cells, *[""] * (width - len(row.cells))])
            for _ in range(row.repeated):
                yield SheetRow(line, row.currencies)


def is_encrypted(parts: zipfile.ZipFile) -> bool:
    """Whether its parts are, which its archive does not say."""
    return MANIFEST in parts.namelist() and b"encryption-data" in parts.read(MANIFEST)


@contextmanager
def _reading(content: Content) -> Iterator["_Reader"]:
    with opened(content) as file, broken_refused(content), zipfile.ZipFile(file) as parts:
        names, visible = _sheets(parts)
        place = chosen(content, names, visible)
        hidden = [name for at, name in enumerate(names) if at not in visible]
        with parts.open(PART) as part:
            yield _Reader(part, place, names[place], hidden)


def _sheets(parts: zipfile.ZipFile) -> tuple[list[str], list[int]]:
    """The names of all sheets, and which of them are shown."""
    names: list[str] = []
    styles: list[str] = []
    hidden: set[str] = set()
    depth, style = 0, ""
    with parts.open(PART) as part:
        # Nothing expands in it: a part that defines entities was refused.
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
    """Reads the rows of one sheet, and what is to be said of it."""

    def __init__(self, part: IO[bytes], place: int, name: str, hidden: list[str]) -> None:
        self.name = name
        self.unsaved: list[str] = []
        self._part, self._place = part, place
        self._said: dict[str, list[str]] = {
            "hidden sheets": [", ".join(hidden)] if hidden else [],
            **{what: [] for what in ("merged", "hidden rows", "hidden columns")},
        }

    def remarks(self) -> Iterator[str]:
        """What a person sees otherwise, or does not see, of what was read."""
        for what, places in self._said.items():
            if places:
                yield f"{what}: {first_of(places, SHOWN)}"

    def rows(self) -> Iterator[_Row]:
        """The rows of the sheet, those behind the last value too."""
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
                above[-1].remove(one)  # Nothing of it is held while those behind it are read.

    def _column(self, column: ElementTree.Element, before: int) -> int:
        count = _repeated(column, "number-columns-repeated")
        if column.get(f"{_TABLE}visibility") in _HIDDEN:
            self._said["hidden columns"].append(f"{before + 1} to {before + count}")
        return count

    def _row(self, row: ElementTree.Element, before: int) -> _Row:
        repeated = _repeated(row, "number-rows-repeated")
        if row.get(f"{_TABLE}visibility") in _HIDDEN:
            more = f" to {before + repeated}" if repeated > 1 else ""
            self._said["hidden rows"].append(f"{before + 1}{more}")
        cells: list[str] = []
        currencies: list[tuple[int, str]] = []
        column = size = 0
        for cell in row:
            if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
                continue
            count = _repeated(cell, "number-columns-repeated")
            spans = (cell.get(f"{_TABLE}number-{of}-spanned", "1") for of in ("columns", "rows"))
            if set(spans) != {"1"}:
                self._said["merged"].append(_place(column, before))
            kind = cell.get(f"{_OFFICE}value-type")
            if kind is None and cell.get(f"{_TABLE}formula") is not None:
                self.unsaved.append(_place(column, before))
            if text := _text(cell, kind):
                size += count * len(text)
                if column + count > MOST_COLUMNS or size > MOST_BYTES:
                    raise ValueError(f"row {before + 1} is larger than one of a sheet")
                cells += [""] * (column - len(cells)) + [text] * count
                if kind == "currency" and (code := code_of_sign(cell.get(_CURRENCY, ""))):
                    currencies += [(at, code) for at in range(column, column + count)]
            column += count
        return _Row(cells, repeated, currencies)


def _repeated(one: ElementTree.Element, name: str) -> int:
    count = int(one.get(f"{_TABLE}{name}", "1"))
    if count < 1:
        raise ValueError(f"{name} is {count}")
    return count


def _place(column: int, row: int) -> str:
    letters, column = "", column + 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row + 1}"


def _text(cell: ElementTree.Element, kind: str | None) -> str:
    """What a cell says, as text that the readers of cells know."""
    shown = "\n".join(_paragraphs(cell))
    if cell.get(f"{_CALC}value-type") == "error" or (
        cell.get(f"{_TABLE}formula") is not None and _ERROR.match(shown)
    ):
        return shown
    if kind in {"float", "currency", "percentage"}:
        return _number(cell.attrib[f"{_OFFICE}value"])
    if kind == "date":
        return _moment(cell.attrib[f"{_OFFICE}date-value"])
    if kind == "time":
        return _clock(cell.attrib[f"{_OFFICE}time-value"])
    if kind == "boolean":
        return {"true": "True", "false": "False"}[cell.attrib[f"{_OFFICE}boolean-value"]]
    if kind not in {None, "string"}:
        return remarked(kind, NOT_READ)
    said = cell.get(f"{_OFFICE}string-value")
    return shown if said is None else said


def _paragraphs(cell: ElementTree.Element) -> Iterator[str]:
    """The paragraphs of a cell and of its lists; a note beside it has its own."""
    for one in cell:
        if one.tag in {f"{_TEXT}p", f"{_TEXT}h"}:
            yield _paragraph(one)
        elif one.tag == f"{_TEXT}list":
            for entry in one:
                yield from _paragraphs(entry)


def _number(text: str) -> str:
    """A number as it is written; one of more digits than a spreadsheet shows as that shows it."""
    if not _NUMBER.fullmatch(text) or len(text) > MOST_DIGITS:
        return remarked(text, NOT_READ)
    number = Decimal(text)
    digits = len(str(int("".join(map(str, number.as_tuple().digits)))).rstrip("0"))
    if abs(number) >= EXACT_BELOW:
        return remarked(text, TOO_LARGE)
    if digits > DIGITS:
        return number_text(float(text))
    if number == number.to_integral_value():
        return str(int(number))
    return text


def _moment(text: str) -> str:
    found = _DATE.fullmatch(text)
    if found is None:
        return remarked(text, NOT_READ)
    day, clock = found[1], found[2] or ""
    if not clock.strip("T0:."):
        return day
    return day + (clock.rstrip("0").rstrip(".") if "." in clock else clock)


def _clock(text: str) -> str:
    found = _TIME.fullmatch(text)
    if found is None:
        return remarked(text, NOT_READ)
    part = f".{found[5]}" if (found[5] or "").strip("0") else ""
    return f"{found[1]}{int(found[2]):02}:{int(found[3]):02}:{int(found[4]):02}{part}"


def _paragraph(one: ElementTree.Element) -> str:
    """The text of a paragraph: its blanks, tabs and line breaks are elements of their own."""
    text = one.text or ""
    for part in one:
        if part.tag == f"{_TEXT}s":
            text += " " * _blanks(part)
        elif part.tag in {f"{_TEXT}tab", f"{_TEXT}line-break"}:
            text += "\t" if part.tag == f"{_TEXT}tab" else "\n"
        elif part.tag != f"{_OFFICE}annotation":
            text += _paragraph(part)  # What stands in a field, such as a date, is its text.
        text += part.tail or ""
        if len(text) > MOST_BYTES:
            raise ValueError("a text of a cell is larger than a workbook")
    return text


def _blanks(one: ElementTree.Element) -> int:
    count = int(one.get(f"{_TEXT}c", "1"))
    if not 0 <= count <= MOST_COLUMNS:
        raise ValueError(f"{count} blanks")
    return count
