"""Payment plan details joined with the payments they name (J6)."""

import polars as pl

from flows.steps.breaks.make import ORIGIN, day_paid, zero
from flows.steps.match.near_keys import near_partners
from flows.steps.match.pairing import pair, repeated
from flows.steps.rules.rules import Discount
from flows.steps.rules.rules import Plans as PlanRules
from schemas.kinds import OFFSET

_RECORD = (
    *("TenantsId", "DebtsId", "CurrenciesId", "PaidAmount", "DiscountAmount"),
    *("PaymentDate", "PaymentDate" + OFFSET),
)
PAYMENT_OF = ("pay_id", "tenant")
"""Columns that identify a payment in linked details."""


def settled(rules: PlanRules) -> pl.Expr:
    """The amount a payment settles; a discount counts only if the rules say so."""
    if rules.discount is Discount.COUNTS:
        return pl.col("PaidAmount") + pl.col("DiscountAmount").fill_null(zero())
    return pl.col("PaidAmount")


def prepared(details: pl.DataFrame) -> pl.DataFrame:
    """Details with their row number, their day, and PaymentsId in the type of a payment's Id."""
    return details.with_columns(
        pl.col("PaymentsId").cast(pl.Int64).alias("pay_id"),
        pl.col("PlannedDate").dt.date().alias("day"),
    ).with_row_index("detail")


def linked(details: pl.DataFrame, payments: pl.DataFrame, rules: PlanRules) -> pl.DataFrame:
    """Details with their payment; `tenants` says how many tenants have a payment of that number.

    If there are several, the payment of the tenant that the rest of the plan belongs to is meant;
    if that does not decide, the detail has no payment. `whose` is the tenant of the plan, null if
    there is not exactly one or the detail names no plan.
    """
    with_payments = _with_payments(details, payments, rules)
    whose = (
        with_payments.lazy()
        .filter(pl.col("tenants") == 1, pl.col("PaymentPlansId").is_not_null())
        .group_by("PaymentPlansId")
        .agg(pl.col("tenant").min().alias("whose"), pl.col("tenant").max().alias("highest"))
        .filter(pl.col("whose") == pl.col("highest"))
        .drop("highest")
        .collect()
    )
    known = looked_up(with_payments, whose, "PaymentPlansId")
    several = pl.col("tenants").fill_null(0) > 1
    if not known.select(several.any()).item():
        return known
    meant = pl.col("tenant").eq_missing(pl.col("whose"))
    about = [name for name in with_payments.columns if name not in (*details.columns, "tenants")]
    undecided = (
        known.filter(several & ~meant.any().over("detail"))
        .unique("detail", keep="first", maintain_order=True)
        .with_columns(pl.lit(None, dtype=with_payments.schema[name]).alias(name) for name in about)
    )
    return pl.concat([known.filter(~several | meant), undecided]).sort("detail")


def _with_payments(details: pl.DataFrame, payments: pl.DataFrame, rules: PlanRules) -> pl.DataFrame:
    """Details with every payment of the number they name; `tenants` counts these."""
    place = [name for name in ORIGIN if name in payments.columns]
    about = _about(place, rules)
    there = near_partners(details.select("pay_id"), payments.select("Id"))
    if there is not None:
        tenants = pl.when(there.is_not_null()).then(pl.lit(1, pl.UInt32)).alias("tenants")
        whole = payments.select(*_RECORD, *place)
        return details.hstack(whole[there].select(about)).with_columns(tenants)
    asked = details["pay_id"].drop_nulls().unique().implode()
    named = (
        payments.lazy()
        .filter(pl.col("Id").is_in(asked))
        .select(pl.col("Id").alias("pay_id"), *about)
        .collect()
        .unique(PAYMENT_OF, keep="last", maintain_order=True)
        .with_columns(pl.len().over("pay_id").alias("tenants"))
    )
    return details.join(named, on="pay_id", how="left", maintain_order="left")


def _about(place: list[str], rules: PlanRules) -> list[pl.Expr]:
    """The values of a payment that plans need; `paid_in` and `paid_on` are its currency and day."""
    return [
        pl.col("TenantsId").alias("tenant"),
        pl.col("DebtsId").alias("debt"),
        pl.col("CurrenciesId").alias("paid_in"),
        day_paid().alias("paid_on"),
        pl.col("PaidAmount").alias("paid"),
        pl.col("DiscountAmount").fill_null(zero()).alias("discount"),
        settled(rules).alias("settled"),
        *(pl.col(name).alias(f"paid_{name}") for name in place),
    ]


def looked_up(rows: pl.DataFrame, others: pl.DataFrame, key: str) -> pl.DataFrame:
    """Left join `others`, whose keys must be unique; a null key equals null.

    The columns of `rows` are not copied, and keys that lie close together need no join.
    """
    both = pair(rows.select(key), others.select(key), nulls_equal=True)
    return rows.hstack(others.drop(key)[both.partner])


def once(links: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split links into those whose payment no other link names, mostly nearly all, and the rest."""
    again = repeated(links.select("pay_id"))
    if again is None:
        return links, links.clear()
    return links.filter(~again), links.filter(again)


def per_payment(links: pl.DataFrame) -> pl.DataFrame:
    """One line per payment that a plan names, with the amount planned for it in its currency."""
    same = pl.col("PlannedCurrenciesId") == pl.col("paid_in")
    same_currency = (same & pl.col("PlannedAmount").is_not_null()).fill_null(False)
    places = [name for name in ORIGIN if f"paid_{name}" in links.columns]
    own = ["paid_in", "paid_on", "paid", "discount", "settled"]
    single, several = once(links)
    alone = single.select(
        *PAYMENT_OF,
        pl.lit(1, pl.UInt32).alias("details"),
        pl.when(same_currency).then("PlannedAmount").otherwise(zero()).alias("planned"),
        same_currency.alias("same_currency"),
        *own,
        *(pl.col(f"paid_{name}").alias(name) for name in places),
    )
    if several.is_empty():
        return alone
    shared = several.group_by(PAYMENT_OF).agg(
        pl.len().alias("details"),
        pl.col("PlannedAmount").filter(same).sum().alias("planned"),
        same_currency.all().alias("same_currency"),
        pl.col(own).first(),
        *(pl.col(f"paid_{name}").first().alias(name) for name in places),
    )
    return pl.concat([alone, shared], rechunk=False)
