"""Comparison: the fields in which paired records differ, with both values and the exact delta.

Columns are compared one after the other; only rows that differ are turned into text.
"""

from contextlib import suppress
from decimal import Decimal
from math import isfinite

import polars as pl

from flows.steps.frames.beyond import (
    beyond_of,
    beyond_texts,
    fits,
    number_of,
    parted,
    too_large,
    unheld,
)
from flows.steps.frames.time_texts import time_text
from flows.steps.rules.rules import Offset, Rules, Tolerance
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import OF_AMOUNTS
from schemas.field import TIMES, Field, Kind, Table
from schemas.frame_types import AMOUNT, Dtype
from schemas.kinds import OFFSET

DIFFERENCE_SCHEMA: dict[str, Dtype] = {
    "row": pl.UInt32(),
    "code": pl.String(),
    "field": pl.String(),
    "expected": pl.String(),
    "found": pl.String(),
    "delta": AMOUNT,
    "delta_beyond": pl.String(),
    "base": AMOUNT,
    "seconds": AMOUNT,
}
"""One line per differing field.

`row` is that of the expected frame, `base` the expected number, and `seconds` how much later the
found time is.
"""
SECRET = "(secret)"  # noqa: S105 -- what is shown where a secret stands.
_MINUTE = 60_000_000
_BLOCK = 250_000
"""Rows for which a column of the other side is gathered at once."""
_SAFE_NUMBER = r"^-?[0-9]{1,20}(\.[0-9]{1,18})?$"
_DAY_SECONDS = 86_400


def differences(
    table: Table, expected: pl.DataFrame, found: pl.DataFrame, partner: pl.Series
) -> pl.DataFrame:
    """Every field in which an expected row differs from the found row that `partner` numbers.

    Rows whose partner is null are not compared.
    """
    parts = [pl.DataFrame(schema=DIFFERENCE_SCHEMA)]
    for field in table.delivered:
        if field.name in table.key:
            continue
        blocks = [
            _differing(
                field, expected[first : first + _BLOCK], found, partner[first : first + _BLOCK]
            ).with_columns(pl.col("row") + first)
            for first in range(0, expected.height, _BLOCK)
        ]
        differing = pl.concat(blocks) if blocks else None
        if differing is not None and differing.height:
            lines = _lines_of(field, differing)
            parts.append(_currency_differences(table, expected, found, partner, lines))
    return pl.concat(parts)


def _currency_differences(
    table: Table,
    expected: pl.DataFrame,
    found: pl.DataFrame,
    partner: pl.Series,
    lines: pl.DataFrame,
) -> pl.DataFrame:
    """Report amounts in two currencies as two values: no delta between them makes sense."""
    currency = table.currency
    of_amounts = lines["code"].is_in(OF_AMOUNTS)
    if currency is None or currency not in table.by_name or not of_amounts.any():
        return lines
    rows = lines["row"]
    sides = expected[currency][rows], found[currency].gather(partner.gather(rows))
    across = sides[0].ne_missing(sides[1]) & of_amounts
    code = pl.when(across).then(pl.lit("VALUE")).otherwise("code").alias("code")
    numbers = pl.when(~across).then(pl.col("delta", f"delta{BEYOND}", "base"))
    return lines.with_columns(code, numbers)


def _differing(
    field: Field, expected: pl.DataFrame, found: pl.DataFrame, partner: pl.Series
) -> pl.DataFrame:
    """Both values of a field (`e`, `f`, and offsets of times) in the rows where they differ."""

    def sides(name: str) -> list[pl.Series]:
        return [expected[name], found[name].gather(partner)]

    columns = dict(zip("ef", sides(field.name), strict=True))
    differ = pl.col("e").ne_missing(pl.col("f"))
    if field.kind in TIMES:
        columns |= zip(("eo", "fo"), sides(field.name + OFFSET), strict=True)
        differ |= pl.col("eo").ne_missing(pl.col("fo"))
    elif field.amount and (beyond_of(expected, [field.name]) or beyond_of(found, [field.name])):
        texts = beyond_texts(expected, field.name), beyond_texts(found, field.name).gather(partner)
        columns |= zip((f"e{BEYOND}", f"f{BEYOND}"), texts, strict=True)
        differ |= pl.col(f"e{BEYOND}").ne_missing(pl.col(f"f{BEYOND}"))
    both = pl.DataFrame(columns)
    places = both.select((differ & partner.is_not_null()).arg_true()).to_series()
    return both[places].with_columns(row=places.cast(pl.UInt32))


def _lines_of(field: Field, both: pl.DataFrame) -> pl.DataFrame:
    match field.kind:
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            lines = both.lazy().with_columns(_times(field.kind)).collect()
            lines = lines.filter(pl.col("code").is_not_null())
        case Kind.DOUBLE:
            code = "AMOUNT" if field.amount else "VALUE"
            e, f = decimals(both["e"]), decimals(both["f"])
            texts = [beyond_texts(both, side) for side in "ef"]
            # A number that is too large still has a known difference; one with too many decimals
            # differs in digits that no money has, and is a PRECISION break.
            there = pl.DataFrame([both["f"].alias(field.name), texts[1].alias(field.name + BEYOND)])
            unread = pl.lit(unheld(field, there) & ~too_large(texts[1]) & field.amount)
            sides = [
                pl.coalesce(pl.lit(beyond), pl.lit(canonical_texts(both[side])))
                for side, beyond in zip("ef", texts, strict=True)
            ]
            delta, more = _delta(e, f, *texts)
            lines = both.with_columns(
                delta,
                pl.when(~unread).then(pl.lit(more)).alias(more.name),
                code=pl.when(unread).then(pl.lit("PRECISION")).otherwise(pl.lit(code)),
                base=e,
                expected=sides[0],
                found=sides[1],
            )
        case _:
            lines = both.with_columns(
                code=pl.lit("VALUE"),
                expected=canonical_texts(both["e"]),
                found=canonical_texts(both["f"]),
            )
    if field.secret:
        lines = lines.with_columns(
            pl.when(pl.col(side).is_not_null()).then(pl.lit(SECRET)).alias(side)
            for side in ("expected", "found")
        )
    lines = lines.with_columns(field=pl.lit(field.name))
    return lines.select(
        (pl.col(name) if name in lines.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in DIFFERENCE_SCHEMA.items()
    )


def _times(kind: Kind) -> list[pl.Expr]:
    """Compare instants where both times have an offset, and wall clocks otherwise."""
    e, f, eo, fo = (pl.col(name) for name in ("e", "f", "eo", "fo"))
    if kind is Kind.DATETIME_OFFSET:
        difference = f.cast(pl.Int64) - e.cast(pl.Int64)
        known = pl.lit(True)
    else:
        both = eo.is_not_null() & fo.is_not_null()
        shift = pl.when(both).then((fo - eo).cast(pl.Int64) * _MINUTE).otherwise(0)
        difference = f.cast(pl.Int64) - e.cast(pl.Int64) - shift
        # A wall clock with a zone and one without may or may not be the same instant.
        known = eo.is_null() == fo.is_null()
    instant = kind is Kind.DATETIME_OFFSET
    written = [time_text(side, offset, instant=instant) for side, offset in ((e, eo), (f, fo))]
    absent = e.is_null() | f.is_null()
    code = (
        pl.when(absent & e.is_null().ne(f.is_null()))
        .then(pl.lit("VALUE"))
        .when((difference != 0) | ~known)
        .then(pl.lit("INSTANT"))
        .when(eo.ne_missing(fo))
        .then(pl.lit("OFFSET"))
    )
    return [
        code.alias("code"),
        (difference.cast(AMOUNT) / 1_000_000).cast(AMOUNT).alias("seconds"),
        written[0].alias("expected"),
        written[1].alias("found"),
    ]


def decimals(values: pl.Series) -> pl.Series:
    """The decimals of numbers; null if more than 20 digits or 18 decimals are needed."""
    if values.dtype.is_decimal() or values.dtype.is_integer():
        return values.cast(AMOUNT)
    texts = values.cast(pl.String)
    plain = texts.str.contains(_SAFE_NUMBER)
    read = pl.select(pl.when(plain).then(texts).cast(AMOUNT, strict=False)).to_series()
    left = (values.is_finite() & ~plain).fill_null(value=False).arg_true()
    if not left.len():
        return read
    numbers = [Decimal(repr(value)) for value in values.gather(left)]
    fitting = [number if fits(number) else None for number in numbers]
    return read.scatter(left, pl.Series(fitting, dtype=AMOUNT))


def _delta(
    expected: pl.Series, found: pl.Series, more_expected: pl.Series, more_found: pl.Series
) -> list[pl.Series]:
    """Found minus expected, and beside it the text of each difference that does not fit."""
    texts = pl.Series(f"delta{BEYOND}", [None], pl.String).new_from_index(0, found.len())
    with suppress(pl.exceptions.ComputeError):
        if more_expected.null_count() == more_found.null_count() == found.len():
            return [(found - expected).alias("delta"), texts]
    deltas = []
    for *held, e, f in zip(expected, found, more_expected, more_found, strict=True):
        one, other = (
            number_of(text) if value is None else value
            for value, text in zip(held, (e, f), strict=True)
        )
        deltas.append(None if one is None or other is None else EXACT.subtract(other, one))
    return parted("delta", deltas)


def canonical_texts(values: pl.Series) -> pl.Series:
    """Canonical texts of values; numbers without exponent and trailing zeros."""
    dtype = values.dtype
    if dtype.is_decimal():
        return plain_text(values.cast(pl.String))
    if dtype == pl.Boolean:
        return pl.select(
            pl.when(values).then(pl.lit("true")).when(~values).then(pl.lit("false"))
        ).to_series()
    if dtype.is_float():
        texts = (None if value is None else _number_text(value) for value in values)
        return plain_text(pl.Series(texts, dtype=pl.String))
    return values.cast(pl.String)


def plain_text(texts: pl.Series) -> pl.Series:
    """Decimal texts without trailing zeros; a text with an exponent stays as it is."""
    text = pl.col("t")
    short = text.str.strip_chars_end("0").str.strip_chars_end(".")
    plain = pl.when(text.str.contains(r"^[^e]*\.[^e]*$")).then(short).otherwise(text)
    return texts.to_frame("t").select(plain).to_series()


def _number_text(value: float) -> str:
    return format(Decimal(repr(value)), "f") if isfinite(value) else repr(value)


def with_tolerances(record: str, differences: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Add `tolerance` to differences: the name of the rule that tolerates one, else null.

    `differences` has, beside its own columns, the row's `currency` and `tenant`. If several rules
    apply, the most specific one decides, even where a wider one would tolerate the difference.
    """
    name = pl.lit(None, pl.String)
    # The most specific rule is wrapped last, so that it is evaluated first.
    for tolerance in sorted(
        rules.tolerances, key=lambda one: (one.tenant is not None, one.currency is not None)
    ):
        if tolerance.record == record:
            name = (
                pl.when(_about(tolerance))
                .then(pl.when(_within(tolerance)).then(pl.lit(tolerance.name)))
                .otherwise(name)
            )
    if rules.offset is not Offset.DIFFERS:
        offset_name = pl.concat_str(pl.lit(f"{record}."), pl.col("field"), pl.lit(" offset"))
        name = pl.when(pl.col("code") == "OFFSET").then(offset_name).otherwise(name)
    return differences.with_columns(name.alias("tolerance"))


def _about(tolerance: Tolerance) -> pl.Expr:
    about = pl.col("field") == tolerance.field
    if tolerance.currency is not None:
        about &= pl.col("currency").eq_missing(tolerance.currency)
    if tolerance.tenant is not None:
        about &= pl.col("tenant").eq_missing(tolerance.tenant)
    return about


def _within(tolerance: Tolerance) -> pl.Expr:
    if tolerance.days:
        most = pl.lit(tolerance.days * _DAY_SECONDS, AMOUNT)
        return (pl.col("code") == "INSTANT") & (pl.col("seconds").abs() <= most)
    delta, size = pl.col("delta"), pl.col("base").abs()
    above, below = (
        pl.max_horizontal(pl.lit(bound, AMOUNT), (size * pl.lit(share, AMOUNT)).cast(AMOUNT))
        for bound, share in (
            (tolerance.above, tolerance.above_relative),
            (tolerance.below, tolerance.below_relative),
        )
    )
    inside = pl.when(delta >= 0).then(delta <= above).otherwise(-delta <= below)
    return inside.fill_null(value=False)
