"""Delivered rows written out again: with columns of our own in front, and cells left out.

What is not left out keeps its text to the byte. Texts that a spreadsheet would run have a sign put
before them, and a column of our own says so: only then, and only there, the reader takes it away.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectors.files.header import Header
from connectors.files.record_cells import cells_of
from schemas.own_columns import OWN_COLUMNS, QUOTED, QUOTED_COLUMN


@dataclass(frozen=True, slots=True)
class RewrittenLine:
    """One row: our own columns, and the text that was delivered."""

    own: Mapping[str, str]
    text: str


def delivered_text(data: str | None, raw: str | None, header: Header) -> str:
    """The text of a row without what was our own in it; bytes that are no text are kept too."""
    text = data or ""
    if raw:
        text = bytes.fromhex(raw).decode(header.dialect.encoding, "surrogateescape")
    if header.positions:
        return _row(header.positions.cells_of(text) or [text], header.written)
    if not header.dialect.is_plain(text):
        return _row_of(cells_of(text, header.dialect) or [text], header.written)
    text = _without_own(text, header)
    if header.dialect.signs == header.written.dialect.signs:
        return text
    return _row(next(csv.reader([text], **header.dialect.signs)), header.written)


def as_one_cell(text: str, header: Header) -> str:
    """A text that is no record as one cell, so that it is not read as one."""
    return _row([text], header.written)


def cells_left_out(text: str, header: Header, places: Collection[int]) -> str:
    """The text with these cells empty; a text that cannot be split has none left."""
    header = header.written
    kept = _delivered_places(header)
    cells = _raw_cells(text, header)
    if len(cells) != len(kept):
        cells = [""] * len(kept)
    shown = ("" if place in places else cell for place, cell in zip(kept, cells, strict=True))
    return header.dialect.delimiter.decode().join(shown)


def write_rows(header: Header, lines: Sequence[RewrittenLine]) -> bytes:
    """A file of these rows, which is itself a delivery; all of them have the same own columns."""
    header, own = header.written, list(lines[0].own)
    names = _row([header.names[place] for place in _delivered_places(header)], header)
    guard = header.dialect.guard
    guarded = [guard.put(line.text) for line in lines]
    if guard.put(names) == names and all(
        text == line.text for text, line in zip(guarded, lines, strict=True)
    ):
        rows = [_joined(header, [*own], names)]
        rows += [_joined(header, [*line.own.values()], line.text) for line in lines]
    else:
        rows = [_joined(header, [*own, QUOTED_COLUMN], guard.put(names))]
        rows += [
            _joined(header, [*line.own.values(), QUOTED if text != line.text else ""], text)
            for line, text in zip(lines, guarded, strict=True)
        ]
    end = "\r\n"
    text = "".join(row + end for row in rows).encode(header.dialect.encoding, "surrogateescape")
    return header.rows_file.beginning + text


def _joined(header: Header, own: Iterable[str], text: str) -> str:
    return header.dialect.delimiter.decode().join([_row(list(own), header), text])


def _row_of(cells: Sequence[str | None], header: Header) -> str:
    """The cells as a row in which an empty text stays one, in quotes."""
    written = ("" if cell is None else _row([cell], header) for cell in cells)
    return header.dialect.delimiter.decode().join(written)


def _row(cells: list[str], header: Header) -> str:
    text = io.StringIO()
    csv.writer(text, **header.dialect.signs).writerow(cells)
    return text.getvalue().removesuffix("\r\n")


def _own_places(header: Header) -> list[int]:
    """Columns of our own that were delivered, and are written anew."""
    own = {name.casefold() for name in OWN_COLUMNS}
    return [place for place, name in enumerate(header.names) if name.casefold() in own]


def _delivered_places(header: Header) -> list[int]:
    own = set(_own_places(header))
    return [place for place in range(header.width) if place not in own]


def _without_own(text: str, header: Header) -> str:
    own = _own_places(header)
    if not own:
        return text
    delimiter = header.dialect.delimiter.decode()
    cells = _raw_cells(text, header)
    if len(cells) == header.width:
        guarded = header.quoted_column is not None and cells[header.quoted_column] == QUOTED
        text = delimiter.join(cells[place] for place in _delivered_places(header))
    else:
        # Of what is no sound row, our own columns are the cells in front, as we wrote them.
        *front, text = text.split(delimiter, len(own))
        guarded = QUOTED in front and header.quoted_column is not None
    if guarded:
        text = header.dialect.guard.take(text)
    return text


def _raw_cells(text: str, header: Header) -> list[str]:
    """The cells as they are written, quotes and all; none where the text is no sound row."""
    delimiter = re.escape(header.dialect.delimiter.decode())
    quote = re.escape(header.dialect.quote.decode())
    cell = rf"{quote}(?:[^{quote}]|{quote}{quote})*+{quote}(?={delimiter}|\Z)|[^{delimiter}]*"
    return re.findall(rf"(?:\A|{delimiter})({cell})", text, re.DOTALL)
