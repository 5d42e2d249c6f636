"""Fixed-width lines as records: each line is a record, and its cells are cut from it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import Chunk
from connectors.files.text.bitmask import Bytes, Flags
from connectors.files.text.dialect import RecordFault
from connectors.files.text.encodings import utf8_sizes
from connectors.files.text.positions import CellRanges
from schemas.cells.numbers import AROUND

ASCII = 0x7F
"""The last ASCII byte."""


@dataclass(frozen=True, kw_only=True)
class FixedWidthChunk(Chunk):
    """Lines with cells at fixed places; a line that is too short or too long is broken."""

    at: CellRanges

    def cells(self, width: int) -> pl.DataFrame:
        """The sound records as text: columns named "0", "1" ...; an empty cell is null."""
        names = [str(column) for column in range(width)]
        line = self._texts().filter(self.records.is_sound)
        own = width == len(self.at.ranges)  # No cells from other lines are appended yet.
        cut = (replace(self.at, behind=0) if own else self.at).cut(pl.col("data"))
        return line.to_frame("data").select(
            cell.alias(name) for name, cell in zip(names, cut, strict=True)
        )

    @property
    def plainly_delimited(self) -> Flags:
        found = super().plainly_delimited
        if self.at.encoding is None or self.block.isascii():
            return found
        # The compiled loops count characters.
        high = np.append(0, np.cumsum(np.frombuffer(self.block, np.uint8) > ASCII))
        alone: Flags = high[self.records.start] == high[self.records.end]
        return found & alone

    def faults_by_length(self) -> Bytes:
        """The fault of each line; its length counts in the unit of the positions."""
        records, fault = self.records, self.records.fault.copy()
        length = records.end - records.start
        # A longer line may have only blanks after its cells, a shorter one may lack those.
        width = self.at.width
        whole = np.array([self.at.is_whole(signs) for signs in range(width + 1)] + [False])
        known = whole[np.minimum(length, width + 1)]
        bytewise = self.block.isascii() or utf8_sizes(self.dialect.encoding) is not None
        others = np.flatnonzero(~known | (not bytewise))
        if len(others):
            line = self.texts(others.tolist()).with_columns(pl.Series("fault", fault[others]))
            fault[others] = line.select(self._fault().cast(pl.UInt8)).to_series().to_numpy()
        return fault

    def _fault(self) -> pl.Expr:
        at, line, fault = self.at, pl.col("data"), pl.col("fault")
        spaced = at.spaced_all(line)
        written = spaced.str.strip_chars_end(AROUND).str.len_chars()
        cut = [signs for signs in range(at.width) if not at.is_whole(signs)]
        short = spaced.str.len_chars().is_in(cut)
        return (
            pl.when(fault != RecordFault.NONE)
            .then(fault)
            .when(written > at.width)
            .then(RecordFault.TOO_MANY_FIELDS)
            .when(short)
            .then(RecordFault.TOO_FEW_FIELDS)
            .when(at.is_split(spaced))
            .then(RecordFault.ENCODING)
            .otherwise(fault)
        )


def of_fixed_width(chunks: Iterator[Chunk], at: CellRanges) -> Iterator[Chunk]:
    """The same chunks, with cells at these positions of their lines."""
    for chunk in chunks:
        lines = FixedWidthChunk(
            chunk.block, chunk.records, chunk.start, chunk.dialect, comments=chunk.comments, at=at
        )
        yield replace(lines, records=replace(chunk.records, fault=lines.faults_by_length()))
