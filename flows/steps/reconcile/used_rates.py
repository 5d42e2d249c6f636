"""The exchange rates that payments used: the annex of J4 and J5, and what nearest rates change."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import NamedTuple

import polars as pl

from flows.steps.breaks.make import decimal_of, joined, listed, money
from flows.steps.frames.beyond import beyond_of, exact_sum
from flows.steps.rules.rules import Direction
from flows.steps.rules.rules import Rates as RateRules
from schemas.amounts import BEYOND
from schemas.tables import CURRENCY_RATE

PAID_BEYOND = f"PaidAmount{BEYOND}"
_WIDE = Context(prec=800)
"""Exact for sums and products of the values in frames, from the least double to the largest."""
_MILLIONTH = Decimal("0.000001")
"""Precision to which quotients are rounded."""
FLAGS = ("RATE_MISSING", "RATE_TENANT", "RATE_PAIR", "RATE_FUTURE", "RATE_STALE", "RATE_NOT_LATEST")
"""Flags of the use of a rate, each a Boolean column of that name."""


@dataclass(frozen=True, slots=True)
class RateLine:
    rate: str
    tenant: int | None
    source: str
    """The From currency of the rate."""
    target: str
    value: Decimal
    effective: date
    payments: int
    amounts: Mapping[str, Decimal]
    """Currency -> amount paid under this rate."""
    age_min: int
    age_max: int
    flags: tuple[str, ...]
    nearest: str | None
    """The rate nearest to the payments, if it is another one."""
    rerated: Decimal | None
    """By how much the payments would change at the nearest rate; None if it cannot be told."""
    rerated_in: str = ""
    """Currency of `rerated`, the other one of the pair; empty if there is no such sum."""


def used_rates(used: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Every rate that was used, with payments, ages, and the flags of its uses and of the rate."""
    mine = (
        own.filter(pl.col("record") == CURRENCY_RATE.name)
        .group_by("key")
        .agg(pl.col("code").unique().sort().alias("own_flags"))
    )
    # Most payments first, because the nearest rate of the first use is the one shown.
    ranked = used.filter(pl.col("rate_tenant").is_not_null()).sort(
        "payments", "day", "CurrenciesId", "TenantsId", descending=[True, False, False, False]
    )
    other = pl.col("best").filter(
        pl.col("best").is_not_null(),
        (pl.col("best") != pl.col("CurrencyRatesId"))
        | (pl.col("TenantsId") != pl.col("rate_tenant")),
    )
    return (
        ranked.group_by("CurrencyRatesId", "rate_tenant")
        .agg(
            pl.col("FromCurrenciesId", "ToCurrenciesId", "ExchangeRate", "effective").first(),
            pl.col("payments").sum(),
            pl.col("age").min().alias("age_min"),
            pl.col("age").max().alias("age_max"),
            other.first().alias("nearest"),
            other.n_unique().alias("nearest_count"),
            *(pl.col(code).any() for code in FLAGS),
        )
        .with_columns(joined("CurrencyRatesId", "rate_tenant").alias("key"))
        .join(mine, on="key", how="left")
        .with_columns(
            pl.concat_list(
                pl.concat_list(
                    pl.when(code).then(pl.lit(code)) for code in FLAGS
                ).list.drop_nulls(),
                pl.col("own_flags").fill_null(pl.lit([], pl.List(pl.String))),
            ).alias("flags")
        )
        .drop(*FLAGS, "own_flags")
        .sort("rate_tenant", "FromCurrenciesId", "ToCurrenciesId", "effective", "CurrencyRatesId")
    )


def rate_lines(annex: pl.DataFrame, used: pl.DataFrame, asked: RateRules) -> tuple[RateLine, ...]:
    """The lines of a report, in order; of more than `LINES`, those with flags and most payments."""
    lines = listed(annex, "payments")
    uses = used.join(lines, on=["CurrencyRatesId", "rate_tenant"], how="semi")
    paid: dict[tuple[int, int], dict[str, Decimal]] = defaultdict(dict)
    beyond = beyond_of(uses, ["PaidAmount"])
    sums = uses.group_by("CurrencyRatesId", "rate_tenant", "CurrenciesId").agg(
        pl.col("PaidAmount").sum(), *(pl.col(PAID_BEYOND).explode().drop_nulls() for _ in beyond)
    )
    for rate, tenant, currency, amount, *texts in sums.sort("CurrenciesId").iter_rows():
        whole = exact_sum([amount], *texts)
        paid[rate, tenant]["" if currency is None else str(currency)] = money(whole)
    effects = _effects(uses, asked.direction)
    return tuple(
        RateLine(
            rate=str(row["CurrencyRatesId"]),
            tenant=row["rate_tenant"],
            source=str(row["FromCurrenciesId"]),
            target=str(row["ToCurrenciesId"]),
            value=decimal_of(row["ExchangeRate"]),
            effective=row["effective"],
            payments=row["payments"],
            amounts=paid[row["CurrencyRatesId"], row["rate_tenant"]],
            age_min=row["age_min"],
            age_max=row["age_max"],
            flags=tuple(row["flags"]),
            nearest=_nearest_text(row["nearest"], row["nearest_count"]),
            rerated=None if effect is None else money(effect.amount),
            rerated_in="" if effect is None else str(effect.currency),
        )
        for row in lines.iter_rows(named=True)
        for effect in [effects.get((row["CurrencyRatesId"], row["rate_tenant"]))]
    )


def _nearest_text(nearest: int | None, count: int) -> str | None:
    if nearest is None:
        return None
    return str(nearest) if count == 1 else f"{nearest} and {count - 1} more"


class Effect(NamedTuple):
    """The value of payments at the nearest rates less their value at their own."""

    amount: Decimal
    currency: int
    """The other currency of the pair."""


def _effects(uses: pl.DataFrame, direction: Direction) -> dict[tuple[int, int], Effect | None]:
    """The effects by rate; empty if the direction is unknown.

    The effect of a rate is None if payments are in both of its currencies or in neither, since two
    currencies are never added, and if an amount fits no exact column or the rate is not positive.
    """
    if direction is Direction.UNKNOWN:
        return {}
    effects: dict[tuple[int, int], Effect | None] = {}
    columns = (
        *("CurrencyRatesId", "rate_tenant", "CurrenciesId", "FromCurrenciesId", "ToCurrenciesId"),
        *("PaidAmount", "ExchangeRate", "best_rate"),
    )
    addable = pl.lit(value=True)
    if beyond_of(uses, ["PaidAmount"]):
        addable = pl.col(PAID_BEYOND).list.len() == 0
    for rate, tenant, currency, source, target, paid, used, best, held in uses.select(
        *columns, addable.alias("addable")
    ).iter_rows():
        key = (rate, tenant)
        into = target if currency == source else source
        convertible = held and currency in (source, target) and used > 0
        before = effects.get(key, Effect(Decimal(0), into))
        if before is None or not convertible or before.currency != into:
            effects[key] = None
        else:
            multiplies = (currency == source) == (direction is Direction.FROM_TO)
            now = used if best is None else best
            effect = _effect(paid, decimal_of(used), decimal_of(now), multiplies)
            effects[key] = Effect(_WIDE.add(before.amount, effect), into)
    return effects


def _effect(paid: Decimal, used: Decimal, best: Decimal, multiplies: bool) -> Decimal:
    if used == best:
        return Decimal(0)
    if multiplies:
        return _WIDE.multiply(paid, _WIDE.subtract(best, used))
    effect = _WIDE.subtract(_WIDE.divide(paid, best), _WIDE.divide(paid, used))
    return effect.quantize(_MILLIONTH, context=_WIDE)
