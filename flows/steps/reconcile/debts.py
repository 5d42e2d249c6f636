"""J9: every debt by its payments, its planned amounts, and its number of invoice files.

A debt is a DebtsId of a tenant. Money is added per currency only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from flows.steps.breaks.make import (
    LINES,
    as_text,
    day_paid,
    joined,
    make_breaks,
    money,
    number_duplicates,
    together,
    zero,
)
from flows.steps.frames import beyond
from flows.steps.frames.beyond import beyond_of, exact_sum, money_text, sums_beyond
from flows.steps.match.packing import grouped
from flows.steps.match.pairing import maybe_repeated
from flows.steps.reconcile.own import DEBT
from flows.steps.rules.rules import Discount, Rules
from schemas.amounts import BEYOND, spelled
from schemas.kinds import OFFSET
from schemas.tables import PAYMENT

_LINE = [*DEBT, "currency"]
_BY = {"TenantsId": "tenant", "DebtsId": "debt", "CurrenciesId": "currency"}
"""Columns of payments that identify their tenant, debt and currency, and their new names."""
OWED = (*_BY, "PaidAmount", "DiscountAmount", "PaymentDate", "PaymentDate" + OFFSET)
"""Columns of payments that debts are rolled up from."""


@dataclass(frozen=True, slots=True)
class DebtLine:
    debt: str
    tenant: int | None
    currency: str
    payments: int
    paid: Decimal
    discount: Decimal
    planned: Decimal | None
    invoices: int
    flags: tuple[str, ...]


def roll_up(payments: pl.DataFrame) -> pl.DataFrame:
    """Payments by tenant, debt and currency: number, paid, discount, and the last day."""
    sums = [
        pl.len().alias("payments"),
        pl.col("PaidAmount").sum().alias("paid"),
        pl.col("DiscountAmount").sum().alias("discount"),
        day_paid().max().alias("day"),
    ]
    rolled = grouped(payments, _BY, sums)
    for name, held in (("PaidAmount", "paid"), ("DiscountAmount", "discount")):
        if beyond_of(payments, [name]):
            rolled = _with_beyond(rolled, payments, name, held)
    return rolled


def rolled_together(rolled: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Combine roll-ups of parts of the payments, which have exact amounts only."""
    by = {name: name for name in _BY.values()}
    sums = [pl.col("payments", "paid", "discount").sum(), pl.col("day").max()]
    return grouped(pl.concat(rolled), by, sums).cast({"payments": pl.UInt32})


def _with_beyond(
    rolled: pl.DataFrame, payments: pl.DataFrame, name: str, held: str
) -> pl.DataFrame:
    """Add the text of a sum to debts with an amount that fits no exact column.

    Such a sum is not compared, but shown exactly.
    """
    on = [*_BY.values()]
    group = [pl.col(column).alias(new) for column, new in _BY.items()]
    sums = sums_beyond(payments.lazy(), group, {held: name})
    there = pl.DataFrame(list(sums), {new: rolled.schema[new] for new in on}, orient="row")
    known = there.join(rolled, on=on, how="left", nulls_equal=True, maintain_order="left")[held]
    whole = [
        spelled(exact_sum([amount, more[held]]))
        for amount, more in zip(known, sums.values(), strict=True)
    ]
    both = there.with_columns(pl.Series(held + BEYOND, whole, pl.String))
    with_amounts = rolled.join(both, on=on, how="left", nulls_equal=True, maintain_order="left")
    return with_amounts.with_columns(
        pl.when(pl.col(held + BEYOND).is_null()).then(held).alias(held)
    )


def reconcile_debts(rolled: pl.DataFrame, planned: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """The breaks of J9; `planned` is `allotment.PLANNED_SCHEMA`, empty if no plan is known."""
    return number_duplicates([_unequal(rolled, planned, rules), _mixed(rolled), _discounts(rolled)])


def _debt_break(code: str, rows: pl.DataFrame, name: str, **facts: pl.Expr) -> pl.DataFrame:
    given = {
        "key": joined("debt", "currency"),
        "currency": pl.col("currency"),
        "tenant": pl.col("tenant"),
        "date": pl.col("day"),
        "note": pl.format("debt {}", "debt"),
    } | facts
    return make_breaks(code, PAYMENT.name, rows.sort(*DEBT), name=name, **given)


def _unequal(rolled: pl.DataFrame, planned: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    counts = rules.plans.discount is Discount.COUNTS
    settled = pl.col("paid") + pl.col("discount") if counts else pl.col("paid")
    delta = settled - pl.col("planned")
    both = planned.join(rolled, on=_LINE, how="inner")
    equal_with = pl.col("paid") + pl.col("discount") == pl.col("planned")
    unsettled = equal_with & (rules.plans.discount is Discount.UNKNOWN)
    note = pl.format(
        "debt {}{}",
        "debt",
        pl.when(unsettled)
        .then(pl.lit(": equal with the discount, which the rules do not say to count"))
        .otherwise(pl.lit("")),
    )
    facts = {
        "expected": money_text("planned"),
        "found": money_text(settled),
        "delta": delta,
        "amount": delta.abs(),
        "note": note,
    }
    under = both.filter(delta < pl.lit(-rules.plans.under))
    over = both.filter(delta > pl.lit(rules.plans.over))
    return together(
        [
            _debt_break("DEBT_UNDER", under, "PaidAmount", **facts),
            _debt_break("DEBT_OVER", over, "PaidAmount", **facts),
        ]
    )


def _mixed(rolled: pl.DataFrame) -> pl.DataFrame:
    # A line is one debt in one currency, so a debt with two lines has two currencies.
    alike = maybe_repeated(rolled.select(DEBT))
    several = rolled.clear() if alike is None else rolled.filter(alike)
    debts = (
        several.filter(pl.struct(DEBT).is_duplicated())
        .group_by(DEBT)
        .agg(pl.col("currency").sort().alias("currencies"), pl.col("day").min())
    )
    return _debt_break(
        "DEBT_MIXED_CCY",
        debts,
        "CurrenciesId",
        key=as_text("debt"),
        currency=pl.lit(None),
        found=pl.col("currencies").cast(pl.List(pl.String)).list.join(", ", ignore_nulls=True),
    )


def _discounts(rolled: pl.DataFrame) -> pl.DataFrame:
    more = rolled.filter(pl.col("discount") > 0, pl.col("discount") > pl.col("paid"))
    return _debt_break(
        "DISCOUNT_GT_PAID",
        more,
        "DiscountAmount",
        expected=pl.format("at most {}", money_text("paid")),
        found=money_text("discount"),
        amount=pl.col("discount"),
    )


def listed_debts(
    rolled: pl.DataFrame, planned: pl.DataFrame, invoices: pl.DataFrame, breaks: pl.DataFrame
) -> pl.DataFrame:
    """A row per debt and currency; of many, those with breaks and the largest.

    `invoices` counts the files of a debt (`documents.Coverage`); a debt that has files or a plan
    but no payment is a row too.
    """
    flags = _flags(breaks)
    return _largest(debt_rows(*_within_reach(rolled, planned, invoices, flags), flags))


def count_lines(rolled: pl.DataFrame, planned: pl.DataFrame, invoices: pl.DataFrame) -> int:
    """How many rows `listed_debts` would have if all were shown."""
    unpaid = planned.join(rolled, on=_LINE, how="anti", nulls_equal=True)
    known = pl.concat([side.select(DEBT) for side in (rolled, planned)])
    return rolled.height + unpaid.height + invoices.join(known, on=DEBT, how="anti").height


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    if rows.height > LINES:
        flagged = pl.col("flags").list.len() > 0
        rows = rows.sort(flagged, "paid", *_LINE, descending=[True, True, False, False, False])
        rows = rows.head(LINES)
    return rows.sort(_LINE, nulls_last=True)


def debt_lines(listed: Sequence[pl.DataFrame]) -> tuple[DebtLine, ...]:
    """The lines a report shows, from the rows listed of each range of debts."""
    return tuple(
        DebtLine(
            debt=str(row["debt"]),
            tenant=row["tenant"],
            currency="" if row["currency"] is None else str(row["currency"]),
            payments=row["payments"],
            paid=_money(row, "paid"),
            discount=_money(row, "discount"),
            planned=None if row["planned"] is None else money(row["planned"]),
            invoices=row["invoices"],
            flags=tuple(row["flags"]),
        )
        for row in _largest(pl.concat(listed, how="diagonal")).iter_rows(named=True)
    )


def _within_reach(
    rolled: pl.DataFrame, planned: pl.DataFrame, invoices: pl.DataFrame, flags: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The debts that can be among the rows shown; all of them if there are few."""
    if rolled.height <= LINES:
        return rolled, planned, invoices
    # A sum that no exact column holds is null, and nulls come first when debts are sorted.
    least = rolled["paid"].top_k(LINES).min()
    large = rolled.filter((pl.col("paid") >= least).fill_null(value=True))
    largest = large.sort("paid", *_LINE, descending=[True, False, False, False]).head(LINES)
    # Debts without a payment rank above those with a negative sum.
    unpaid = flags.join(rolled, on=DEBT, how="anti").sort(DEBT).head(LINES)
    some = [largest, rolled.join(flags, on=DEBT, how="semi"), unpaid]
    if (largest["paid"] <= 0).any():
        # Debts with only a plan or invoice files have no payment either.
        without = pl.concat([side.select(DEBT) for side in (planned, invoices)]).unique()
        some.append(without.join(rolled, on=DEBT, how="anti").sort(DEBT).head(LINES))
    near = pl.concat([side.select(DEBT) for side in some])
    return tuple(side.join(near, on=DEBT, how="semi") for side in (rolled, planned, invoices))  # type: ignore[return-value]


def debt_rows(
    rolled: pl.DataFrame, planned: pl.DataFrame, invoices: pl.DataFrame, flags: pl.DataFrame
) -> pl.DataFrame:
    """Debts by currency with what is planned, the number of their files, and their flags."""
    rows = rolled.join(planned, on=_LINE, how="full", nulls_equal=True, coalesce=True)
    unpaid = invoices.join(rows, on=DEBT, how="anti").select(DEBT)
    return (
        pl.concat([rows, unpaid], how="diagonal")
        .join(invoices, on=DEBT, how="left")
        .join(flags, on=DEBT, how="left")
        .with_columns(
            pl.col("payments", "invoices").fill_null(0),
            # With payments a null means that the text is beside it.
            pl.when(pl.col("payments").is_null())
            .then(zero())
            .otherwise(pl.col("paid", "discount"))
            .name.keep(),
            pl.col("flags").fill_null(pl.lit([], pl.List(pl.String))),
        )
    )


def _money(row: Mapping[str, Any], name: str) -> Decimal:
    return money(beyond.from_both(row[name], row.get(name + BEYOND)) or Decimal(0))


def _flags(breaks: pl.DataFrame) -> pl.DataFrame:
    """The codes of each debt's breaks, whose notes name the debt."""
    return (
        breaks.select(
            "tenant",
            pl.col("note").str.extract(r"^debt (-?[0-9]+)").cast(pl.Int64).alias("debt"),
            "code",
        )
        .drop_nulls()
        .group_by(DEBT)
        .agg(pl.col("code").unique().sort().alias("flags"))
    )
