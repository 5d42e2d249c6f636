"""J7: which part of a payment is allotted to which plan detail, and the totals of each plan.

A payment that several details name is allotted to them in the order of their days, up to the
planned amount of each; the last one gets the rest. So a payment is counted once over all plans, to
the cent. Refunds are allotted in the same way. If details plan both, those against the sign of the
sum are credits: each credit is settled whole, and the others share the paid and credited amounts.
"""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import polars as pl

from flows.steps.breaks.make import Annex, as_day, listed, money, zero
from flows.steps.reconcile.links import PAYMENT_OF, once
from schemas.frame_types import AMOUNT
from schemas.tables import PAYMENT, PAYMENT_PLAN_DETAIL

_STATUS = "StatusCodesId"
_PLAN = ("PaymentPlansId", "currency")
_PARTS = (
    *(*PAYMENT_OF, "paid_in", "settled"),
    *("detail", "PaymentPlansId", "PlannedCurrenciesId", "PlannedAmount", "day"),
)
"""Columns of linked details from which the allotment follows."""
PLANNED_SCHEMA: dict[str, pl.DataType] = {
    "tenant": pl.Int32(),
    "debt": pl.Int64(),
    "currency": pl.Int32(),
    "planned": AMOUNT,
}


@dataclass(frozen=True, slots=True)
class PlanLine:
    plan: str
    tenant: int | None
    currency: str
    details: int
    planned: Decimal
    paid: Decimal
    outstanding: Decimal
    overdue: Decimal
    status_codes: tuple[int, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class PlanAnnex(Annex[PlanLine]):
    planned: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PLANNED_SCHEMA))
    """The planned amounts of each debt, as `PLANNED_SCHEMA`."""


def planned(with_payments: pl.DataFrame, links: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """The planned amounts of each debt: details of its payments, in the currency of the payment.

    If a plan leads to a single debt, its details that are due and have no payment count too.
    """
    debt, due_by = ["tenant", "debt"], pl.col("day") <= as_day(as_of)
    columns = [*debt, pl.col("PlannedCurrenciesId").alias("currency"), "PlannedAmount"]
    known = pl.col("PlannedAmount").is_not_null()
    named = links.lazy().filter(known, pl.col("PlannedCurrenciesId") == pl.col("paid_in"))
    open_ones = with_payments.filter(known, pl.col("pay_id").is_null(), due_by)
    only = (
        links.lazy()
        .select("PaymentPlansId", *debt)
        .join(open_ones.lazy(), on="PaymentPlansId", how="semi")
        .unique()
        .filter(~pl.col("PaymentPlansId").is_duplicated())
    )
    due = open_ones.lazy().drop(debt).join(only, on="PaymentPlansId", how="inner")
    return (
        pl.concat([named.select(columns), due.select(columns)])
        .group_by(*debt, "currency")
        .agg(pl.col("PlannedAmount").sum().alias("planned"))
        .cast(PLANNED_SCHEMA)  # type: ignore[arg-type]
        .collect(engine="streaming")
    )


def allotted(links: pl.DataFrame) -> pl.DataFrame:
    """Linked details with the part of their payment `allotted` to them, in its currency."""
    single, several = once(links.select(_PARTS))
    alone = single.with_columns(pl.col("settled").alias("allotted"))
    if several.is_empty():
        return alone
    same = (pl.col("PlannedCurrenciesId") == pl.col("paid_in")).fill_null(False)
    wanted = pl.when(same).then(pl.col("PlannedAmount").fill_null(zero())).otherwise(zero())
    # Details in another currency come first and get nothing, so that the last one gets the rest.
    shared = several.with_columns(same.alias("same"), wanted.alias("wanted")).sort(
        *PAYMENT_OF, "same", "day", "detail", nulls_last=True
    )
    back = pl.col("wanted").sum().over(PAYMENT_OF) < 0
    shared = shared.with_columns(
        pl.when(back).then(-pl.col(name)).otherwise(name).alias(alias)
        for name, alias in (("wanted", "asked"), ("settled", "given"))
    )
    credit, asked = (of("asked", zero()) for of in (pl.min_horizontal, pl.max_horizontal))
    before = asked.cum_sum().over(PAYMENT_OF) - asked
    left = pl.col("given") - credit.sum().over(PAYMENT_OF) - before
    share = credit + pl.max_horizontal(pl.min_horizontal(asked, left), zero())
    filled = shared.with_columns(pl.when(back).then(-share).otherwise(share).alias("share"))
    earlier = pl.col("share").cum_sum().over(PAYMENT_OF) - pl.col("share")
    last = pl.col("detail") == pl.col("detail").last().over(PAYMENT_OF)
    spread = filled.with_columns(
        pl.when(last).then(pl.col("settled") - earlier).otherwise("share").alias("allotted")
    )
    return pl.concat([alone, spread.select(alone.columns)], rechunk=False)


def plan_rows(
    with_payments: pl.DataFrame, parts: pl.DataFrame, breaks: pl.DataFrame, as_of: date
) -> pl.DataFrame:
    """One line per plan and currency: details, planned, paid, outstanding, overdue, flags."""
    currency = pl.col("PlannedCurrenciesId").alias("currency")
    same = pl.col("PlannedCurrenciesId") == pl.col("paid_in")
    own = pl.when(same).then("allotted").fill_null(zero()).alias("own")
    unlinked = with_payments.filter(pl.col("tenant").is_null())
    details = [
        side.select("PaymentPlansId", currency, "PlannedAmount", "day", paid)
        for side, paid in ((parts, own), (unlinked, zero().alias("own")))
    ]
    amount = pl.col("PlannedAmount").fill_null(zero())
    unsettled = amount - pl.col("own")
    less, more = (of(unsettled, zero()) for of in (pl.min_horizontal, pl.max_horizontal))
    late = pl.when(amount < 0).then(less).otherwise(more)  # Refunds are negative.
    due = pl.col("day") <= as_day(as_of)
    asked = (
        pl.concat(details)
        .lazy()
        .group_by(_PLAN)
        .agg(
            pl.len().alias("details"),
            amount.sum().alias("planned"),
            pl.when(due).then(late).sum().alias("overdue"),
        )
        .collect(engine="streaming")
    )
    paid = (
        parts.lazy()
        .group_by("PaymentPlansId", pl.col("paid_in").alias("currency"))
        .agg(pl.col("allotted").sum().alias("paid"))
        .collect(engine="streaming")
    )
    return (
        asked.join(paid, on=_PLAN, how="full", nulls_equal=True, coalesce=True)
        .with_columns(
            pl.col("details").fill_null(0), pl.col("planned", "paid", "overdue").fill_null(zero())
        )
        .with_columns((pl.col("planned") - pl.col("paid")).alias("outstanding"))
        .join(_flags(breaks, parts), on="PaymentPlansId", how="left")
        .with_columns(pl.col("flags").fill_null(pl.lit([], pl.List(pl.String))))
        .sort(_PLAN, nulls_last=True)
    )


def _flags(breaks: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Codes of a plan's own breaks and of breaks of the payments that it names."""
    key = pl.col("key").str.split("/").list
    # The keys of details and of plans begin with the plan.
    own = breaks.filter(pl.col("record") == PAYMENT_PLAN_DETAIL.name).select(
        "code", PaymentPlansId=key.first().cast(pl.Int32, strict=False)
    )
    through = (
        breaks.filter(pl.col("record") == PAYMENT.name)
        .select("tenant", "code", pay_id=key.first().cast(pl.Int64, strict=False))
        .join(parts, on=PAYMENT_OF, how="inner")
        .select("code", "PaymentPlansId")
    )
    return (
        pl.concat([own, through])
        .drop_nulls()
        .group_by("PaymentPlansId")
        .agg(pl.col("code").unique().sort().alias("flags"))
    )


def plan_lines(rows: pl.DataFrame, with_payments: pl.DataFrame) -> tuple[PlanLine, ...]:
    """The lines a reader sees, chosen from plans with flags first."""
    return tuple(
        PlanLine(
            plan="" if row["PaymentPlansId"] is None else str(row["PaymentPlansId"]),
            tenant=row["tenant"],
            currency="" if row["currency"] is None else str(row["currency"]),
            details=row["details"],
            planned=money(row["planned"]),
            paid=money(row["paid"]),
            outstanding=money(row["outstanding"]),
            overdue=money(row["overdue"]),
            status_codes=tuple(row["status_codes"] or ()),
            flags=tuple(row["flags"]),
        )
        for row in _with_tenant_and_codes(listed(rows, "outstanding"), with_payments)
        .sort("at")
        .iter_rows(named=True)
    )


def _with_tenant_and_codes(plans: pl.DataFrame, with_payments: pl.DataFrame) -> pl.DataFrame:
    """Lines of plans with their tenant and the status codes of their details."""
    details = with_payments.select(
        *("PaymentPlansId", "whose", _STATUS), pl.col("PlannedCurrenciesId").alias("currency")
    ).join(plans, on="PaymentPlansId", how="semi", nulls_equal=True)
    codes = (
        details.drop_nulls(_STATUS)
        .group_by(_PLAN)
        .agg(pl.col(_STATUS).unique().sort().alias("status_codes"))
    )
    whose = details.group_by("PaymentPlansId").agg(pl.col("whose").first().alias("tenant"))
    return plans.join(codes, on=_PLAN, how="left", nulls_equal=True).join(
        whose, on="PaymentPlansId", how="left", nulls_equal=True
    )
