"""A file read in blocks of any sizes, as the importer does, with its promises checked."""

from collections.abc import Iterator
from itertools import chain, repeat

from connectors.files.chunks.chunk import Chunk, Place
from connectors.files.chunks.reader import settled_chunks, with_records
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.pieces import Pieces
from connectors.files.text.records import conserved, sound, split
from tests.extracts import slow_records
from tests.extracts.slow_records import Record


def chunks(pieces: Pieces, width: int, dialect: Dialect, place: Place) -> Iterator[Chunk]:
    return with_records(settled_chunks(pieces, width, dialect, place), dialect)


def read(
    data: bytes, width: int, dialect: Dialect, sizes: list[int] | None = None
) -> tuple[list[Record], bytes]:
    """Read a file by blocks of the given sizes, and give its records and its sound text."""
    found: list[Record] = []
    clean: list[bytes] = []
    left, offset, taken, line, inside, final = b"", 0, 0, 1, False, False
    for size in chain(sizes or (), repeat(max(1, len(data)))):
        if final:
            break
        block = left + data[taken : taken + size]
        taken = min(len(data), taken + size)
        final = taken == len(data)
        settled = split(block, width, dialect, line=line, final=final, inside=inside)
        assert conserved(block, settled, dialect)
        starts, ends = (settled.start + offset).tolist(), (settled.end + offset).tolist()
        numbers = (settled.first_line.tolist(), settled.last_line.tolist())
        faults = map(RecordFault, settled.fault.tolist())
        found += map(Record._make, zip(starts, ends, *numbers, faults, strict=True))
        clean.append(sound(block[: settled.consumed], settled))
        left, offset = block[settled.consumed :], offset + settled.consumed
        line, inside = line + settled.lines, settled.inside
        # As far as a close is looked for, a reading that begins before it, and the block just read.
        assert len(left) <= dialect.look_ahead_bytes + dialect.max_record_bytes + size + 2
    assert not left
    assert line == len(slow_records.physical_lines(data)) + 1
    return found, b"".join(clean)


def chunked(data: bytes, width: int, dialect: Dialect, sizes: list[int]) -> list[Record]:
    """Read a file as the importer does, which looks at the blocks to come before it waits."""
    found: list[Record] = []
    for chunk in chunks(Pieces(_blocks(data, sizes)), width, dialect, Place(0, 1, 1)):
        records, offset = chunk.records, chunk.start.byte
        assert conserved(chunk.block, records, dialect)
        columns = (records.start + offset, records.end + offset)
        numbers = (records.first_line, records.last_line, records.fault)
        found += [
            Record(*numbers, RecordFault(fault))
            for *numbers, fault in zip(*(c.tolist() for c in (*columns, *numbers)), strict=True)
        ]
    return found


def _blocks(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in chain(filter(None, sizes), repeat(max(1, len(data)))):
        if at >= len(data):
            return
        yield data[at : at + size]
        at += size


def summary(found: list[Record]) -> list[tuple[int, int, str]]:
    return [(record.first_line, record.last_line, record.fault.code) for record in found]
