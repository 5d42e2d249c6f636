"""Recount: the control totals of a batch as the database itself adds them up, row by row."""

from decimal import Decimal
from typing import NamedTuple

import psycopg

from connectors.postgres.ledger import batch_span
from schemas.derived.sql import IDENTITY, key_columns, staged_name
from schemas.derived.views import STATE, joined, of_batch, quoted, told_joins
from schemas.field import Table


class Sum(NamedTuple):
    """What the rows of one extract, state and currency add up to."""

    extract_id: int
    state: str
    currency: str
    rows: int
    keys: int
    amounts: dict[str, Decimal]


class Recount(NamedTuple):
    """Both ends of a batch, each added up from its own columns."""

    staged: list[Sum]
    """The staged rows by state."""
    database: list[Sum]
    """What the target itself holds of the rows this batch inserted or updated.

    State "database": the target row is the one this batch wrote, and its amounts are the target's.
    State "since_changed": a later batch has written it, so they are what this batch had written.
    """


def recount(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """The totals of a batch's staged rows of one record, by extract, state and currency."""
    currency = f"s.{quoted(table.currency)}" if table.currency else "NULL"
    rows = connection.execute(
        f"""SELECT s.extract_id, {STATE} AS state, {currency},
            count(*), coalesce(sum({key_number(table)}), 0) {_sums(table, "s")}
        FROM {staged_name(table)} s {told_joins(table)}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        batch_span(connection, batch_id),
    )
    return [_sum(table, *row) for row in rows]


def recount_both(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    """The same, and what the target holds; every row that was written is looked up by its key.

    In one pass, because the staged rows of a batch are most of what has to be read.
    """
    currency = f"s.{quoted(table.currency)}" if table.currency else "NULL"
    # To the planner a list of states is a rare thing, unless it is hidden from it.
    written = f"coalesce({STATE} IN ('inserted', 'updated'), FALSE)"
    rows = connection.execute(
        f"""SELECT s.extract_id, {STATE} AS state, {currency},
            (t.extract_id, t.record_number) = (s.extract_id, s.record_number) AS mine,
            count(*), coalesce(sum({key_number(table)}), 0)
            {_sums(table, "s")} {_sums(table, "t")}
        FROM {staged_name(table)} s {told_joins(table)}
        LEFT JOIN {table.name} t ON {joined(table)} AND {written}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4""",
        batch_span(connection, batch_id),
    )
    found = Recount([], [])
    for extract_id, state, money, mine, count, keys, *sums in rows:
        staged, held = sums[: len(table.amounts)], sums[len(table.amounts) :]
        found.staged.append(_sum(table, extract_id, state, money, count, keys, *staged))
        if mine is not None:
            where, amounts = ("database", held) if mine else ("since_changed", staged)
            found.database.append(_sum(table, extract_id, where, money, count, keys, *amounts))
    return found


def _sums(table: Table, alias: str) -> str:
    return "".join(f", coalesce(sum({alias}.{quoted(name)}), 0)" for name in table.amounts)


def _sum(
    table: Table, extract_id: int, state: str, money: object, rows: int, keys: int, *sums: Decimal
) -> Sum:
    currency = "" if money is None else str(money)
    amounts = dict(zip(table.amounts, sums, strict=True))
    return Sum(extract_id, state, currency, rows, int(keys), amounts)


def key_number(table: Table) -> str:
    """SQL for the number a row adds to the hash total of keys."""
    if key_columns(table) == (IDENTITY,):
        return "('x' || substr(s.identity, 1, 15))::bit(60)::bigint"
    return f"s.{quoted(table.key[0])}"
