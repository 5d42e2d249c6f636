"""One row per Kind, one column per world: the types a field takes in frames and in SQL.

A field may need a companion beside its own column: a time keeps its offset, a double the decimal
it stands for. Companions are named `<Field>_<suffix>` in frames and tables alike.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlalchemy.dialects import postgresql as sql
from sqlalchemy.types import TypeEngine

from schemas.field import Field, Kind, Table

OFFSET = "_offset"
"""Suffix: minutes east of UTC as delivered, null where none was given."""
EXACT = "_exact"
"""Suffix: the decimal text of a double; frames only, SQL holds it as numeric."""

SCALE = "_scale"
"""Suffix: how many digits were written behind the point of a double that is held in millionths."""

Dtype = pl.DataType | type[pl.DataType]

WORD: Dtype = pl.Categorical()
"""Few words said of very many rows, in frames: a number each in place of a text of 16 bytes."""
AMOUNT = pl.Decimal(38, 18)
"""Money in frames of reconciliation: exact, 20 digits before the point and 18 behind it."""


@dataclass(frozen=True, slots=True)
class World:
    """The types of one Kind."""

    frame: Dtype
    sql: TypeEngine[Any]
    frame_companion: tuple[str, Dtype] | None = None
    sql_companion: tuple[str, TypeEngine[Any]] | None = None


_OFFSET_FRAME: tuple[str, Dtype] = (OFFSET, pl.Int16())
_OFFSET_SQL: tuple[str, TypeEngine[Any]] = (OFFSET, sql.SMALLINT())

WORLDS: dict[Kind, World] = {
    Kind.INTEGER: World(pl.Int32(), sql.INTEGER()),
    Kind.INTEGER64: World(pl.Int64(), sql.BIGINT()),
    Kind.DOUBLE: World(pl.Float64(), sql.NUMERIC(), frame_companion=(EXACT, pl.String())),
    Kind.STRING: World(pl.String(), sql.TEXT()),
    Kind.BOOLEAN: World(pl.Boolean(), sql.BOOLEAN()),
    Kind.DATETIME: World(pl.Datetime("us"), sql.TIMESTAMP(), _OFFSET_FRAME, _OFFSET_SQL),
    Kind.DATETIME_OFFSET: World(
        pl.Datetime("us", "UTC"), sql.TIMESTAMP(timezone=True), _OFFSET_FRAME, _OFFSET_SQL
    ),
    Kind.INSTANT: World(pl.Datetime("us", "UTC"), sql.TIMESTAMP(timezone=True)),
    # Nested values are held as canonical JSON text: equal values are equal texts.
    Kind.MAP: World(pl.String(), sql.TEXT()),
    Kind.LIST: World(pl.String(), sql.TEXT()),
    Kind.RECORD: World(pl.String(), sql.TEXT()),
}


def frame_columns(field: Field) -> dict[str, Dtype]:
    """The frame columns of a field: its own and its companion."""
    world = WORLDS[field.kind]
    columns = {field.name: world.frame}
    if world.frame_companion:
        suffix, dtype = world.frame_companion
        columns[field.name + suffix] = dtype
    return columns


def millionth_columns(field: Field) -> dict[str, Dtype]:
    """As `frame_columns`, a double in millionths, beside its digits behind the point."""
    if field.kind is not Kind.DOUBLE:
        return frame_columns(field)
    return {field.name: pl.Int64(), field.name + SCALE: pl.Int8()}


def sql_columns(field: Field) -> dict[str, TypeEngine[Any]]:
    """The SQL columns of a field: its own and its companion."""
    world = WORLDS[field.kind]
    columns = {field.name: world.sql}
    if world.sql_companion:
        suffix, kind = world.sql_companion
        columns[field.name + suffix] = kind
    return columns


def frame_schema(table: Table) -> dict[str, Dtype]:
    """The typed frame of a table: every delivered field, in the document's order."""
    return {
        name: dtype for field in table.delivered for name, dtype in frame_columns(field).items()
    }


def stored_columns(table: Table) -> tuple[str, ...]:
    """The SQL columns of a table's delivered fields, in order."""
    return tuple(name for field in table.delivered for name in sql_columns(field))
