"""What the database has beside the records of a scope, which joins hold them against."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import psycopg

from connectors.postgres import sources as truths
from flows.steps.frames.beyond import texts_last
from flows.steps.frames.parts import Change, Load, columns_of, held, whole
from flows.steps.frames.sources import no_records, record_schema
from flows.steps.reconcile.countable import among
from flows.steps.reconcile.links import linked, prepared
from flows.steps.reconcile.plans import is_wide, of_plans
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.kinds import OFFSET
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL

_BELONGS_BY = {
    PAYMENT: ("TenantsId", "DebtsId", "CurrencyRatesId"),
    PAYMENT_PLAN_DETAIL: ("PaymentsId", "PaymentPlansId"),
    INVOICE_FILE: ("DebtsId",),
    CURRENCY_RATE: ("TenantsId",),
}
"""Fields of records that say, beside their identity, what they belong with."""


@dataclass(frozen=True)
class OfTenants:
    """Whose records a scope is about, where it is of tenants."""

    tenants: Collection[int]
    rows: Change
    """Of records that name tenants those that name one of these."""
    bound: Collection[int]
    """All batches that are bound to one of them."""

    def details(
        self, details: pl.DataFrame, own: pl.DataFrame, payments: pl.DataFrame
    ) -> pl.DataFrame:
        """Plan details that are theirs: bound to them, or by the payments that their plans name.

        `own` are details of the scope, `payments` all that details name, of whichever tenant.
        """
        every = prepared(pl.concat([own, details], how="diagonal"))
        known = linked(every, payments, Rules().plans).tail(details.height)
        tenant = pl.coalesce("tenant", pl.when(pl.col("tenants").is_null()).then("whose"))
        bound = pl.col("batch_id").is_in(list(self.bound))
        theirs = bound | tenant.is_in(list(self.tenants))
        return details.filter(known.select(theirs.fill_null(value=False)).to_series())


def records_around(
    connection: psycopg.Connection,
    others: Sequence[psycopg.Connection],
    database: Mapping[str, Sequence[Load]],
    whose: OfTenants | None,
    at_once: int,
    *,
    narrow: bool,
) -> dict[str, pl.DataFrame]:
    """Records of the database that those of the scope (`database`) belong with.

    The plans of its payments and details, with all that is planned for what they name. Of a scope
    that is `narrow` also the rates that its payments name, and those of its tenants; what else was
    paid for the debts of its payments and invoice files, with the plans of all these; and the files
    of these debts. A million rows are read some at a time, and few of them kept.
    """
    own = {table.name: _links_of(table, database.get(table.name)) for table in _BELONGS_BY}

    def read(table: Table, *, of_all: bool = False, **wanted: pl.Series) -> pl.DataFrame:
        asked = {name: some.cast(pl.Int64).drop_nulls().unique() for name, some in wanted.items()}
        if all(some.is_empty() for some in asked.values()):
            return no_records(table)
        related = [
            pl.col(name).cast(pl.Int64).is_in(some.implode()) for name, some in asked.items()
        ]
        if table is PAYMENT:
            # A detail may name one by a number that was cut.
            related.append(is_wide())
        parts = [
            texts_last(rows.filter(pl.any_horizontal(related)))
            for rows in truths.database_rows(connection, table, others, at_once)
        ]
        found = pl.concat(parts, how="diagonal")
        if whose is not None and table.tenant is not None and not of_all:
            found = whose.rows(found)
        return found.filter(~among(table, found, own[table.name]))

    paid, planned, files, rates = (own[table.name] for table in _BELONGS_BY)
    debts = pl.concat([paid["DebtsId"], files["DebtsId"]])
    named = paid["Id"]
    if narrow:
        beside = read(PAYMENT, DebtsId=debts, Id=planned["PaymentsId"])
        named = pl.concat([named, beside["Id"]])
    plans, names = planned["PaymentPlansId"], planned["PaymentsId"]
    details = read(PAYMENT_PLAN_DETAIL, PaymentsId=named, PaymentPlansId=plans)
    if details.height:
        plans = pl.concat([plans, details["PaymentPlansId"]])
        details = read(PAYMENT_PLAN_DETAIL, PaymentsId=named, PaymentPlansId=plans)
        names = pl.concat([names, details["PaymentsId"]])
        if not names.drop_nulls().cast(pl.Int64).is_in(named.implode()).all():
            # A payment falls to all details that name it, in the order of their days.
            details = read(PAYMENT_PLAN_DETAIL, PaymentsId=names, PaymentPlansId=plans)
    if details.height and whose is not None:
        payments = [read(PAYMENT, of_all=True, Id=names)]
        if PAYMENT.name in database:
            payments.append(of_plans(database[PAYMENT.name], names))
        mine = whole(database.get(PAYMENT_PLAN_DETAIL.name, (held(details.clear()),)))
        details = whose.details(details, mine, pl.concat(payments, how="diagonal"))
    if not narrow:
        return {PAYMENT_PLAN_DETAIL.name: details} if details.height else {}
    tenants = pl.concat([paid["TenantsId"], rates["TenantsId"]])
    return {
        PAYMENT.name: read(PAYMENT, DebtsId=debts, Id=names),
        PAYMENT_PLAN_DETAIL.name: details,
        INVOICE_FILE.name: read(INVOICE_FILE, DebtsId=debts),
        CURRENCY_RATE.name: read(CURRENCY_RATE, Id=paid["CurrencyRatesId"], TenantsId=tenants),
    }


def rows_of(
    connection: psycopg.Connection, around: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """The rows that delivered records around, where these say something else by now.

    Records without a key are what they say.
    """
    found = {}
    for table in (PAYMENT, INVOICE_FILE, CURRENCY_RATE):
        if table.name in around and around[table.name].height:
            near = around[table.name].select("extract_id", "row")
            wrote = around[table.name]["batch_id"].drop_nulls().unique().to_list()
            rows = truths.rewritten_rows(connection, table, wrote)
            found[table.name] = rows.join(near, on=near.columns, how="semi")
    return {name: rows for name, rows in found.items() if rows.height}


def _links_of(table: Table, loads: Sequence[Load] | None) -> pl.DataFrame:
    """The scope's own records: their identity, and what says what they belong with."""
    offsets = [name for name in record_schema(table) if name.removesuffix(OFFSET) in table.identity]
    names = list(dict.fromkeys((*table.identity, *offsets, *_BELONGS_BY[table])))
    if loads is None:
        return no_records(table).select(names)
    return pl.concat((columns_of(load, names) for load in loads), how="diagonal")
