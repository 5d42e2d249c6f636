"""A chunk of an extract: records with their places, and the cells of the sound ones as text."""

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from connectors.files.bitmask import Flags, Places
from connectors.files.dialect import Dialect, RecordFault
from connectors.files.encodings import utf8_sizes
from connectors.files.records import Records, conserved, sound

MARK = codecs.BOM_UTF8
LAST_ASCII = 127
FEW = 8
"""Up to one record in so many, single records are cheaper to cut out than all of them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on: behind the header, or behind the last chunk that has a receipt."""

    byte: int
    line: int
    record: int
    """Number of the next record; the first one after the header is 1."""
    inside: bool = False
    """Within a line that is longer than a record may be."""


class Utf8(NamedTuple):
    """Records as UTF-8, and where each of them begins and ends in it."""

    text: bytes
    start: Places
    end: Places


class Valueless(NamedTuple):
    """Lines that become no record, because no cell of theirs that is one holds a value."""

    lines: int = 0
    first: int = 0
    """The first of them."""

    def with_more(self, later: "Valueless") -> "Valueless":
        """These and those behind them."""
        return Valueless(self.lines + later.lines, self.first or later.first)


NO_LINES = Valueless()


@dataclass(frozen=True)
class Chunk:
    """Consecutive records of one extract."""

    block: bytes
    records: Records
    start: Place
    dialect: Dialect
    chosen: Flags | None = None
    """Which of the records between start and end they are; None: all."""
    valueless: Valueless = NO_LINES
    """Up to its end, from that of the chunk before; of the last one also those behind it."""

    @property
    def height(self) -> int:
        """How many records, sound or not."""
        return len(self.records)

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

    def only(self, chosen: Flags) -> "Chunk":
        """Some of the records, where they are."""
        records = self.records
        some = replace(
            records,
            start=records.start[chosen],
            end=records.end[chosen],
            first_line=records.first_line[chosen],
            last_line=records.last_line[chosen],
            fault=records.fault[chosen],
        )
        return replace(self, records=some, chosen=chosen)

    @cached_property
    def numbers(self) -> Places:
        """The number of each record in its extract."""
        if self.chosen is None:
            return np.arange(self.start.record, self.start.record + self.height, dtype=np.int64)
        return self.start.record + np.flatnonzero(self.chosen)

    def conserved(self) -> bool:
        """Prove that each byte is in exactly one record, or in a line end, from the bytes."""
        return conserved(memoryview(self.block)[: self.records.consumed], self.records)

    @cached_property
    def faults(self) -> dict[int, str]:
        """ErrorCode of every record whose structure is broken, by its place in the chunk."""
        codes = self.codes
        return {row: codes[row] for row in codes.is_not_null().arg_true()}

    @property
    def codes(self) -> pl.Series:
        """ErrorCode of every record; null where its structure is not broken."""
        names = pl.Series([None, *(fault.code for fault in RecordFault if fault)], dtype=pl.String)
        return names.gather(self.records.fault)

    def cells(self, width: int) -> pl.DataFrame:
        """The sound records as text: columns named "0", "1" ...; a bare empty cell is null."""
        names = [str(column) for column in range(width)]
        height = self.height - int(np.count_nonzero(self.records.fault))
        text = sound(self.block[: self.records.consumed], self.records)
        if height == 0:
            return pl.DataFrame(schema=dict.fromkeys(names, pl.String()))
        if self.dialect.encoding != "utf-8":
            text = text.decode(self.dialect.encoding).encode()
        # polars would take such a first character for a byte-order mark and leave it out.
        lead = b"0" + self.dialect.delimiter * (width - 1) + b"\n" if text.startswith(MARK) else b""
        frame = pl.read_csv(
            lead + text if lead else text,
            has_header=False,
            new_columns=names,
            infer_schema=False,
            separator=self.dialect.delimiter.decode(),
            quote_char=self.dialect.quote.decode(),
        )[bool(lead) :]
        # polars and the splitter must see the same records; if they ever do not, the slow and
        # obvious reader decides, because a shifted row would be worse than a slow one.
        if frame.height != height or frame.width != width:
            return _slow_cells(text, names, self.dialect)
        return frame

    @cached_property
    def utf8(self) -> "Utf8 | None":
        """All records as UTF-8, where a byte of the file is a sign; None: of no such encoding."""
        records, encoding = self.records, self.dialect.encoding
        settled = self.block[: records.consumed]
        if encoding == "utf-8" or settled.isascii():
            return Utf8(self.block, records.start, records.end)
        sizes = utf8_sizes(encoding)
        if sizes is None:
            return None
        text = np.frombuffer(settled, np.uint8)
        wide = np.flatnonzero(text > LAST_ASCII)
        more = np.frombuffer(sizes, np.uint8)[text[wide]] - 1
        grown = np.append(0, np.cumsum(more, dtype=np.int64))
        start, end = (at + grown[np.searchsorted(wide, at)] for at in (records.start, records.end))
        return Utf8(settled.decode(encoding, "replace").encode(), start, end)

    def positions(self) -> pl.DataFrame:
        """Of all records: number, first and last line, byte range, text, and bytes if no text."""
        return self.places().with_columns(self._texts(), self._raw())

    def places(self) -> pl.DataFrame:
        """Of all records: number, first and last line, byte range."""
        records = self.records
        return pl.DataFrame(
            {
                "record_number": self.numbers,
                "first_line": records.first_line,
                "last_line": records.last_line,
                "byte_start": records.start + self.start.byte,
                "byte_end": records.end + self.start.byte,
            }
        )

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
        """Of these records: text, and bytes if no text."""
        if len(rows) > self.height // FEW:
            return pl.DataFrame([self._texts(), self._raw()])[rows]
        data = [self._text_of(row) for row in rows]
        raw = [None if self._is_text(row) else self._bytes(row).hex() for row in rows]
        return pl.DataFrame({"data": data, "raw": raw}, {"data": pl.String, "raw": pl.String})

    def _texts(self) -> pl.Series:
        settled = self.block[: self.records.consumed]
        encoding, none = self.dialect.encoding, self._no_text
        if self.height == self.records.lines and not len(none):
            text = settled if encoding == "utf-8" else settled.decode(encoding).encode()
            text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
            if b"\r" not in text:
                lines = pl.scan_lines(io.BytesIO(text), name="data").collect()["data"]
                if len(lines) == self.height:
                    return lines
        if encoding != "utf-8":
            return self._decoded_texts()  # Places are of the bytes as they were delivered.
        begin = pl.Series("begin", self.records.start)
        length = (pl.Series("length", self.records.end) - begin).scatter(none, 0)
        cut = pl.lit(settled).bin.slice(begin.cast(pl.Int64), length.cast(pl.Int64))
        texts = pl.select(cut.cast(pl.String).alias("data")).to_series()
        return texts.scatter(none, [self._text_of(row) for row in none.tolist()])

    def _decoded_texts(self) -> pl.Series:
        texts = [self._text_of(row) for row in range(self.height)]
        return pl.Series("data", texts, dtype=pl.String)

    @cached_property
    def _no_text(self) -> Places:
        """The records with NUL or with bytes that are not valid; each of them has some fault."""
        records = self.records
        # A record's fault is its first one: bytes that are no text may hide behind another.
        broken = np.flatnonzero(records.fault)
        settled = self.block[: records.consumed]
        if not len(broken) or (settled.isascii() and b"\0" not in settled):
            return broken[:0]
        text = np.frombuffer(settled, np.uint8)
        odd = np.flatnonzero((text == 0) | (text > LAST_ASCII))
        first, beyond = (np.searchsorted(odd, at[broken]) for at in (records.start, records.end))
        found = [row for row in broken[first < beyond].tolist() if not self._is_text(row)]
        return np.array(found, np.int64)

    def _raw(self) -> pl.Series:
        rows = self._no_text.tolist()
        raw = pl.Series("raw", [None], dtype=pl.String).new_from_index(0, self.height)
        return raw.scatter(rows, [self._bytes(row).hex() for row in rows]) if rows else raw

    def _bytes(self, row: int) -> bytes:
        return self.block[int(self.records.start[row]) : int(self.records.end[row])]

    def _text_of(self, row: int) -> str:
        return _shown(self._bytes(row), self.dialect.encoding)

    def _is_text(self, row: int) -> bool:
        record, encoding = self._bytes(row), self.dialect.encoding
        return b"\0" not in record and _shown(record, encoding).encode(encoding) == record


def _shown(record: bytes, encoding: str) -> str:
    """A record's text; bytes that are no text, and NUL, are shown as escapes."""
    return record.decode(encoding, "backslashreplace").replace("\0", "\\x00")


def _slow_cells(text: bytes, names: list[str], dialect: Dialect) -> pl.DataFrame:
    """The same cells by Python's reader; it cannot tell an empty cell from a quoted one."""
    rows = csv.reader(io.StringIO(text.decode(), newline=""), **dialect.signs, strict=True)
    cells = [[cell or None for cell in row] for row in rows]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String()), orient="row")
