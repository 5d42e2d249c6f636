"""What is known of a batch's keys and references by the time its last row is read.

While rows are read, every key leaves a mark in a table of fixed size; a key whose mark is there
already *may* have been seen before. Only those are looked at again when duplicates are settled, and
only the distinct values of a reference are looked up. Both say where to look, never what is true:
the database judges. What a chunk adds is kept in its receipt, with the number of rows that went
before it, so that a gap (a run that died and lost its marks) is found and everything is looked at.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.field import Reference, Table
from schemas.sql import IDENTITY, key_columns

MARKS = 27
"""Bits of a mark: 2^27 marks take 16 MiB for each record kind, whatever is delivered."""
MOST_KEYS_OF_CHUNK = 5_000
MOST_KEYS = 200_000
MOST_VALUES = 50_000
"""Of one reference; from there on the database finds the distinct values itself."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LAST_MARK = np.uint64((1 << MARKS) - 1)

Key = Sequence[int | str]
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


class Sieve:
    """The marks of one run through a batch."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(self, table: Table, rows: pl.DataFrame) -> dict[str, Any]:
        """Take in the `looked_at` of a chunk's clean rows; returns the clues they give."""
        seen = self._seen.setdefault(table.name, _Seen())
        clues = {
            "after": seen.rows,
            "keys": seen.repeated(table, rows),
            "values": {one.field: seen.fresh(one, table, rows) for one in table.references},
            "span": _span(table, rows),
        }
        seen.rows += rows.height
        return clues


class _Seen:
    def __init__(self) -> None:
        self.rows = 0
        self._marks = np.zeros(1 << MARKS >> 3, np.uint8)
        self._highest = np.uint64(0)
        self._values: dict[str, pl.DataFrame] = {}

    def repeated(self, table: Table, rows: pl.DataFrame) -> list[Key] | None:
        """Keys of the rows that may have been seen before; None: too many to tell."""
        if rows.is_empty():
            return []
        key = rows.select(key_columns(table))
        numbers = _numbers(key)
        first = numbers[0]
        # Keys that follow each other leave marks that do, which is kind to the processor's caches.
        mark = first
        for column in numbers[1:]:
            mark = mark + column * _SPREAD
        mark = mark & _LAST_MARK
        place, bit = mark >> np.uint64(3), np.uint8(1) << (mark & np.uint64(7)).astype(np.uint8)
        # A key above all before it is new, whatever its mark says: most deliveries are in order.
        rising = bool((first[1:] > first[:-1]).all())
        marked = (self._marks[place] & bit != 0) & (first <= self._highest)
        if not rising:
            once = np.zeros(len(mark), np.bool_)
            once[np.unique(mark, return_index=True)[1]] = True
            marked |= ~once
        np.bitwise_or.at(self._marks, place, bit)
        self._highest = max(self._highest, first.max())
        found = np.flatnonzero(marked)
        if len(found) > MOST_KEYS_OF_CHUNK:
            return None
        return [list(row) for row in key[found].rows()]

    def fresh(self, reference: Reference, table: Table, rows: pl.DataFrame) -> list[Key] | None:
        """Values of a reference that no chunk before had; None: too many to tell."""
        tenant = pl.lit(None, pl.Int32)
        if reference.same_tenant and table.tenant:
            tenant = pl.col(table.tenant)
        found = (
            rows.select(pl.col(reference.field).alias("value"), tenant.alias("tenant"))
            .drop_nulls("value")
            .unique()
        )
        before = self._values.get(reference.field, found.clear())
        if before.height > MOST_VALUES:
            return None
        fresh = found.join(before, on=["value", "tenant"], how="anti", nulls_equal=True)
        self._values[reference.field] = before.vstack(fresh)
        if before.height + fresh.height > MOST_VALUES:
            return None
        return [list(row) for row in fresh.sort("value", "tenant").rows()]


def _span(table: Table, rows: pl.DataFrame) -> list[int] | None:
    """The least and the greatest of the key's first column, where it is a number."""
    name = key_columns(table)[0]
    if name == IDENTITY or rows.is_empty():
        return None
    column = rows[name].cast(pl.Int64)
    return [column.min(), column.max()]  # type: ignore[list-item]


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

    Nothing is known of a kind when a chunk's clues do not follow on all the rows before it.
    """
    rows: dict[str, int] = defaultdict(int)
    known: dict[str, Known] = defaultdict(Known)
    for clean, clues in told:
        for record, number in clean.items():
            _join(known[record], clues.get(record, {}), rows[record], number)
            rows[record] += number
    return dict(known)


def _join(known: Known, clue: Clues, before: int, rows: int) -> None:
    if not rows:
        return
    follows = clue.get("after") == before
    keys = clue.get("keys") if follows else None
    if known.keys is not None:
        known.keys = None if keys is None else known.keys + keys
    if known.keys is not None and len(known.keys) > MOST_KEYS:
        known.keys = None
    fresh = clue.get("values", {}) if follows else {}
    for name in known.values.keys() | fresh.keys():
        mine, theirs = known.values.get(name, [] if not before else None), fresh.get(name)
        known.values[name] = None if mine is None or theirs is None else mine + theirs
