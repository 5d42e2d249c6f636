"""Lines of a table as the records they become.

A cell without a value makes no record. A record's text is that of its own cells, its place that of
the whole line. Records are counted and written in two equivalent ways: compiled loops for large
blocks without a quote, and cell by cell for all others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import Chunk, Place, read_cells, skipped
from connectors.files.chunks.parts import in_parts
from connectors.files.chunks.skipped_lines import NO_LINES, SkippedLines
from connectors.files.layout.unpivot import Unpivot
from connectors.files.text.bitmask import Flags, Places
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.records import Records, conserved, sound
from connectors.files.text.utf8 import Utf8
from schemas.cells.numbers import AROUND

NOTHING = Utf8(b"", np.empty(0, np.int64), np.empty(0, np.int64))
_ROW_BYTES = 32
"""About what a record takes besides its text, so that chunks are no larger than others."""


@dataclass(frozen=True, kw_only=True)
class UnpivotedChunk(Chunk):
    """Lines of a table as the records they become; a broken line stays one record."""

    of_lines: Records
    """The lines as they are, including those without a value."""
    written: Utf8
    """The records as written, one to a line; broken ones have no text here."""

    def conserved(self) -> bool:
        """Prove it for the lines, as a byte is in as many records as its line becomes."""
        settled = memoryview(self.block)[: self.records.consumed]
        return conserved(settled, self.of_lines, self.dialect)

    def only(self, chosen: Flags) -> Self:
        text, start, end = self.written
        return replace(super().only(chosen), written=Utf8(text, start[chosen], end[chosen]))

    @property
    def size(self) -> int:
        """Bytes of the records: a short line becomes many."""
        return len(self.written.text)

    @property
    def utf8(self) -> Utf8:
        """All records as UTF-8, whatever the encoding of the file."""
        return self.written

    def cells(self, width: int) -> pl.DataFrame:
        text, start, end = self.written
        text = sound(text, replace(self.records, start=start, end=end))
        return read_cells(text, self.height - len(self.faults), width, self.dialect)

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
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
    """The records that the lines of these chunks become, numbered from that of `first`.

    A chunk is divided if its records take more than `most` bytes. Chunks without records are not
    yielded: their lines are reported by the next chunk or the last; if the `whole` text has no
    record, by a chunk without any. Up to `strict_bytes` lines are read without compiled code.
    """
    number, empty, comments = first.record, NO_LINES, NO_LINES
    last: UnpivotedChunk | None = None
    nothing: UnpivotedChunk | None = None
    for chunk_of_lines in chunks:
        lines = _of_named_columns(chunk_of_lines, unpivot)
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


def _of_named_columns(lines: Chunk, unpivot: Unpivot) -> Chunk:
    """The lines; a value in a column without a name makes one have more fields than the header.

    The value may be in a wrong column, as all cells after an extra delimiter are.
    """
    if not unpivot.nameless:
        return lines
    records, fault = lines.records, lines.records.fault
    asked = records.is_sound & ~_end_or_begin_empty(lines, unpivot)
    if not asked.any():
        return lines
    cells = lines.only(asked).cells(unpivot.width)
    texts = [pl.col(str(place)).str.strip_chars(AROUND) for place in unpivot.nameless]
    wrong = cells.select(
        pl.any_horizontal((text != "") & ~text.is_in(list(unpivot.null)) for text in texts)
    ).to_series()
    if not wrong.any():
        return lines
    fault = fault.copy()
    fault[np.flatnonzero(asked)[wrong.fill_null(value=False).to_numpy()]] = (
        RecordFault.TOO_MANY_FIELDS
    )
    return replace(lines, records=replace(records, fault=fault))


def _end_or_begin_empty(lines: Chunk, unpivot: Unpivot) -> Flags:
    """Lines with only delimiters in front and behind, if the nameless columns are there."""
    records, nameless, width = lines.records, unpivot.nameless, unpivot.width
    front = next(place for place in range(width) if place not in nameless)
    behind = len(nameless) - front
    if nameless[front:] != tuple(range(width - behind, width)):
        return np.zeros(len(records), np.bool_)
    text, delimiter = np.frombuffer(lines.block, np.uint8), ord(lines.dialect.delimiter)
    found: Flags = records.end - records.start >= len(nameless)
    for at in range(front):
        found &= text[np.minimum(records.start + at, len(text) - 1)] == delimiter
    for at in range(behind):
        found &= text[records.end - 1 - at] == delimiter
    return found


def _above(lines: Chunk) -> SkippedLines:
    """The comments of preceding blocks without records."""
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
    table = _lines_of_table(lines, unpivot, strict_bytes)
    at_sound = np.flatnonzero(records.is_sound)
    counts, sizes = np.ones(len(records), np.int64), records.end - records.start
    counts[at_sound] = table.counts
    sizes[at_sound] += table.counts * (table.kept + _ROW_BYTES)
    for first, beyond in in_parts(sizes, most):
        of_part = np.searchsorted(at_sound, [first, beyond])
        written = table.write(int(of_part[0]), int(of_part[1]))
        yield _part(lines.part(first, beyond), counts[first:beyond], written)


def _part(lines: Chunk, counts: Places, written: Utf8) -> UnpivotedChunk:
    """The records of these lines, `counts` of each; `written` has those of sound lines."""
    records = lines.records
    of = np.repeat(np.arange(len(records)), counts)
    is_sound = records.is_sound[of]
    start, end = np.zeros((2, len(of)), np.int64)
    start[is_sound], end[is_sound] = written.start, written.end
    return UnpivotedChunk(
        lines.block,
        records.only(of),
        lines.start,
        lines.dialect,
        valueless=skipped(records.first_line[counts == 0]),
        comments=skipped(records.comments.line),
        currencies=lines.currencies,
        of_lines=records,
        written=Utf8(written.text, start, end),
    )


def _cell_text(cell: pl.Expr, dialect: Dialect) -> pl.Expr:
    """A cell, separated and quoted as in the file; null is a bare empty one."""
    delimiter, quote = dialect.delimiter.decode(), dialect.quote.decode()
    return (
        pl.when(cell.str.contains_any([delimiter, quote, "\n", "\r"]) | (cell == ""))
        .then(quote + cell.str.replace_all(quote, quote * 2, literal=True) + quote)
        .otherwise(cell)
        .fill_null("")
    )


class _LinesByCell:
    """Any lines, read cell by cell as texts.

    `counts`: records that each line becomes; `kept`: bytes repeated in each of those.
    """

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
        """The records of these lines, one to a line."""
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
        text = pl.col(str(place))
        if self._unpivot.blanks_dropped:
            text = text.str.strip_chars(AROUND)
        absent = text.is_in([word for word in self._unpivot.null if word])
        if not self._unpivot.empty_text:
            absent |= text == ""
        return ~absent.fill_null(value=True)


class _LinesByByte:
    """Like `_LinesByCell` for lines without quotes, whose cells lie between the delimiters."""

    def __init__(self, lines: Chunk, of: Utf8, unpivot: Unpivot) -> None:
        from connectors.files.text.unpivot_loops import TableShape, count_records  # noqa: PLC0415

        is_sound = lines.records.is_sound
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
        from connectors.files.text.unpivot_loops import write_records  # noqa: PLC0415

        start, end, shape = self._start[first:beyond], self._end[first:beyond], self._shape
        counts, kept = self.counts[first:beyond], self.kept[first:beyond]
        longest = int(np.diff(shape.label_ends, prepend=0).max())
        signs = len(shape.kept) + 2  # Delimiters and line end.
        out = np.empty(int((counts * (kept + longest + signs) + end - start).sum()), np.uint8)
        begins, ends = np.empty((2, int(counts.sum())), np.int64)
        size = write_records(self._text, start, end, shape, out, begins, ends)
        return Utf8(out[:size].tobytes(), begins, ends)


def _joined(words: list[str]) -> tuple["np.typing.NDArray[np.uint8]", Places]:
    """Words concatenated, and where each of them ends."""
    text = [word.encode() for word in words]
    sizes = np.array([len(word) for word in text], np.int64)
    return np.frombuffer(b"".join(text), np.uint8), np.cumsum(sizes, dtype=np.int64)


def _lines_of_table(
    lines: Chunk, unpivot: Unpivot, strict_bytes: int
) -> _LinesByCell | _LinesByByte:
    """The sound lines of a chunk; up to `strict_bytes` they are read without compiled code."""
    text = lines.utf8
    settled = lines.block[: lines.records.consumed]
    # Loading the compiled loops takes longer than reading a small table.
    large = len(settled) > strict_bytes
    if not large or text is None or lines.dialect.quote in settled:
        return _LinesByCell(lines, unpivot)
    if settled.count(b"\r") != settled.count(b"\r\n"):
        return _LinesByCell(lines, unpivot)
    return _LinesByByte(lines, text, unpivot)
