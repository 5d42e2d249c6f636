"""Recount: the control totals of a batch as the database itself adds them up, row by row."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import psycopg

from connectors.ledger import batch_span
from schemas.field import Table
from schemas.sql import IDENTITY, key_columns, staged_name
from schemas.views import STATE, of_batch, quoted, told_joins


class Sum(NamedTuple):
    """What the rows of one extract, state and currency add up to."""

    extract_id: int
    state: str
    currency: str
    rows: int
    keys: int
    amounts: dict[str, Decimal]


def recount(connection: psycopg.Connection, table: Table, batch_id: int) -> Iterator[Sum]:
    """The totals of a batch's staged rows of one record, by extract, state and currency."""
    currency = f"coalesce({quoted(table.currency)}::text, '')" if table.currency else "''"
    sums = "".join(f", coalesce(sum({quoted(name)}), 0)" for name in table.amounts)
    rows = connection.execute(
        f"""SELECT s.extract_id, {STATE} AS state, {currency},
            count(*), coalesce(sum({key_number(table)}), 0) {sums}
        FROM {staged_name(table)} s {told_joins(table)}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        batch_span(connection, batch_id),
    )
    for extract_id, state, money, count, keys, *amounts in rows:
        yield Sum(
            extract_id,
            state,
            money,
            count,
            int(keys),
            dict(zip(table.amounts, amounts, strict=True)),
        )


def recount_target(connection: psycopg.Connection, table: Table, batch_id: int) -> Iterator[Sum]:
    """What the target itself holds of the rows this batch inserted or updated.

    Every such row is looked up by its key. State "database": the target row is the one this batch
    wrote, and its amounts are summed from the target. State "since_changed": a later batch has
    written the row, so the amounts are summed from what this batch had written.
    """
    key = key_columns(table)
    joined = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
    currency = f"coalesce(s.{quoted(table.currency)}::text, '')" if table.currency else "''"
    sums = "".join(
        f", coalesce(sum(CASE WHEN mine THEN t_{n} ELSE s_{n} END), 0)"
        for n in range(len(table.amounts))
    )
    amounts = "".join(
        f", s.{quoted(name)} AS s_{n}, t.{quoted(name)} AS t_{n}"
        for n, name in enumerate(table.amounts)
    )
    rows = connection.execute(
        f"""WITH written AS (
            SELECT s.extract_id, {currency} AS currency, {key_number(table)} AS key,
                (t.extract_id, t.record_number) = (s.extract_id, s.record_number) AS mine
                {amounts}
            FROM {staged_name(table)} s {told_joins(table)}
            JOIN {table.name} t ON {joined}
            WHERE {of_batch("s")} AND {STATE} IN ('inserted', 'updated')
        )
        SELECT extract_id, CASE WHEN mine THEN 'database' ELSE 'since_changed' END, currency,
            count(*), coalesce(sum(key), 0) {sums}
        FROM written GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        batch_span(connection, batch_id),
    )
    for extract_id, state, money, count, keys, *found in rows:
        yield Sum(
            extract_id, state, money, count, int(keys), dict(zip(table.amounts, found, strict=True))
        )


def key_number(table: Table) -> str:
    """SQL for the number a row adds to the hash total of keys."""
    if key_columns(table) == (IDENTITY,):
        return "('x' || substr(s.identity, 1, 15))::bit(60)::bigint"
    return f"s.{quoted(table.key[0])}"
