"""Why texts are no values of their kind, vectorised: never a reason `reading` would not give.

Whatever an expression here cannot vouch for stays null; such a text is decided by `reading.read`.
"""

import polars as pl

from schemas.cells.columns import to_datetime, within_calendar
from schemas.cells.reading import INTEGER_BITS, NO_SUCH_TIME, NOT_ISO
from schemas.field import Kind

CODE, DETAIL = "code", "detail"
_TEXT = pl.col("text")
_BODY = _TEXT.str.strip_chars(" \t")
_INTEGER = r"^[+-]?[0-9]+$"
_MOST_DIGITS = 19
"""A whole number of more digits does not fit 64 bits; one of so many fits them without a sign."""
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?$"
_NOT_FINITE = r"^[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
_DAY, _DAY_LENGTH = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}", 10
_CLOCK = (
    r"^[T ](?<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.(?<fraction>[0-9]{1,9}))?)?)"
    r"(?<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)
_OF_A_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?$"
_KEPT_DIGITS = 6
"""Of the fraction of a second."""
_WORDS = ("true", "false", "1", "0")


def why_unread(kind: Kind, texts: pl.Series) -> pl.DataFrame:
    """Code and detail of the `Unread` of texts, where they are certain."""
    nothing = pl.lit(None, pl.String)
    code: pl.Expr = nothing
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
    # What is the same for all texts takes its height from them.
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
    told = pl.when(~iso).then(pl.lit(NOT_ISO)).otherwise(pl.lit(NO_SUCH_TIME))
    detail = pl.when(code == "DateTime").then(told)
    return parts.select(code.alias(CODE), detail.alias(DETAIL))
