"""Typed columns from columns of text, vectorised and sound: never a value `reading` would not give.

Whatever an expression here cannot vouch for stays null; such cells are decided by `reading.read`.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import polars as pl

from schemas.amounts import MILLIONTHS
from schemas.cells.reading import MAX_OFFSET_MINUTES, MINUTE
from schemas.field import Field, Kind, Table
from schemas.frame_types import FRAME_COMPANIONS, FRAME_TYPES
from schemas.kinds import EXACT, OFFSET

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](Z|[+-][0-9]{2}:[0-9]{2})"
_ZONE_GIVEN, _ZONE_OPTIONAL = _TIME + "$", _TIME + "?$"
_PLAIN_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_WALL_FORMAT = "%Y-%m-%dT%H:%M:%S"
_WALL_LENGTH = 19
# Year 0 is no year of the calendar; the first and the last year are left to the strict reader,
# because there the offset can lead to a year that does not exist.
_FIRST_MOMENT, _LAST_MOMENT = datetime(2, 1, 1), datetime(9999, 1, 1)  # noqa: DTZ001

# Names of the parts that are computed once and used by two columns.
_WALL, _ZONE, _SOUND = "__wall", "__zone", "__sound"
_BOOLEANS = {"True": True, "False": False, "true": True, "false": False}

OFFSETS: dict[str, int] = {"": 0, "Z": 0} | {
    f"{sign}{minutes // 60:02}:{minutes % 60:02}": minutes if sign == "+" else -minutes
    for sign in "+-"
    for minutes in range(MAX_OFFSET_MINUTES + 1)
    if minutes % 15 == 0
}
"""Minutes by offset text, for the offsets in use; any other is left to the strict reader."""


def type_cells(cells: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The typed frame (`frame_types.frame_schema`) of a frame of text: a column for each field.

    A value is null where the cell is absent, or where it is left to `reading.read`.
    """
    return type_fields(cells, table.delivered)


def type_fields(cells: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """The same of some fields."""
    parts = [expression for field in fields for expression in _parts(field)]
    columns = [expression for field in fields for expression in _typed(field)]
    # Two steps, because an expression used by two columns is computed twice within one.
    return cells.with_columns(parts).select(columns)


@cache
def _parts(field: Field) -> Sequence[pl.Expr]:
    name = field.name
    text = pl.col(name)
    match field.kind:
        case Kind.DOUBLE:
            return [text.str.contains(MILLIONTHS).alias(name + _SOUND)]
        case Kind.DATETIME | Kind.DATETIME_OFFSET | Kind.INSTANT:
            wall = to_datetime(text.str.slice(0, _WALL_LENGTH), _WALL_FORMAT)
            offset = text.str.slice(_WALL_LENGTH)
            zone = _ZONE_OPTIONAL if field.kind is Kind.DATETIME else _ZONE_GIVEN
            return [
                wall.alias(name + _WALL),
                offset.replace_strict(OFFSETS, default=None, return_dtype=pl.Int16).alias(
                    name + _ZONE
                ),
                (text.str.contains(zone) & within_calendar(wall)).alias(name + _SOUND),
            ]
        case _:
            return []


@cache
def _typed(field: Field) -> Sequence[pl.Expr]:
    name = field.name
    text, sound = pl.col(name), pl.col(name + _SOUND)
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            return [text.cast(FRAME_TYPES[field.kind], strict=False)]
        case Kind.DOUBLE:
            plain = pl.when(sound).then(text)
            return [
                plain.cast(pl.Float64, strict=False).alias(name),
                plain.alias(name + EXACT),
            ]
        case Kind.DATETIME:
            return _wall_columns(name)
        case Kind.DATETIME_OFFSET | Kind.INSTANT:
            return _instant_columns(field)
        case Kind.BOOLEAN:
            return [text.replace_strict(_BOOLEANS, default=None, return_dtype=pl.Boolean)]
        case Kind.STRING:
            return [text]
        case _:
            return [pl.lit(None, pl.String).alias(name)]


def _instant_columns(field: Field) -> list[pl.Expr]:
    name = field.name
    wall, offset = pl.col(name + _WALL), pl.col(name + _ZONE)
    known = pl.col(name + _SOUND) & offset.is_not_null()
    # Arithmetic on integers: an expression of durations is evaluated row by row.
    instant = wall.cast(pl.Int64) - offset.cast(pl.Int64) * MINUTE
    columns = [pl.when(known).then(instant).cast(pl.Datetime("us", "UTC")).alias(name)]
    if field.kind in FRAME_COMPANIONS:
        columns.append(pl.when(known).then(offset).alias(name + OFFSET))
    return columns


def _wall_columns(name: str) -> list[pl.Expr]:
    text, offset = pl.col(name), pl.col(name + _ZONE)
    known = pl.col(name + _SOUND) & offset.is_not_null()
    date = to_datetime(text, "%Y-%m-%d")
    sound_date = text.str.contains(_PLAIN_DATE) & within_calendar(date)
    given = text.str.len_bytes() > _WALL_LENGTH
    return [
        pl.when(known).then(pl.col(name + _WALL)).when(sound_date).then(date).alias(name),
        pl.when(known & given).then(offset).alias(name + OFFSET),
    ]


def to_datetime(text: pl.Expr, form: str) -> pl.Expr:
    """The time that a text of this form says; null where there is none."""
    return text.str.to_datetime(form, strict=False, time_unit="us")


def within_calendar(moment: pl.Expr) -> pl.Expr:
    """Whether a time is far enough from both ends of the calendar for any offset."""
    return moment.is_between(_FIRST_MOMENT, _LAST_MOMENT)
