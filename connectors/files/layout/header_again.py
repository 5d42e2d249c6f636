"""A header among the records of a file, with other columns than the file's own header.

It occurs if one file holds two extracts, or if a sender's columns change within a year. Below it
each cell would be read under the name of another column. A repeated header with the same columns is
treated like any other line.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from operator import eq
from typing import NamedTuple

import numpy as np

from connectors.errors import ExtractRefused
from connectors.files.layout.first_record import FirstRecord, cells, folded, last_named
from connectors.files.layout.header_names import DATA_CELL, HeaderNames
from connectors.files.layout.likely_headers import MARK, LikelyHeaders
from connectors.files.text.bitmask import Places
from connectors.files.text.content import refused
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.positions import CellRanges, in_order
from connectors.files.text.records import Records
from connectors.printable import shown
from schemas.field import Table
from schemas.own_columns import PARENT_COLUMN

_OTHER_WIDTH = (RecordFault.TOO_FEW_FIELDS, RecordFault.TOO_MANY_FIELDS)
_LARGE = (RecordFault.RECORD_TOO_LARGE, RecordFault.FIELD_TOO_LARGE)
_NONE = np.empty(0, np.int64)


class OtherHeader(NamedTuple):
    """Where such a line is, and how it differs."""

    byte: int
    line: int
    detail: str

    def refusal(self, extract: str) -> ExtractRefused:
        """The refusal of the whole file."""
        return refused("changed_columns", extract, line=self.line, detail=self.detail)


@dataclass(frozen=True)
class HeaderColumns:
    """Tells such a line from a record."""

    line: int | None
    """Line of the file's header; None if the feed profile states the columns."""
    rows: tuple[tuple[str, ...], ...]
    """Its rows as delivered: one, or several that make up the names."""
    known: frozenset[str]
    """Folded names of columns, in this header or in any other of its record kind."""
    read: frozenset[str]
    """Those names that something is made of."""
    meant: Mapping[str, str]
    """Folded name -> the field that the column is; two names may mean the same field."""
    no_text: Callable[[int], bool]
    """Whether a column's value is its whole text."""
    quotable: bool
    """Whether a cell that is no known name may be shown."""
    dialect: Dialect
    stated: frozenset[str] = frozenset()
    """For a table: the folded names that each of its headers has, whatever the others are."""
    certain: bool = False
    """Whether no record can have one of those names in its place."""
    texts: bool = False
    """Whether the other cells of a table are texts, so that a record may hold any name there."""
    divided: Callable[[str], Sequence[str]] | None = None
    """Gives the cells of a line, if no delimiters separate them."""
    parent: int | None = None
    """Index of the `ReconRow` column."""
    width: int = 0
    """Number of cells of a record, if delimiters separate them."""

    def first_in(self, block: bytes, records: Records, start: int) -> OtherHeader | None:
        """The first such line among the settled ones of a block that begins at `start`."""
        found = [*self._in_records(block, records), *self._in_others(block, records)]
        at, line, detail = min(found, default=(0, 0, ""))
        return OtherHeader(start + at, line, detail) if found else None

    def _in_records(self, block: bytes, records: Records) -> Iterator[tuple[int, int, str]]:
        """Search records, sound or not: position, line number and difference of the first."""
        text, fault = np.frombuffer(block, np.uint8), records.fault
        rows = self._lines.among(block, text, records.start, records.end)
        if fault.any():
            # The first column may be another one.
            odd = np.flatnonzero(np.isin(fault, _OTHER_WIDTH))
            begun = self._lines.with_word(block, text, records.start[odd], records.end[odd])
            rows = np.union1d(rows, odd[begun])
            rows = np.union1d(rows, self._ending_in_name(block, records))
            rows = rows[~np.isin(fault[rows], _LARGE)]
        for row in rows.tolist():
            begin, end = int(records.start[row]), int(records.end[row])
            line = self._cells(block[begin:end])
            detail = self._other(line, hidden=False) or self._other_behind(line)
            if detail:
                yield begin, int(records.first_line[row]), detail
                return

    def _ending_in_name(self, block: bytes, records: Records) -> Places:
        """The records with too many cells, the last of which is a name."""
        long = np.flatnonzero(records.fault == RecordFault.TOO_MANY_FIELDS) if self.width else _NONE
        ends = zip(records.start[long].tolist(), records.end[long].tolist(), strict=True)
        last = (block[start:end].rpartition(self.dialect.delimiter)[2] for start, end in ends)
        names = (cell.decode(self.dialect.encoding, "replace").strip(' "\t') for cell in last)
        return long[[folded(name) in self.known for name in names]] if len(long) else _NONE

    def _other_behind(self, line: Sequence[str]) -> str | None:
        """`_other` for a header that continues a record whose line lacks its end."""
        if not 0 < self.width < len(line):
            return None
        joined, fits = line[self.width - 1], sorted(self.known, key=len, reverse=True)
        first = next((name for name in fits if folded(joined).endswith(name)), "")
        if not first:
            return None
        detail = self._other([joined[-len(first) :], *line[self.width :]], hidden=False)
        return detail and f"behind a record whose line has no end, {detail}"

    def _in_others(self, block: bytes, records: Records) -> Iterator[tuple[int, int, str]]:
        """Search lines that the feed calls no records, as `_in_records` does."""
        lines = records.comments
        if not len(lines.start):
            return
        text = np.frombuffer(block, np.uint8)
        for size in (0, *map(len, self.dialect.comment)):
            start = np.minimum(lines.start + size, lines.end)
            for row in self._lines.among(block, text, start, lines.end).tolist():
                line = self._cells(block[start[row] : lines.end[row]])
                if detail := self._other(line, hidden=True):
                    yield int(lines.start[row]), int(lines.line[row]), detail
                    break

    def _other(self, line: Sequence[str], *, hidden: bool) -> str | None:
        """How a header's columns differ; None if the line is no header, or has the same columns.

        One that is `hidden`, or may be a record of texts, needs at least half as many columns: it
        may belong above other lines that are no records either.
        """
        found = [name.strip() for name in line[: last_named(line)]]
        names = tuple(map(folded, found))
        meant = self._meant(names)
        filled = [name for name in names if name]
        if self.parent is not None and names[self.parent : self.parent + 1] != _PARENT:
            return None
        may_be_few = bool(self.stated) or self._is_no_record(names)
        most = max(sum(map(bool, row)) for row in self._folded_rows)
        if (hidden or not may_be_few) and 2 * len(filled) < most:
            return None
        if any(self._is_same(meant, row) for row in self._meant_rows) or not self._is_header(names):
            return None
        first = "the feed profile names" if self.line is None else f"line {self.line} has"
        rows = zip(self.rows, self._meant_rows, strict=True)
        row, of = max(rows, key=lambda one: sum(map(eq, one[1], meant)))
        place = next(at for at, (a, b) in enumerate(zip_longest(of, meant)) if a != b)
        here, there = (shown(one[place], 60) if place < len(one) else "" for one in (found, row))
        if not self.quotable and folded(here) not in self.known:
            here = "another name"
        elif here:
            here = repr(here)
        expected = repr(there) if there else "none"
        return f"its column {place + 1} is {here or 'empty'}, and {first} {expected} there"

    def _is_same(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Whether lines below either header are read alike.

        In a table every column is read, and each of several header rows is a part of a name.
        """
        if self.stated or len(self.rows) > 1 or len(one) != len(other):
            return one == other
        read = self.read.union(self.meant.values(), [""])
        return all(a == b or read.isdisjoint((a, b)) for a, b in zip(one, other, strict=True))

    def _cells(self, line: bytes) -> Sequence[str]:
        """The cells of a line; empty if it cannot be divided."""
        text = line.decode(self.dialect.encoding, "replace").removeprefix(MARK)
        if self.divided:
            return self.divided(text)
        try:
            return cells([text.encode(self.dialect.encoding, "replace")], 0, self.dialect)
        except csv.Error:
            return ()

    def _is_header(self, names: Sequence[str]) -> bool:
        """Whether these are column names; a table's may be any, except the stated ones."""
        filled = [*filter(None, names)]
        known, others = {*filled} & self.known, [one for one in filled if one not in self.known]
        if len(known) > 1 and not others:
            return True
        named = not any(map(DATA_CELL.match, others))
        if len(known) > max(2, len(others)) and (named or self._is_no_record(names)):
            return True
        if not self.stated or not self.stated.issubset(filled):
            return False
        return len(filled) > len(self.stated) and (
            self.certain
            or (named and bool(others) and not self.texts)
            or len(known) > len(self.stated)
        )

    def _is_no_record(self, names: Sequence[str]) -> bool:
        """Whether several names are in places of numbers, times or codes."""
        found = (self.no_text(place) for place, name in enumerate(names) if name in self.known)
        return not self.stated and sum(found) > 1

    @cached_property
    def _folded_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(map(folded, row[: last_named(row)])) for row in self.rows)

    @cached_property
    def _meant_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(map(self._meant, self._folded_rows))

    def _meant(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.meant.get(name, name) for name in names)

    @cached_property
    def _lines(self) -> LikelyHeaders:
        spelled = self.known.union(*self.rows) - {""}
        return LikelyHeaders(spelled, self.stated, self._anywhere, self.dialect, self.width)

    @cached_property
    def _anywhere(self) -> bytes:
        """A name in every header of a table, if other names come before it."""
        first = next(filter(None, self._folded_rows[0]), "") if self.stated else ""
        if not first or first in self.stated:
            return b""
        name = next((one for one in self.rows[0] if folded(one) in self.stated), "")
        return name.encode(self.dialect.encoding, "replace")


def header_columns(
    line: FirstRecord,
    reading: HeaderNames,
    table: Table,
    fields: Sequence[str | None],
    dialect: Dialect,
) -> HeaderColumns:
    """What recognises a header with other columns than this line's, or the feed profile's."""
    profile = reading.profile
    stated = frozenset(map(folded, profile.unpivot_keep or profile.unpivot_columns))
    value = frozenset({folded(profile.unpivot_value or "")})
    names = {folded(name) for row in (line.names, *line.rows) for name in row} - {""}
    read = frozenset(reading.names_of(table))
    no_text = partial(reading.is_no_text, table, fields)

    def are_no_texts(columns: frozenset[str]) -> bool:
        places = (at for at, name in enumerate(reading.names) if folded(name) in columns)
        return any(map(no_text, places))

    return HeaderColumns(
        line=None if profile.names else line.number,
        rows=line.rows,
        known=read | names,
        read=read,
        meant=reading.meant_of(table),
        stated=stated,
        certain=are_no_texts(value if profile.unpivot_columns else stated),
        texts=not are_no_texts(value),
        no_text=no_text,
        quotable=not table.unquotable,
        dialect=dialect,
        width=len(line.names),
        parent=reading.place_of(PARENT_COLUMN),
    )


def positioned_columns(
    reading: HeaderNames,
    table: Table,
    fields: Sequence[str | None],
    dialect: Dialect,
    positions: CellRanges,
) -> HeaderColumns:
    """The same for lines with cells at the positions that the feed profile states."""
    stated = in_order(reading.profile.positions)
    read = frozenset(reading.names_of(table))
    return HeaderColumns(
        line=None,
        rows=(tuple(stated),),
        known=read.union(map(folded, stated)),
        read=read,
        meant=reading.meant_of(table),
        no_text=partial(reading.is_no_text, table, fields),
        quotable=not table.unquotable,
        dialect=dialect,
        divided=positions.pieces,
    )


_PARENT = (folded(PARENT_COLUMN),)
