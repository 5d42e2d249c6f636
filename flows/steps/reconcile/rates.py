"""J4: the exchange rate each payment names, against its tenant, its currency and its day.

Days are calendar days: a payment's at its own offset, a rate's as written. The right rate of a pair
is the latest on or before the day or, if there is none, the first after it. If the rules name a
base currency, the pair must consist of it and the payment's currency.
"""

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from flows.steps.breaks.make import (
    NOWHERE,
    Annex,
    as_text,
    day_paid,
    joined,
    key_text,
    left_of,
    make_breaks,
    number_duplicates,
    together,
)
from flows.steps.frames.beyond import beyond_of
from flows.steps.frames.parts import Load, columns_of, with_rows_of
from flows.steps.frames.rate_series import PAIR, series
from flows.steps.frames.sources import in_order, no_records
from flows.steps.reconcile.own import EVERY, Own
from flows.steps.reconcile.series import reconcile_series
from flows.steps.reconcile.tenants import crossings
from flows.steps.reconcile.used_rates import FLAGS, PAID_BEYOND, RateLine, rate_lines, used_rates
from flows.steps.rules.rules import Rates as RateRules
from flows.steps.rules.rules import Rules
from schemas.kinds import OFFSET
from schemas.tables import CURRENCY_RATE, PAYMENT

USE = ("CurrencyRatesId", "TenantsId", "CurrenciesId", "day")
"""Payments with equal values in these columns use the same rate in the same way."""
_USED = (*USE, "PaymentDate", "PaymentDate" + OFFSET, "PaidAmount")
"""Columns of payments that their use of rates is read from."""
_NO_RATES = no_records(CURRENCY_RATE)


def reconcile_rates(
    payments: Sequence[Load],
    rates: pl.DataFrame,
    rules: Rules,
    as_of: date,
    places: Mapping[str, pl.DataFrame] = NOWHERE,
    *,
    later: pl.DataFrame = _NO_RATES,
    left_out: pl.DataFrame = _NO_RATES,
    near: pl.DataFrame = _NO_RATES,
    own: Own = EVERY,
) -> Annex[RateLine]:
    """The breaks of J4 and J5, and the rates that payments used.

    Frames follow `sources.record_schema`, with `make.ORIGIN` where it is known, or `places` to look
    it up in (see `make.number_duplicates`); `payments` come in parts. `later` are the rates after
    the cut-off: a payment that names one has a rate of the future; these rates themselves are not
    judged. `left_out` are rates by which payments are not judged: a payment that names one has an
    existing rate, and nothing else is checked. `near` are rates outside the scope, which belong to
    the series too. Only breaks of `own` are returned.
    """
    # A rate with a null cannot be used, so a payment that names it has no rate.
    rates, later, left_out, near = (
        some.drop_nulls(CURRENCY_RATE.columns) for some in (rates, later, left_out, near)
    )
    whole = in_order(CURRENCY_RATE, with_rows_of(rates, near))
    known = with_rows_of(
        with_rows_of(whole, later).with_columns(included=True),
        left_out.with_columns(included=False),
    )
    used = _flagged(_uses(payments), known, series(whole), rules.rates)
    of_series = own.breaks(reconcile_series(whole, rules, as_of))
    annex = used_rates(used, of_series)
    breaks = own.breaks(number_duplicates([_payment_breaks(payments, used), of_series], places))
    return Annex(breaks, (), rate_lines(annex, used, rules.rates), left_of(annex.height), annex)


def _uses(payments: Sequence[Load]) -> pl.DataFrame:
    parts = []
    for load in payments:
        some = columns_of(load, _USED)
        sums = [pl.len().alias("payments"), pl.col("PaidAmount").sum()]
        if beyond_of(some, ["PaidAmount"]):
            sums.append(pl.col(PAID_BEYOND).drop_nulls())
        parts.append(_dated(some).lazy().group_by(USE).agg(sums).collect(engine="streaming"))
    if len(parts) == 1:
        return parts[0]
    every = pl.concat(parts, how="diagonal")
    sums = [pl.col("payments", "PaidAmount").sum()]
    if PAID_BEYOND in every.columns:
        sums.append(pl.col(PAID_BEYOND).explode().drop_nulls())
    return every.group_by(USE).agg(sums).cast({"payments": pl.UInt32})


def _dated(payments: pl.DataFrame) -> pl.DataFrame:
    return payments.with_columns(day_paid().alias("day"))


def _flagged(
    uses: pl.DataFrame, rates: pl.DataFrame, sound: pl.DataFrame, asked: RateRules
) -> pl.DataFrame:
    """Uses with the rate they name, the nearest rate, and one Boolean column per flag."""
    named = _nearest(_named(uses, rates), sound)
    age = (pl.col("day") - pl.col("effective")).dt.total_days()
    included, pair = pl.col("included"), pl.col("FromCurrenciesId", "ToCurrenciesId")
    either = pl.any_horizontal(pair == pl.col("CurrenciesId"))
    if asked.base_currency is not None:
        either &= pl.any_horizontal(pair == asked.base_currency)
    own = included & (pl.col("rate_tenant") == pl.col("TenantsId"))
    stale = pl.lit(False) if asked.stale_days is None else age > asked.stale_days
    best = pl.col("best_day")
    better = own & (best <= pl.col("day")) & (best > pl.col("effective"))
    wrong = (~own, ~either, age < 0, stale, better)
    flags = [included.is_null(), *(included & flag for flag in wrong)]
    return named.with_columns(
        age.alias("age"),
        *(flag.fill_null(False).alias(code) for flag, code in zip(flags, FLAGS, strict=True)),
    )


def _named(uses: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """Uses with the named rate of the payment's tenant, else with that of another tenant."""
    known = rates.select(
        *("FromCurrenciesId", "ToCurrenciesId", "ExchangeRate", "included"),
        CurrencyRatesId="Id",
        rate_tenant="TenantsId",
        effective=pl.col("EffectiveDate").dt.date(),
    ).unique(["CurrencyRatesId", "rate_tenant"], keep="last", maintain_order=True)
    own = known.with_columns(TenantsId="rate_tenant")
    first = uses.join(own, on=["CurrencyRatesId", "TenantsId"], how="left")
    lost = first.filter(pl.col("rate_tenant").is_null()).select(uses.columns)
    of_any = known.sort("rate_tenant").unique("CurrencyRatesId", keep="first", maintain_order=True)
    second = lost.join(of_any, on="CurrencyRatesId", how="left")
    kept = first.filter(pl.col("rate_tenant").is_not_null())
    return pl.concat([kept, second.select(kept.columns)])


def _nearest(uses: pl.DataFrame, sound: pl.DataFrame) -> pl.DataFrame:
    best = sound.select(*PAIR, best_day="day", best="Id", best_rate="ExchangeRate").sort("best_day")
    ordered = uses.sort("day")
    earlier, later = (
        ordered.join_asof(
            best,
            left_on="day",
            right_on="best_day",
            by=list(PAIR),
            strategy=strategy,
            coalesce=False,
            check_sortedness=False,
        )
        for strategy in ("backward", "forward")
    )
    none = earlier["best"].is_null()
    return earlier.with_columns(
        pl.when(none).then(later[name]).otherwise(pl.col(name)).alias(name)
        for name in ("best_day", "best", "best_rate")
    )


def _payment_breaks(payments: Sequence[Load], used: pl.DataFrame) -> pl.DataFrame:
    sums = ("payments", "PaidAmount", PAID_BEYOND)
    wrong = used.filter(pl.any_horizontal(FLAGS)).drop(sums, strict=False)
    if wrong.is_empty():
        return together([])
    # Few rates are used wrongly, so only payments that name one of these are joined.
    named = wrong["CurrencyRatesId"].unique().implode()
    near = pl.col("CurrencyRatesId").is_in(named, nulls_equal=True)
    breaks, across = [], []
    for load in payments:
        some = _dated(load().filter(near))
        rows = some.join(wrong, on=USE, nulls_equal=True, maintain_order="left")
        breaks += _wrongly_rated(rows)
        of_others = rows.filter("RATE_TENANT")
        across.append(
            of_others.select("day", tenant="TenantsId", other="rate_tenant", key=key_text(PAYMENT))
        )
    return together([*breaks, crossings(PAYMENT.name, "CurrencyRatesId", pl.concat(across))])


def _wrongly_rated(rows: pl.DataFrame) -> list[pl.DataFrame]:
    rate = joined("CurrencyRatesId", "rate_tenant")
    pair = joined("FromCurrenciesId", "ToCurrenciesId")
    day, effective = as_text("day"), as_text("effective")
    best = pl.format("{} of {}", "best", "best_day")
    facts: dict[str, tuple[pl.Expr, pl.Expr]] = {
        "RATE_MISSING": (as_text("CurrencyRatesId"), pl.lit(None)),
        "RATE_TENANT": (as_text("TenantsId"), as_text("rate_tenant")),
        "RATE_PAIR": (as_text("CurrenciesId"), pair),
        "RATE_FUTURE": (day, effective),
        "RATE_STALE": (day, effective),
        "RATE_NOT_LATEST": (best, pl.format("{} of {}", "CurrencyRatesId", "effective")),
    }
    return [
        make_breaks(
            code,
            PAYMENT.name,
            rows.filter(code),
            key=key_text(PAYMENT),
            name="CurrencyRatesId",
            tenant=pl.col("TenantsId"),
            currency=pl.col("CurrenciesId"),
            expected=expected,
            found=found,
            amount=pl.col("PaidAmount"),
            date=pl.col("day"),
            note=pl.when("RATE_MISSING")
            .then(pl.format("rate {} is not there", "CurrencyRatesId"))
            .otherwise(pl.format("rate {} of {}", rate, "effective")),
        )
        for code, (expected, found) in facts.items()
    ]
