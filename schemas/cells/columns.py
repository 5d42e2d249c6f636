"""Typed columns from columns of text, vectorised and sound: every value is one `reading` gives.

Values that an expression here cannot vouch for stay null, and `reading.read` decides about them.
The same goes for the reasons why texts are not values of their kind.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import polars as pl

from schemas.amounts import MILLIONTHS
from schemas.cells.reading import INTEGER_BITS, MAX_OFFSET_MINUTES, MINUTE, NO_SUCH_TIME, NOT_ISO
from schemas.field import Field, Kind, Table
from schemas.frame_types import FRAME_COMPANIONS, FRAME_TYPES
from schemas.kinds import EXACT, OFFSET

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](Z|[+-][0-9]{2}:[0-9]{2})"
_ZONE_GIVEN, _ZONE_OPTIONAL = _TIME + "$", _TIME + "?$"
_PLAIN_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_WALL_FORMAT = "%Y-%m-%dT%H:%M:%S"
_WALL_LENGTH = 19
# Year 0 does not exist. The first and the last year are left to the strict reader, because there an
# offset can lead to a year that does not exist.
_FIRST_MOMENT, _LAST_MOMENT = datetime(2, 1, 1), datetime(9999, 1, 1)  # noqa: DTZ001

# Names of parts that are computed once and used by two columns.
_WALL, _ZONE, _SOUND = "__wall", "__zone", "__sound"
_BOOLEANS = {"True": True, "False": False, "true": True, "false": False}

OFFSETS: dict[str, int] = {"": 0, "Z": 0} | {
    f"{sign}{minutes // 60:02}:{minutes % 60:02}": minutes if sign == "+" else -minutes
    for sign in "+-"
    for minutes in range(MAX_OFFSET_MINUTES + 1)
    if minutes % 15 == 0
}
"""Minutes by offset text, for the offsets in use; others are left to the strict reader."""


def type_cells(cells: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The typed frame (`frame_types.frame_schema`) of a frame of texts: columns for each field.

    A value is null if the cell is absent, or if it is left to `reading.read`.
    """
    return type_fields(cells, table.delivered)


def type_fields(cells: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """The same for some fields."""
    parts = [expression for field in fields for expression in _parts(field)]
    columns = [expression for field in fields for expression in _typed(field)]
    # Two steps, because within one, an expression used by two columns is computed twice.
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
            minutes = offset.replace_strict(OFFSETS, default=None, return_dtype=pl.Int16)
            sound = text.str.contains(zone) & within_calendar(wall)
            return [
                wall.alias(name + _WALL),
                minutes.alias(name + _ZONE),
                sound.alias(name + _SOUND),
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
            return [plain.cast(pl.Float64, strict=False).alias(name), plain.alias(name + EXACT)]
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
    # Integer arithmetic, because an expression of durations is evaluated row by row.
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
    """The time given by a text of this form; null if there is none."""
    return text.str.to_datetime(form, strict=False, time_unit="us")


def within_calendar(moment: pl.Expr) -> pl.Expr:
    """Whether a time is far enough from both ends of the calendar for any offset."""
    return moment.is_between(_FIRST_MOMENT, _LAST_MOMENT)


CODE, DETAIL = "code", "detail"
_TEXT = pl.col("text")
_BODY = _TEXT.str.strip_chars(" \t")
_INTEGER = r"^[+-]?[0-9]+$"
_MOST_DIGITS = 19
"""A whole number with more digits does not fit 64 bits; this many fit if unsigned."""
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?$"
_NOT_FINITE = r"^[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
_DAY, _DAY_LENGTH = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}", 10
_CLOCK = (
    r"^[T ](?<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.(?<fraction>[0-9]{1,9}))?)?)"
    r"(?<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)
_OF_A_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?$"
_KEPT_DIGITS = 6
"""Digits of a second's fraction that are kept."""
_WORDS = ("true", "false", "1", "0")


def why_unread(kind: Kind, texts: pl.Series) -> pl.DataFrame:
    """Code and detail of the `Unread` of texts, where they are certain."""
    code = nothing = pl.lit(None, pl.String)
    frame = texts.to_frame("text")
    match kind:
        case Kind.INTEGER | Kind.INTEGER64:
            code = _of_integer(INTEGER_BITS[kind])
        case Kind.DOUBLE:
            named = pl.when(_BODY.str.contains(_NOT_FINITE)).then(pl.lit("NotFinite"))
            code = pl.when(~_BODY.str.contains(_NUMBER)).then(named.otherwise(pl.lit("Number")))
        case Kind.DATETIME | Kind.DATETIME_OFFSET | Kind.INSTANT:
            return _of_moments(frame, offset_required=kind is not Kind.DATETIME)
        case Kind.BOOLEAN:
            read = _BODY.str.to_lowercase().is_in(_WORDS)
            code = pl.when(~read).then(pl.lit("Boolean"))
    # A constant column takes its height from the texts.
    return frame.with_columns(code.alias(CODE), nothing.alias(DETAIL)).drop("text")


def _of_integer(bits: int) -> pl.Expr:
    digits = _BODY.str.strip_chars_start("+-").str.strip_chars_start("0")
    long = digits.str.len_bytes() > _MOST_DIGITS
    size = pl.when(~long).then(digits).cast(pl.UInt64, strict=False)
    most = (1 << (bits - 1)) - 1 + _BODY.str.starts_with("-").cast(pl.UInt64)
    return (
        pl.when(~_BODY.str.contains(_INTEGER))
        .then(pl.lit("Integer"))
        .when(long | (size > most))
        .then(pl.lit("IntegerRange"))
    )


def _of_moments(frame: pl.DataFrame, *, offset_required: bool) -> pl.DataFrame:
    rest = _BODY.str.slice(_DAY_LENGTH)
    parts = frame.with_columns(
        to_datetime(_BODY.str.slice(0, _DAY_LENGTH), "%Y-%m-%d").alias("day"),
        rest.str.extract_groups(_CLOCK).struct.unnest(),
        (rest == "").alias("bare"),
    )
    day, clock, fraction = pl.col("day"), pl.col("clock"), pl.col("fraction")
    iso = _BODY.str.contains(_DAY) & (pl.col("bare") | clock.is_not_null())
    on_clock = pl.col("bare") | clock.str.contains(_OF_A_DAY)
    kept = (fraction.str.len_bytes() <= _KEPT_DIGITS).fill_null(value=True)
    unzoned = pl.col("zone").is_null() & pl.lit(offset_required)
    code = (
        pl.when(~iso | day.is_null() | ~on_clock)
        .then(pl.lit("DateTime"))
        .when(unzoned & kept & within_calendar(day))
        .then(pl.lit("OffsetMissing"))
    )
    message = pl.when(~iso).then(pl.lit(NOT_ISO)).otherwise(pl.lit(NO_SUCH_TIME))
    detail = pl.when(code == "DateTime").then(message)
    return parts.select(code.alias(CODE), detail.alias(DETAIL))
