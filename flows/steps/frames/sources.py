"""The truth sources of one run as frames: E extract, A answer, D database, G listing, P signed.

Amount fields (`Field.amount`) are exact decimals (`frame_types.AMOUNT`), other doubles Float64,
which is exact for them: they were proven to be the shortest text of their double. A frame with an
amount that no such decimal holds has null there, and its text in a column of its own (`beyond`).
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

`errors` are those beside an echo, as ErrorData has them: in which fields it differs.
"""

REFUSED: dict[str, Dtype] = {
    "batch_id": pl.Int32(),
    "tenant": pl.Int32(),
    "file": pl.String(),
    "refused": pl.String(),
}
"""Of a file that was refused: the tenant that its batch is bound to, and the code of why."""

_ROWS = 2**32
"""More rows than an extract can have; their numbers and the extract's fit 64 bits together."""


@dataclass(frozen=True)
class Sources:
    """What is there to compare, by record kind; a source that is absent is not in its mapping."""

    extract: Mapping[str, pl.DataFrame]
    database: Mapping[str, pl.DataFrame]
    answers: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    listings: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    signed: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The records of the last signed run, as its D frames were."""
    approved: tuple[tuple[int, date], ...] = ()
    """Every approved run of the scope: its number and its day, the earliest day first."""
    unproven: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Rows whose text is in a file that cannot be proven, by `extract_id` and `row`."""
    lost: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """What records of one's own kinds refer to in vain: field, value, tenant, `elsewhere`."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Time zone of the server that listed a record kind, where it is told; else UTC."""

    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFUSED))
    """Files that were delivered and refused, and not taken since."""
    database_alone: frozenset[int] = frozenset()
    """Batches of which nothing is to reach the service."""
    around: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Of a scope that is not everything, what its records belong with in the database beside them.
    """
    around_extract: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The rows that delivered these, as far as they say something else."""

    def parts(self, record: str) -> Iterator["Sources"]:
        """The sources of one record kind, part by part: every side of it is in the same parts."""
        for number in range(self.number_of_parts(record)):
            # Nothing here holds on to a part.
            yield self.part(record, number)

    def part(self, record: str, number: int, names: Collection[str] | None = None) -> "Sources":
        """One part of the sources of a record kind; of all its columns, or of those named."""

        def read(load: Load) -> pl.DataFrame:
            return load() if names is None else columns_of(load, names)

        extract, database, listings = (
            {record: read(loads[number])} if (loads := parts_of(side, record)) else {}
            for side in self._in_parts
        )
        return replace(self, extract=extract, database=database, listings=listings)

    def number_of_parts(self, record: str) -> int:
        """How many parts the sources of a record kind have; 0 where no side has it."""
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
    """Records in the order of the rows that wrote them; others last, by what they are.

    Where several of them make one break, it is told at the first. Records of which nobody knows who
    wrote them stay as they are.
    """
    if not {"extract_id", "row"} <= set(records.columns):
        return records
    row = pl.col("row")
    if records.select(row.is_between(0, _ROWS - 1).all() & row.is_not_null().all()).item():
        # One number sorts eight times as fast as two columns and the identity behind them.
        writer = records.select(pl.col("extract_id").cast(pl.Int64) * _ROWS + row).to_series()
        if not writer.null_count() and writer.n_unique() == writer.len():
            return records if writer.is_sorted() else records[writer.arg_sort()]
    return records.sort("extract_id", "row", *table.identity, nulls_last=True)


def are_among(frame: pl.DataFrame, rows: pl.DataFrame, *, nulls_equal: bool = False) -> pl.Series:
    """Which rows of a frame are among some, by all columns that these have."""
    on, marks = rows.columns, rows.unique().with_columns(among=True)
    marked = frame.select(on).join(
        marks, on=on, how="left", nulls_equal=nulls_equal, maintain_order="left"
    )
    return marked["among"].fill_null(value=False)


def complete(frame: pl.DataFrame | None, schema: dict[str, Dtype]) -> pl.DataFrame:
    """The frame with these columns; what a source does not tell is null.

    The texts of amounts that no exact column holds (`BEYOND`), and of those that cannot be read
    (`UNREADABLE`), are kept beside them.
    """
    if frame is None:
        return pl.DataFrame(schema=schema)
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    ).hstack([frame[name] for name in frame.columns if name.endswith((BEYOND, UNREADABLE))])
