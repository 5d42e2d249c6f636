"""Values as texts: equal values have the same text.

These texts are used to compare columns of two types, to match keys and to show differences.
"""

import json
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from flows.steps.match.comparison import plain_text
from schemas.frame_types import Dtype

NUMBER = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
"""A text that is a number; 007 is not one, because a number would lose its zeros."""
MIDNIGHT = "T00:00:00"
_INFINITE = {"inf": "Infinity", "-inf": "-Infinity"}
_CLOCK = "%H:%M:%S%.9f"
_SIGNS = {"ms": 3, "us": 6, "ns": 9}
"""Digits of a fraction of a second, by the unit of a time."""
_FAR_DAYS = 95_000_000
"""Days before or after 1970 from which polars cannot format dates; some abort the process."""
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
"""The period after which the calendar repeats."""


def texts(values: pl.Series) -> pl.Series:
    """One text per value, the same for equal values of a type."""
    dtype = values.dtype
    if dtype == pl.String:
        return values
    if dtype.is_float() or dtype.is_decimal():
        return plain_text(values.cast(pl.String))
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone:
            return _times(values.dt.convert_time_zone("UTC"), _SIGNS[dtype.time_unit]) + "+00:00"
        return _times(values, _SIGNS[dtype.time_unit])
    if dtype == pl.Date:
        near, far = _parted(values, _FAR_DAYS)
        far_texts = [_far_day(day) for day in values.gather(far).to_physical()]
        return near.cast(pl.String).scatter(far, far_texts)
    if dtype == pl.Time:
        # A cast drops fractions of a second.
        return _by_clock(values, _CLOCK)
    if dtype == pl.Binary:
        # As PostgreSQL writes them.
        return values.bin.encode("hex").to_frame("t").select("\\x" + pl.col("t")).to_series()
    if isinstance(dtype, pl.Duration):
        return values.dt.to_string("iso")
    if dtype.is_nested():
        return _json(values).zip_with(values.is_not_null(), _of_each(values, None))
    return values.cast(pl.String)


def plain_numbers(values: pl.Series) -> pl.Series:
    """One text per number, however it is written; a text that is not a number stays as it is."""
    number = values.str.contains(NUMBER).fill_null(value=False)
    plain = plain_text(values).zip_with(number, values)
    places = (number & values.str.contains(r"^\+|^-0|^-?\.|[eE]")).arg_true()
    written = [format(abs(n) if not (n := Decimal(one)) else n, "f") for one in values[places]]
    return plain.scatter(places, plain_text(pl.Series(written, dtype=pl.String)))


def _times(values: pl.Series, signs: int) -> pl.Series:
    """Times in UTC, or by their wall clock, without trailing zeros."""
    near, far = _parted(values, _FAR_DAYS * 86400 * 10**signs)
    far_texts = [_far_time(tick, signs) for tick in values.gather(far).to_physical()]
    return _by_clock(near, f"%Y-%m-%dT{_CLOCK}").scatter(far, far_texts)


def _by_clock(values: pl.Series, form: str) -> pl.Series:
    """Times in a form that ends in a fraction, without its trailing zeros."""
    written = values.dt.to_string(form).to_frame("t")
    return written.select(pl.col("t").str.strip_chars_end("0").str.strip_chars_end(".")).to_series()


def _parted(values: pl.Series, most: int) -> tuple[pl.Series, pl.Series]:
    """The values with those too far away for polars to format as null, and the rows of these."""
    ticks = values.to_physical()
    ends = [int(end) for end in (ticks.min(), ticks.max()) if end is not None]  # type: ignore[arg-type]
    if not any(abs(end) >= most for end in ends):
        return values, pl.Series(dtype=pl.UInt32)
    far = ((ticks <= -most) | (ticks >= most)).fill_null(value=False)
    return values.zip_with(~far, values.clear(values.len())), far.arg_true()


def _far_time(ticks: int, signs: int) -> str:
    seconds, part = divmod(ticks, 10**signs)
    days, second = divmod(seconds, 86400)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{_far_day(days)}T{clock}.{part:0{signs}}".rstrip("0").rstrip(".")


def _far_day(days: int) -> str:
    cycles, rest = divmod(days, _CYCLE_DAYS)
    like = date(1970, 1, 1) + timedelta(rest)
    return f"{like.year + cycles * _CYCLE_YEARS:+05}-{like:%m-%d}"


def _json(values: pl.Series) -> pl.Series:
    """Values as JSON that is equal where all of their parts are, whatever the types of these."""
    dtype = values.dtype
    if isinstance(dtype, pl.Struct):
        whole = _records(values, [one.name for one in dtype.fields])
    elif isinstance(dtype, pl.List):
        whole = _lists(values)
    elif isinstance(dtype, pl.Array):
        whole = _lists(values.arr.to_list())
    else:
        whole = _part(values, dtype)
    return whole.zip_with(values.is_not_null(), _of_each(values, "null"))


def _records(values: pl.Series, names: list[str]) -> pl.Series:
    frame = values.is_null().to_frame("null")
    parts = []
    # By number, because polars takes some names for patterns that match others.
    fields = values.struct.rename_fields([str(place) for place in range(len(names))])
    for place, name in sorted(enumerate(names), key=lambda one: one[1]):
        frame = frame.with_columns(_json(fields.struct.field(str(place))).alias(str(place)))
        parts.append(pl.lit(f"{json.dumps(name, ensure_ascii=False)}:") + pl.col(str(place)))
    inner = pl.concat_str(parts, separator=",") if parts else pl.lit("")
    return frame.select(pl.when(~pl.col("null")).then("{" + inner + "}")).to_series()


def _lists(values: pl.Series) -> pl.Series:
    sizes = values.list.len().fill_null(0)
    filled = (sizes > 0).arg_true()
    rows = filled.gather(
        pl.int_range(filled.len(), eager=True).repeat_by(sizes.gather(filled)).explode()
    )
    parts = pl.DataFrame({"row": rows, "part": _json(values.gather(filled).explode())})
    inner = pl.col("part").str.join(",")
    whole = parts.group_by("row", maintain_order=True).agg(("[" + inner + "]").alias("part"))
    return _of_each(values, "[]").scatter(whole["row"], whole["part"])


def _part(values: pl.Series, dtype: Dtype) -> pl.Series:
    """A value that is no list and no record; a text is in quotes, so that it is not a number."""
    if dtype.is_numeric():
        # -0.0 and 0.0 are one number.
        numbers = plain_numbers(texts(values + 0.0 if dtype.is_float() else values))
        return numbers.replace(_INFINITE)
    if dtype == pl.Boolean:
        return texts(values)
    unquoted = texts(values)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        # A date equals the midnight it begins with.
        unquoted = unquoted.str.strip_suffix(MIDNIGHT)
    quoted = unquoted.to_frame("t").to_struct("of").struct.json_encode()
    return quoted.str.strip_prefix('{"t":').str.head(-1)


def _of_each(values: pl.Series, text: str | None) -> pl.Series:
    return pl.Series([text], dtype=pl.String).new_from_index(0, values.len())
