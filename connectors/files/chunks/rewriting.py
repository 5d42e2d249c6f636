"""Delivered rows written out again, with our own columns in front and some cells left out.

Everything else keeps its text to the byte. Texts that a spreadsheet would run get a sign in front,
and a column of our own marks those rows: only in them does the reader take the sign away.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import IO

import polars as pl

from connectors.files.chunks.cells import plain_row
from connectors.files.layout.header import Header
from connectors.files.text.positions import DELIMITER
from connectors.files.text.record_cells import cells_of
from connectors.files.text.shadow import is_plain_text
from schemas.own_columns import OWN_COLUMNS, QUOTED, QUOTED_COLUMN, ROW_NAME

BLOCK = 1_000
"""Rows that are written together."""
TEXT = "text"
_IDS = frozenset("0123456789abcdef: ")
"""Characters of places and ids."""


@dataclass(frozen=True, slots=True)
class RewrittenLine:
    """One row: our own columns and the delivered text."""

    own: Mapping[str, str]
    text: str


def delivered_text(data: str | None, raw: str | None, header: Header) -> str:
    """A row's delivered text without our own columns; bytes that are no text are kept too."""
    text = data or ""
    if raw:
        text = bytes.fromhex(raw).decode(header.dialect.encoding, "surrogateescape")
    if header.positions:
        line = text.replace(DELIMITER.decode(), " ") if header.carried else text
        return _row(header.positions.cells_of(text) or [line], header.written)
    if not is_plain_text(text, header.dialect):
        cells = cells_of(text, header.dialect)
        return _row_of(cells, header.written) if cells else as_one_cell(text, header)
    text = _without_own(text, header)
    if header.dialect.signs == header.rows_file.dialect.signs:
        return text
    return _row(plain_row(text, header), header.written)


def as_one_cell(text: str, header: Header) -> str:
    """A text that is no record as a single cell, so that it is not read as one."""
    # If records have a single cell, a second one is added so that this is no record.
    return _row([text] if len(_delivered_places(header)) > 1 else [text, ""], header.written)


def on_its_own(text: str, header: Header) -> str:
    """The text of a line without cells, changed so that no quote in it takes in lines below."""
    quotes = text.count(header.rows_file.dialect.quote.decode())
    # Only an odd number of quotes leaves one open; any other misplaced quote costs its own line.
    return as_one_cell(text, header) if quotes % 2 else text


def may_stay_open(texts: pl.Expr, header: Header) -> pl.Expr:
    """Whether a quote in a text may take in lines below it; never if the text can be split."""
    quote = header.rows_file.dialect.quote.decode()
    return texts.str.count_matches(quote, literal=True) % 2 == 1


def names_in_front(texts: pl.Series, header: Header) -> pl.Series:
    """Row names we wrote in front of lines without cells; null for lines without one."""
    place = header.parent_column
    if place is None or _own_places(header.names)[: place + 1] != tuple(range(place + 1)):
        return pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    signs = header.dialect.signs
    front = texts.str.splitn(signs["delimiter"], place + 2).struct.field(f"field_{place}")
    names = front.str.strip_chars(f" {signs['quotechar']}")
    return pl.select(pl.when(names.str.contains(ROW_NAME)).then(names)).to_series()


def cells_left_out(text: str, header: Header, places: Collection[int]) -> str:
    """The text with these cells emptied; a text that cannot be split loses all of them."""
    header = header.written
    kept = _delivered_places(header)
    cells = _raw_cells(text, header)
    if len(cells) != len(kept):
        cells = [""] * len(kept)
    left = ("" if place in places else cell for place, cell in zip(kept, cells, strict=True))
    return header.dialect.delimiter.decode().join(left)


def write_lines(
    header: Header,
    own: Sequence[str],
    lines: Callable[[], Iterable[RewrittenLine]],
    file: IO[bytes],
    frames: Callable[[], Iterable[pl.DataFrame]] | None = None,
) -> None:
    """Write a file of rows that is itself a delivery; `own` names the columns of ours.

    If any row needs a sign, the rows are asked for again: then every row says whether it has one,
    and the header announces that first. `frames` are the same rows as columns `own` and TEXT; a
    frame has a null where a row is no text.
    """
    header = header.written
    names = _row([header.names[place] for place in _delivered_places(header)], header)
    guard = header.dialect.guard
    begin = file.tell()
    if guard.put(names) == names:
        if frames and _frames_written(header, own, names, frames(), file):
            return
        _empty(file, begin)
        if _written_as_they_are(header, own, names, lines(), file):
            return
        _empty(file, begin)
    rows = [_joined(header, [*own, QUOTED_COLUMN], guard.put(names))]
    file.write(header.rows_file.beginning + _encoded(header, rows))
    remaining = iter(lines())
    while part := list(islice(remaining, BLOCK)):
        guarded = [guard.put(line.text) for line in part]
        rows = [
            _joined(header, [*line.own.values(), QUOTED if text != line.text else ""], text)
            for line, text in zip(part, guarded, strict=True)
        ]
        file.write(_encoded(header, rows))


def _empty(file: IO[bytes], begin: int) -> None:
    file.seek(begin)
    file.truncate()


def needs_nothing(header: Header) -> bool:
    """Whether rows are written as they were delivered, with plain numbers and ids in front."""
    signs = header.dialect.signs
    return (
        not header.positions
        and not _own_places(header.names)
        and signs == header.rows_file.dialect.signs
        and _IDS.isdisjoint(signs.values())
    )


def _frames_written(
    header: Header, own: Sequence[str], names: str, frames: Iterable[pl.DataFrame], file: IO[bytes]
) -> bool:
    """Like `_written_as_they_are`, a frame at a time; also False if a frame has a null."""
    guard, delimiter = header.dialect.guard, header.dialect.delimiter.decode()
    file.write(header.rows_file.beginning + _encoded(header, [_joined(header, own, names)]))
    text = pl.col(TEXT)
    for frame in frames:
        doubtful = frame.filter(text.is_null() | guard.may_put(text))[TEXT].to_list()
        if any(one is None or guard.put(one) != one for one in doubtful):
            return False
        rows = frame.select(pl.concat_str(*own, TEXT, separator=delimiter) + "\r\n").to_series()
        written = str(rows.str.join("").item() or "")
        file.write(written.encode(header.dialect.encoding, "surrogateescape"))
    return True


def _written_as_they_are(
    header: Header, own: Sequence[str], names: str, lines: Iterable[RewrittenLine], file: IO[bytes]
) -> bool:
    """Write rows unchanged; False at the first that needs a sign, and the output is discarded."""
    guard = header.dialect.guard
    file.write(header.rows_file.beginning + _encoded(header, [_joined(header, own, names)]))
    remaining = iter(lines)
    while part := list(islice(remaining, BLOCK)):
        if any(guard.put(line.text) != line.text for line in part):
            return False
        rows = [_joined(header, [*line.own.values()], line.text) for line in part]
        file.write(_encoded(header, rows))
    return True


def _encoded(header: Header, rows: Sequence[str]) -> bytes:
    text = "".join(f"{row}\r\n" for row in rows)
    return text.encode(header.dialect.encoding, "surrogateescape")


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


@lru_cache(maxsize=64)
def _own_places(names: tuple[str, ...]) -> tuple[int, ...]:
    """Columns of ours that were delivered, to be written again."""
    own = {name.casefold() for name in OWN_COLUMNS}
    return tuple(place for place, name in enumerate(names) if name.casefold() in own)


def _delivered_places(header: Header) -> list[int]:
    own = set(_own_places(header.names))
    return [place for place in range(header.width) if place not in own]


def _without_own(text: str, header: Header) -> str:
    own = _own_places(header.names)
    if not own:
        return text
    delimiter = header.dialect.delimiter.decode()
    cells = _raw_cells(text, header)
    if len(cells) == header.width:
        guarded = header.quoted_column is not None and cells[header.quoted_column] == QUOTED
        text = delimiter.join(cells[place] for place in _delivered_places(header))
    else:
        # In a row that is not sound, our own columns are the cells in front, as we wrote them.
        *front, text = text.split(delimiter, len(own))
        guarded = QUOTED in front and header.quoted_column is not None
    if guarded:
        text = header.dialect.guard.take(text)
    return text


def _raw_cells(text: str, header: Header) -> list[str]:
    """The cells as they are written, quotes included; not to be relied on for an unsound row."""
    delimiter = re.escape(header.dialect.delimiter.decode())
    quote = re.escape(header.dialect.quote.decode())
    cell = rf"{quote}(?:[^{quote}]|{quote}{quote})*+{quote}(?={delimiter}|\Z)|[^{delimiter}]*"
    return re.findall(rf"(?:\A|{delimiter})({cell})", text, re.DOTALL)
