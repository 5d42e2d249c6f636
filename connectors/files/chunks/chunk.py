"""A chunk of an extract: records with their places, and the cells of sound ones as text."""

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl

from connectors.files.chunks.skipped_lines import NO_LINES, SkippedLines
from connectors.files.layout.header_again import OtherHeader
from connectors.files.text.bitmask import Flags, Places
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.escaped_cells import escaped_cells
from connectors.files.text.plain_records import not_plain_csv
from connectors.files.text.record_cells import cells_of
from connectors.files.text.records import Records, conserved, sound
from connectors.files.text.shadow import covered
from connectors.files.text.utf8 import Utf8, as_utf8

MARK = codecs.BOM_UTF8
FEW = 8
"""If records take at most one byte in this many, cutting them out one by one is cheaper."""
ONE_BY_ONE = 8192
"""From this many bytes per record on, records are examined instead of all bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading continues: after the header, or after the last chunk with a receipt."""

    byte: int
    line: int
    record: int
    """Number of the next record; the first one after the header is 1."""
    inside: bool = False
    """Within a line that is longer than a record may be."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive records of one extract."""

    block: bytes
    records: Records
    start: Place
    dialect: Dialect
    chosen: Flags | None = None
    """Which of the records between start and end were chosen; None for all."""
    valueless: SkippedLines = NO_LINES
    """Lines without a value since the end of the previous chunk; in the last chunk, those after
    its end too."""
    comments: SkippedLines = NO_LINES
    """Lines that the feed calls no records, counted likewise."""
    behind: SkippedLines = NO_LINES
    """Those comments of the last chunk that come after its end."""
    currencies: pl.DataFrame | None = None
    """Cells of a sheet that name a currency: byte at which their line begins, column, code."""
    other_header: OtherHeader | None = None
    """The first header with other columns before its end: the file is not one table."""

    @property
    def height(self) -> int:
        """Number of records, sound or not."""
        return len(self.records)

    @property
    def size(self) -> int:
        """Bytes to read, as the records are written."""
        return self.records.consumed

    @property
    def end(self) -> Place:
        """Where the next chunk begins."""
        height = self.height if self.chosen is None else len(self.chosen)
        return Place(
            self.start.byte + self.records.consumed,
            self.start.line + self.records.lines,
            self.start.record + height,
            self.records.inside,
        )

    def only(self, chosen: Flags) -> Self:
        """Some of the records, in their places."""
        return replace(self, records=self.records.only(chosen), chosen=chosen)

    def part(self, first: int, beyond: int) -> Self:
        """The records from `first` to before `beyond`, with all bytes between and after them."""
        records = self.records
        if (first, beyond) == (0, len(records)):
            return self
        last = beyond == len(records)
        begin = int(records.start[first]) if first else 0
        line = int(records.first_line[first]) if first else self.start.line
        end = records.consumed if last else int(records.start[beyond])
        end_line = self.end.line if last else int(records.first_line[beyond])
        return replace(
            self,
            block=self.block[begin:end],
            records=Records(
                records.start[first:beyond] - begin,
                records.end[first:beyond] - begin,
                records.first_line[first:beyond],
                records.last_line[first:beyond],
                records.fault[first:beyond],
                end - begin,
                end_line - line,
                inside=records.inside if last else end == records.end[beyond - 1],
                waits=records.waits and last,
                comments=records.comments.part(begin, end),
            ),
            start=Place(self.start.byte + begin, line, self.start.record + first),
        )

    @cached_property
    def numbers(self) -> Places:
        """The number of each record in its extract."""
        if self.chosen is None:
            return np.arange(self.start.record, self.start.record + self.height, dtype=np.int64)
        return self.start.record + np.flatnonzero(self.chosen)

    def conserved(self) -> bool:
        """Prove from the bytes that each is in one record, one skipped line or a line end."""
        settled = memoryview(self.block)[: self.records.consumed]
        return conserved(settled, self.records, self.dialect)

    @cached_property
    def faults(self) -> dict[int, str]:
        """ErrorCode of every record with a broken structure, by its index in the chunk."""
        codes = self.codes
        return {row: codes[row] for row in codes.is_not_null().arg_true()}

    @property
    def codes(self) -> pl.Series:
        """ErrorCode of every record; null if its structure is sound."""
        names = pl.Series([None, *(fault.code for fault in RecordFault if fault)], dtype=pl.String)
        return names.gather(self.records.fault)

    @property
    def own_lines(self) -> "Chunk":
        """The same records, only as their own lines have them."""
        return self

    @property
    def faulty_above(self) -> Flags:
        """The records whose fault lies in a cell that a line above them states."""
        return np.zeros(self.height, np.bool_)

    @cached_property
    def not_plain_csv(self) -> Flags:
        """The records that a reader of plain CSV may read differently than the feed means."""
        return not_plain_csv(self.block, self.records, self.dialect)

    @property
    def plainly_delimited(self) -> Flags:
        """The sound one-line records whose cells are the texts between their delimiters."""
        records = self.records
        if len(self.dialect.delimiter) > 1:
            return np.zeros(self.height, np.bool_)
        is_line: Flags = records.first_line == records.last_line
        return records.is_sound & is_line & ~self.not_plain_csv

    def cells(self, width: int) -> pl.DataFrame:
        """The sound records as text: columns named "0", "1" ...; a bare empty cell is null."""
        sound_ones = self.records.is_sound
        not_plain = sound_ones & self.not_plain_csv
        if not not_plain.any():
            return self._csv_cells(self.records, width)
        separate = self._not_plain_cells(not_plain, width)
        rest = sound_ones & ~not_plain
        if not rest.any():
            return separate
        plain = self._csv_cells(self.records.only(rest), width)
        order = np.argsort(np.concatenate([np.flatnonzero(rest), np.flatnonzero(not_plain)]))
        return pl.concat([plain, separate])[order]

    def _not_plain_cells(self, chosen: Flags, width: int) -> pl.DataFrame:
        """The cells of records that a reader of plain CSV may read differently."""
        if self.dialect.escape and (utf8 := self.utf8) is not None:
            start, end = utf8.start[chosen], utf8.end[chosen]
            cells = escaped_cells(utf8.text, start, end, width, self.dialect)
            if cells is not None:
                return cells
        rows = [
            cells_of(self._text_of(row), self.dialect) for row in np.flatnonzero(chosen).tolist()
        ]
        schema = {str(column): pl.String() for column in range(width)}
        return pl.DataFrame(rows, schema, orient="row")

    def _csv_cells(self, records: Records, width: int) -> pl.DataFrame:
        text = sound(self.block, records)
        if self.dialect.encoding != "utf-8":
            text = text.decode(self.dialect.encoding).encode()
        signs = covered(self.dialect)
        several = signs.delimiter != self.dialect.delimiter
        if several:
            text = text.replace(self.dialect.delimiter, signs.delimiter)
        height = int(records.is_sound.sum())
        frame = read_cells(text, height, width, signs)
        if several and signs.quote in text:
            # A delimiter within quotes is text.
            within = self.dialect.delimiter.decode()
            sign = signs.delimiter.decode()
            frame = frame.with_columns(pl.all().str.replace_all(sign, within, literal=True))
        return frame

    @cached_property
    def utf8(self) -> Utf8 | None:
        """All records as UTF-8, if each byte is one character; None for other encodings."""
        records, encoding = self.records, self.dialect.encoding
        # Bytes after the records are not read; leaving them out would copy the others.
        text = self.block if encoding == "utf-8" else self.block[: records.consumed]
        return as_utf8(text, records.start, records.end, encoding)

    def positions(self) -> pl.DataFrame:
        """Of all records: number, first and last line, byte range, text, and bytes if no text."""
        return self.places().with_columns(self._texts(), self._raw())

    def places(self) -> pl.DataFrame:
        """Of all records: number, first and last line, byte range."""
        return pl.DataFrame(self._places())

    def _places(self) -> dict[str, Places]:
        records = self.records
        return {
            "record_number": self.numbers,
            "first_line": records.first_line,
            "last_line": records.last_line,
            "byte_start": records.start + self.start.byte,
            "byte_end": records.end + self.start.byte,
        }

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
        """Text of these records, and bytes if they are no text."""
        some = replace(self, records=self.records.only(np.asarray(rows, np.intp)))
        return pl.DataFrame([some._texts(), some._raw()])

    def _texts(self) -> pl.Series:
        size, encoding, none = self.records.consumed, self.dialect.encoding, self._no_text
        if self._is_a_line_each and not len(none):
            settled = self.block[:size]
            text = settled if encoding == "utf-8" else settled.decode(encoding).encode()
            text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
            if b"\r" not in text:
                lines = pl.scan_lines(io.BytesIO(text), name="data").collect()["data"]
                if len(lines) == self.height:
                    return lines
        begin = pl.Series("begin", self.records.start)
        length = pl.Series("length", self.records.end) - begin
        # Positions count the bytes as they were delivered.
        if encoding != "utf-8" or length.sum() * FEW < size:
            return self._decoded_texts()
        length = length.scatter(none, 0)
        cut = pl.lit(self.block[:size]).bin.slice(begin.cast(pl.Int64), length.cast(pl.Int64))
        texts = pl.select(cut.cast(pl.String).alias("data")).to_series()
        return texts.scatter(none, [self._text_of(row) for row in none.tolist()])

    @property
    def _is_a_line_each(self) -> bool:
        """Whether every record is one line and there are no other lines."""
        lines = np.arange(self.start.line, self.start.line + self.records.lines)
        return np.array_equal(self.records.first_line, lines)

    def _decoded_texts(self) -> pl.Series:
        block, encoding = self.block, self.dialect.encoding
        places = zip(self.records.start.tolist(), self.records.end.tolist(), strict=True)
        texts = [shown_text(block[begin:end], encoding) for begin, end in places]
        return pl.Series("data", texts, dtype=pl.String)

    @cached_property
    def _no_text(self) -> Places:
        """The records with NUL or undecodable bytes; each of them has some fault."""
        records = self.records
        # A record has only its first fault: bytes that are no text may hide behind another.
        broken = np.flatnonzero(records.fault)
        if len(broken) > records.consumed // ONE_BY_ONE:
            # As signed numbers, NUL and bytes beyond ASCII are not positive.
            odd = np.flatnonzero(np.frombuffer(self.block, np.int8, records.consumed) <= 0)
            ends = records.start[broken], records.end[broken]
            first, beyond = (np.searchsorted(odd, at) for at in ends)
            broken = broken[first < beyond]
        found = [row for row in broken.tolist() if not self._is_text(row)]
        return np.array(found, np.int64)

    def _raw(self) -> pl.Series:
        rows = self._no_text.tolist()
        raw = pl.Series("raw", [None], dtype=pl.String).new_from_index(0, self.height)
        return raw.scatter(rows, [self._bytes(row).hex() for row in rows]) if rows else raw

    def _bytes(self, row: int) -> bytes:
        return self.block[int(self.records.start[row]) : int(self.records.end[row])]

    def _text_of(self, row: int) -> str:
        return shown_text(self._bytes(row), self.dialect.encoding)

    def _is_text(self, row: int) -> bool:
        record, encoding = self._bytes(row), self.dialect.encoding
        return b"\0" not in record and shown_text(record, encoding).encode(encoding) == record


def read_cells(text: bytes, height: int, width: int, dialect: Dialect) -> pl.DataFrame:
    """`height` sound UTF-8 records as text: columns "0", "1" ...; a bare empty cell is null."""
    names = _column_names(width)
    if height == 0:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String()))
    frame = _agreed_cells(text, height, names, dialect)
    return _slow_cells(text, names, dialect) if frame is None else frame


def _agreed_cells(
    text: bytes, height: int, names: list[str], dialect: Dialect
) -> pl.DataFrame | None:
    """The cells as polars reads them; None if it finds other records than the splitter.

    Then the slow, obvious reader decides: a shifted row would be worse than a slow one.
    """
    # polars would take these first bytes for a byte-order mark and drop them.
    lead = b"0" + dialect.delimiter * (len(names) - 1) + b"\n" if text.startswith(MARK) else b""
    frame = pl.read_csv(
        lead + text if lead else text,
        has_header=False,
        new_columns=names,
        infer_schema=False,
        separator=dialect.delimiter.decode(),
        quote_char=dialect.quote.decode(),
    )[bool(lead) :]
    return frame if (frame.height, frame.width) == (height, len(names)) else None


def skipped(numbers: Places) -> SkippedLines:
    """A summary of the lines with these numbers, which are in order."""
    return SkippedLines(len(numbers), int(numbers[0]) if len(numbers) else 0)


def shown_text(record: bytes, encoding: str) -> str:
    """A record's text; undecodable bytes and NUL are shown as escapes."""
    return record.decode(encoding, "backslashreplace").replace("\0", "\\x00")


def joined_cells(chunks: Sequence[Chunk], width: int) -> pl.DataFrame | None:
    """The cells of chunks in one dialect, concatenated; every line of them is a sound record.

    None if polars finds other records.
    """
    text = b"".join(sound(one.block[: one.records.consumed], one.records) for one in chunks)
    height = sum(one.height for one in chunks)
    return _agreed_cells(text, height, _column_names(width), chunks[0].dialect)


def joined_places(chunks: Sequence[Chunk]) -> pl.DataFrame:
    """The places of several chunks, concatenated, each in its own extract."""
    places = [one._places() for one in chunks]
    return pl.DataFrame({name: np.concatenate([one[name] for one in places]) for name in places[0]})


def joined_conserved(chunks: Sequence[Chunk]) -> bool:
    """Prove for chunks without comments that each byte is in one record or a line end."""
    sizes = [one.records.consumed for one in chunks]
    text = b"".join(one.block[:size] for one, size in zip(chunks, sizes, strict=True))
    before = np.repeat(np.cumsum([0, *sizes[:-1]]), [one.height for one in chunks])
    start, end, first_line, last_line, fault = (
        np.concatenate([getattr(one.records, name) for one in chunks])
        for name in ("start", "end", "first_line", "last_line", "fault")
    )
    whole = Records(
        start + before, end + before, first_line, last_line, fault, len(text), 0, inside=False
    )
    return conserved(text, whole)


def joined_positions(chunks: Sequence[Chunk]) -> pl.DataFrame:
    """`joined_places` with the texts of faultless chunks in UTF-8."""
    data = [
        one.block[begin:end].decode()
        for one in chunks
        for begin, end in zip(one.records.start.tolist(), one.records.end.tolist(), strict=True)
    ]
    return joined_places(chunks).with_columns(
        pl.Series("data", data, pl.String), pl.lit(None, pl.String).alias("raw")
    )


def _column_names(width: int) -> list[str]:
    return [str(column) for column in range(width)]


def _slow_cells(text: bytes, names: list[str], dialect: Dialect) -> pl.DataFrame:
    """The same cells by Python's reader, which cannot tell an empty cell from a quoted one."""
    rows = csv.reader(io.StringIO(text.decode(), newline=""), **dialect.signs, strict=True)
    cells = [[cell or None for cell in row] for row in rows]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String()), orient="row")
