"""References of a delivery that is only examined: which of them its own rows resolve.

Other references may be resolved by a database, which is not asked here; unless the sender's
deliveries are complete in themselves.
"""

from typing import NamedTuple

import polars as pl

from flows.steps.validate.field_errors import settled_errors
from flows.steps.validate.repeats import PLACE
from schemas.field import Reference, Table
from schemas.tables import by_dependency

VALUE, CODE = "value", "code"


class Unsettled(NamedTuple):
    """References of one field that the delivery does not resolve."""

    record: str
    field: str
    of: str
    rows: int
    values: int


def reference_columns(table: Table) -> list[str]:
    """The columns by which a record kind refers to others, or is referred to."""
    every = (one for other in by_dependency() for one in other.references)
    asked = (one.column for one in every if one.table == table.name)
    columns = [*(one.field for one in table.references), *asked]
    tenant = [table.tenant] if columns and table.tenant else []
    return list(dict.fromkeys([*columns, *tenant]))


def answers(rows: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    """The distinct values that rows of the referenced record kind provide for a reference."""
    return rows.select(pl.col(reference.column).alias(VALUE), *_tenant(reference)).unique()


def unanswered(
    rows: pl.DataFrame, reference: Reference, known: pl.DataFrame | None
) -> pl.DataFrame:
    """The rows that refer to nothing `known`, as PLACE, VALUE and CODE.

    `known` is the result of `answers`; None if no row of the referenced kind was delivered.
    """
    value = pl.col(reference.field)
    used = rows.filter(value.is_not_null()).select(PLACE, value.alias(VALUE), *_tenant(reference))
    if known is None:
        return used.select(PLACE, VALUE, pl.lit("ReferenceMissing").alias(CODE))
    left = used.join(known, on=[VALUE, *_tenant(reference)], how="anti")
    elsewhere = pl.col(VALUE).is_in(known[VALUE].unique().implode())
    code = pl.when(elsewhere).then(pl.lit("ReferenceTenant")).otherwise(pl.lit("ReferenceMissing"))
    return left.select(PLACE, VALUE, code.alias(CODE))


def _tenant(reference: Reference) -> list[str]:
    return ["TenantsId"] if reference.same_tenant else []


def reference_errors(reference: Reference, code: str, rows: pl.DataFrame) -> pl.Series:
    """ErrorData of staged rows with a dangling reference, as written by an import."""
    values = rows[reference.field].cast(pl.String)
    return settled_errors(code, reference.field, values, rows["first_line"], of=reference.table)
