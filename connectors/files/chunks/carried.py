"""Records completed by cells that lines above them state: the columns of `carried_columns`.

Below a line `Account;4711` the record `12;5.00` becomes `12;5.00;4711`: its text is its line with
these cells, its place that of its line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Self

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.parts import in_parts
from connectors.files.layout.carried_columns import Carried, CarriedColumns, behind, groups_of_lines
from connectors.files.text.bitmask import Bytes, Flags, Places
from connectors.files.text.comments import NO_COMMENTS
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.linear_patterns import Groups, fitting
from connectors.files.text.positions import DELIMITER, QUOTE
from connectors.files.text.shadow import has_open_quote
from connectors.files.text.utf8 import Utf8
from schemas.cells.unseen import as_seen

_NO_TEXT = re.compile("[\udc80-\udcff]")
"""Bytes that are no character of their encoding."""
_FEW = 200
"""Runs of equal cells shorter than this on average are written record by record."""


@dataclass(frozen=True, kw_only=True)
class CarryingChunk(Chunk):
    """Records completed by cells that lines above them state."""

    written: Chunk
    """The same records with these cells, in a text of their own."""
    own_fault: Bytes
    """The faults of the records in their own lines, without these cells."""

    def only(self, chosen: Flags) -> Self:
        written, own_fault = self.written.only(chosen), self.own_fault[chosen]
        return replace(super().only(chosen), written=written, own_fault=own_fault)

    @property
    def own_lines(self) -> Chunk:
        return Chunk(self.block, self.records, self.start, self.dialect)

    @property
    def faulty_above(self) -> Flags:
        found: Flags = self.records.fault != self.own_fault
        return found

    @property
    def utf8(self) -> Utf8 | None:
        return self.written.utf8

    @property
    def not_plain_csv(self) -> Flags:
        return self.written.not_plain_csv

    def cells(self, width: int) -> pl.DataFrame:
        return self.written.cells(width)

    def texts(self, rows: Sequence[int]) -> pl.DataFrame:
        return self.written.texts(rows)

    def _texts(self) -> pl.Series:
        return self.written._texts()

    def _raw(self) -> pl.Series:
        return self.written._raw()


def carrying(
    chunks: Iterator[Chunk], columns: CarriedColumns, before: Iterator[Chunk], begin: int, most: int
) -> Iterator[Chunk]:
    """Complete records by the cells that lines above them state.

    `before` are the chunks from the header to the position `begin`, where `chunks` begin: only they
    tell what was stated there. A chunk is divided if its records take more than `most` bytes with
    these cells.
    """
    state = _Above(columns)
    for chunk in before:
        state.take(chunk, begin - chunk.start.byte)
    for chunk in chunks:
        taken = state.take(chunk)
        tails = [_tail(one, chunk.dialect) for one in taken.numbers]
        sizes = np.array([len(text) for text, _ in tails], np.int64)
        records = chunk.records
        if not len(records):
            yield chunk
        for first, beyond in in_parts(records.end - records.start + sizes[taken.of], most):
            yield _with_tails(chunk.part(first, beyond), tails, taken.of[first:beyond])


def lines_above(chunks: Iterator[Chunk], columns: CarriedColumns, byte: int) -> list[int | None]:
    """By column: the line that states a value for the record at a byte; None if no line does.

    `chunks` begin at the header. Lines above the header are not known here.
    """
    state = _Above(columns)
    for chunk in chunks:
        state.take(chunk, byte + 1 - chunk.start.byte)
        if chunk.end.byte > byte:
            break
    return state.lines


@dataclass
class _Taken:
    """The values that a chunk's records get from above."""

    numbers: dict[Carried, int]
    """Distinct values -> their number."""
    of: Places
    """By record: the number of its values."""


class _Above:
    """The values that the lines and records so far state, by column."""

    def __init__(self, columns: CarriedColumns) -> None:
        self._columns, self._of_lines = columns, columns.names[: len(columns.above)]
        self._values = columns.above
        self._held: Carried = (None,) * (len(columns.names) - len(columns.above))
        """Values of the current group."""
        self._group: str | None = None
        self._number: list[int | None] = [None] * len(columns.names)
        self.lines: list[int | None] = [*self._number]
        """Lines that state the values of the last record taken."""

    def take(self, chunk: Chunk, size: int | None = None) -> _Taken:
        """The values of a chunk's records; with `size`, only of those that begin within it."""
        telling = [*_stating_lines(chunk)]
        starts = chunk.records.start
        if size is not None:
            starts = starts[: int(np.searchsorted(starts, size))]
            telling = [one for one in telling if one[0] < size]
        # By record: how many stating lines are above it.
        above = np.searchsorted(np.array([at for at, *_ in telling], np.int64), starts, "right")
        values = [self._values]
        for _, groups, line in telling:
            values.append(self._behind(values[-1], groups, line))
        self._values = values[-1]
        if self._columns.filled is None:
            found = dict[Carried, int]()
            numbers = [found.setdefault(one, len(found)) for one in values]
            self.lines = [*self._number]
            return _Taken(found, np.array(numbers, np.int64)[above])
        return self._with_filled(chunk, values, above.tolist())

    def _behind(self, values: Carried, groups: Groups, line: int) -> Carried:
        for place, name in enumerate(self._of_lines):
            if name in groups:
                self._number[place] = line
        return behind(values, groups, self._of_lines)

    def _with_filled(self, chunk: Chunk, values: Sequence[Carried], above: Sequence[int]) -> _Taken:
        filled = self._columns.filled
        assert filled is not None
        records = chunk.records
        names = [pl.col(str(place)) for place in (filled.group, *filled.places)]
        cells = chunk.cells(filled.width).select(
            as_seen(names[0].fill_null("")).alias("group"),
            *(
                pl.when(as_seen(one) != "").then(one).alias(str(at))
                for at, one in enumerate(names[1:])
            ),
        )
        ends = fitting(cells["group"], filled.ends).to_list()
        rows = zip(cells.rows(), ends, strict=True)
        found, numbers, has = dict[Carried, int](), list[int](), self._held
        faults, lines = records.fault.tolist(), records.first_line.tolist()
        for at, fault, line in zip(above, faults, lines, strict=False):
            if fault != RecordFault.NONE:
                # It is unknown whether a group begins here.
                has = self._held = (None,) * len(filled.places)
                self._group = None
            else:
                (name, *own), is_end = next(rows)
                has = self._filled(name, tuple(own), line, is_end=is_end)
            numbers.append(found.setdefault((*values[at], *has), len(found)))
        return _Taken(found, np.array(numbers, np.int64))

    def _filled(self, name: str, own: Carried, line: int, *, is_end: bool) -> Carried:
        """The values of a record with these cells of its own."""
        first = len(self._of_lines)
        if is_end:
            self._group, self._held = None, (None,) * len(own)
        elif name and name != self._group:
            self._group, self._held = name, (None,) * len(own)
        has = tuple(mine or held for mine, held in zip(own, self._held, strict=True))
        here = (
            line if mine else number if held else None
            for mine, held, number in zip(own, self._held, self._number[first:], strict=True)
        )
        self.lines = [*self._number[:first], *here]
        if self._group is not None:
            self._held = has
            self._number[first:] = self.lines[first:]
        return has


def _stating_lines(chunk: Chunk) -> Iterator[tuple[int, Groups, int]]:
    """Lines that state values for records below: position in the chunk, values, line number."""
    starts, ends = (at.tolist() for at in chunk.records.comments[:2])
    lines = [chunk.block[start:end] for start, end in zip(starts, ends, strict=True)]
    numbers = chunk.records.comments.line.tolist()
    found = zip(starts, groups_of_lines(lines, chunk.dialect), numbers, strict=True)
    return ((at, groups, line) for at, groups, line in found if groups)


def _tail(values: Carried, dialect: Dialect) -> tuple[bytes, RecordFault]:
    """These cells as written after a record's own, and their fault.

    Their fault counts for every record that has them.
    """
    cells = [(one or "").encode(dialect.encoding, "surrogateescape") for one in values]
    fault = RecordFault.NONE
    if any(b"\0" in cell for cell in cells):
        fault = RecordFault.NUL_CHARACTER
    elif _NO_TEXT.search("".join(filter(None, values))):
        fault = RecordFault.ENCODING
    elif any(cell.startswith(dialect.quote) and has_open_quote(cell, dialect) for cell in cells):
        # A pattern took only the beginning of a quoted cell.
        fault = RecordFault.STRAY_QUOTE
    elif dialect.delimiter == DELIMITER and any({*DELIMITER, *QUOTE} & {*cell} for cell in cells):
        # Fixed widths have no quotes: the sign within a cell would split it.
        fault, cells = RecordFault.TOO_MANY_FIELDS, [b""] * len(cells)
    elif any(len(cell) > dialect.max_field_bytes for cell in cells):
        fault, cells = RecordFault.FIELD_TOO_LARGE, [b""] * len(cells)
    return b"".join(dialect.delimiter + _quoted(cell, dialect) for cell in cells) + b"\n", fault


def _quoted(cell: bytes, dialect: Dialect) -> bytes:
    """A cell, separated, quoted and escaped as in the file."""
    quote, escape = dialect.quote, dialect.escape
    if not any(one in cell for one in (dialect.delimiter, quote, escape or quote, b"\n", b"\r")):
        return cell
    if escape:
        cell = cell.replace(escape, escape * 2)
    return quote + cell.replace(quote, quote * 2) + quote


def _with_tails(
    lines: Chunk, tails: Sequence[tuple[bytes, RecordFault]], of: Places
) -> CarryingChunk:
    """Records followed by the tails that `of` assigns to them by number."""
    records = lines.records
    text = b"".join(_with_each_tail(lines, [tail for tail, _ in tails], of))
    ends = np.cumsum(records.end - records.start + np.array([len(one) for one, _ in tails])[of])
    fault = _worst(records.fault, np.array([one for _, one in tails], np.uint8)[of])
    records = replace(records, fault=fault)
    written = replace(
        records,
        start=np.append(np.int64(0), ends)[:-1],
        end=ends - 1,
        consumed=len(text),
        comments=NO_COMMENTS,
    )
    return CarryingChunk(
        lines.block,
        records,
        lines.start,
        lines.dialect,
        written=replace(lines, block=text, records=written),
        own_fault=lines.records.fault,
    )


def _with_each_tail(lines: Chunk, tails: Sequence[bytes], of: Places) -> Iterator[bytes]:
    """The texts of records with their tails; runs parted only by one line end go at once."""
    block, start, end = lines.block, lines.records.start, lines.records.end
    new = np.flatnonzero(of[1:] != of[:-1]) + 1
    if len(of) < _FEW * len(new):
        each = zip(start.tolist(), end.tolist(), of.tolist(), strict=True)
        yield from chain.from_iterable((block[a:b], tails[n]) for a, b, n in each)
        return
    for first, beyond in pairwise([0, *new.tolist(), len(start)]):
        tail, piece = tails[of[first]], block[start[first] : end[beyond - 1]]
        line_end = block[end[first] : start[first + 1]] if beyond - first > 1 else b""
        if (
            _are_parted_by(line_end, block, end[first : beyond - 1], start[first + 1 : beyond])
            and piece.count(line_end) == beyond - first - 1
        ):
            yield piece.replace(line_end, tail)
        else:
            places = zip(start[first:beyond].tolist(), end[first:beyond].tolist(), strict=True)
            yield tail.join(block[a:b] for a, b in places)
        yield tail


def _are_parted_by(line_end: bytes, block: bytes, ends: Places, starts: Places) -> bool:
    """Whether `line_end` is a line end and is all that stands between each end and its start."""
    size = len(line_end)
    # Anything else between may be long, so no array of it is built for each record.
    if not 0 < size <= len(b"\r\n") or (starts - ends != size).any():
        return False
    signs = np.frombuffer(block, np.uint8)
    return all((signs[ends + at] == sign).all() for at, sign in enumerate(line_end))


def _worst(one: Bytes, other: Bytes) -> Bytes:
    """Of two faults the one to report, record by record."""
    none = RecordFault.NONE
    return np.where((one == none) | ((other != none) & (other < one)), other, one)
