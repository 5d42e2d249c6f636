"""The clean rows of a delivery that is only examined, as far as keys and references need them.

A few dozen bytes of each row are put aside. Rows with the same key, or the same value of a
reference, are compared together, as many rows at once as a setting allows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from connectors.settings import MIB
from flows.stages.frame_file import FrameFile
from flows.steps.validate.references import VALUE, answers, reference_columns, unanswered
from flows.steps.validate.repeats import (
    CONFLICT,
    FIRST,
    LAST,
    PLACE,
    content_of,
    extract_of,
    key_of,
    place,
    repeated_keys,
    version_of,
)
from schemas.field import Reference, Table
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA, by_dependency

_IN_MEMORY = 8 * MIB
"""Bytes of rows put aside in memory; beyond that they go to a file."""


class Dangling(NamedTuple):
    """Rows with a reference that the delivery does not answer, some at a time."""

    table: Table
    reference: Reference
    rows: pl.DataFrame
    """PLACE, VALUE and CODE."""
    values: pl.DataFrame
    """extract_id and VALUE, only values that no earlier Dangling had."""


@dataclass(slots=True)
class _Kept:
    """The rows of one record kind: place, key, content, version, and the columns of references."""

    keys: list[str]
    rows: FrameFile = field(default_factory=lambda: FrameFile(_IN_MEMORY))
    highest: int | None = None
    rising: bool = True
    """Whether each key is higher than all before it, so that none occurs twice."""

    def add(self, rows: pl.DataFrame) -> None:
        self.rows.add(rows)
        if self.rising:
            key = rows[self.keys[0]]
            above = self.highest is None or key[0] > self.highest
            self.rising = above and bool((key.slice(1) > key.head(len(key) - 1)).all())
            self.highest = key[-1]


@dataclass(slots=True)
class DeliveryRows:
    """Clean rows, of which about `bytes_at_once` are compared at once.

    Call `add` for all rows, then `conflicts`, then `dangling`, each to its end.
    """

    last_wins: bool
    merges: Callable[[Table], bool]
    """Whether equal rows of a table are one record."""
    bytes_at_once: int
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _counting: dict[str, FrameFile] = field(default_factory=dict)
    """Rows that references lead from and to: for each key the row that counts, if any."""
    _refused: list[int] = field(default_factory=list)
    superseded: Counter[int] = field(default_factory=Counter)
    """By extract: rows in no conflict that do not count, because another with their key does.

    Known once all `conflicts` are read.
    """

    @property
    def _in_memory(self) -> int:
        """How many bytes of partitioned rows are in memory."""
        return min(_IN_MEMORY, self.bytes_at_once)

    def add(self, table: Table, clean: pl.DataFrame) -> None:
        """Add staged rows without errors; their doubles are texts, or in millionths."""
        wanted, keys = reference_columns(table), key_of(table)
        if clean.is_empty() or table is INSERT_BATCH_DATA:
            return
        columns = keys | {name: pl.col(name).cast(pl.Int64) for name in wanted}
        if self.last_wins:
            columns |= version_of(table)
        rows = clean.select(place(), **columns).with_columns(content_of(table, clean))
        self._kept.setdefault(table.name, _Kept([*keys])).add(rows)

    def conflicts(self, refused: Sequence[int]) -> Iterator[pl.DataFrame]:
        """The places of all rows that conflict with another row of the delivery over their key.

        CONFLICT says whether their contents differ. The sender has to settle them. Rows of files in
        `refused` do not count.
        """
        self._refused = list(refused)
        for name, kept in self._kept.items():
            table = EXTRACTS[name]
            wanted, conflicts = reference_columns(table), self._conflicts(table)
            if kept.rising:
                self._counting[name] = kept.rows
                continue
            counting = self._counting[name] = FrameFile(_IN_MEMORY)
            parted = kept.rows.by_hash(kept.keys, self._parts(kept.rows), self._in_memory)
            for part in parted.parts:
                several = repeated_keys(self._taken(parted, part), kept.keys)
                conflict = several.filter(conflicts)
                for rows in self._taken(parted, part):
                    if conflict.height:
                        yield rows.join(conflict, on=kept.keys).select(PLACE, CONFLICT)
                    if several.height:
                        shared = rows.join(several, on=kept.keys)
                        superseded = shared.filter(~self._wins(), ~conflicts)
                        counts = superseded.group_by(extract_of()).len()
                        self.superseded.update(dict(counts.iter_rows()))
                    if wanted:
                        counted = self._counted(rows, several, kept.keys, conflicts)
                        counting.add(counted.select(PLACE, *wanted))

    def _counted(
        self, rows: pl.DataFrame, several: pl.DataFrame, keys: Sequence[str], conflicts: pl.Expr
    ) -> pl.DataFrame:
        """Rows without those that do not count, as in the import."""
        if several.is_empty():
            return rows
        counts = pl.col(FIRST).is_null() | (self._wins() & ~conflicts)
        return rows.join(several, on=keys, how="left").filter(counts)

    def _wins(self) -> pl.Expr:
        """Whether a row is the one that counts of its key, if there is no conflict."""
        return pl.col(PLACE) == pl.col(LAST if self.last_wins else FIRST)

    def _conflicts(self, table: Table) -> pl.Expr:
        """Whether rows that share their key conflict, so that none of them counts."""
        if not self.merges(table):
            return pl.lit(True)
        return pl.lit(False) if self.last_wins else pl.col(CONFLICT)

    def dangling(self, *, rejected: bool) -> Iterator[Dangling]:
        """The rows with a reference that the delivery does not answer, one reference at a time.

        Rows in conflict, and rows of refused files, neither refer nor are referred to. The same
        goes for dangling rows themselves if they would be `rejected`.
        """
        for table in by_dependency():
            for reference in table.references:
                if table.name in self._counting:
                    yield from self._unanswered(table, reference, rejected=rejected)

    def _unanswered(
        self, table: Table, reference: Reference, *, rejected: bool
    ) -> Iterator[Dangling]:
        rows, others = self._counting[table.name], self._counting.get(reference.table)
        parts = self._parts(rows, *([others] if others else []))
        referring = rows.by_hash([reference.field], parts, self._in_memory)
        if others:
            others = others.by_hash([reference.column], parts, self._in_memory)
        left = FrameFile(_IN_MEMORY)
        for part in referring.parts:
            known = self._answers(others, part, reference) if others else None
            seen: pl.DataFrame | None = None
            for frame in self._taken(referring, part):
                found = unanswered(frame, reference, known)
                if rejected:
                    left.add(frame.join(found, on=PLACE, how="anti"))
                if found.is_empty():
                    continue
                values = found.select(extract_of(), VALUE).unique()
                fresh = values if seen is None else values.join(seen, on=values.columns, how="anti")
                seen = fresh if seen is None else seen.vstack(fresh)
                yield Dangling(table, reference, found, fresh)
        if rejected:
            self._counting[table.name] = left

    def _answers(self, others: FrameFile, part: int, reference: Reference) -> pl.DataFrame | None:
        """The references that rows of a part answer; only different answers take memory."""
        found: pl.DataFrame | None = None
        for frame in self._taken(others, part):
            answered = answers(frame, reference)
            found = answered if found is None else found.vstack(answered).unique()
        return found

    def _taken(self, file: FrameFile, part: int) -> Iterator[pl.DataFrame]:
        """The rows of a part, without those of refused files."""
        for rows in file.frames(part, self.bytes_at_once):
            yield rows.filter(~extract_of().is_in(self._refused)) if self._refused else rows

    def _parts(self, *files: FrameFile) -> int:
        """The number of parts in which these files are compared."""
        return max(1, *(-(-file.bytes // self.bytes_at_once) for file in files))
