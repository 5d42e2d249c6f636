"""Blocks of bytes from a position of an extract, with one block in memory at a time.

The currencies that cells of a sheet name beside their numbers are gathered while it is read.
"""

import codecs
from array import array
from bisect import bisect_left
from collections.abc import Iterator

import polars as pl

from connectors.files.sheets.workbook import sheet_lines
from connectors.files.text.content import TRANSCODED, Content


class CellCurrencies:
    """Cells that name a currency, in the order of the sheet, each by where its line begins."""

    def __init__(self) -> None:
        self._bytes, self._columns = array("q"), array("q")
        self._codes: list[str] = []

    def note(self, byte: int, column: int, code: str) -> None:
        """The cell of a column, counted from 0, of the line that begins at this byte names one."""
        self._bytes.append(byte)
        self._columns.append(column)
        self._codes.append(code)

    def take(self, beyond: int) -> pl.DataFrame | None:
        """Those of the lines before a byte, which are given once; None: none of them names one.

        Columns: byte, column, code.
        """
        count = bisect_left(self._bytes, beyond)
        if not count:
            return None
        columns = self._bytes[:count], self._columns[:count], self._codes[:count]
        del self._bytes[:count], self._columns[:count], self._codes[:count]
        return pl.DataFrame(dict(zip(("byte", "column", "code"), columns, strict=True)))


def blocks(
    content: Content, start: int, block_bytes: int, currencies: CellCurrencies | None = None
) -> Iterator[bytes]:
    """The text from position `start` on, in pieces of at most `block_bytes`, none of them empty.

    Blocks are cut anywhere, also inside a character. UTF-16, other encodings that cannot be divided
    and workbooks are read from their beginning again to find `start`, because positions count the
    UTF-8 bytes they become. What the cells of a workbook say of currencies is noted in
    `currencies`, of a line before it is given.
    """
    if block_bytes < 1 or start < 0:
        raise ValueError(f"start {start} and block_bytes {block_bytes} must be a place and a size")
    if content.workbook:
        return _rendered(content, start, block_bytes, currencies)
    way = _transcoded if content.transcoded else _raw
    return way(content, start, block_bytes)


def _raw(content: Content, start: int, block_bytes: int) -> Iterator[bytes]:
    with content.open() as file:
        file.seek(start)
        # Every later block ends where it would have ended when read from the beginning, so a run
        # that goes on cuts the same chunks as one that was never interrupted.
        wanted = block_bytes - start % block_bytes
        while block := file.read(wanted):
            yield block
            wanted = block_bytes - file.tell() % block_bytes


def _transcoded(content: Content, start: int, block_bytes: int) -> Iterator[bytes]:
    # A lone surrogate passes into bytes that are no valid UTF-8, so that it costs its own record
    # (Encoding) and not the file; bytes that are no sign of another encoding become one.
    errors = "surrogatepass" if content.delivered_encoding in TRANSCODED else "surrogateescape"
    decoder = codecs.getincrementaldecoder(content.delivered_encoding)(errors)
    skip = start
    with content.open() as file:
        file.seek(content.mark_bytes)
        while piece := file.read(block_bytes):
            text = decoder.decode(piece).encode("utf-8", "surrogatepass")
            yield from _pieces(text, skip, block_bytes)
            skip = max(0, skip - len(text))
    # A decoder that ends within a sign tells only the first of the bytes that it still holds.
    held, _ = decoder.getstate()
    if content.delivered_encoding in TRANSCODED:
        rest = decoder.decode(b"", final=True)
    else:
        rest = held.decode("ascii", errors)
    text = rest.encode("utf-8", "surrogatepass")
    yield from _pieces(text, skip, block_bytes)


def _rendered(
    content: Content, start: int, block_bytes: int, currencies: CellCurrencies | None
) -> Iterator[bytes]:
    skip, lines, size, begin = start, list[bytes](), 0, 0
    for line, named in sheet_lines(content):
        if currencies is not None and begin >= start:
            for column, code in named:
                currencies.note(begin, column, code)
        begin += len(line)
        lines.append(line)
        size += len(line)
        if size >= block_bytes:
            yield from _pieces(b"".join(lines), skip, block_bytes)
            skip, lines, size = max(0, skip - size), [], 0
    yield from _pieces(b"".join(lines), skip, block_bytes)


def _pieces(text: bytes, skip: int, block_bytes: int) -> Iterator[bytes]:
    # Cut where a reading from the beginning cuts, so that chunks are the same after a stop.
    for begin in range(skip - skip % block_bytes, len(text), block_bytes):
        if piece := text[max(begin, skip) : begin + block_bytes]:
            yield piece
