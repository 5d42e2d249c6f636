"""J6 and J7: payment plan details against the payments they name, and per plan.

A detail belongs to the tenant of its payment. A payment that several details name is allotted to
them in the order of their days, up to the planned amount of each; the last one gets the rest. Money
of two currencies is never added: a detail in another currency than its payment is only reported.
"""

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.make import (
    NOWHERE,
    ORIGIN,
    as_day,
    as_text,
    day_paid,
    joined,
    key_text,
    left_of,
    make_breaks,
    number_duplicates,
    quantities,
    together,
)
from flows.steps.frames.beyond import money_text
from flows.steps.frames.parts import Load, with_rows_of
from flows.steps.frames.sources import no_records
from flows.steps.match.pairing import maybe_repeated
from flows.steps.reconcile.allotment import PlanAnnex, allotted, plan_lines, plan_rows, planned
from flows.steps.reconcile.links import PAYMENT_OF, linked, per_payment, prepared
from flows.steps.reconcile.own import EVERY, Own
from flows.steps.rules.rules import Discount, Rules
from flows.steps.rules.rules import Plans as PlanRules
from schemas.kinds import OFFSET
from schemas.tables import PAYMENT, PAYMENT_PLAN_DETAIL

WIDEST = 2**31 - 1
"""The largest payment number a plan detail can hold."""
_DETAIL = PAYMENT_PLAN_DETAIL.name
_NO_DETAILS, _NO_PAYMENTS = no_records(PAYMENT_PLAN_DETAIL), no_records(PAYMENT)


def reconcile_plans(
    details: pl.DataFrame,
    payments: pl.DataFrame,
    rules: Rules,
    as_of: date,
    places: Mapping[str, pl.DataFrame] = NOWHERE,
    *,
    later_details: pl.DataFrame = _NO_DETAILS,
    later_payments: pl.DataFrame = _NO_PAYMENTS,
    own: Own = EVERY,
) -> PlanAnnex:
    """The breaks of J6 and J7, one line per plan and currency, and the planned amounts per debt.

    Frames follow `sources.record_schema`, with `make.ORIGIN` where it is known, or `places` to look
    it up in (see `make.number_duplicates`). Records after the cut-off are known, but not judged by
    themselves: a payment settles later details too, and may be early or in another currency for
    them; a detail that is due and was paid after the cut-off counts as unpaid. Only breaks and
    lines of `own` are returned.
    """
    more = later_payments
    if more.height:
        # A later payment must not change which payment a number refers to as of the day.
        more = more.join(payments, on="Id", how="anti", maintain_order="left")
    every, both = with_rows_of(payments, more), with_rows_of(details, later_details)
    found = _paid_by(linked(prepared(both), every, rules.plans), as_of)
    links = found.filter(pl.col("tenant").is_not_null())
    paid = per_payment(links)
    asked = planned(found, links, as_of)
    parts = allotted(links)
    with_payments = found
    if later_details.height:
        until = (pl.col("day") <= as_day(as_of)).fill_null(value=True)
        with_payments, parts = (rows.filter(until) for rows in (found, parts))
    found_breaks = [
        _unnamed(with_payments, every),
        _too_wide(payments, asked),
        _crossing(with_payments),
        _against_payment(links, rules.plans),
        _unequal(paid, rules.plans),
        _unpaid(with_payments, as_of),
        _repeated(with_payments),
        _mixed(found),
    ]
    breaks = own.breaks(number_duplicates(found_breaks, places))
    rows = own.of_plans(plan_rows(with_payments, parts, breaks, as_of))
    return PlanAnnex(breaks, (), plan_lines(rows, with_payments), left_of(rows.height), rows, asked)


def of_plans(payments: Sequence[Load], named: pl.Series) -> pl.DataFrame:
    """The payments that matter to plans: those named by details or with too wide a number.

    `named` are the numbers that details name; if payments are one part, all are returned.
    """
    if len(payments) == 1:
        return payments[0]()
    asked = named.drop_nulls().unique().cast(pl.Int64).implode()
    return pl.concat(load().filter(pl.col("Id").is_in(asked) | is_wide()) for load in payments)


def _paid_by(with_payments: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Details as of the day: one that was paid after it has no payment yet."""
    later = (pl.col("paid_on") > as_day(as_of)).fill_null(value=False)
    paid = (name for name in with_payments.columns if name.startswith("paid"))
    about = [*PAYMENT_OF, "debt", *paid, "discount", "settled", "tenants"]
    return with_payments.with_columns(
        *(pl.when(~later).then(name).alias(name) for name in about),
        pl.when(later).then("paid_on").alias("later"),
    )


def _detail_break(code: str, rows: pl.DataFrame, name: str, **facts: pl.Expr) -> pl.DataFrame:
    given = {
        "tenant": pl.coalesce("tenant", "whose"),
        "currency": pl.col("PlannedCurrenciesId"),
        "amount": pl.col("PlannedAmount"),
        "date": pl.col("day"),
    } | facts
    return make_breaks(code, _DETAIL, rows, key=key_text(PAYMENT_PLAN_DETAIL), name=name, **given)


def _unnamed(with_payments: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """Breaks of references to missing payments; another code if a number was cut to 32 bits."""
    lost = with_payments.filter(pl.col("pay_id").is_not_null(), pl.col("tenants").is_null())
    if lost.is_empty():
        return no_breaks()
    wide = payments.lazy().filter(is_wide()).select("Id").unique()
    cut = (
        pl.concat(wide.with_columns(number.alias("pay_id")) for number in cut_numbers())
        .group_by("pay_id")
        .agg(pl.col("Id").min().alias("meant"))
        .collect()
    )
    found = lost.join(cut, on="pay_id", how="left", maintain_order="left")
    reference = as_text("PaymentsId")
    return together(
        [
            _detail_break(
                "PLAN_ORPHAN",
                found.filter(pl.col("meant").is_null()),
                "PaymentsId",
                expected=reference,
                note=pl.format("payment {} is not there", "PaymentsId"),
            ),
            _detail_break(
                "PLAN_REF_WIDTH",
                found.filter(pl.col("meant").is_not_null()),
                "PaymentsId",
                expected=as_text("meant"),
                found=reference,
                note=pl.lit("a payment's number cut to 32 bits"),
            ),
        ]
    )


def is_wide() -> pl.Expr:
    """Whether a payment has a number that no plan detail can hold."""
    return (pl.col("Id") > WIDEST) | (pl.col("Id") < -WIDEST - 1)


def cut_numbers() -> tuple[pl.Expr, pl.Expr]:
    """The 32-bit numbers a payment's number may have been cut to: its low bits, or the nearest."""
    number = pl.col("Id")
    last = number.cast(pl.Int32, wrap_numerical=True).cast(pl.Int64)
    return last, number.clip(-WIDEST - 1, WIDEST)


def _too_wide(payments: pl.DataFrame, planned: pl.DataFrame) -> pl.DataFrame:
    """Breaks of payments for planned debts whose number is too wide for a detail to name them."""
    debts = planned.select(TenantsId="tenant", DebtsId="debt").unique()
    wide = payments.filter(is_wide()).join(
        debts, on=["TenantsId", "DebtsId"], how="semi", maintain_order="left"
    )
    return make_breaks(
        "PLAN_REF_WIDTH",
        PAYMENT.name,
        wide,
        key=key_text(PAYMENT),
        name="Id",
        tenant=pl.col("TenantsId"),
        currency=pl.col("CurrenciesId"),
        found=as_text("Id"),
        amount=pl.col("PaidAmount"),
        date=day_paid(),
        note=pl.format("debt {} is paid by plan", "DebtsId"),
    )


def _crossing(with_payments: pl.DataFrame) -> pl.DataFrame:
    """Breaks of plans whose details name payments of several tenants, or of an unclear one."""
    undecided = pl.col("tenant").is_null()
    of_several = pl.col("PaymentPlansId").is_not_null() & pl.col("whose").is_null()
    plans = (
        with_payments.lazy()
        .filter(pl.col("tenants") > 0, of_several | undecided)
        .group_by("PaymentPlansId")
        .agg(
            pl.col("tenant").drop_nulls().unique().sort().alias("whose"),
            undecided.sum().alias("undecided"),
            pl.col("day").min(),
            *(pl.col(name).first() for name in ORIGIN if name in with_payments.columns),
        )
        .filter((pl.col("whose").list.len() > 1) | (pl.col("undecided") > 0))
        .sort("PaymentPlansId")
        .collect()
    )
    return make_breaks(
        "TENANT_CROSS",
        _DETAIL,
        plans,
        key=joined("PaymentPlansId"),
        name="PaymentsId",
        found=pl.col("whose").cast(pl.List(pl.String)).list.join(", "),
        date=pl.col("day"),
        note=pl.when(pl.col("undecided") > 0)
        .then(pl.format("details whose payment may be of several tenants: {}", "undecided"))
        .otherwise(pl.lit("its details name payments of several tenants")),
    )


def _against_payment(links: pl.DataFrame, rules: PlanRules) -> pl.DataFrame:
    """Breaks of details whose currency or day differs from that of their payment."""
    other = pl.col("PlannedCurrenciesId") != pl.col("paid_in")
    days = (pl.col("paid_on") - pl.col("day")).dt.total_days()
    planned_on, paid_on = as_text("day"), as_text("paid_on")
    name = "PlannedCurrenciesId"
    values = {"expected": as_text(name), "found": as_text("paid_in")}
    frames = [_detail_break("PLAN_CURRENCY", links.filter(other), name, **values)]
    values = {"expected": planned_on, "found": paid_on}
    bounds = ("PLAN_LATE", rules.late_days, days), ("PLAN_EARLY", rules.early_days, -days)
    for code, most, by in bounds:
        if most is not None:
            note, rows = quantities(by, "day"), links.filter(by > most)
            frames.append(_detail_break(code, rows, "PlannedDate", note=note, **values))
    return together(frames)


def _unequal(paid: pl.DataFrame, rules: PlanRules) -> pl.DataFrame:
    """Breaks of payments that settle less or more than was planned for them."""
    delta = pl.col("settled") - pl.col("planned")
    compared = paid.filter(pl.col("same_currency"), delta != 0).sort(PAYMENT_OF)
    unsettled = rules.discount is Discount.UNKNOWN
    by_discount = (pl.col("paid") + pl.col("discount") == pl.col("planned")) & unsettled
    words = "equal with the discount, which the rules do not say to count"
    note = pl.when(by_discount).then(pl.lit(words))
    sides = (("PLAN_UNDER", delta < -pl.lit(rules.under)), ("PLAN_OVER", delta > rules.over))
    return together(
        [
            make_breaks(
                code,
                PAYMENT.name,
                compared.filter(off),
                key=joined(*PAYMENT_OF),
                name="PaidAmount",
                tenant=pl.col("tenant"),
                currency=pl.col("paid_in"),
                expected=money_text("planned"),
                found=money_text("settled"),
                delta=delta,
                amount=delta.abs(),
                date=pl.col("paid_on"),
                note=note,
            )
            for code, off in sides
        ]
    )


def _unpaid(with_payments: pl.DataFrame, as_of: date) -> pl.DataFrame:
    due = with_payments.filter(pl.col("pay_id").is_null(), pl.col("day") <= as_day(as_of))
    return _detail_break(
        "PLAN_UNPAID",
        due,
        "PaymentsId",
        expected=as_text("day"),
        found=as_text("later"),
        note=pl.format("paid on {}, after the cut-off", "later"),
    )


def _repeated(with_payments: pl.DataFrame) -> pl.DataFrame:
    # What status codes mean is not documented, so a repeat may differ in its status code.
    names = [name for name in PAYMENT_PLAN_DETAIL.columns if name != "StatusCodesId"]
    content = [*names, "PlannedDate" + OFFSET]
    alike = maybe_repeated(with_payments.select(content))
    if alike is None:
        return no_breaks()
    several = (
        with_payments.filter(alike)
        .lazy()
        .filter(pl.struct(content).is_duplicated())
        .sort("StatusCodesId", nulls_last=True)
        .with_columns(pl.len().over(content).alias("times"))
        .unique(content, keep="first", maintain_order=True)
        .collect()
    )
    return _detail_break(
        "PLAN_DUPLICATE", several, "", expected=pl.lit("1"), found=as_text("times")
    )


def _mixed(with_payments: pl.DataFrame) -> pl.DataFrame:
    currency = pl.col("PlannedCurrenciesId")
    several = (
        with_payments.lazy()
        .filter(pl.col("PaymentPlansId").is_not_null())
        .group_by("PaymentPlansId")
        .agg(currency.min().alias("low"), currency.max().alias("high"))
        .filter(pl.col("low") < pl.col("high"))
    )
    plans = (
        with_payments.lazy()
        .join(several, on="PaymentPlansId", how="semi")
        .group_by("PaymentPlansId")
        .agg(
            currency.drop_nulls().unique().sort().alias("currencies"),
            pl.col("whose").first(),
            pl.col("day").min(),
            *(pl.col(name).first() for name in ORIGIN if name in with_payments.columns),
        )
        .sort("PaymentPlansId")
        .collect()
    )
    return make_breaks(
        "PLAN_MIXED_CCY",
        _DETAIL,
        plans,
        key=as_text("PaymentPlansId"),
        name="PlannedCurrenciesId",
        tenant=pl.col("whose"),
        found=pl.col("currencies").cast(pl.List(pl.String)).list.join(", "),
        date=pl.col("day"),
    )
