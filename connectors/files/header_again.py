"""A header among the records of a file, of other columns than the one that they are read by.

Two extracts in one file, or a sender whose columns change within a year: below such a line each
cell would be read under the name of another column. A header of the same columns is a line like
any other.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from connectors.errors import ExtractRefused
from connectors.files.bitmask import Bytes, Flags, Places
from connectors.files.content import refused
from connectors.files.dialect import Dialect, RecordFault
from connectors.files.first_record import FirstRecord, cells, folded
from connectors.files.header_names import DATA_CELL, HeaderNames
from connectors.files.positions import in_order, range_of
from connectors.files.records import Records
from connectors.printable import shown
from schemas.field import Table
from schemas.own_columns import PARENT_COLUMN

MARK = "\ufeff"
"""Begins a text that was put behind another."""
_OTHER_WIDTH = (RecordFault.TOO_FEW_FIELDS, RecordFault.TOO_MANY_FIELDS)
_LARGE = (RecordFault.RECORD_TOO_LARGE, RecordFault.FIELD_TOO_LARGE)
_END = 0
"""Stands for all that may be behind the last sign of a name."""
_LEAD, _NAME = 1, 2
_NONE = np.empty(0, np.int64)


class OtherHeader(NamedTuple):
    """Where such a line is, and what is other there."""

    byte: int
    line: int
    detail: str

    def refusal(self, extract: str) -> ExtractRefused:
        """Why nothing of the file is taken."""
        return refused("changed_columns", extract, line=self.line, detail=self.detail)


@dataclass(frozen=True)
class HeaderColumns:
    """What tells such a line from a record."""

    line: int | None
    """On which the header of the file begins; None: the feed profile says its columns."""
    rows: tuple[tuple[str, ...], ...]
    """Its rows as delivered: one, or several that make up the names."""
    known: frozenset[str]
    """Folded names of columns, in this header or in any other of its record."""
    meant: Mapping[str, str]
    """By folded name the field that a column is: two names may mean the same one."""
    stated: frozenset[str]
    """Of a table: the folded names that each header of it has, whatever the others are."""
    certain: bool
    """Whether no record can have one of those in its place."""
    quotable: bool
    """Whether a cell that is no known name may be shown."""
    dialect: Dialect
    divided: Callable[[str], Sequence[str]] | None = None
    """The cells of a line, where none are told by signs between them."""
    parent: int | None = None
    """Place of the `ReconRow` column."""
    width: int = 0
    """How many cells a record has, where signs between them tell."""

    def first_in(self, block: bytes, records: Records, start: int) -> OtherHeader | None:
        """The first such line among the settled ones of a block, which begins at `start`."""
        found = [*self._in_records(block, records), *self._in_others(block, records)]
        at, line, detail = min(found, default=(0, 0, ""))
        return OtherHeader(start + at, line, detail) if found else None

    def _in_records(self, block: bytes, records: Records) -> Iterator[tuple[int, int, str]]:
        """In records, sound or not: where it begins, its number, and what is other."""
        text, fault = np.frombuffer(block, np.uint8), records.fault
        rows = self._likely(block, text, records.start, records.end)
        if fault.any():
            # Another column may be the first of them.
            odd = np.flatnonzero(np.isin(fault, _OTHER_WIDTH))
            begun, _ = self._begun(
                block, text, records.start[odd], records.end[odd], self._signs.word
            )
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
        """The same of a header behind the cells of a record, whose line had no end."""
        if not 0 < self.width < len(line):
            return None
        joined, fits = line[self.width - 1], sorted(self.known, key=len, reverse=True)
        first = next((name for name in fits if folded(joined).endswith(name)), "")
        if not first:
            return None
        detail = self._other([joined[-len(first) :], *line[self.width :]], hidden=False)
        return detail and f"behind a record whose line has no end, {detail}"

    def _in_others(self, block: bytes, records: Records) -> Iterator[tuple[int, int, str]]:
        """The same in lines that are no records, as the feed says of them."""
        lines = records.comments
        if not len(lines.start):
            return
        text = np.frombuffer(block, np.uint8)
        for size in (0, *map(len, self.dialect.comment)):
            start = np.minimum(lines.start + size, lines.end)
            for row in self._likely(block, text, start, lines.end).tolist():
                line = self._cells(block[start[row] : lines.end[row]])
                if detail := self._other(line, hidden=True):
                    yield int(lines.start[row]), int(lines.line[row]), detail
                    break

    def _other(self, line: Sequence[str], *, hidden: bool) -> str | None:
        """What is other in a line that is a header; None: it is none, or of the same columns.

        One that is `hidden` has at least half as many columns: it may be above other lines that are
        no records either.
        """
        found = [name.strip() for name in line]
        while found and not found[-1]:
            found.pop()
        names = tuple(map(folded, found))
        meant = self._meant(names)
        filled = [name for name in names if name]
        if self.parent is not None and names[self.parent : self.parent + 1] != _PARENT:
            return None
        if hidden and 2 * len(filled) < max(map(_filled, self._folded_rows)):
            return None
        if meant in self._meant_rows or not self._is_header(filled):
            return None
        first = "the feed profile names" if self.line is None else f"line {self.line} has"
        rows = zip(self.rows, self._meant_rows, strict=True)
        row, of = max(rows, key=lambda one: _alike(one[1], meant))
        place = next(at for at, (a, b) in enumerate(zip_longest(of, meant)) if a != b)
        here, there = (shown(one[place], 60) if place < len(one) else "" for one in (found, row))
        if not self.quotable and folded(here) not in self.known:
            here = "another name"
        elif here:
            here = repr(here)
        told = repr(there) if there else "none"
        return f"its column {place + 1} is {here or 'empty'}, and {first} {told} there"

    def _cells(self, line: bytes) -> Sequence[str]:
        """The cells of a line; none of one that cannot be divided."""
        text = line.decode(self.dialect.encoding, "replace").removeprefix(MARK)
        if self.divided:
            return self.divided(text)
        try:
            return cells([text.encode(self.dialect.encoding, "replace")], 0, self.dialect)
        except csv.Error:
            return ()

    def _is_header(self, filled: Sequence[str]) -> bool:
        """Whether these are names of columns; those of a table are any, but for some."""
        known, others = {*filled} & self.known, [one for one in filled if one not in self.known]
        if len(known) > 1 and not others:
            return True
        named = not any(map(DATA_CELL.match, others))
        if len(known) > max(2, len(others)) and named:
            return True
        if not self.stated or not self.stated.issubset(filled):
            return False
        return len(filled) > len(self.stated) and (
            self.certain or (named and bool(others)) or len(known) > len(self.stated)
        )

    @cached_property
    def _folded_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(_without_end(tuple(map(folded, row))) for row in self.rows)

    @cached_property
    def _meant_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(map(self._meant, self._folded_rows))

    def _meant(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.meant.get(name, name) for name in names)

    def _likely(self, block: bytes, text: Bytes, start: Places, end: Places) -> Places:
        """Which lines may be one: those whose first text is a name, as nearly none is."""
        if not len(start):
            return _NONE
        signs = self._signs
        if self._anywhere:
            return self._holding(block, start)
        kind = signs.kind[text[np.minimum(start, len(text) - 1)]]
        if not kind.any():
            return _NONE
        rows, at = self._begun(block, text, start, end, signs.kind)
        pairs = self._sign(text, at, end[rows]).astype(np.int64) << 8
        pairs |= self._sign(text, at + 1, end[rows])
        likely = signs.pairs[pairs]
        rows, at, pairs = rows[likely], at[likely], pairs[likely]
        found = np.zeros(len(start), np.bool_)
        for pair in np.unique(pairs).tolist():
            of_pair = pairs == pair
            for name, of in signs.names[pair].items():
                named, behind = self._with_name(text, rows[of_pair], at[of_pair], end, name)
                if of not in self.stated:
                    # Behind it is another name, and no number; but for a table's, which may be any.
                    word = np.maximum(signs.word, signs.kind)
                    named = named[self._begun(block, text, behind, end[named], word)[0]]
                found[named] = True
        return np.flatnonzero(found)

    def _begun(
        self, block: bytes, text: Bytes, start: Places, end: Places, kinds: Bytes
    ) -> tuple[Places, Places]:
        """The lines whose first sign of a text may be that of a name, and where it stands."""
        if not len(start):
            return _NONE, _NONE
        rows, at = np.arange(len(start)), start
        mark = MARK.encode()
        marked = np.flatnonzero(text[np.minimum(at, len(text) - 1)] == mark[0])
        if self.dialect.encoding == "utf-8" and len(marked):
            at = at.copy()
            at[marked] += [len(mark) * block.startswith(mark, one) for one in at[marked].tolist()]
        found_rows, found_at = [_NONE], [_NONE]
        while len(rows):
            inside = at < end[rows]
            if not inside.all():
                rows, at = rows[inside], at[inside]
            kind = kinds[text[at]]
            if kind.any():
                found_rows.append(rows[kind == _NAME])
                found_at.append(at[kind == _NAME])
            lead = kind == _LEAD
            rows, at = (rows, at + 1) if lead.all() else (rows[lead], at[lead] + 1)
        return np.concatenate(found_rows), np.concatenate(found_at)

    def _sign(self, text: Bytes, at: Places, end: Places) -> Bytes:
        """The folded sign at a place; behind the line, what ends a name."""
        found = self._signs.fold[text[np.minimum(at, len(text) - 1)]]
        found[at >= end] = _END
        return found

    def _with_name(
        self, text: Bytes, rows: Places, at: Places, end: Places, name: bytes
    ) -> tuple[Places, Places]:
        """The lines that have a name at a place, and where what is behind it begins."""
        for place, sign in enumerate(name):
            if not len(rows):
                break
            fits = self._sign(text, at + place, end[rows]) == sign
            rows, at = rows[fits], at[fits]
        return rows, at + len(name) - 1

    def _holding(self, block: bytes, start: Places) -> Places:
        """The lines with a name anywhere in them."""
        places, at = list[int](), block.find(self._anywhere)
        while at >= 0:
            places.append(at)
            at = block.find(self._anywhere, at + 1)
        rows = np.searchsorted(start, places, "right") - 1
        return np.unique(rows[rows >= 0])

    @cached_property
    def _anywhere(self) -> bytes:
        """A name that each header of a table has, where other ones stand in front of it."""
        first = next(filter(None, self._folded_rows[0]), "") if self.stated else ""
        if not first or first in self.stated:
            return b""
        names = [
            name.encode(self.dialect.encoding, "replace")
            for name in self.rows[0]
            if folded(name) in self.stated
        ]
        return next(iter(names), b"")

    @cached_property
    def _signs(self) -> "_Signs":
        spelled = self.known.union(*self.rows) - {""}
        return _signs_of(spelled, self.dialect.delimiter, self.dialect.quote, self.dialect.encoding)


class _Signs(NamedTuple):
    """How lines begin that may be headers."""

    kind: Bytes
    """By sign: whether one may be in front of a name, or its first."""
    word: Bytes
    """The same of any name that does not begin as a number does."""
    fold: Bytes
    """By sign: the one as which it counts."""
    pairs: Flags
    """By two folded signs: whether a name begins so."""
    names: Mapping[int, Mapping[bytes, str]]
    """By the same, the names, as such signs and what ends them; and each as names are compared."""


@lru_cache(16)
def _signs_of(spelled: frozenset[str], delimiter: bytes, quote: bytes, encoding: str) -> _Signs:
    """How lines begin with one of these names; files of one feed have the same."""
    between = {*delimiter, *quote, *b" \t"}
    fold = np.arange(256, dtype=np.uint8)
    fold[ord("A") : ord("Z") + 1] += ord("a") - ord("A")
    fold[[*between, *b"\r\n"]] = _END
    kind, pairs = np.zeros(256, np.uint8), np.zeros(1 << 16, np.bool_)
    kind[[*between]] = _LEAD
    names: dict[int, dict[bytes, str]] = {}
    for name in {form for one in spelled for form in (one, one.upper(), one.lower())}:
        text = name.encode(encoding, "replace") + b" "
        kind[text[0]] = kind[text[0]] or _NAME
        signs = fold[np.frombuffer(text, np.uint8)].tobytes()
        pair = signs[0] << 8 | signs[1]
        pairs[pair] = True
        names.setdefault(pair, {})[signs] = folded(name)
    first = MARK.encode()[0]
    kind[first] = kind[first] or _LEAD
    word = np.where(kind == _LEAD, _LEAD, _NAME).astype(np.uint8)
    word[[*b"0123456789+-.("]] = 0
    return _Signs(kind, word, fold, pairs, names)


def header_columns(
    line: FirstRecord,
    reading: HeaderNames,
    table: Table,
    fields: Sequence[str | None],
    dialect: Dialect,
) -> HeaderColumns:
    """What tells a header of other columns than those of this line, or of the feed profile."""
    profile = reading.profile
    stated = frozenset(map(folded, profile.unpivot_keep or profile.unpivot_columns))
    own = {profile.unpivot_value or ""} if profile.unpivot_columns else stated
    names = {folded(name) for row in (line.names, *line.rows) for name in row} - {""}
    return HeaderColumns(
        line=None if profile.names else line.number,
        rows=line.rows,
        known=frozenset(names | reading.names_of(table)),
        meant=reading.meant_of(table),
        stated=stated,
        certain=any(
            reading.is_no_text(table, fields, place)
            for place, name in enumerate(reading.names)
            if folded(name) in {*map(folded, own)}
        ),
        quotable=not table.unquotable,
        dialect=dialect,
        width=len(line.names),
        parent=reading.place_of(PARENT_COLUMN),
    )


def positioned_columns(reading: HeaderNames, table: Table, dialect: Dialect) -> HeaderColumns:
    """The same of lines whose cells are at the positions that the feed profile says."""
    stated = in_order(reading.profile.positions)
    ranges = [range_of(text) for text in stated.values()]
    return HeaderColumns(
        line=None,
        rows=(tuple(stated),),
        known=frozenset({*map(folded, stated)} | reading.names_of(table)),
        meant=reading.meant_of(table),
        stated=frozenset(),
        certain=False,
        quotable=not table.unquotable,
        dialect=dialect,
        divided=lambda line: [line[first:end] for first, end in ranges],
    )


_PARENT = (folded(PARENT_COLUMN),)


def _without_end(names: tuple[str, ...]) -> tuple[str, ...]:
    size = max((at for at, name in enumerate(names, 1) if name), default=0)
    return names[:size]


def _filled(names: Sequence[str]) -> int:
    return sum(map(bool, names))


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(one, other, strict=False))
