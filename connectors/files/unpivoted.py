"""Lines of a table as the records they become.

A cell that holds no value makes no record. The text of a record is that of its own cells, its place
that of the whole line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from connectors.files.chunk import NO_LINES, Chunk, Place, Valueless
from connectors.files.records import Records, conserved
from connectors.files.unpivot import Unpivot

BLANKS = " \t"


@dataclass(frozen=True)
class UnpivotedChunk(Chunk):
    """Lines of a table as the records they become; one that is broken stays one record."""

    of_lines: Records | None = None
    """The lines as they are, those without a value too."""
    of_records: pl.DataFrame | None = None
    """The cells of the sound records, columns named "0", "1" ..."""

    def conserved(self) -> bool:
        """Of the lines: a byte is in as many records as its line becomes."""
        assert self.of_lines is not None
        settled = memoryview(self.block)[: self.records.consumed]
        return conserved(settled, self.of_lines, self.dialect.comment)

    def cells(self, width: int) -> pl.DataFrame:
        """The sound records as text; there is one number of cells a record has."""
        assert self.of_records is not None
        assert self.of_records.width == width
        return self.of_records

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
        """Of these records: text, and bytes if no text."""
        return pl.DataFrame([self._texts(), self._raw()])[rows]

    def _texts(self) -> pl.Series:
        own = self._written()
        if not self.faults:
            return own
        sound = [row for row in range(self.height) if row not in self.faults]
        broken = [*self.faults]
        texts = pl.Series("data", [None] * self.height, dtype=pl.String)
        whole = pl.Series([self._text_of(row) for row in broken], dtype=pl.String)
        return texts.scatter(sound, own).scatter(broken, whole)

    def _written(self) -> pl.Series:
        """The cells of each sound record as one text, as the file separates and quotes them."""
        delimiter, quote = self.dialect.delimiter.decode(), self.dialect.quote.decode()
        assert self.of_records is not None
        cells = [
            pl.when(cell.str.contains_any([delimiter, quote, "\n", "\r"]) | (cell == ""))
            .then(quote + cell.str.replace_all(quote, quote * 2, literal=True) + quote)
            .otherwise(cell)
            .fill_null("")
            for cell in map(pl.col, self.of_records.columns)
        ]
        text = pl.concat_str(cells, separator=delimiter)
        return self.of_records.select(text.alias("data")).to_series()


def unpivoted(chunks: Iterator[Chunk], unpivot: Unpivot, first: Place) -> Iterator[Chunk]:
    """The records that the lines of these chunks become, numbered from that of `first` on.

    Chunks that become none are not given: their lines are told by the next one, or by the last.
    """
    number, empty, comments = first.record, NO_LINES, NO_LINES
    last: UnpivotedChunk | None = None
    for lines in chunks:
        comments = comments.with_more(lines.comments)
        chunk = replace(_unpivoted(lines, unpivot, number, empty), comments=comments)
        empty = chunk.valueless
        if chunk.height:
            if last is not None:
                yield last
            last, empty, number = chunk, NO_LINES, number + chunk.height
            comments = NO_LINES
    if last is not None:
        yield replace(
            last,
            valueless=last.valueless.with_more(empty),
            comments=last.comments.with_more(comments),
        )


def _unpivoted(lines: Chunk, unpivot: Unpivot, number: int, before: Valueless) -> UnpivotedChunk:
    cells = lines.cells(unpivot.width).with_row_index("__line")
    value = str(len(unpivot.kept) + 1)
    text = pl.col(value)
    if unpivot.blanks_dropped:
        text = text.str.strip_chars(BLANKS)
    absent = (text == "") | text.is_in(sorted(unpivot.null))
    parts = [
        cells.select(
            "__line",
            pl.lit(column, pl.Int32).alias("__column"),
            *(pl.col(str(place)).alias(str(at)) for at, place in enumerate(unpivot.kept)),
            pl.lit(label).alias(str(len(unpivot.kept))),
            pl.col(str(place)).alias(value),
        ).filter(~absent)
        for column, (place, label) in enumerate(unpivot.labels)
    ]
    found = pl.concat(parts).sort("__line", "__column")
    sound = np.flatnonzero(lines.records.fault == 0)
    broken = np.flatnonzero(lines.records.fault)
    told = sound[found["__line"].to_numpy()]
    without = lines.records.first_line[np.setdiff1d(sound, told)]
    valueless = Valueless(len(without), int(without[0]) if len(without) else 0)
    of = np.concatenate([told, broken])
    of.sort(kind="stable")
    records = lines.records
    return UnpivotedChunk(
        lines.block,
        replace(
            records,
            start=records.start[of],
            end=records.end[of],
            first_line=records.first_line[of],
            last_line=records.last_line[of],
            fault=records.fault[of],
        ),
        replace(lines.start, record=number),
        lines.dialect,
        valueless=before.with_more(valueless),
        of_lines=records,
        of_records=found.drop("__line", "__column"),
    )
