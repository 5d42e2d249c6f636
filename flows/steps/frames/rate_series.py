"""A series: the rates of one tenant and pair of currencies by calendar day.

If a day has several rates, the last one counts (the repetition itself is RATE_DUPLICATE).
"""

import polars as pl

PAIR = ("TenantsId", "FromCurrenciesId", "ToCurrenciesId")


def same_series(distance: int = 1) -> pl.Expr:
    """Whether a rate belongs to the same series as the rate `distance` rows before it."""
    return pl.all_horizontal(pl.col(name) == pl.col(name).shift(distance) for name in PAIR)


def series(rates: pl.DataFrame) -> pl.DataFrame:
    """One usable rate per tenant, pair and day, sorted by these; `day` is its calendar day."""
    return (
        rates.lazy()
        .filter(pl.col("ExchangeRate") > 0, pl.col("FromCurrenciesId") != pl.col("ToCurrenciesId"))
        .with_columns(pl.col("EffectiveDate").dt.date().alias("day"))
        .sort(*PAIR, "EffectiveDate", "Id")
        .unique([*PAIR, "day"], keep="last", maintain_order=True)
        .collect()
    )
