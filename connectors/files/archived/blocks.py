"""Blocks of bytes from a position of an extract, with one block in memory at a time.

While a sheet is read, the currencies that its cells name beside numbers are collected.
"""

import codecs
from array import array
from bisect import bisect_left
from collections.abc import Iterator

import polars as pl

from connectors.files.sheets.workbook import sheet_lines
from connectors.files.text.content import TRANSCODED, Content


class CellCurrencies:
    """Cells that name a currency, in sheet order, each located by the start of its line."""

    def __init__(self) -> None:
        self._bytes, self._columns = array("q"), array("q")
        self._codes: list[str] = []

    def note(self, byte: int, column: int, code: str) -> None:
        """Note the currency of a cell: its column, from 0, and the byte where its line begins."""
        self._bytes.append(byte)
        self._columns.append(column)
        self._codes.append(code)

    def take(self, beyond: int) -> pl.DataFrame | None:
        """Remove and return the cells of lines before a byte; None if there are none.

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
    """The text from position `start` on, in non-empty pieces of at most `block_bytes`.

    Blocks are cut anywhere, even inside a character. UTF-16, other indivisible encodings and
    workbooks are read again from their beginning to find `start`, because positions count the UTF-8
    bytes they become. Currencies in the cells of a workbook are noted in `currencies` before their
    line is yielded.
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
        # Every later block ends where it would in a reading from the beginning, so a continued run
        # cuts the same chunks as an uninterrupted one.
        wanted = block_bytes - start % block_bytes
        while block := file.read(wanted):
            yield block
            wanted = block_bytes - file.tell() % block_bytes


def _transcoded(content: Content, start: int, block_bytes: int) -> Iterator[bytes]:
    # A lone surrogate becomes bytes that are no valid UTF-8, so that it costs its own record
    # (Encoding) and not the file; undecodable bytes of other encodings become surrogates.
    errors = "surrogatepass" if content.delivered_encoding in TRANSCODED else "surrogateescape"
    decoder = codecs.getincrementaldecoder(content.delivered_encoding)(errors)
    skip = start
    with content.open() as file:
        file.seek(content.mark_bytes)
        while piece := file.read(block_bytes):
            text = decoder.decode(piece).encode("utf-8", "surrogatepass")
            yield from _pieces(text, skip, block_bytes)
            skip = max(0, skip - len(text))
    # At an incomplete character, decoding to the end reports only the first of the held bytes.
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
