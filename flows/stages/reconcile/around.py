"""Database records outside a scope that joins compare with the scope's records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

import polars as pl
import psycopg

from connectors.postgres.runs import sources
from flows.steps.breaks.make import day_paid
from flows.steps.frames.beyond import texts_last
from flows.steps.frames.parts import Load, columns_of
from flows.steps.frames.sources import no_records
from flows.steps.reconcile.countable import among
from flows.steps.reconcile.plans import cut_numbers, is_wide
from schemas.field import Table
from schemas.kinds import OFFSET, identity_columns
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL

_DEBT = ("TenantsId", "DebtsId")
_BELONGS_BY = {
    PAYMENT: (*_DEBT, "CurrencyRatesId", "PaymentDate", "PaymentDate" + OFFSET),
    PAYMENT_PLAN_DETAIL: ("PaymentsId", "PaymentPlansId"),
    INVOICE_FILE: _DEBT,
    CURRENCY_RATE: ("TenantsId",),
}
"""Fields of records that say, besides their identity, what they belong with."""


def records_around(
    rows_of_all: Callable[[Table], Iterable[pl.DataFrame]],
    database: Mapping[str, Sequence[Load]],
    *,
    narrow: bool,
) -> dict[str, pl.DataFrame]:
    """Records of the database that belong with those of the scope (`database`), whoever owns them.

    These are the plans of the scope's payments and details, everything planned for what those name,
    what details name, and the rates that payments name. For a `narrow` scope, also the rates of its
    tenants, whatever else was paid for the debts of its payments and invoice files, with all their
    plans, and the files of these debts. A scope of tenants already has everything of theirs; for
    its debts without a file, and files without a payment, other tenants' records are added.
    `rows_of_all` yields a million rows in parts, of which few are kept.
    """
    own = {table.name: _links_of(table, database.get(table.name)) for table in _BELONGS_BY}

    def read(table: Table, *more: pl.Expr, **wanted: pl.Series) -> pl.DataFrame:
        asked = {name: some.cast(pl.Int64).drop_nulls().unique() for name, some in wanted.items()}
        if not more and all(some.is_empty() for some in asked.values()):
            return no_records(table)
        related = [
            pl.col(name).cast(pl.Int64).is_in(some.implode()) for name, some in asked.items()
        ]
        related += more
        if table is PAYMENT:
            # A detail may name a payment by a truncated number.
            related += [is_wide() & cut.is_in(asked["Id"].implode()) for cut in cut_numbers()]
        parts = [texts_last(rows.filter(pl.any_horizontal(related))) for rows in rows_of_all(table)]
        found = pl.concat(parts, how="diagonal")
        return found.filter(~among(table, found, own[table.name]))

    paid, planned, files, rates = (own[table.name] for table in _BELONGS_BY)
    debts = pl.concat([paid["DebtsId"], files["DebtsId"]])
    named = paid["Id"]
    if narrow:
        joined = read(PAYMENT, DebtsId=debts, Id=planned["PaymentsId"])
        named = pl.concat([named, joined["Id"]])
    named = pl.concat([named, planned["PaymentsId"].cast(pl.Int64)])
    names, plans = _linked(rows_of_all, named, planned["PaymentPlansId"])
    details = read(PAYMENT_PLAN_DETAIL, PaymentsId=names, PaymentPlansId=plans)
    rate = {"Id": paid["CurrencyRatesId"]}
    unpaid: tuple[pl.Expr, ...] = ()
    if narrow:
        joined = read(INVOICE_FILE, DebtsId=debts)
        rate["TenantsId"] = pl.concat([paid["TenantsId"], rates["TenantsId"]])
    else:
        joined = read(INVOICE_FILE, DebtsId=paid.join(files, on=_DEBT, how="anti")["DebtsId"])
        debts = joined["DebtsId"]
        unpaid = _while_unpaid(files, paid)
    around = {
        PAYMENT.name: read(PAYMENT, *unpaid, DebtsId=debts, Id=names),
        PAYMENT_PLAN_DETAIL.name: details,
        INVOICE_FILE.name: joined,
        CURRENCY_RATE.name: read(CURRENCY_RATE, **rate),
    }
    return around if narrow or any(rows.height for rows in around.values()) else {}


def _linked(
    rows_of_all: Callable[[Table], Iterable[pl.DataFrame]], names: pl.Series, plans: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """The payments and plans that plan details lead to from the given ones; empty if none does.

    A payment is shared among all details that name it, and which record a detail means by a number
    that several tenants have follows from the rest of its plan.
    """
    if names.null_count() == names.len() and plans.null_count() == plans.len():
        return names.clear(), plans.clear()
    links = pl.concat(
        rows.select(pl.col("PaymentsId", "PaymentPlansId").cast(pl.Int64))
        for rows in rows_of_all(PAYMENT_PLAN_DETAIL)
    ).unique()
    known, found = -1, links.clear()
    reached = [names.cast(pl.Int64), plans.cast(pl.Int64)]
    while found.height > known:
        known = found.height
        near = [
            pl.col(name).is_in(some.drop_nulls().unique().implode())
            for name, some in zip(links.columns, reached, strict=True)
        ]
        found = links.filter(pl.any_horizontal(near))
        reached = [
            pl.concat([some, found[name]]).unique()
            for name, some in zip(links.columns, reached, strict=True)
        ]
    return found["PaymentsId"], found["PaymentPlansId"]


def _while_unpaid(files: pl.DataFrame, paid: pl.DataFrame) -> tuple[pl.Expr, ...]:
    """Which payments are of an invoice file's debt before the file's own tenant pays it."""
    if files.is_empty():
        return ()
    first = paid.group_by(_DEBT).agg(day_paid().min().alias("until"))
    never = pl.lit(date.max)
    debts = (
        files.select(_DEBT).unique().join(first, on=_DEBT, how="left").group_by("DebtsId")
        .agg(pl.col("until").fill_null(never).max()).drop_nulls()
    )  # fmt: skip
    until = pl.col("DebtsId").replace_strict(debts["DebtsId"], debts["until"], default=None)
    return (day_paid() < until,)


def rows_of(
    connection: psycopg.Connection, around: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """The rows that delivered the records around, if those rows have other values by now.

    Records without a key cannot differ from their rows.
    """
    found = {}
    for table in (PAYMENT, INVOICE_FILE, CURRENCY_RATE):
        if table.name in around and around[table.name].height:
            near = around[table.name].select("extract_id", "row")
            wrote = around[table.name]["batch_id"].drop_nulls().unique().to_list()
            rows = sources.rewritten_rows(connection, table, wrote)
            found[table.name] = rows.join(near, on=near.columns, how="semi")
    return {name: rows for name, rows in found.items() if rows.height}


def _links_of(table: Table, loads: Sequence[Load] | None) -> pl.DataFrame:
    """The scope's own records: their identity, and what says what they belong with."""
    names = list(dict.fromkeys((*identity_columns(table), *_BELONGS_BY[table])))
    if loads is None:
        return no_records(table).select(names)
    return pl.concat((columns_of(load, names) for load in loads), how="diagonal")
