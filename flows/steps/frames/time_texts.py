"""Times of frames as text, each at its offset."""

import polars as pl

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
