"""J8: which paid debts have an invoice file, and which files have a payment.

An invoice file has no amount, so this is about coverage only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.make import (
    NOWHERE,
    ORIGIN,
    amount_text,
    as_text,
    key_text,
    make_breaks,
    number_duplicates,
)
from flows.steps.frames.beyond import beyond_of
from flows.steps.frames.sources import in_order
from flows.steps.match.packing import grouped
from flows.steps.match.pairing import pair
from flows.steps.match.same_text import same
from flows.steps.reconcile.left_out import AROUND, LEFT_OUT
from flows.steps.reconcile.own import DEBT
from flows.steps.reconcile.tenants import crossings
from schemas.amounts import BEYOND
from schemas.field import Table
from schemas.tables import INVOICE_FILE, PAYMENT


@dataclass(frozen=True, slots=True)
class Coverage:
    """A range of debts compared with their invoice files."""

    none: pl.DataFrame
    """The breaks of debts without a file, not numbered yet; complete for each debt."""
    breaks: list[pl.DataFrame]
    """The breaks about files, not numbered yet."""
    strange: pl.DataFrame
    """Files of debts that were paid only under other tenants."""
    counts: pl.DataFrame
    """How many files each debt has: tenant, debt, invoices."""


def cover(rolled: pl.DataFrame, invoices: pl.DataFrame) -> Coverage:
    """Compare debts from `debts.roll_up` with all of their invoice files.

    A file whose debt was paid only under other tenants is INV_TENANT; the debt then has its file
    and is not INV_NONE too. Files that are `LEFT_OUT`, or `AROUND` the scope, are not judged, but a
    debt has them; files around are also counted, with their addresses.
    """
    out, near = (
        pl.col(name) if name in invoices.columns else pl.lit(value=False)
        for name in (LEFT_OUT, AROUND)
    )
    ignored = out | near
    files = invoices.with_columns(tenant="TenantsId", debt="DebtsId")
    whose = {"TenantsId": "tenant", "DebtsId": "debt"}
    # Files without a DebtsId belong to no debt.
    every, counts = (
        grouped(some.drop_nulls("DebtsId"), whose, [pl.len().alias("invoices")])
        for some in (invoices, invoices.filter(~out))
    )
    whole = ["debt", "tenant"]
    both = pair(rolled.select(whole), every.select(whole), nulls_equal=False)
    loose = every[both.unmatched].select(DEBT)
    unmatched = files.join(loose, on=DEBT, how="semi", maintain_order="left")
    # In the order of the ranges of debts, so that of two files with one key the second is numbered.
    unmatched = in_order(INVOICE_FILE, unmatched).sort("debt", maintain_order=True)
    near_ones = rolled.join(loose, on="debt", how="semi")
    abroad = near_ones.group_by("debt").agg(pl.col("tenant").min().alias("other"))
    strange = unmatched.join(abroad, on="debt", how="inner", maintain_order="left")
    unpaid = unmatched.join(abroad, on="debt", how="anti", maintain_order="left").filter(~ignored)
    without = rolled.filter(both.partner.is_null()).join(strange, on="debt", how="anti")
    strange = strange.filter(~ignored)
    of_file = key_text(INVOICE_FILE)
    other, tenant = as_text("other"), as_text("tenant")
    breaks = [
        _break("INV_UNPAID", INVOICE_FILE, unpaid, of_file),
        _break("INV_TENANT", INVOICE_FILE, strange, of_file, expected=other, found=tenant),
        _several(files.filter(~out), files.filter(~ignored), counts),
    ]
    return Coverage(_none(without), breaks, strange, counts)


def reconcile_documents(
    covered: Sequence[Coverage], places: Mapping[str, pl.DataFrame] = NOWHERE
) -> pl.DataFrame:
    """The breaks of J8 over all ranges of debts."""
    nowhen = pl.lit(None, pl.Date).alias("day")
    across = pl.concat(
        one.strange.select("tenant", "other", nowhen, key=key_text(INVOICE_FILE)) for one in covered
    )
    breaks = [frame for one in covered for frame in (one.none, *one.breaks)]
    crossed = crossings(INVOICE_FILE.name, "DebtsId", across)
    return number_duplicates([*breaks, crossed], places)


def _none(without: pl.DataFrame) -> pl.DataFrame:
    one = pl.len() == 1
    paid = ["paid", *(f"{name}{BEYOND}" for name in beyond_of(without, ["paid"]))]
    debts = (
        without.with_columns(amount_text(without, "paid").alias("amounts"))
        .group_by(DEBT)
        .agg(
            pl.when(one).then(pl.col("currency", *paid).first()),
            # Acceptances are bound to these amounts, because that of the break is unsigned.
            pl.when(one)
            .then(pl.format("paid {}", "amounts").first())
            .otherwise(
                pl.format("paid {} in currency {}", "amounts", "currency")
                .sort_by("currency", nulls_last=True)
                .str.join(", ")
            )
            .alias("amounts"),
            pl.col("day").min(),
        )
        .sort(DEBT)
    )
    named = {"currency": "currency", "amounts": "amounts", "amount": "paid", "date": "day"}
    facts = {name: pl.col(column) for name, column in named.items()}
    return _break("INV_NONE", PAYMENT, debts, as_text("debt"), **facts)


def _break(
    code: str, table: Table, rows: pl.DataFrame, key: pl.Expr, **facts: pl.Expr
) -> pl.DataFrame:
    facts |= {"tenant": pl.col("tenant"), "note": pl.format("debt {}", "debt")}
    return make_breaks(code, table.name, rows, key=key, name="DebtsId", **facts)


def _several(files: pl.DataFrame, own: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Debts with more than one address; one address under two numbers is INV_DUPLICATE.

    The addresses of all `files` are counted; the break names the first of the scope's `own` files.
    """
    more = counts.filter(pl.col("invoices") > 1).join(own, on=DEBT, how="semi")
    addresses = (
        files.join(more, on=DEBT, how="semi")
        .group_by(DEBT)
        .agg(pl.col("InvoiceUrl").unique().alias("addresses"))
        .filter(pl.col("addresses").list.len() > 1)
    )
    debts = (
        in_order(INVOICE_FILE, own.join(addresses, on=DEBT, how="semi", maintain_order="left"))
        .group_by(DEBT)
        .agg(pl.col(name).first() for name in ORIGIN if name in own.columns)
        .join(addresses, on=DEBT)
        .with_columns(
            pl.col("addresses")
            .list.eval(pl.element().map_elements(same, pl.String))
            .list.n_unique()
        )
        .filter(pl.col("addresses") > 1)
        .sort(DEBT)
    )
    key, several = as_text("debt"), as_text("addresses")
    return _break("INV_MULTI", INVOICE_FILE, debts, key, expected=pl.lit("1"), found=several)
