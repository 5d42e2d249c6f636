"""J5: exchange rates compared with each other: values, inverses, triangles, gaps and jumps.

Bounds are checked on exact fractions; doubles only find the candidates.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction

import polars as pl

from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.make import (
    as_text,
    decimal_of,
    joined,
    key_text,
    make_breaks,
    rate_text,
    together,
)
from flows.steps.frames.rate_series import PAIR, same_series, series
from flows.steps.reconcile.windows import waiting
from flows.steps.rules.calendar import business_ages, business_days, next_business_days
from flows.steps.rules.rules import Rules
from schemas.amounts import EXACT
from schemas.tables import CURRENCY_RATE

RECORD = CURRENCY_RATE.name
_SLACK = 1e-9
"""How far doubles may miss a bound; candidates are chosen with this margin."""
_NINE = Context(prec=9)
"""Nine digits, with exponents beyond those of products of doubles."""


def reconcile_series(rates: pl.DataFrame, rules: Rules, as_of: date) -> pl.DataFrame:
    """The breaks of rates compared with each other, and of series that end before the day."""
    if rates.is_empty():
        return no_breaks()
    sound = series(rates)
    bound = rules.rates.inverse_tolerance
    frames = [_each(rates)]
    if bound is not None:
        frames += [_inverses(sound, bound), _triangles(sound, bound)]
    if rules.rates.jump_percent is not None:
        frames.append(_jumps(sound, rules.rates.jump_percent))
    if rules.rates.daily:
        frames += [_gaps(sound, rules.calendar), _ends(sound, rules, as_of)]
    return together(frames)


def _rate_break(code: str, rows: pl.DataFrame, name: str, **facts: pl.Expr) -> pl.DataFrame:
    facts |= {"tenant": pl.col("TenantsId"), "date": pl.col("EffectiveDate").dt.date()}
    return make_breaks(code, RECORD, rows, key=key_text(CURRENCY_RATE), name=name, **facts)


def _each(rates: pl.DataFrame) -> pl.DataFrame:
    """Breaks of rates that are not positive, and of rates of a currency to itself other than 1."""
    rate = pl.col("ExchangeRate")
    itself = pl.col("FromCurrenciesId") == pl.col("ToCurrenciesId")
    name, found = "ExchangeRate", rate_text(rate)
    low, off = rates.filter(rate <= 0), rates.filter(itself, rate > 0, rate != 1)
    return together(
        [
            _rate_break("RATE_NONPOSITIVE", low, name, found=found),
            _rate_break("RATE_SELF", off, name, expected=pl.lit("1"), found=found),
        ]
    )


def _inverses(sound: pl.DataFrame, bound: Decimal) -> pl.DataFrame:
    there = sound.filter(pl.col("FromCurrenciesId") < pl.col("ToCurrenciesId"))
    turned = {"ToCurrenciesId": "FromCurrenciesId", "FromCurrenciesId": "ToCurrenciesId"}
    back = sound.select("TenantsId", "day", **turned, back_id="Id", back="ExchangeRate")
    both = there.join(back, on=[*PAIR, "day"], how="inner", maintain_order="left")
    product = pl.col("ExchangeRate") * pl.col("back")
    near = both.filter((product - 1).abs() > float(bound) - _SLACK)
    products = [
        EXACT.multiply(decimal_of(rate), decimal_of(back))
        for rate, back in near.select("ExchangeRate", "back").iter_rows()
    ]
    return _rate_break(
        "RATE_INVERSE",
        _off(near, products, [format(product, "f") for product in products], bound),
        "ExchangeRate",
        expected=pl.lit("1"),
        found=pl.col("product"),
        note=pl.format("times its inverse, rate {}", "back_id"),
    )


def _triangles(sound: pl.DataFrame, bound: Decimal) -> pl.DataFrame:
    """Breaks of three rates a-b, b-c, a-c of one day; the rate in most open triangles is blamed."""
    off = _open_triangles(_sides(sound), bound)
    if off.is_empty():
        return _rate_break("RATE_TRIANGLE", sound.clear(), "ExchangeRate")
    corners = ["ab", "bc", "ac"]
    counts = (
        off.select(pl.concat_list(corners).alias("side"))
        .explode("side", empty_as_null=True, keep_nulls=True)
        .group_by("side")
        .len("broken")
    )
    for corner in corners:
        of_corner = counts.rename({"side": corner, "broken": f"in_{corner}"})
        off = off.join(of_corner, on=corner, maintain_order="left")
    most = pl.max_horizontal("in_ab", "in_bc", "in_ac")
    blamed_side = (
        pl.when(pl.col("in_ac") == most).then("ac").when(pl.col("in_bc") == most).then("bc")
    )
    blamed = off.group_by(blamed_side.otherwise("ab").alias("side"), maintain_order=True).agg(
        pl.len().alias("triangles"), pl.col("product", "others").first()
    )
    rows = sound.with_row_index("side").join(blamed, on="side", maintain_order="left")
    return _rate_break(
        "RATE_TRIANGLE",
        rows,
        "ExchangeRate",
        expected=pl.lit("1"),
        found=pl.col("product"),
        note=pl.format("open triangles: {}; the first is of {}", "triangles", "others"),
    )


def _sides(sound: pl.DataFrame) -> pl.DataFrame:
    """Each pair once, from the lower number to the higher; `up` says if the rate goes that way."""
    up = pl.col("FromCurrenciesId") < pl.col("ToCurrenciesId")
    return (
        sound.with_row_index("side")
        .select(
            *("side", "TenantsId", "day"),
            low=pl.min_horizontal("FromCurrenciesId", "ToCurrenciesId"),
            high=pl.max_horizontal("FromCurrenciesId", "ToCurrenciesId"),
            up=up,
            rate="ExchangeRate",
            id="Id",
        )
        .sort("TenantsId", "day", "low", "high", "up")
        .unique(["TenantsId", "day", "low", "high"], keep="last", maintain_order=True)
    )


def _open_triangles(sides: pl.DataFrame, bound: Decimal) -> pl.DataFrame:
    moment = ["TenantsId", "day"]

    def called(name: str, low: str, high: str) -> pl.DataFrame:
        values = {f"{column}_{name}": column for column in ("up", "rate", "id")}
        return sides.select(*moment, **{low: "low", high: "high", name: "side"}, **values)

    closed = (
        called("ab", "a", "b")
        .join(called("bc", "b", "c"), on=[*moment, "b"])
        .join(called("ac", "a", "c"), on=[*moment, "a", "c"])
        .sort(*moment, "a", "b", "c")
    )

    def along(name: str) -> pl.Expr:
        rate = pl.col(f"rate_{name}")
        return pl.when(f"up_{name}").then(rate).otherwise(1 / rate)

    near = closed.filter(
        (along("ab") * along("bc") / along("ac") - 1).abs() > float(bound) - _SLACK
    )
    products = [
        _fraction(*ab) * _fraction(*bc) / _fraction(*ac)
        for ab, bc, ac in zip(
            *(near.select(f"rate_{name}", f"up_{name}").iter_rows() for name in ("ab", "bc", "ac")),
            strict=True,
        )
    ]
    others = joined("id_ab", "id_bc", "id_ac", by=", ").alias("others")
    return _off(near.with_columns(others), products, map(_nine_digits, products), bound)


def _off(
    rates: pl.DataFrame,
    products: Iterable[Decimal | Fraction],
    texts: Iterable[str],
    bound: Decimal,
) -> pl.DataFrame:
    """The rates whose `product`, which should be 1, is off by more than the bound."""
    off = [abs(Fraction(product) - 1) > bound for product in products]
    rates = rates.with_columns(pl.Series("product", texts, pl.String))
    return rates.filter(pl.Series(off, dtype=pl.Boolean))


def _fraction(rate: float, up: bool) -> Fraction:
    value = Fraction(decimal_of(rate))
    return value if up else 1 / value


def _jumps(sound: pl.DataFrame, percent: Decimal) -> pl.DataFrame:
    """Breaks of steps beyond the limit; a step back to the previous level is not reported again."""
    same = same_series()
    stepped = sound.with_columns(
        pl.when(same).then(pl.col("ExchangeRate").shift()).alias("before"),
        pl.when(same & same.shift()).then(pl.col("ExchangeRate").shift(2)).alias("earlier"),
        pl.when(same).then(pl.col("day").shift()).alias("day_before"),
    )
    rate, before, earlier = (pl.col(name) for name in ("ExchangeRate", "before", "earlier"))
    limit = float(percent) / 100
    wide = stepped.filter((rate / before - 1).abs() > limit - _SLACK)
    share = Fraction(percent) / 100
    jumps = [
        _beyond(now, last, share)
        and (first is None or not _beyond(last, first, share) or _beyond(now, first, share))
        for now, last, first in wide.select(rate, before, earlier).iter_rows()
    ]
    rows = wide.filter(pl.Series(jumps, dtype=pl.Boolean))
    change = (rate / before - 1) * 100
    exactly = [
        _nine_digits((Fraction(decimal_of(now)) / Fraction(decimal_of(last)) - 1) * 100)
        for now, last in rows.select(rate, before).iter_rows()
    ]
    percentage = (
        pl.when(change.is_finite()).then(change.round(2).cast(pl.String)).otherwise("exactly")
    )
    return _rate_break(
        "RATE_JUMP",
        rows.with_columns(pl.Series("exactly", exactly, pl.String)),
        "ExchangeRate",
        expected=rate_text(before),
        found=rate_text(rate),
        note=pl.format("{} % since {}", percentage, "day_before"),
    )


def _nine_digits(number: Fraction) -> str:
    """A number with at most nine digits; as a double it might be infinite or zero."""
    rounded = _NINE.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(_NINE)
    return format(rounded, "f" if -5 < rounded.adjusted() < _NINE.prec else "e")


def _beyond(now: float, before: float, share: Fraction) -> bool:
    return abs(Fraction(decimal_of(now)) / Fraction(decimal_of(before)) - 1) > share


def _gaps(sound: pl.DataFrame, calendar: str | None) -> pl.DataFrame:
    """Breaks of business days without a rate between two rates, at the rate after the gap."""
    before = pl.when(same_series()).then(pl.col("day").shift()).alias("day_before")
    gaps = sound.with_columns(before).filter(
        (pl.col("day") - pl.col("day_before")).dt.total_days() > 1
    )
    spans = gaps.select("day_before", "day").unique(maintain_order=True)
    missing = [
        business_days(before, after - timedelta(days=1), calendar)
        for before, after in spans.iter_rows()
    ]
    rows = gaps.join(
        spans.with_columns(pl.Series("missing", missing, pl.Int64)),
        on=["day_before", "day"],
        maintain_order="left",
    ).filter(pl.col("missing") > 0)
    return _rate_break(
        "RATE_GAP",
        rows,
        "EffectiveDate",
        expected=pl.lit("0"),
        found=as_text("missing"),
        note=pl.format("business days without a rate since {}", "day_before"),
    )


def _ends(sound: pl.DataFrame, rules: Rules, as_of: date) -> pl.DataFrame:
    """Breaks of series whose last rate is of an earlier business day than the report, at that rate.

    The break stays the same from day to day, so that the end of a series is accepted once; the
    number of missing days is its age in business days.
    """
    last = sound.unique(list(PAIR), keep="last", maintain_order=True).filter(pl.col("day") < as_of)
    due = next_business_days(last["day"], rules.calendar)
    missing = business_ages(last["day"], as_of, rules.calendar)
    late = (missing > 0) & ~waiting(RECORD, due, rules, as_of)
    return _rate_break(
        "RATE_GAP",
        last.with_columns(due.alias("due")).filter(late),
        "",
        expected=as_text("due"),
        note=pl.format("no rate since {}", "day"),
    )
