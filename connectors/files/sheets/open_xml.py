"""A sheet of an Office Open XML workbook (`.xlsx`, `.xlsm`), read as its cells are written.

A number keeps its cell's text, which a format makes a day, a time or an amount of a currency; a
formula has the value it was saved with. Both forms of the standard are read, Strict too.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree

from connectors.errors import ExtractRefused
from connectors.files.sheets.cell_values import duration_text, moment_text, number_text, serial_text
from connectors.files.sheets.number_formats import BUILT_IN, PLAIN, CellFormat, cell_format
from connectors.files.sheets.sheet_rows import (
    MOST_COLUMNS,
    MOST_ROWS,
    Row,
    SheetFacts,
    SheetNotes,
    letters,
)
from connectors.files.sheets.workbook_parts import broken_refused, chosen, opened
from connectors.files.text.content import Content, refused
from schemas.cells.sheet_cells import NOT_READ, remarked

PART = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_TRUE, _FALSE = {"1", "true"}, {"0", "false"}
_BOOLEANS = {"1": "True", "true": "True", "0": "False", "false": "False"}
_PLACE = re.compile(r"([A-Z]{1,3})[0-9]+")
_ESCAPE = re.compile(r"_x(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")
"""An escaped character that XML cannot hold; surrogates are no characters and stay as they are."""


class _Book(NamedTuple):
    """What a workbook says about its sheets and how to read their cells."""

    sheets: Sequence[tuple[str, str]]
    """Name and part of each sheet."""
    visible: Sequence[int]
    epoch: str
    """Name of the epoch that its days count from."""
    may_be_stale: str
    """Why the saved values of formulas may be outdated; empty if nothing says so."""
    texts: str | None
    styles: str | None
    """Names of the parts with shared texts and styles."""


def facts_of(content: Content) -> SheetFacts:
    """Facts about a sheet besides its cells.

    Raises ExtractRefused if it cannot be read, has a formula without an up-to-date value, or has
    rows or cells that are repeated or out of order.
    """
    with reading(content) as reader:
        width = max((len(row.cells) for row in reader.rows()), default=0)
        return reader.notes.facts(content, width)


@contextmanager
def reading(content: Content) -> Iterator["_Reader"]:
    """A reader of the workbook's sheet, while it is open; raises ExtractRefused as `facts_of`."""
    with opened(content) as file, broken_refused(content), zipfile.ZipFile(file) as parts:
        book = _book(parts)
        names = [name for name, _ in book.sheets]
        at = chosen(content, names, book.visible)
        hidden = [name for one, name in enumerate(names) if one not in book.visible]
        notes = SheetNotes(hidden, may_be_stale=book.may_be_stale)
        yield _Reader(content, parts, book, book.sheets[at][1], notes)


def _book(parts: zipfile.ZipFile) -> _Book:
    related = {one.get("Id"): _related(one) for one in _tree(parts, _RELATIONS)}
    shared = {kind: path for kind, path in related.values() if path in parts.namelist()}
    book = _tree(parts, PART)
    sheets: list[tuple[str, str]] = []
    visible: list[int] = []
    for one in book.iterfind("{*}sheets/{*}sheet"):
        named = next((value for name, value in one.items() if name.endswith("}id")), None)
        kind, path = related.get(named, ("", ""))
        if kind == "worksheet" and path in parts.namelist():
            if one.get("state", "visible") == "visible":
                visible.append(len(sheets))
            sheets.append((one.get("name", ""), path))
    settings, computing = book.find("{*}workbookPr"), book.find("{*}calcPr")
    from_1904 = settings is not None and settings.get("date1904") in _TRUE
    return _Book(
        sheets,
        visible,
        "excel-1904" if from_1904 else "excel",
        _may_be_stale("workbook", computing),
        shared.get("sharedStrings"),
        shared.get("styles"),
    )


def _may_be_stale(what: str, computing: ElementTree.Element | None) -> str:
    """Why a workbook or sheet itself says that saved formula values may be outdated, or empty."""
    if computing is None:
        return ""
    if computing.get("fullCalcOnLoad") in _TRUE:
        return f"the {what} leaves them to whoever opens it (fullCalcOnLoad)"
    if computing.get("calcCompleted") in _FALSE:
        return f"the {what} was saved before all of them were computed (calcCompleted)"
    return ""


def _related(relation: ElementTree.Element) -> tuple[str, str]:
    """The type of a related part, and its name."""
    path = posixpath.join(f"/{posixpath.dirname(PART)}", relation.attrib["Target"])
    return relation.get("Type", "").rpartition("/")[2], posixpath.normpath(path).lstrip("/")


def _tree(parts: zipfile.ZipFile, name: str) -> ElementTree.Element:
    # No entities can expand: a part that defines any was refused.
    return ElementTree.fromstring(parts.read(name))  # noqa: S314


def _elements(parts: zipfile.ZipFile, name: str) -> Iterator[tuple[str, ElementTree.Element]]:
    """A part's elements as they end, with local names: Strict has namespaces of its own."""
    with parts.open(name) as part:
        for _, one in ElementTree.iterparse(part):  # noqa: S314
            yield one.tag.rpartition("}")[2], one


def _texts(parts: zipfile.ZipFile, name: str | None) -> Iterator[str]:
    """The texts that cells share."""
    for tag, one in _elements(parts, name) if name else ():
        if tag == "si":
            yield _rich_text(one)
            one.clear()


def _rich_text(rich: ElementTree.Element) -> str:
    """The text of a cell's runs; phonetic hints beside it are left out."""
    text = ""
    for one in rich:
        tag = one.tag.rpartition("}")[2]
        if tag == "t":
            text += unescaped(one.text or "")
        elif tag == "r":
            text += _rich_text(one)
    return text


def unescaped(text: str) -> str:
    """A text with its escaped characters; `_x005F_` escapes a `_` that begins no escape."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _formats(parts: zipfile.ZipFile, name: str | None) -> dict[str, CellFormat]:
    """Style number, as in cells -> the kind of number its format makes."""
    own: dict[str, CellFormat] = {}
    styles: list[CellFormat] = []
    for tag, one in _elements(parts, name) if name else ():
        if tag == "numFmt":
            own[one.get("numFmtId", "")] = cell_format(one.get("formatCode", ""))
        elif tag == "cellXfs":
            for style in one:
                number = style.get("numFmtId", "0")
                styles.append(own.get(number) or BUILT_IN.get(int(number), PLAIN))
    return {str(at): style for at, style in enumerate(styles)}


class _Reader:
    """Reads the rows of one sheet and notes facts about it."""

    def __init__(
        self, content: Content, parts: zipfile.ZipFile, book: _Book, part: str, notes: SheetNotes
    ) -> None:
        self.notes = notes
        self._content, self._parts, self._book, self._part = content, parts, book, part
        self._texts = [*_texts(parts, book.texts)]
        self._formats = _formats(parts, book.styles)

    def rows(self) -> Iterator[Row]:
        """The rows of the sheet, including the omitted empty ones."""
        above = 0
        for tag, one in _elements(self._parts, self._part):
            hidden = one.get("hidden") in _TRUE
            if tag == "row":
                number = int(float(one.get("r", above + 1)))
                if number <= above:
                    raise self._in_no_order(number)
                if number > MOST_ROWS:
                    detail = f"a sheet with more than {MOST_ROWS} rows"
                    raise refused("too_large", self._content.name, detail=detail)
                if hidden:
                    self.notes.hidden_rows.append(str(number))
                if number > above + 1:
                    yield Row((), number - above - 1)
                yield self._row(one, number)
                above = number
                one.clear()
            elif tag == "sheetCalcPr":
                self.notes.may_be_stale = self.notes.may_be_stale or _may_be_stale("sheet", one)
            elif tag == "mergeCell":
                self.notes.merged.append(one.get("ref", ""))
            elif tag == "col" and hidden:
                self.notes.hidden_columns.append(f"{one.get('min')} to {one.get('max')}")

    def _in_no_order(self, row: int) -> ExtractRefused:
        detail = f"row {row} of its sheet, or a cell of it, stands twice or in no order"
        return refused("unsupported_format", self._content.name, detail=detail)

    def _row(self, row: ElementTree.Element, number: int) -> Row:
        cells: list[str] = []
        currencies: list[tuple[int, str]] = []
        column = 0
        for cell in row:
            before, column = column, _column(cell.get("r"), column)
            if column <= before:
                raise self._in_no_order(number)
            parts = {one.tag.rpartition("}")[2]: one for one in cell}
            kind = cell.get("t", "n")
            form = self._formats.get(cell.get("s") or "0", PLAIN) if kind == "n" else PLAIN
            if "f" in parts:
                value = parts.get("v")  # A text's value may be empty.
                has_value = value is not None and bool(value.text or kind == "str")
                self.notes.note_formula(f"{letters(column)}{number}", has_value=has_value)
            text = self._text(kind, parts, form)
            if not text:
                continue
            cells += [""] * (column - 1 - len(cells))
            cells.append(text)
            if form.currency and not form.is_time:
                currencies.append((column - 1, form.currency))
            if form.digits > 1 and len(text.lstrip("-").partition(".")[0]) < form.digits:
                self.notes.zeros.add(column)
        return Row(cells, 1, currencies)

    def _text(self, kind: str, parts: Mapping[str, ElementTree.Element], form: CellFormat) -> str:
        """A cell's value as text that the readers of cells understand."""
        if kind == "inlineStr":
            return _rich_text(parts["is"]) if "is" in parts else ""
        written = (parts["v"].text or "") if "v" in parts else ""
        value = written.strip()
        match kind:
            case "str":
                return unescaped(written)
            case _ if not value:
                return ""
            case "n" if form.is_time:
                of_day = not form.is_duration
                return serial_text(value, self._book.epoch) if of_day else duration_text(value)
            case "n":
                return number_text(value)
            case "s":
                return self._shared(int(value))
            case "b":
                return _BOOLEANS[value]
            case "d":
                return moment_text(value)
            case "e":
                return value
            case _:
                return remarked(kind, NOT_READ)

    def _shared(self, number: int) -> str:
        """The shared text with this number; raises IndexError if there is none, also below zero."""
        if number < 0:
            raise IndexError(f"no text has the number {number}")
        return self._texts[number]


def _column(place: str | None, before: int) -> int:
    """The column of a cell, counted from 1; without a stated place, the one after the previous."""
    if place is None:
        return before + 1
    found = _PLACE.fullmatch(place)
    column = 0 if found is None else _column_of(found[1])
    if not 0 < column <= MOST_COLUMNS:
        raise ValueError(f"no cell has the place {place}")
    return column


@lru_cache(maxsize=MOST_COLUMNS)
def _column_of(name: str) -> int:
    column = 0
    for letter in name:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column
