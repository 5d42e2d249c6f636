"""Times of frames as text, each at its offset, and how far two of them are apart."""

import polars as pl

from schemas.frame_types import AMOUNT

_MINUTE = 60_000_000


def time_text(moment: pl.Expr, offset: pl.Expr, *, instant: bool) -> pl.Expr:
    """ISO 8601 at its offset, as in canonical JSON; an instant without an offset is in UTC."""
    minutes = offset.cast(pl.Int64).fill_null(0)
    wall = moment.cast(pl.Int64) + (minutes * _MINUTE if instant else 0)
    clock = wall.cast(pl.Datetime("us")).dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
    size = minutes.abs()
    zone = pl.concat_str(
        pl.when(minutes < 0).then(pl.lit("-")).otherwise(pl.lit("+")),
        (size // 60).cast(pl.String).str.zfill(2),
        pl.lit(":"),
        (size % 60).cast(pl.String).str.zfill(2),
    )
    absent = pl.lit("+00:00") if instant else pl.lit("")
    trimmed = clock.str.strip_suffix(".000000").str.replace(r"(\.[0-9]*?)0+$", "$1")
    return pl.concat_str(trimmed, pl.when(offset.is_null()).then(absent).otherwise(zone))


def apart(seconds: pl.Expr) -> pl.Expr:
    """How much later or earlier a time is, exactly: `15 days earlier`, `1 h 0.5 s later`.

    `seconds` are numbers or texts of them; null if they are, and for a difference of zero.
    """
    number = seconds.cast(AMOUNT)
    size = number.abs().cast(pl.String)
    whole = size.str.extract("^([0-9]+)").cast(pl.Int64)
    fraction = size.str.extract(r"(\.[0-9]*[1-9])0*$").fill_null("")
    days, second = whole // 86_400, whole % 60
    parts = (
        pl.when(days == 1).then(pl.lit("1 day")).when(days > 1).then(pl.format("{} days", days)),
        *(
            pl.when(part > 0).then(pl.format("{} {}", part, pl.lit(unit)))
            for part, unit in ((whole // 3600 % 24, "h"), (whole // 60 % 60, "min"))
        ),
        pl.when((second > 0) | (fraction != "")).then(pl.format("{}{} s", second, fraction)),
    )
    way = pl.when(number > 0).then(pl.lit("later")).when(number < 0).then(pl.lit("earlier"))
    text = pl.concat_str(*parts, way, separator=" ", ignore_nulls=True)
    return pl.when(way.is_not_null()).then(text)
