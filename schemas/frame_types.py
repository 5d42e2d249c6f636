"""The type of each Kind in frames; a module of its own, so that others need not import polars."""

import polars as pl

from schemas.field import Field, Kind, Table
from schemas.kinds import EXACT, OFFSET, SCALE

Dtype = pl.DataType | type[pl.DataType]

WORD: Dtype = pl.Categorical()
"""A few words repeated over many rows: each row holds a number instead of a text of 16 bytes."""
AMOUNT = pl.Decimal(38, 18)
"""Money in frames of reconciliation: exact, 20 digits before the point and 18 behind it."""

FRAME_TYPES: dict[Kind, Dtype] = {
    Kind.INTEGER: pl.Int32(),
    Kind.INTEGER64: pl.Int64(),
    Kind.DOUBLE: pl.Float64(),
    Kind.STRING: pl.String(),
    Kind.BOOLEAN: pl.Boolean(),
    Kind.DATETIME: pl.Datetime("us"),
    Kind.DATETIME_OFFSET: pl.Datetime("us", "UTC"),
    Kind.INSTANT: pl.Datetime("us", "UTC"),
    # Nested values are held as canonical JSON text: equal values are equal texts.
    Kind.MAP: pl.String(),
    Kind.LIST: pl.String(),
    Kind.RECORD: pl.String(),
}
FRAME_COMPANIONS: dict[Kind, tuple[str, Dtype]] = {
    Kind.DOUBLE: (EXACT, pl.String()),
    Kind.DATETIME: (OFFSET, pl.Int16()),
    Kind.DATETIME_OFFSET: (OFFSET, pl.Int16()),
}
"""Suffix and type of a field's companion column."""


def frame_columns(field: Field) -> dict[str, Dtype]:
    """The frame columns of a field: its own and its companion."""
    columns = {field.name: FRAME_TYPES[field.kind]}
    if field.kind in FRAME_COMPANIONS:
        suffix, dtype = FRAME_COMPANIONS[field.kind]
        columns[field.name + suffix] = dtype
    return columns


def millionth_columns(field: Field) -> dict[str, Dtype]:
    """Like `frame_columns`, with a double as millionths and its number of decimal digits."""
    if field.kind is not Kind.DOUBLE:
        return frame_columns(field)
    return {field.name: pl.Int64(), field.name + SCALE: pl.Int8()}


def frame_schema(table: Table) -> dict[str, Dtype]:
    """The typed frame of a table: every delivered field, in the document's order."""
    return {
        name: dtype for field in table.delivered for name, dtype in frame_columns(field).items()
    }
