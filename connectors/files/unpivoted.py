"""Lines of a table as the records they become.

A cell that holds no value makes no record. The text of a record is that of its own cells, its place
that of the whole line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from connectors.files.bitmask import Flags, Places
from connectors.files.chunk import Chunk, Place, read_cells
from connectors.files.dialect import RecordFault
from connectors.files.parts import in_parts
from connectors.files.records import Records, conserved, sound
from connectors.files.skipped_lines import NO_LINES, SkippedLines, of_lines
from connectors.files.table_lines import lines_of_table
from connectors.files.unpivot import Unpivot
from connectors.files.utf8 import Utf8

NOTHING = Utf8(b"", np.empty(0, np.int64), np.empty(0, np.int64))
_ROW_BYTES = 32
"""What a record takes beside its text, or nearly: so that a chunk is no larger than of others."""


@dataclass(frozen=True)
class UnpivotedChunk(Chunk):
    """Lines of a table as the records they become; one that is broken stays one record."""

    of_lines: Records | None = None
    """The lines as they are, those without a value too."""
    written: Utf8 = NOTHING
    """The records as they are written, each on its line; of a broken one it has nothing."""

    def conserved(self) -> bool:
        """Of the lines: a byte is in as many records as its line becomes."""
        assert self.of_lines is not None
        settled = memoryview(self.block)[: self.records.consumed]
        return conserved(settled, self.of_lines, self.dialect)

    def only(self, chosen: Flags) -> Self:
        """Some of the records, where they are."""
        text, start, end = self.written
        return replace(super().only(chosen), written=Utf8(text, start[chosen], end[chosen]))

    @property
    def size(self) -> int:
        """Of the records: a short line becomes many."""
        return len(self.written.text)

    @property
    def utf8(self) -> Utf8:
        """All records as UTF-8, whatever the encoding of the file."""
        return self.written

    def cells(self, width: int) -> pl.DataFrame:
        """The sound records as text: columns named "0", "1" ...; a bare empty cell is null."""
        text, start, end = self.written
        text = sound(text, replace(self.records, start=start, end=end))
        return read_cells(text, self.height - len(self.faults), width, self.dialect)

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
        """Of these records: text, and bytes if no text."""
        return pl.DataFrame([self._texts(), self._raw()])[rows]

    def _texts(self) -> pl.Series:
        text, start, end = self.written
        length = pl.Series(end - start)
        cut = pl.lit(text).bin.slice(pl.Series(start), length).cast(pl.String)
        texts = pl.select(cut.alias("data")).to_series()
        broken = [*self.faults]
        return texts.scatter(broken, [self._text_of(row) for row in broken]) if broken else texts


def unpivoted(
    chunks: Iterator[Chunk],
    unpivot: Unpivot,
    first: Place,
    most: int,
    strict_bytes: int,
    *,
    whole: bool,
) -> Iterator[Chunk]:
    """The records that the lines of these chunks become, numbered from that of `first` on.

    Chunks become several where their records take more than `most` bytes. Those that become none
    are not given: their lines are told by the next one, or by the last; where the `whole` text
    has no record, by one without any. Up to `strict_bytes` of lines are read by nothing compiled.
    """
    number, empty, comments = first.record, NO_LINES, NO_LINES
    last: UnpivotedChunk | None = None
    nothing: UnpivotedChunk | None = None
    for lines in chunks:
        comments = comments.with_more(_above(lines))
        for part in _parts(lines, unpivot, most, strict_bytes):
            chunk = replace(
                part,
                start=replace(part.start, record=number),
                valueless=empty.with_more(part.valueless),
                comments=comments.with_more(part.comments),
            )
            empty, comments = chunk.valueless, chunk.comments
            if chunk.height:
                if last is not None:
                    yield last
                last, empty, number = chunk, NO_LINES, number + chunk.height
                comments = NO_LINES
            else:
                nothing = chunk
        comments = comments.with_more(lines.behind)
    if last is not None:
        yield replace(
            last,
            valueless=last.valueless.with_more(empty),
            comments=last.comments.with_more(comments),
        )
    elif nothing is not None and whole and (empty.lines or comments.lines):
        yield replace(nothing, valueless=empty, comments=comments)


def _above(lines: Chunk) -> SkippedLines:
    """The comments of blocks before a chunk, which have no records."""
    of_block = len(lines.records.comments.line) + lines.behind.lines
    count = lines.comments.lines - of_block
    return SkippedLines(count, lines.comments.first) if count else NO_LINES


def _parts(
    lines: Chunk, unpivot: Unpivot, most: int, strict_bytes: int
) -> Iterator[UnpivotedChunk]:
    """The records of a chunk of lines, in parts of about `most` bytes."""
    records = lines.records
    if not len(records):
        yield _part(lines, np.zeros(0, np.int64), NOTHING)
        return
    table = lines_of_table(lines, unpivot, strict_bytes)
    at_sound = np.flatnonzero(records.fault == RecordFault.NONE)
    counts, sizes = np.ones(len(records), np.int64), records.end - records.start
    counts[at_sound] = table.counts
    sizes[at_sound] += table.counts * (table.kept + _ROW_BYTES)
    for first, beyond in in_parts(sizes, most):
        of_part = np.searchsorted(at_sound, [first, beyond])
        written = table.write(int(of_part[0]), int(of_part[1]))
        yield _part(lines.part(first, beyond), counts[first:beyond], written)


def _part(lines: Chunk, counts: Places, written: Utf8) -> UnpivotedChunk:
    """The records of these lines, of which there are so many of each; those of sound ones."""
    records = lines.records
    of = np.repeat(np.arange(len(records)), counts)
    is_sound = records.fault[of] == RecordFault.NONE
    start, end = np.zeros((2, len(of)), np.int64)
    start[is_sound], end[is_sound] = written.start, written.end
    without = records.first_line[counts == 0]
    return UnpivotedChunk(
        lines.block,
        records.only(of),
        lines.start,
        lines.dialect,
        valueless=of_lines(without),
        comments=of_lines(records.comments.line),
        currencies=lines.currencies,
        of_lines=records,
        written=Utf8(written.text, start, end),
    )
