"""Hints about where a batch can have duplicate keys and references, ready with its last row.

A key filter is a Bloom filter with one hash: every key sets a bit in a table of fixed size, and a
key whose bit is already set *may* have occurred before. Only such keys are looked up when
duplicates are settled, and only the distinct values of references. Hints say where to look, never
what is true: the database decides.

A run through consecutive chunks has one filter. Its findings are in the receipts of the chunks
(`Clues`), and `gather` combines the receipts of a batch (`Known`):

- A chunk says how many rows its filter saw before it, so that a missing receipt is noticed.
- A batch may have several filters, from a run that died or from parallel partitions. No filter saw
  the keys of another. If the filters' ranges of keys, without outliers, do not overlap, a key that
  two filters saw is an outlier of one of them; if they overlap, it may be any key.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from mmap import mmap
from operator import itemgetter
from typing import TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Reference, Table

HASH_BITS = 27
"""Bits of a key's hash; a table of 2^27 bits takes 16 MiB per record kind, for any delivery."""
MOST_KEYS_OF_CHUNK = 5_000
MOST_OUTLIERS = 100
"""Most keys at either end that are left out of the range of a chunk's keys."""
MOST_KEYS = 200_000
TENANT_BITS = 20
"""Bits of a tenant's number that is packed with a value into one integer."""
MOST_VALUES = 50_000
"""Most distinct values of a reference; if there are more, the database finds them itself."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HASH_MASK = np.uint64((1 << HASH_BITS) - 1)

Key = Sequence[int | str]
At = Sequence[int]
"""A chunk's extract and number, in the order of the rows; empty sorts before all."""
Numbers = NDArray[np.uint64]


class Clues(TypedDict, total=False):
    """The clues about one record kind in a chunk's receipt; empty if they were lost."""

    at: At
    since: At
    """The first chunk of the filter."""
    after: int
    """Number of rows that the filter saw before this chunk."""
    keys: list[Key] | None
    """Keys that may have occurred before; None if too many to list."""
    range: list[int] | None
    """Lowest and highest key without outliers; None if there are no keys."""
    outliers: list[Key]
    values: dict[str, list[Key] | None]
    """New values by field of a reference; None if too many to list."""
    span: list[int] | None
    """Lowest and highest value of the key's first column, if that is a number."""


@dataclass(slots=True)
class Known:
    """Where to look among the rows of one record kind; None means everywhere."""

    keys: list[Key] | None = field(default_factory=list)
    """Keys that may occur more than once; no other key does."""
    values: dict[str, list[Key] | None] = field(default_factory=dict)
    """Distinct values by field of a reference, with the tenant if that has to agree."""


def looked_at(table: Table) -> list[str]:
    """The columns of staged rows that a key filter reads."""
    tenant = [table.tenant] if table.tenant else []
    fields = [one.field for one in table.references]
    return list(dict.fromkeys([*key_columns(table), *tenant, *fields]))


class KeyFilter:
    """The filter of one run through consecutive chunks of a batch."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = defaultdict(_Seen)
        self._since: At | None = None

    def forget(self) -> None:
        """Start over, because the next chunk does not follow or earlier rows were rolled back."""
        self._seen.clear()
        self._since = None

    def begin(self, at: At) -> At:
        """Begin at a chunk unless already begun; return the chunk of the beginning."""
        if self._since is None:
            self._since = at
        return self._since

    def add(self, table: Table, rows: pl.DataFrame, at: At = ()) -> Clues:
        """Add the `looked_at` columns of a chunk's clean rows; return their clues."""
        since, seen, keys = self.begin(at), self._seen[table.name], _Keys(table, rows)
        within, outliers = keys.range()
        clues: Clues = {
            "at": list(at),
            "since": list(since),
            "after": seen.rows,
            "keys": seen.add_keys(keys),
            "range": within,
            "outliers": outliers,
            "values": {one.field: seen.add_values(one, table, rows) for one in table.references},
            "span": keys.span(),
        }
        seen.rows += rows.height
        return clues

    def add_together(
        self, table: Table, rows: pl.DataFrame, parts: Sequence[tuple[At, int]]
    ) -> list[Clues]:
        """Add consecutive chunks; `parts` has the place and the number of `rows` of each.

        Clues that are known only for all of them are given to the first chunk that has rows.
        """
        whole = self.add(table, rows, parts[0][0])
        values: dict[str, list[Key] | None] = {name: [] for name in whole["values"]}
        nothing: Clues = {**whole, "keys": [], "range": [], "outliers": [], "values": values}
        filled = next((place for place, (_, height) in enumerate(parts) if height), None)
        spans, after, clues = _spans(table, rows, parts), whole["after"], list[Clues]()
        for place, (at, height) in enumerate(parts):
            of_part = whole if place == filled else nothing
            clues.append({**of_part, "at": list(at), "after": after, "span": spans[place]})
            after += height
        return clues


def _spans(
    table: Table, rows: pl.DataFrame, parts: Sequence[tuple[At, int]]
) -> list[list[int] | None]:
    """`_Keys.span` of the rows of each part."""
    first = key_columns(table)[0]
    filled = [place for place, (_, height) in enumerate(parts) if height]
    spans: list[list[int] | None] = [None] * len(parts)
    if first == IDENTITY or not filled:
        return spans
    numbers = rows[first].to_numpy()
    begins = np.cumsum([0, *(parts[place][1] for place in filled[:-1])])
    ends = np.minimum.reduceat(numbers, begins), np.maximum.reduceat(numbers, begins)
    for place, low, high in zip(filled, *(one.tolist() for one in ends), strict=True):
        spans[place] = [low, high]
    return spans


class _Seen:
    def __init__(self) -> None:
        self.rows = 0
        # Anonymous memory, of which the system only allocates pages on which a bit is set.
        self._bits = np.frombuffer(mmap(-1, 1 << HASH_BITS >> 3), np.uint8)
        self._highest = np.uint64(0)
        self._values: dict[str, pl.DataFrame] = {}

    def add_keys(self, keys: "_Keys") -> list[Key] | None:
        """Add a chunk's keys; return those that may have occurred before, None if too many."""
        if not keys.height:
            return []
        first = keys.numbers[0]
        # Consecutive keys set consecutive bits, which suits the processor's caches.
        hashed = first
        for column in keys.numbers[1:]:
            hashed = hashed + column * _SPREAD
        hashed = hashed & _HASH_MASK
        byte = hashed >> np.uint64(3)
        bit = np.uint8(1) << (hashed & np.uint64(7)).astype(np.uint8)
        # A key above all earlier ones is new, whatever its bit says: most deliveries are in order.
        repeated = first <= self._highest
        if repeated.any():
            repeated &= self._bits[byte] & bit != 0
        if not keys.rising:
            once = np.zeros(len(hashed), np.bool_)
            once[np.unique(hashed, return_index=True)[1]] = True
            repeated |= ~once
        np.bitwise_or.at(self._bits, byte, bit)
        self._highest = max(self._highest, first.max())
        rows = np.flatnonzero(repeated)
        return None if len(rows) > MOST_KEYS_OF_CHUNK else keys.of(rows)

    def add_values(
        self, reference: Reference, table: Table, rows: pl.DataFrame
    ) -> list[Key] | None:
        """Add the values of a reference; return the new ones, None if too many."""
        bound = reference.same_tenant and table.tenant
        tenant = pl.col(bound) if bound else pl.lit(None, pl.Int32)
        pairs = rows.select(value=pl.col(reference.field), tenant=tenant)
        found = _distinct(pairs.drop_nulls("value"))
        before = self._values.get(reference.field, found.clear())
        if before.height > MOST_VALUES:
            return None
        new = found.join(before, on=["value", "tenant"], how="anti", nulls_equal=True)
        self._values[reference.field] = before.vstack(new)
        if before.height + new.height > MOST_VALUES:
            return None
        return [list(row) for row in new.sort("value", "tenant").rows()]


def _distinct(pairs: pl.DataFrame) -> pl.DataFrame:
    """The distinct pairs of value and tenant; small numbers are packed into one, which is quick."""
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
    def __init__(self, table: Table, rows: pl.DataFrame) -> None:
        self._frame = rows.select(key_columns(table))
        self.height = rows.height
        self.numbers = _numbers(self._frame)
        first = self.numbers[0]
        self.rising = bool((first[1:] > first[:-1]).all())
        """Whether the first column is strictly ascending."""

    def of(self, rows: NDArray[np.intp]) -> list[Key]:
        return [list(row) for row in self._frame[rows].rows()]

    def range(self) -> tuple[list[int] | None, list[Key]]:
        """The range in which nearly all keys lie, and the outliers."""
        if not self.height:
            return None, []
        first = self.numbers[0]
        cut = min(MOST_OUTLIERS, self.height // 10)
        last = self.height - 1 - cut
        ordered = first if self.rising else np.partition(first, [cut, last])
        low, high = ordered[cut], ordered[last]
        return [int(low), int(high)], self.of(np.flatnonzero((first < low) | (first > high)))

    def span(self) -> list[int] | None:
        """Lowest and highest value of the key's first column; None if it is not a number."""
        first, *_ = self._frame
        if first.name == IDENTITY or not self.height:
            return None
        if self.rising:
            return [first[0], first[-1]]
        return [first.min(), first.max()]  # type: ignore[list-item]


def _numbers(key: pl.DataFrame) -> list[Numbers]:
    """The columns of a key as unsigned integers in the same order, or 60 bits of an identity."""
    if key.columns == [IDENTITY]:
        bits = key[IDENTITY].str.slice(0, 15).str.to_integer(base=16, dtype=pl.Int64)
        return [bits.to_numpy().astype(np.uint64)]
    # Adding 2^63 keeps the order of negative numbers too.
    top = np.uint64(1 << 63)
    return [column.cast(pl.Int64).to_numpy().astype(np.uint64) ^ top for column in key]


def gather(receipts: Iterable[tuple[Mapping[str, int], Mapping[str, Clues]]]) -> dict[str, Known]:
    """Combine the clues of all chunks of a batch, in order; each has its clean rows by record kind.

    Nothing is known of a kind if the filter of a chunk did not see all rows since its beginning.
    """
    gathered: dict[str, _Gathered] = defaultdict(_Gathered)
    for clean, clues in receipts:
        for record, rows in clean.items():
            if rows:
                gathered[record].add(clues.get(record, {}), rows)
    return {record: one.known() for record, one in gathered.items()}


@dataclass(slots=True)
class _Gathered:
    """The combined clues of the chunks of one record kind."""

    rows: int = 0
    starts: list[tuple[list[int], int]] = field(default_factory=list)
    """Place of each chunk so far, and the number of clean rows before it."""
    keys: list[Key] | None = field(default_factory=list)
    outliers: list[Key] | None = field(default_factory=list)
    ranges: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    """The ends of its chunks' ranges for each filter, by where the filter began."""
    values: dict[str, dict[tuple[int | str, ...], None] | None] = field(default_factory=dict)

    def add(self, clues: Clues, rows: int) -> None:
        """Add the clues of a chunk with `rows` clean rows."""
        since = list(clues.get("since", ()))
        self.starts.append((list(clues.get("at", ())), self.rows))
        begun = bisect_left(self.starts, since, key=itemgetter(0))
        _, before = self.starts[min(begun, len(self.starts) - 1)]
        complete = clues.get("after") == self.rows - before
        self.keys = _extended(self.keys, clues.get("keys") if complete else None)
        self.outliers = _extended(self.outliers, clues.get("outliers"))
        self.ranges.setdefault(tuple(since), []).extend(clues.get("range") or ())
        self._add_values(clues.get("values", {}) if complete else {})
        self.rows += rows

    def _add_values(self, new: Mapping[str, list[Key] | None]) -> None:
        for name in self.values.keys() | new.keys():
            known, more = self.values.get(name, None if self.rows else {}), new.get(name)
            if known is None or more is None:
                self.values[name] = None
            else:
                self.values[name] = known | dict.fromkeys(map(tuple, more))

    def known(self) -> Known:
        """Where to look for duplicates and references."""
        values: dict[str, list[Key] | None] = {
            name: None if found is None or len(found) > MOST_VALUES else [list(of) for of in found]
            for name, found in self.values.items()
        }
        if len(self.ranges) < 2:
            return Known(self.keys, values)
        ranges = sorted((min(ends), max(ends)) for ends in self.ranges.values() if ends)
        disjoint = all(one[1] < other[0] for one, other in pairwise(ranges))
        return Known(_extended(self.keys, self.outliers) if disjoint else None, values)


def _extended(known: list[Key] | None, more: list[Key] | None) -> list[Key] | None:
    """Both lists as one; None if too many to list."""
    if known is None or more is None or len(known) + len(more) > MOST_KEYS:
        return None
    return known + more
