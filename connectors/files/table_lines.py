"""The lines of a table, from which records are counted and written, in two ways that say the same.

Lines without a quote are read by compiled loops, where there are many; all others cell by cell.
"""

from typing import Protocol

import numpy as np
import polars as pl

from connectors.files.bitmask import Places
from connectors.files.chunk import Chunk
from connectors.files.dialect import Dialect, RecordFault
from connectors.files.unpivot import Unpivot
from connectors.files.utf8 import Utf8
from schemas.cells.numbers import AROUND


class TableLines(Protocol):
    """The sound lines of a chunk."""

    counts: Places
    """How many records each of them becomes."""
    kept: Places
    """How many bytes stand in each record of it."""

    def write(self, first: int, beyond: int) -> Utf8:
        """The records of these lines, each on its line."""
        ...


def lines_of_table(lines: Chunk, unpivot: Unpivot, strict_bytes: int) -> TableLines:
    """The sound lines of a chunk; one of up to `strict_bytes` is read by nothing compiled."""
    text = lines.utf8
    settled = lines.block[: lines.records.consumed]
    # What compiles the loops takes longer to load than a small table to read.
    large = len(settled) > strict_bytes
    if not large or text is None or lines.dialect.quote in settled:
        return _LinesByCell(lines, unpivot)
    if settled.count(b"\r") != settled.count(b"\r\n"):
        return _LinesByCell(lines, unpivot)
    return _LinesByByte(lines, text, unpivot)


def _cell_text(cell: pl.Expr, dialect: Dialect) -> pl.Expr:
    """A cell as the file separates and quotes it; null is a bare empty one."""
    delimiter, quote = dialect.delimiter.decode(), dialect.quote.decode()
    return (
        pl.when(cell.str.contains_any([delimiter, quote, "\n", "\r"]) | (cell == ""))
        .then(quote + cell.str.replace_all(quote, quote * 2, literal=True) + quote)
        .otherwise(cell)
        .fill_null("")
    )


class _LinesByCell:
    """Any lines, of which each cell is a text."""

    def __init__(self, lines: Chunk, unpivot: Unpivot) -> None:
        self._unpivot, self._dialect = unpivot, lines.dialect
        self._cells = lines.cells(unpivot.width)
        made = [self._makes(place).cast(pl.Int64) for place, _ in unpivot.labels]
        kept = [pl.col(str(place)).str.len_bytes().fill_null(0) for place in unpivot.kept]
        found = self._cells.select(
            counts=pl.sum_horizontal(made), kept=pl.sum_horizontal(*kept, pl.lit(0)).cast(pl.Int64)
        )
        self.counts, self.kept = (found[name].to_numpy() for name in ("counts", "kept"))

    def write(self, first: int, beyond: int) -> Utf8:
        cells = self._cells[first:beyond].with_row_index("line")
        kept = [_cell_text(pl.col(str(place)), self._dialect) for place in self._unpivot.kept]
        parts = [
            cells.filter(self._makes(place)).select(
                "line",
                pl.lit(column, pl.Int32).alias("column"),
                pl.concat_str(
                    *kept,
                    _cell_text(pl.lit(label), self._dialect),
                    _cell_text(pl.col(str(place)), self._dialect),
                    separator=self._dialect.delimiter.decode(),
                ).alias("text"),
            )
            for column, (place, label) in enumerate(self._unpivot.labels)
        ]
        found = pl.concat(parts).sort("line", "column")["text"]
        ends = np.cumsum(found.str.len_bytes().cast(pl.Int64).to_numpy() + 1)
        text = "".join(f"{one}\n" for one in found).encode()
        return Utf8(text, np.append(np.int64(0), ends)[:-1], ends - 1)

    def _makes(self, place: int) -> pl.Expr:
        """Whether a cell makes a record."""
        text = pl.col(str(place))
        if self._unpivot.blanks_dropped:
            text = text.str.strip_chars(AROUND)
        absent = text.is_in([word for word in self._unpivot.null if word])
        if not self._unpivot.empty_text:
            absent |= text == ""
        return ~absent.fill_null(value=True)


class _LinesByByte:
    """Lines without a quote, whose cells are what stands between the delimiters."""

    def __init__(self, lines: Chunk, of: Utf8, unpivot: Unpivot) -> None:
        from connectors.files.unpivot_loops import TableShape, count_records  # noqa: PLC0415

        is_sound = lines.records.fault == RecordFault.NONE
        self._text = np.frombuffer(of.text, np.uint8)
        self._start, self._end = of.start[is_sound], of.end[is_sound]
        names = pl.select(
            _cell_text(pl.lit(pl.Series([label for _, label in unpivot.labels])), lines.dialect)
        ).to_series()
        self._shape = TableShape(
            ord(lines.dialect.delimiter),
            np.array(unpivot.kept, np.int64),
            np.array([place for place, _ in unpivot.labels], np.int64),
            *_joined([*names]),
            *_joined([word for word in unpivot.null if word]),
            unpivot.blanks_dropped,
            np.empty(unpivot.width, np.int64),
        )
        self.counts, self.kept = np.empty((2, len(self._start)), np.int64)
        count_records(self._text, self._start, self._end, self._shape, self.counts, self.kept)

    def write(self, first: int, beyond: int) -> Utf8:
        from connectors.files.unpivot_loops import write_records  # noqa: PLC0415

        start, end, shape = self._start[first:beyond], self._end[first:beyond], self._shape
        counts, kept = self.counts[first:beyond], self.kept[first:beyond]
        longest = int(np.diff(shape.label_ends, prepend=0).max())
        signs = len(shape.kept) + 2  # Its delimiters and its line end.
        out = np.empty(int((counts * (kept + longest + signs) + end - start).sum()), np.uint8)
        begins, ends = np.empty((2, int(counts.sum())), np.int64)
        size = write_records(self._text, start, end, shape, out, begins, ends)
        return Utf8(out[:size].tobytes(), begins, ends)


def _joined(words: list[str]) -> tuple["np.typing.NDArray[np.uint8]", Places]:
    """Words one behind the other, and where each of them ends."""
    text = [word.encode() for word in words]
    sizes = np.array([len(word) for word in text], np.int64)
    return np.frombuffer(b"".join(text), np.uint8), np.cumsum(sizes, dtype=np.int64)
