"""The sources of one run as frames: E extract, A answer, D database, G listing, P signed.

Amount fields (`Field.amount`) are exact decimals (`frame_types.AMOUNT`). Other doubles are Float64,
which is exact for them: each was proven to be the shortest text of its double. An amount that no
such decimal holds is null, with its text in a column of its own (`beyond`).
Times are as in `schemas.frame_types.frame_schema`, with their `_offset` companion.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache

import polars as pl

from flows.steps.frames.parts import Load, columns_of, parts_of
from schemas.amounts import BEYOND, UNREADABLE
from schemas.field import Table
from schemas.frame_types import AMOUNT, WORD, Dtype, frame_schema
from schemas.kinds import EXACT

DELIVERED: dict[str, Dtype] = {
    "state": WORD,
    "file": WORD,
    "line": pl.Int64(),
    "row": pl.Int64(),
    "extract_id": pl.Int32(),
    "batch_id": pl.Int32(),
}
"""Columns of an E frame beside the record's own; `state` is the row's end state in its batch."""

LINEAGE: dict[str, Dtype] = {"row": pl.Int64(), "extract_id": pl.Int32(), "batch_id": pl.Int32()}
"""Columns of a D frame beside the record's own: the staged row that last wrote it."""

ANSWER: dict[str, Dtype] = {
    "row": pl.Int64(),
    "extract_id": pl.Int32(),
    "state": WORD,
    "status": pl.Int32(),
    "echo": pl.String(),
    "errors": pl.String(),
    "carried_out": WORD,
    "decision": WORD,
}
"""Columns of an A frame: one line per row that was to be sent, with the state of its send.

`errors`, in the form of ErrorData, says in which fields the echo differs.
"""

REFUSED: dict[str, Dtype] = {
    "batch_id": pl.Int32(),
    "tenant": pl.Int32(),
    "file": pl.String(),
    "refused": pl.String(),
}
"""Columns of a refused file: `tenant` is its batch's, `refused` the code of the reason."""

_ROWS = 2**32
"""More rows than an extract can have; a row number and an extract number fit 64 bits together."""


@dataclass(frozen=True)
class Sources:
    """The data to compare, by record kind; a source that is absent is not in its mapping."""

    extract: Mapping[str, pl.DataFrame]
    database: Mapping[str, pl.DataFrame]
    answers: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    listings: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    signed: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The records of the last signed run, in the form of its D frames."""
    approved: tuple[tuple[int, date], ...] = ()
    """Every approved run of the scope, as number and day, earliest day first."""
    unproven: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Rows whose text is in a file that cannot be proven, by `extract_id` and `row`."""
    lost: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """References of own record kinds that find nothing: field, value, tenant, `elsewhere`."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Time zone of the server that listed a record kind; a kind without an entry is in UTC."""

    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFUSED))
    """Files that were delivered and refused, and not taken since."""
    database_alone: frozenset[int] = frozenset()
    """Batches whose rows are never sent to the service."""
    around: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """For a partial scope, records of the database outside it that belong with its records."""
    around_extract: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The rows that delivered the records of `around`, where they say something else."""

    def parts(self, record: str) -> Iterator["Sources"]:
        """The sources of one record kind, part by part: every side of it is in the same parts."""
        for number in range(self.number_of_parts(record)):
            # Yielded without a local name, so that nothing here keeps the part in memory.
            yield self.part(record, number)

    def part(self, record: str, number: int, names: Collection[str] | None = None) -> "Sources":
        """One part of a record kind's sources, with all columns or only those named."""

        def read(load: Load) -> pl.DataFrame:
            return load() if names is None else columns_of(load, names)

        extract, database, listings = (
            {record: read(loads[number])} if (loads := parts_of(side, record)) else {}
            for side in self._in_parts
        )
        return replace(self, extract=extract, database=database, listings=listings)

    def number_of_parts(self, record: str) -> int:
        """How many parts the sources of a record kind have; 0 if no side has the kind."""
        return max(len(parts_of(side, record)) for side in self._in_parts)

    @property
    def _in_parts(self) -> tuple[Mapping[str, pl.DataFrame], ...]:
        """Sides that may be in parts (`parts.PartedSide`)."""
        return self.extract, self.database, self.listings


def record_schema(table: Table) -> dict[str, Dtype]:
    amounts = set(table.amounts)
    return {
        name: AMOUNT if name in amounts else dtype
        for name, dtype in frame_schema(table).items()
        if not name.endswith(EXACT)
    }


@cache
def no_records(table: Table) -> pl.DataFrame:
    return pl.DataFrame(schema=record_schema(table) | LINEAGE)


def in_order(table: Table, records: pl.DataFrame) -> pl.DataFrame:
    """Sort records by the rows that wrote them; records without such a row last, by identity.

    A break of several records is told at the first of them. A frame that lacks the columns of its
    writers keeps its order.
    """
    if not {"extract_id", "row"} <= set(records.columns):
        return records
    row = pl.col("row")
    if records.select(row.is_between(0, _ROWS - 1).all() & row.is_not_null().all()).item():
        # Sorting by one number is eight times as fast as by two columns and the identity.
        writer = records.select(pl.col("extract_id").cast(pl.Int64) * _ROWS + row).to_series()
        if not writer.null_count() and writer.n_unique() == writer.len():
            return records if writer.is_sorted() else records[writer.arg_sort()]
    return records.sort("extract_id", "row", *table.identity, nulls_last=True)


def are_among(frame: pl.DataFrame, rows: pl.DataFrame, *, nulls_equal: bool = False) -> pl.Series:
    """Which rows of a frame occur in `rows`, compared by all columns of `rows`."""
    on, marks = rows.columns, rows.unique().with_columns(among=True)
    marked = frame.select(on).join(
        marks, on=on, how="left", nulls_equal=nulls_equal, maintain_order="left"
    )
    return marked["among"].fill_null(value=False)


def complete(frame: pl.DataFrame | None, schema: dict[str, Dtype]) -> pl.DataFrame:
    """The frame with exactly these columns; those that a source lacks are null.

    The texts of amounts that no exact column holds (`BEYOND`) or that cannot be read
    (`UNREADABLE`) are kept beside them.
    """
    if frame is None:
        return pl.DataFrame(schema=schema)
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    ).hstack([frame[name] for name in frame.columns if name.endswith((BEYOND, UNREADABLE))])
