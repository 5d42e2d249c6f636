"""What the database has beside the records of a narrow scope, which joins hold them against."""

from collections.abc import Mapping, Sequence

import polars as pl
import psycopg

from connectors.postgres import sources as truths
from flows.steps.frames.beyond import texts_last
from flows.steps.frames.parts import Change, Load, columns_of
from flows.steps.frames.sources import no_records, record_schema
from flows.steps.reconcile.countable import among
from flows.steps.reconcile.plans import is_wide
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


def records_around(
    connection: psycopg.Connection,
    others: Sequence[psycopg.Connection],
    database: Mapping[str, Sequence[Load]],
    of_tenants: Change,
    at_once: int,
) -> dict[str, pl.DataFrame]:
    """Records of the database that those of the scope (`database`) belong with.

    The rates that its payments name, and those of its tenants; what else was paid for the debts
    of its payments and invoice files; the plans of all these, with what they name; and the files of
    the debts it paid. A million rows are read some at a time, and few of them kept.
    """
    own = {table.name: _links_of(table, database.get(table.name)) for table in _BELONGS_BY}

    def read(table: Table, **wanted: pl.Series) -> pl.DataFrame:
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
            of_tenants(texts_last(rows.filter(pl.any_horizontal(related))))
            for rows in truths.database_rows(connection, table, others, at_once)
        ]
        found = pl.concat(parts, how="diagonal")
        return found.filter(~among(table, found, own[table.name]))

    paid, planned, files, rates = (own[table.name] for table in _BELONGS_BY)
    debts = pl.concat([paid["DebtsId"], files["DebtsId"]])
    whose = pl.concat([paid["TenantsId"], rates["TenantsId"]])
    beside = read(PAYMENT, DebtsId=debts, Id=planned["PaymentsId"])
    named = pl.concat([paid["Id"], beside["Id"]])
    details = read(PAYMENT_PLAN_DETAIL, PaymentsId=named, PaymentPlansId=planned["PaymentPlansId"])
    plans = pl.concat([planned["PaymentPlansId"], details["PaymentPlansId"]])
    details = read(PAYMENT_PLAN_DETAIL, PaymentsId=named, PaymentPlansId=plans)
    names = pl.concat([planned["PaymentsId"], details["PaymentsId"]])
    return {
        PAYMENT.name: read(PAYMENT, DebtsId=debts, Id=names),
        PAYMENT_PLAN_DETAIL.name: details,
        INVOICE_FILE.name: read(INVOICE_FILE, DebtsId=paid["DebtsId"]),
        CURRENCY_RATE.name: read(CURRENCY_RATE, Id=paid["CurrencyRatesId"], TenantsId=whose),
    }


def _links_of(table: Table, loads: Sequence[Load] | None) -> pl.DataFrame:
    """The scope's own records: their identity, and what says what they belong with."""
    offsets = [name for name in record_schema(table) if name.removesuffix(OFFSET) in table.identity]
    names = list(dict.fromkeys((*table.identity, *offsets, *_BELONGS_BY[table])))
    if loads is None:
        return no_records(table).select(names)
    return pl.concat((columns_of(load, names) for load in loads), how="diagonal")
