"""Blocks of a CSV side: plain ones are read at once, all others record by record.

A plain block has no quote, and simple counts prove that every line is a record with one cell for
each column and that every number reads back to exactly its own text. The strict reader would read
the same from such a block.
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
    """Consecutive records of a CSV file; `cells` are those of sound records, by column number."""

    cells: pl.DataFrame
    line: int
    """Line on which the first record begins."""
    chunk: Chunk | None
    """The records, if they were read one by one; None if each is a line."""


def read_blocks(content: Content, header: Header, block_bytes: int) -> Iterator[Block]:
    """The records of a file after the header; integer columns are numbers within a block."""
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
        # Where hardly any block is plain, the fast way is tried less and less often.
        most = 1 if place != before else most * 2


def _plain_blocks(
    content: Content, header: Header, place: Place, schema: pl.Schema, block_bytes: int
) -> Generator[Block, None, Place]:
    """Plain blocks from `place` on; returns where the first block begins that is not plain."""
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
    """The cells of a plain block of lines, with integer columns by `schema`; None if not plain."""
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
        # A line with more cells than columns is an error here, so the count of delimiters proves
        # that no line has fewer.
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
    # A number's own text is its shortest, so the sum is right only if each is written that way.
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
    """The cells as numbers if all are canonical integers, else unchanged."""
    first = cells.drop_nulls().head(1)
    if first.len() and not first.str.contains(_INTEGER).all():
        return cells
    numbers = cells.cast(pl.Int64, strict=False)
    if numbers.null_count() != cells.null_count() or _sizes(numbers)[0] != _sizes(cells)[0]:
        return cells
    return numbers


def _sizes(cells: pl.Series) -> tuple[int, int]:
    """Bytes of the texts of all cells together, and of the longest."""
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
