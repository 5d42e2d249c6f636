"""Recount: the control totals of a batch as the database itself adds them up, row by row.

What a batch wrote is added up twice, each time from its own columns: from the staged rows, and from
the target rows that name these as their writers. If the two agree, nothing more is checked. If they
do not, or the target is much larger than the batch, every row that was written is looked up by its
key. So is every row that was not written because its record was already there, since no target row
names it.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

import psycopg

from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.query import one_value
from connectors.postgres.trail import through_before
from schemas.amounts import EXACT
from schemas.derived.sql_names import IDENTITY, key_columns, listed, staged_name
from schemas.derived.views import (
    STATE,
    WRITTEN,
    apply_stage,
    joined,
    of_batch,
    outcome_joins,
    quoted,
    same_content,
)
from schemas.field import Table

DATABASE, SINCE_CHANGED, UNCHANGED = "database", "since_changed", "unchanged"
_MOST_TIMES = 8
"""Up to this many target rows per row of the batch, reading the target beats looking up keys."""
_PRIME = 1_000_003


class Sum(NamedTuple):
    """Totals of the rows of one extract, state and currency."""

    extract_id: int
    state: str
    currency: str
    rows: int
    keys: int
    amounts: dict[str, Decimal]
    places: int = 0
    """Sum of key times record number, each modulo a prime: differs if two rows swap keys."""


class Recount(NamedTuple):
    """A batch's totals at both ends, each added up from its own columns."""

    staged: list[Sum]
    """The staged rows by state."""
    database: list[Sum]
    """What the target holds of the rows that this batch inserted or updated, or found there.

    State "database": this batch wrote the target row last, and the amounts are the target's.
    State "since_changed": a later batch has written the row; the amounts are what this batch wrote.
    State "unchanged": this batch wrote nothing; the target has what it delivered, or what a batch
    applied later wrote.
    """


def recount(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """The totals of a batch's staged rows of one record, by extract, state and currency."""
    return _staged(connection, table, batch_span(connection, batch_id))


def _staged(connection: psycopg.Connection, table: Table, span: Mapping[str, int]) -> list[Sum]:
    rows = connection.execute(
        f"""SELECT s.extract_id, {STATE} AS state, {_totals(table, "s")} {_amounts(table, "s")}
        FROM {staged_name(table)} s {outcome_joins(table)}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        span,
    )
    return [_sum(table, *row) for row in rows]


def recount_both(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    """The same totals together with those of what the target holds."""
    both = _both_of_written(connection, table, batch_id)
    if any(one.state == UNCHANGED for one in both.staged):
        both.database.extend(_found_there(connection, table, batch_id))
    return both


def _both_of_written(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    is_good_part = connection.execute(
        """SELECT coalesce(sum(last_record - first_record + 1), 0) * %s >=
            (SELECT reltuples FROM pg_class WHERE oid = %s::regclass)
        FROM receipt WHERE batch_id = %s AND stage = %s""",
        [_MOST_TIMES, table.name, batch_id, apply_stage(table)],
    )
    if one_value(is_good_part):
        span = batch_span(connection, batch_id)
        staged, held = _staged(connection, table, span), _held(connection, table, span)
        if _together(one for one in staged if one.state in WRITTEN) == _together(held):
            return Recount(staged, held)
    return _by_key(connection, table, batch_id)


def _held(connection: psycopg.Connection, table: Table, span: Mapping[str, int]) -> list[Sum]:
    """Totals of the target rows that name a row of the batch as their writer."""
    rows = connection.execute(
        f"""SELECT t.extract_id, '{DATABASE}', {_totals(table, "t")} {_amounts(table, "t")}
        FROM {table.name} t WHERE {of_batch("t")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        span,
    )
    return [_sum(table, *row) for row in rows]


def _found_there(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """Totals of rows whose record was already there, as far as the target still accounts for them.

    It does if the record is as delivered, or its writer was not finished before this batch began.
    Otherwise something other than recon changed the record, and the row is left out.
    """
    # The planner takes a state for rare unless coalesce hides it. It expects a boolean to have two
    # values, so it plans few groups, which each process makes for itself.
    found, joins = f"coalesce({STATE} = '{UNCHANGED}', FALSE)", outcome_joins(table)
    rows = connection.execute(
        f"""SELECT g.* FROM (
            SELECT s.extract_id, '{UNCHANGED}', {_totals(table, "s")} {_amounts(table, "s")},
                t.batch_id AS writer, {same_content(table)} AS same
            FROM {staged_name(table)} s {joins} JOIN {table.name} t ON {joined(table)}
            WHERE {of_batch("s")} AND {found} GROUP BY s.extract_id, 3, writer, same
        ) g WHERE g.same OR NOT {through_before("g.writer", "%(batch)s")} ORDER BY 1, 3""",
        batch_span(connection, batch_id),
    )
    return [_sum(table, *row[:-2]) for row in rows]


def _together(sums: Iterable[Sum]) -> dict[tuple[int, str], list[Decimal]]:
    """Add up the sums by extract and currency, across states."""
    found: dict[tuple[int, str], list[Decimal]] = {}
    for one in sums:
        more = [*map(Decimal, (one.rows, one.keys, one.places)), *one.amounts.values()]
        before = found.get((one.extract_id, one.currency), [Decimal()] * len(more))
        found[one.extract_id, one.currency] = [*map(EXACT.add, before, more)]
    return found


def _by_key(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    """Totals of what is staged, with every written row looked up by its key.

    One query does both, because reading the staged rows of a batch is most of the work.
    """
    # The planner takes a list of states for rare unless coalesce hides it.
    written = f"coalesce({STATE} IN ({listed(WRITTEN)}), FALSE)"
    rows = connection.execute(
        f"""SELECT CASE WHEN (t.extract_id, t.record_number) = (s.extract_id, s.record_number)
                THEN '{DATABASE}' WHEN t.batch_id <> s.batch_id THEN '{SINCE_CHANGED}' END AS held,
            {_currency(table, "t")}, s.extract_id, {STATE} AS state, {_totals(table, "s")}
            {_amounts(table, "s")} {_amounts(table, "t")}
        FROM {staged_name(table)} s {outcome_joins(table)}
        LEFT JOIN {table.name} t ON {joined(table)} AND {written}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3, 4, 5 ORDER BY 3, 4, 5, 1, 2""",
        batch_span(connection, batch_id),
    )
    found = Recount([], [])
    for held, currency, *totals in rows:
        of_target = len(totals) - len(table.amounts)
        staged = _sum(table, *totals[:of_target])
        found.staged.append(staged)
        if held == DATABASE:
            extract_id, _, _, *more = totals[: of_target - len(table.amounts)]
            own = _sum(table, extract_id, held, currency, *more, *totals[of_target:])
            found.database.append(own)
        elif held == SINCE_CHANGED:
            found.database.append(staged._replace(state=held))
    return found


def _currency(table: Table, alias: str) -> str:
    return f"{alias}.{quoted(table.currency)}" if table.currency else "NULL"


def _totals(table: Table, alias: str) -> str:
    """SQL for the currency of rows, and their totals other than amounts."""
    key = key_number(table, alias)
    place = f"mod({key}, {_PRIME})::bigint * mod({alias}.record_number, {_PRIME})"
    sums = f"coalesce(sum({key}), 0), coalesce(sum({place}), 0)"
    return f"{_currency(table, alias)}, count(*), {sums}"


def _amounts(table: Table, alias: str) -> str:
    return "".join(f", coalesce(sum({alias}.{quoted(name)}), 0)" for name in table.amounts)


def _sum(
    table: Table,
    extract_id: int,
    state: str,
    money: object,
    rows: int,
    keys: Decimal,
    places: Decimal,
    *sums: Decimal,
) -> Sum:
    currency = "" if money is None else str(money)
    amounts = dict(zip(table.amounts, sums, strict=True))
    return Sum(extract_id, state, currency, rows, int(keys), amounts, int(places))


def key_number(table: Table, alias: str = "s") -> str:
    """SQL for the number that a row adds to the hash total of keys."""
    if key_columns(table) == (IDENTITY,):
        return f"('x' || substr({alias}.identity, 1, 15))::bit(60)::bigint"
    return f"{alias}.{quoted(table.key[0])}"
