"""Blocks of a CSV side: plain ones are read at once, all others record by record.

Plain is a block without a quote of which simple counts prove that every line is a record with as
many cells as there are columns, and that every number reads back to the very text it was read from.
What it says of such a block is what the strict reader says of it.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import MARK, Chunk, Place
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.text.content import Content

_INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
_DIGITS = 18


class Block(NamedTuple):
    """Consecutive records of a CSV file: of the sound ones the cells, by number of the column."""

    cells: pl.DataFrame
    line: int
    """On which the first one begins."""
    chunk: Chunk | None
    """The records, where they were read one by one; None: each is a line."""


def read_blocks(content: Content, header: Header, block_bytes: int) -> Iterator[Block]:
    """The records of a file from the header on; columns of integers are numbers in a block."""
    place = first_place(header)
    most = 1
    while True:
        cells = pl.DataFrame()
        chunks = read_chunks(content, header, place, block_bytes)
        for taken, chunk in enumerate(chunks, 1):
            cells = pl.DataFrame([integers(one) for one in chunk.cells(header.width)])
            yield Block(cells, chunk.start.line, chunk)
            place = chunk.end
            if taken == most and not place.inside:
                break
        else:
            return
        before = place
        place = yield from _plain_blocks(content, header, place, cells.schema, block_bytes)
        # Where hardly a block is plain, it is not tried again and again.
        most = 1 if place != before else most * 2


def _plain_blocks(
    content: Content, header: Header, place: Place, schema: pl.Schema, block_bytes: int
) -> Generator[Block, None, Place]:
    """Blocks from `place` on, up to the first that is not plain; returns where that begins."""
    if header.dialect.encoding != "utf-8" or header.width == 1:
        return place
    rest = b""
    with content.open() as file:
        file.seek(place.byte)
        while read := file.read(block_bytes):
            text = rest + read
            size = text.rfind(b"\n") + 1
            cells = plain_cells(text[:size], header, schema)
            if cells is None:
                break
            yield Block(cells, place.line, None)
            rows = cells.height
            place = Place(place.byte + size, place.line + rows, place.record + rows)
            rest = text[size:]
    return place


def plain_cells(text: bytes, header: Header, schema: pl.Schema) -> pl.DataFrame | None:
    """The cells of a plain block of lines, columns of integers by `schema`; None: it is none."""
    dialect = header.dialect
    if not text or dialect.quote in text or b"\0" in text or text.startswith(MARK):
        return None
    if not text.isascii() and not _is_text(text):
        return None
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    signs = np.frombuffer(text, np.uint8)
    lines, between = (
        int(np.count_nonzero(signs == ord(one))) for one in (b"\n", dialect.delimiter)
    )
    if b"\r" in text or between != lines * (header.width - 1):
        return None
    try:
        # A line with more cells than columns is an error here, so that by their number none has
        # fewer.
        frame = pl.read_csv(
            text,
            has_header=False,
            schema=schema,
            separator=dialect.delimiter.decode(),
            quote_char=dialect.quote.decode(),
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines or frame.width != header.width:
        return None
    sizes, longest = 0, 0
    for cells in frame:
        size, most = _sizes(cells)
        sizes, longest = sizes + size, longest + most
        if most > dialect.max_field_bytes:
            return None
    # A number has no shorter text than its own, so the sum is right where every one is written so.
    if sizes + between + lines != len(text):
        return None
    return frame if longest + header.width <= dialect.max_record_bytes else None


def _is_text(text: bytes) -> bool:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def integers(cells: pl.Series) -> pl.Series:
    """The cells as numbers if all of them are canonical integers, else as they are."""
    first = cells.drop_nulls().head(1)
    if first.len() and not first.str.contains(_INTEGER).all():
        return cells
    numbers = cells.cast(pl.Int64, strict=False)
    if numbers.null_count() != cells.null_count() or _sizes(numbers)[0] != _sizes(cells)[0]:
        return cells
    return numbers


def _sizes(cells: pl.Series) -> tuple[int, int]:
    """How many bytes the texts of the cells have in all, and the longest of them."""
    if cells.dtype == pl.String:
        sizes = cells.str.len_bytes()
        longest = sizes.max() or 0
        assert isinstance(longest, int)
        return int(sizes.sum()), longest
    lowest, highest = cells.min(), cells.max()
    if lowest is None:
        return 0, 0
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    if max(-lowest, highest) >= 10**_DIGITS:
        return -1, _DIGITS + 2
    below = int((cells < 0).sum()) if lowest < 0 else 0
    magnitudes = cells.abs() if below else cells
    longest = len(str(max(-lowest, highest)))
    least = len(str(magnitudes.min()))
    more = sum(int((magnitudes >= 10**digits).sum()) for digits in range(least, longest))
    given = cells.len() - cells.null_count()
    return given * least + more + below, longest + (below > 0)
