"""What is known of a batch's keys and references by the time its last row is read.

While rows are read, every key leaves a mark in a table of fixed size; a key whose mark is there
already *may* have been seen before. Only those are looked at again when duplicates are settled, and
only the distinct values of a reference are looked up. Both say where to look, never what is true:
the database judges. What a chunk adds is kept in its receipt, with the chunk its filter began with
and the number of rows it saw since, so that a gap is found. Where a batch went through several
filters (a run that died, or partitions side by side), a key can be in two of them only when it is a
stray of one, or where their keys overlap; strays are looked at, and when keys overlap, everything.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from mmap import mmap
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Reference, Table

MARKS = 27
"""Bits of a mark: 2^27 marks take 16 MiB for each record kind, whatever is delivered."""
MOST_KEYS_OF_CHUNK = 5_000
MOST_STRAYS = 100
"""Of a chunk, below and above: keys that are left out of where its keys lie."""
MOST_KEYS = 200_000
TENANT_BITS = 20
"""Of a tenant's number beside a value in one integer, where both fit."""
MOST_VALUES = 50_000
"""Of one reference; from there on the database finds the distinct values itself."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LAST_MARK = np.uint64((1 << MARKS) - 1)

Key = Sequence[int | str]
At = Sequence[int]
"""A chunk's extract and number: in the order of the rows. None given: before all."""
Clues = Mapping[str, Any]
Numbers = NDArray[np.uint64]


@dataclass(slots=True)
class Known:
    """Where to look among the rows of one record kind; None: everywhere."""

    keys: list[Key] | None = field(default_factory=list)
    """Keys that may occur more than once; no other does."""
    values: dict[str, list[Key] | None] = field(default_factory=dict)
    """By field of a reference: its distinct values, with the tenant where that has to agree."""


def looked_at(table: Table) -> list[str]:
    """The columns of staged rows that tell."""
    tenant = [table.tenant] if table.tenant else []
    fields = [one.field for one in table.references]
    return list(dict.fromkeys([*key_columns(table), *tenant, *fields]))


class KeyFilter:
    """The marks of one run through consecutive chunks of a batch."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._since: At | None = None

    def forget(self) -> None:
        """Begin again: the next chunk does not follow, or the rows before it were taken back."""
        self._seen.clear()
        self._since = None

    def add(self, table: Table, rows: pl.DataFrame, at: At = ()) -> dict[str, Any]:
        """Take in the `looked_at` of a chunk's clean rows; returns the clues they give."""
        if table.name not in self._seen:
            self._seen[table.name] = _Seen()
        seen = self._seen[table.name]
        self.begin(at)
        assert self._since is not None
        keys = _Keys(table, rows)
        middle, strays = keys.middle()
        clues = {
            "at": list(at),
            "since": list(self._since),
            "after": seen.rows,
            "keys": seen.repeated(keys),
            "middle": middle,
            "strays": strays,
            "values": {one.field: seen.fresh(one, table, rows) for one in table.references},
            "span": keys.span(),
        }
        seen.rows += rows.height
        return clues

    def begin(self, at: At) -> None:
        """Say where it begins, unless it has begun."""
        if self._since is None:
            self._since = at

    def add_together(
        self, table: Table, rows: pl.DataFrame, parts: Sequence[tuple[At, int]]
    ) -> list[dict[str, Any]]:
        """Take in chunks that follow each other, each with its place and how many `rows` are its.

        What is known of all of them together is in the clues of the first one that has rows.
        """
        whole = self.add(table, rows, parts[0][0])
        none: dict[str, Any] = {"keys": [], "middle": [], "strays": []}
        none["values"] = {name: [] for name in whole["values"]}
        after, told, clues = whole["after"], False, []
        for (at, height), span in zip(parts, _spans(table, rows, parts), strict=True):
            of_all = whole if height and not told else none
            told = told or height > 0
            clues.append(
                {**whole, **{name: of_all[name] for name in none}, "at": list(at), "after": after}
                | {"span": span}
            )
            after += height
        return clues


def _spans(
    table: Table, rows: pl.DataFrame, parts: Sequence[tuple[At, int]]
) -> list[list[int] | None]:
    """Of each part: what `_Keys.span` says of its rows."""
    first = key_columns(table)[0]
    filled = [place for place, (_, height) in enumerate(parts) if height]
    spans: list[list[int] | None] = [None] * len(parts)
    if first == IDENTITY or not filled:
        return spans
    numbers = rows[first].to_numpy()
    begin = np.cumsum([0, *(parts[place][1] for place in filled[:-1])])
    ends = np.minimum.reduceat(numbers, begin), np.maximum.reduceat(numbers, begin)
    for place, low, high in zip(filled, *(one.tolist() for one in ends), strict=True):
        spans[place] = [low, high]
    return spans


class _Seen:
    def __init__(self) -> None:
        self.rows = 0
        # Pages of their own, which the system zeroes when a mark is the first on one of them.
        self._marks = np.frombuffer(mmap(-1, 1 << MARKS >> 3), np.uint8)
        self._highest = np.uint64(0)
        self._values: dict[str, pl.DataFrame] = {}

    def repeated(self, keys: "_Keys") -> list[Key] | None:
        """Keys of the rows that may have been seen before; None: too many to tell."""
        if not keys.height:
            return []
        first = keys.numbers[0]
        # Keys that follow each other leave marks that do, which is kind to the processor's caches.
        mark = first
        for column in keys.numbers[1:]:
            mark = mark + column * _SPREAD
        mark = mark & _LAST_MARK
        place, bit = mark >> np.uint64(3), np.uint8(1) << (mark & np.uint64(7)).astype(np.uint8)
        # A key above all before it is new, whatever its mark says: most deliveries are in order.
        marked = first <= self._highest
        if marked.any():
            marked &= self._marks[place] & bit != 0
        if not keys.rising:
            once = np.zeros(len(mark), np.bool_)
            once[np.unique(mark, return_index=True)[1]] = True
            marked |= ~once
        np.bitwise_or.at(self._marks, place, bit)
        self._highest = max(self._highest, first.max())
        found = np.flatnonzero(marked)
        if len(found) > MOST_KEYS_OF_CHUNK:
            return None
        return keys.told(found)

    def fresh(self, reference: Reference, table: Table, rows: pl.DataFrame) -> list[Key] | None:
        """Values of a reference that no chunk before had; None: too many to tell."""
        tenant = pl.lit(None, pl.Int32)
        if reference.same_tenant and table.tenant:
            tenant = pl.col(table.tenant)
        pairs = rows.select(pl.col(reference.field).alias("value"), tenant.alias("tenant"))
        found = _once(pairs.drop_nulls("value"))
        before = self._values.get(reference.field, found.clear())
        if before.height > MOST_VALUES:
            return None
        fresh = found.join(before, on=["value", "tenant"], how="anti", nulls_equal=True)
        self._values[reference.field] = before.vstack(fresh)
        if before.height + fresh.height > MOST_VALUES:
            return None
        return [list(row) for row in fresh.sort("value", "tenant").rows()]


def _once(pairs: pl.DataFrame) -> pl.DataFrame:
    """Every value with its tenant once; small numbers are told apart as one, which is quick."""
    value, tenant = pairs
    if pairs.is_empty() or not value.dtype.is_integer() or tenant.null_count():
        return pairs.unique()
    numbers, tenants = (one.to_numpy().astype(np.int64) for one in pairs)
    reach = 1 << (63 - TENANT_BITS)
    if not (-reach <= numbers.min() and numbers.max() < reach) or (
        tenants.min() < 0 or tenants.max() >> TENANT_BITS
    ):
        return pairs.unique()
    both = np.sort(numbers << TENANT_BITS | tenants)
    both = both[np.append(True, both[1:] != both[:-1])]
    parts = {"value": both >> TENANT_BITS, "tenant": both & ((1 << TENANT_BITS) - 1)}
    return pl.DataFrame(parts).cast(pairs.schema)


class _Keys:
    """The keys of a chunk's rows."""

    def __init__(self, table: Table, rows: pl.DataFrame) -> None:
        self._frame = rows.select(key_columns(table))
        self.height = rows.height
        self.numbers = _numbers(self._frame)
        first = self.numbers[0]
        self.rising = bool((first[1:] > first[:-1]).all())
        """Whether the first column tells every row apart, and they are in its order."""

    def told(self, rows: NDArray[np.intp]) -> list[Key]:
        """The keys of some rows."""
        return [list(row) for row in self._frame[rows].rows()]

    def middle(self) -> tuple[list[int] | None, list[Key]]:
        """Between what numbers nearly all keys lie, and the keys that do not."""
        if not self.height:
            return None, []
        first = self.numbers[0]
        cut = min(MOST_STRAYS, self.height // 10)
        last = self.height - 1 - cut
        ordered = first if self.rising else np.partition(first, [cut, last])
        low, high = ordered[cut], ordered[last]
        return [int(low), int(high)], self.told(np.flatnonzero((first < low) | (first > high)))

    def span(self) -> list[int] | None:
        """The least and the greatest of the key's first column, where it is a number."""
        first, *_ = self._frame
        if first.name == IDENTITY or not self.height:
            return None
        if self.rising:
            return [first[0], first[-1]]
        return [first.min(), first.max()]  # type: ignore[list-item]


def _numbers(key: pl.DataFrame) -> list[Numbers]:
    """Integers in the order of the key's own, or 60 bits of an identity."""
    if key.columns == [IDENTITY]:
        bits = key[IDENTITY].str.slice(0, 15).str.to_integer(base=16, dtype=pl.Int64)
        return [bits.to_numpy().astype(np.uint64)]
    # Adding 2^63 keeps the order of negative numbers too.
    top = np.uint64(1 << 63)
    return [column.cast(pl.Int64).to_numpy().astype(np.uint64) ^ top for column in key]


def gather(told: Iterable[tuple[Mapping[str, int], Clues]]) -> dict[str, Known]:
    """The clues of all chunks of a batch in order, each with its clean rows by record kind.

    Nothing is known of a kind when the filter of a chunk did not see all rows since it began.
    """
    gathered: dict[str, _Gathered] = defaultdict(_Gathered)
    for clean, clues in told:
        for record, number in clean.items():
            if number:
                gathered[record].join(clues.get(record, {}), number)
    return {record: one.known() for record, one in gathered.items()}


@dataclass(slots=True)
class _Gathered:
    """What the chunks of one record kind tell."""

    rows: int = 0
    starts: list[tuple[list[int], int]] = field(default_factory=list)
    """Of each chunk so far: its place, and the clean rows before it."""
    keys: list[Key] | None = field(default_factory=list)
    strays: list[Key] | None = field(default_factory=list)
    middles: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    """Of each filter: the ends of where its keys lie, chunk by chunk."""
    values: dict[str, dict[tuple[int | str, ...], None] | None] = field(default_factory=dict)

    def join(self, clue: Clues, rows: int) -> None:
        since = list(clue.get("since", ()))
        self.starts.append((list(clue.get("at", ())), self.rows))
        begun = bisect_left(self.starts, since, key=lambda start: start[0])
        seen = self.rows - self.starts[min(begun, len(self.starts) - 1)][1]
        whole = clue.get("after") == seen
        self.keys = _joined(self.keys, clue.get("keys") if whole else None)
        self.strays = _joined(self.strays, clue.get("strays"))
        ends = self.middles.setdefault(tuple(since), [])
        ends += clue.get("middle", [])
        fresh = clue.get("values", {}) if whole else {}
        for name in self.values.keys() | fresh.keys():
            mine, theirs = self.values.get(name, {} if not self.rows else None), fresh.get(name)
            if mine is not None and theirs is not None:
                self.values[name] = mine | dict.fromkeys(map(tuple, theirs))
            else:
                self.values[name] = None
        self.rows += rows

    def known(self) -> Known:
        values: dict[str, list[Key] | None] = {
            name: None
            if found is None or len(found) > MOST_VALUES
            else [list(one) for one in found]
            for name, found in self.values.items()
        }
        return Known(self._keys(), values)

    def _keys(self) -> list[Key] | None:
        if len(self.middles) < 2:
            return self.keys
        spans = sorted((min(ends), max(ends)) for ends in self.middles.values() if ends)
        apart = all(one[1] < other[0] for one, other in pairwise(spans))
        return _joined(self.keys, self.strays) if apart else None


def _joined(known: list[Key] | None, keys: list[Key] | None) -> list[Key] | None:
    if known is None or keys is None or len(known) + len(keys) > MOST_KEYS:
        return None
    return known + keys
