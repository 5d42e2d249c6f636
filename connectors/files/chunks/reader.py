"""The chunks of an extract, read from a given place on."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from connectors.files.archived.blocks import CellCurrencies, blocks
from connectors.files.chunks.carried import carrying, lines_above
from connectors.files.chunks.chunk import Chunk, Place, skipped
from connectors.files.chunks.fixed_width import of_fixed_width
from connectors.files.chunks.skipped_lines import NO_LINES
from connectors.files.chunks.unpivoted import unpivoted
from connectors.files.layout.header import Header
from connectors.files.layout.header_again import HeaderColumns, OtherHeader
from connectors.files.text.content import Content
from connectors.files.text.dialect import Dialect
from connectors.files.text.pieces import Pieces
from connectors.files.text.records import split
from connectors.settings import STRICT_BYTES


def first_place(header: Header) -> Place:
    """Where the records of an extract begin."""
    return Place(header.body_start, header.body_line, 1)


def reads_what_is_before(content: Content, header: Header) -> bool:
    """Whether reading from a place on also has to read everything before it."""
    return content.transcoded or header.carried is not None


def read_chunks(
    content: Content,
    header: Header,
    place: Place,
    block_bytes: int,
    strict_bytes: int = STRICT_BYTES,
) -> Iterator[Chunk]:
    """The records of an extract from `place` on, in chunks of about `block_bytes`.

    Up to `strict_bytes` they are read without compiled code.
    """
    currencies = CellCurrencies() if content.workbook else None
    text, headers = _body(content, header, place, block_bytes, currencies), _Headers(header.columns)
    if header.unpivot:
        settled = settled_chunks(Pieces(text), header.unpivot.width, header.dialect, place)
        lines = with_records(headers.looked_for(settled), header.dialect)
        lines = _with_currencies(lines, currencies)
        whole = place == first_place(header)
        found = unpivoted(lines, header.unpivot, place, block_bytes, strict_bytes, whole=whole)
        return headers.with_other_header(found)
    found = headers.looked_for(_lines(text, header, place))
    if header.carried:
        before = _before(content, header, place, block_bytes)
        found = carrying(found, header.carried, before, place.byte, block_bytes)
    return headers.with_other_header(
        _with_currencies(with_records(found, header.dialect), currencies)
    )


class _Headers:
    """Watches settled chunks for a header with other columns and marks the chunks after it."""

    def __init__(self, columns: HeaderColumns | None) -> None:
        self._columns = columns
        self._found: OtherHeader | None = None

    def looked_for(self, settled: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in settled:
            if self._columns and self._found is None:
                self._found = self._columns.first_in(chunk.block, chunk.records, chunk.start.byte)
            yield chunk

    def with_other_header(self, found: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks; from the first one that ends after such a header on, they carry it."""
        for chunk in found:
            other = self._found
            if other and other.byte < chunk.end.byte:
                yield replace(chunk, other_header=other)
            else:
                yield chunk


def _lines(text: Iterator[bytes], header: Header, place: Place) -> Iterator[Chunk]:
    """The settled chunks of a text from a place on, by the cells of the lines themselves."""
    width = 1 if header.positions else header.line_width
    settled = settled_chunks(Pieces(text), width, header.dialect, place)
    return of_fixed_width(settled, header.positions) if header.positions else settled


def _body(
    content: Content,
    header: Header,
    place: Place,
    block_bytes: int,
    currencies: CellCurrencies | None = None,
) -> Iterator[bytes]:
    """The text from a place up to the footer."""
    text = blocks(content, place.byte, block_bytes, currencies)
    return _up_to(text, header.footer.start - place.byte) if header.footer else text


def lines_above_record(
    content: Content, header: Header, byte: int, block_bytes: int
) -> list[int | None]:
    """By carried column: the line that states a value for the record at a byte."""
    if header.carried is None:
        return []
    first = first_place(header)
    lines = _lines(_body(content, header, first, block_bytes), header, first)
    return lines_above(lines, header.carried, byte)


def _before(content: Content, header: Header, place: Place, block_bytes: int) -> Iterator[Chunk]:
    """The settled chunks from the header to a place, or somewhat further."""
    first = first_place(header)
    for chunk in _lines(_body(content, header, first, block_bytes), header, first):
        if chunk.start.byte >= place.byte:
            return
        yield chunk


def _with_currencies(found: Iterator[Chunk], currencies: CellCurrencies | None) -> Iterator[Chunk]:
    """Chunks with the currencies that cells of a sheet name; those of other files unchanged."""
    if currencies is None:
        return found
    return (replace(chunk, currencies=currencies.take(chunk.end.byte)) for chunk in found)


def _up_to(text: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in text:
        if piece := block[:size]:
            yield piece
        size -= len(block)
        if size <= 0:
            return


def with_records(found: Iterator[Chunk], dialect: Dialect) -> Iterator[Chunk]:
    """Chunks with records, which also report comments; if all are comments, the last chunk does.

    Comments above a chunk's records are reported with it, those after the last with the last.
    """
    if not dialect.skips:
        yield from (chunk for chunk in found if chunk.height)
        return
    last: Chunk | None = None
    chunk: Chunk | None = None
    above = NO_LINES
    for chunk in found:
        above = above.with_more(skipped(chunk.records.comments.line))
        if chunk.height:
            if last is not None:
                yield last
            last, above = replace(chunk, comments=above), NO_LINES
    if last is not None:
        yield replace(last, comments=last.comments.with_more(above), behind=above)
    elif chunk is not None and chunk.start.record == 1 and above.lines:
        yield replace(chunk, comments=above)


def settled_chunks(pieces: Pieces, width: int, dialect: Dialect, place: Place) -> Iterator[Chunk]:
    """The settled part of these blocks, piece by piece, even if it has no record."""
    held, wanted = list[bytes](), 0
    for block, final in pieces:
        held.append(block)
        size = sum(map(len, held))
        if size < wanted and not final:
            continue
        wanted = 0
        rest = b"".join(held)
        chunk = _chunk(rest, width, dialect, place, final=final)
        if chunk.records.waits:
            # Whether to wait is decided now, whatever else the block holds, so a run that continues
            # here cuts the same chunks.
            left = rest[chunk.records.consumed :]
            ahead = pieces.record_size(left, dialect)
            if ahead is None:
                more = _chunk(left, width, dialect, chunk.end, final=final, endless=True)
                chunk = replace(chunk, records=chunk.records.followed_by(more.records))
            else:
                wanted = ahead
        if (chunk.records.start[1:2] < size - len(block)).any():
            # Blocks were held for a record that does not include them. A run may start at each of
            # the others, from its own block alone, so they are read that way here too.
            chunk, wanted = chunk.part(0, 1), 0
            pieces.give_back(_behind(held, chunk.records.consumed))
            held = []
        elif chunk.records.consumed:
            held = [rest[chunk.records.consumed :]]
        place = chunk.end
        yield chunk


def _behind(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The pieces without the first `size` bytes; empty ones are dropped."""
    for piece in pieces:
        if left := piece[size:]:
            yield left
        size = max(0, size - len(piece))


def _chunk(
    block: bytes, width: int, dialect: Dialect, place: Place, *, final: bool, endless: bool = False
) -> Chunk:
    records = split(
        block, width, dialect, line=place.line, final=final, inside=place.inside, endless=endless
    )
    return Chunk(block, records, place, dialect)
