"""References of a delivery that is only examined: which it answers itself, and which it does not.

Of each row it keeps the keys it has and names, a few dozen bytes. What no row of the delivery
answers may be known to a database, which is not asked here; unless the sender's deliveries are
complete in themselves.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from flows.steps.order import by_dependency
from flows.steps.validate.field_errors import settled_errors
from schemas.derived.sql_names import key_columns
from schemas.field import Reference, Table

_ROW = ["extract_id", "record_number"]


class Unsettled(NamedTuple):
    """References of one field that the delivery does not answer."""

    record: str
    field: str
    of: str
    rows: int
    values: int


@dataclass(slots=True)
class References:
    """Clean rows of a delivery as far as references lead from and to them."""

    last_wins: bool
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: Table, clean: pl.DataFrame) -> None:
        """Take in staged rows without an error."""
        wanted = _wanted(table)
        if wanted:
            key = pl.struct(key_columns(table))
            self.rows[table.name].append(
                clean.select(
                    pl.col("extract_id").cast(pl.Int32),
                    "record_number",
                    key.hash(1).alias("key"),
                    key.hash(2).alias("key_too"),
                    *wanted,
                )
            )

    def dangling(
        self, conflicts: pl.DataFrame, refused: Sequence[int], *, rejected: bool
    ) -> Iterator[tuple[Table, Reference, pl.DataFrame]]:
        """Of each reference the rows that the delivery does not answer: place, value, code.

        `conflicts` are the places of rows in conflict: they neither refer nor are referred to. Nor
        do those of extracts that are `refused`, nor, where they would be `rejected`, those found.
        """
        left_out = pl.col("extract_id").is_in(list(refused))
        rows = {
            name: self._counting(pl.concat(frames).filter(~left_out)).join(
                conflicts, on=_ROW, how="anti"
            )
            for name, frames in self.rows.items()
        }
        for table in by_dependency():
            for reference in table.references:
                if table.name not in rows:
                    continue
                found = _missing(rows[table.name], reference, rows.get(reference.table))
                if rejected:
                    rows[table.name] = rows[table.name].join(found, on=_ROW, how="anti")
                if found.height:
                    yield table, reference, found

    def _counting(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Of rows with one key the one that counts, as the import has it."""
        rows = rows.sort(_ROW, descending=self.last_wins)
        return rows.unique(["key", "key_too"], keep="first", maintain_order=True).sort(_ROW)


def _wanted(table: Table) -> list[str]:
    """The columns by which a record refers, or is referred to."""
    own = [one.field for one in table.references]
    asked = [
        one.column
        for other in by_dependency()
        for one in other.references
        if one.table == table.name
    ]
    if not own and not asked:
        return []
    return list(dict.fromkeys([*own, *asked, *([table.tenant] if table.tenant else [])]))


def _missing(rows: pl.DataFrame, reference: Reference, others: pl.DataFrame | None) -> pl.DataFrame:
    tenant = "TenantsId" if reference.same_tenant else None
    names = [reference.column, *([tenant] if tenant else [])]
    used = rows.filter(pl.col(reference.field).is_not_null()).select(
        *_ROW,
        pl.col(reference.field).cast(pl.Int64).alias("value"),
        *([pl.col(tenant)] if tenant else []),
    )
    if others is None:
        return used.select(*_ROW, "value", pl.lit("ReferenceMissing").alias("code"))
    known = others.select(
        pl.col(names[0]).cast(pl.Int64).alias("value"), *([pl.col(tenant)] if tenant else [])
    ).unique()
    left = used.join(known, on=["value", *names[1:]], how="anti")
    elsewhere = pl.col("value").is_in(known["value"].unique().implode())
    code = pl.when(elsewhere).then(pl.lit("ReferenceTenant")).otherwise(pl.lit("ReferenceMissing"))
    return left.select(*_ROW, "value", code.alias("code"))


def reference_errors(reference: Reference, code: str, rows: pl.DataFrame) -> pl.Series:
    """ErrorData of staged rows with a dangling reference, as the import tells it."""
    values = rows[reference.field].cast(pl.String)
    return settled_errors(code, reference.field, values, rows["first_line"], of=reference.table)
