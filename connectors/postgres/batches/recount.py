"""Recount: the control totals of a batch as the database itself adds them up, row by row.

What a batch wrote is added up twice, each time by its own columns: from the staged rows, and from
the rows of the target that name them as their writers. Where these tie, there is no more to look
for. Where they do not, or the target is much larger than the batch, every row that was written is
looked up by its key. So is every row that was not, because its record was there: nothing in the
target names it.
"""

from collections.abc import Iterable
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
"""With more rows than so many for each of the batch, a target takes longer to read than to ask."""
_PRIME = 1_000_003


class Sum(NamedTuple):
    """What the rows of one extract, state and currency add up to."""

    extract_id: int
    state: str
    currency: str
    rows: int
    keys: int
    amounts: dict[str, Decimal]
    places: int = 0
    """Keys times record numbers, each less than a prime: other if a key is in another's row."""


class Recount(NamedTuple):
    """Both ends of a batch, each added up from its own columns."""

    staged: list[Sum]
    """The staged rows by state."""
    database: list[Sum]
    """What the target itself holds of the rows this batch inserted or updated, or found there.

    State "database": the target row is the one this batch wrote, and its amounts are the target's.
    State "since_changed": a later batch has written it, so they are what this batch had written.
    State "unchanged": the batch wrote nothing; the target says what it delivered, or what a batch
    wrote that was applied later.
    """


def recount(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """The totals of a batch's staged rows of one record, by extract, state and currency."""
    rows = connection.execute(
        f"""SELECT s.extract_id, {STATE} AS state, {_totals(table, "s")} {_amounts(table, "s")}
        FROM {staged_name(table)} s {outcome_joins(table)}
        WHERE {of_batch("s")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        batch_span(connection, batch_id),
    )
    return [_sum(table, *row) for row in rows]


def recount_both(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    """The same, and what the target holds."""
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
        staged, held = recount(connection, table, batch_id), _held(connection, table, batch_id)
        if _together(one for one in staged if one.state in WRITTEN) == _together(held):
            return Recount(staged, held)
    return _by_key(connection, table, batch_id)


def _held(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """The rows of the target that name one of the batch as their writer."""
    rows = connection.execute(
        f"""SELECT t.extract_id, '{DATABASE}', {_totals(table, "t")} {_amounts(table, "t")}
        FROM {table.name} t WHERE {of_batch("t")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
        batch_span(connection, batch_id),
    )
    return [_sum(table, *row) for row in rows]


def _found_there(connection: psycopg.Connection, table: Table, batch_id: int) -> list[Sum]:
    """Of the rows whose record was there as they say it, those of which it still is.

    Where it is another by now, a batch has written it that was not through before this one began,
    or nothing of ours changed it.
    """
    # To the planner a state is a rare thing, unless it is hidden from it. Of a truth it knows that
    # there are two, so it makes few groups, each process its own.
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
    """The sums by extract and currency, whatever their state."""
    found: dict[tuple[int, str], list[Decimal]] = {}
    for one in sums:
        more = [*map(Decimal, (one.rows, one.keys, one.places)), *one.amounts.values()]
        before = found.get((one.extract_id, one.currency), [Decimal()] * len(more))
        found[one.extract_id, one.currency] = [*map(EXACT.add, before, more)]
    return found


def _by_key(connection: psycopg.Connection, table: Table, batch_id: int) -> Recount:
    """What is staged, and every row of it that was written looked up by its key.

    In one pass, because the staged rows of a batch are most of what has to be read.
    """
    # To the planner a list of states is a rare thing, unless it is hidden from it.
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
    """SQL for the currency of rows, and what they add up to beside their amounts."""
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
    """SQL for the number a row adds to the hash total of keys."""
    if key_columns(table) == (IDENTITY,):
        return f"('x' || substr({alias}.identity, 1, 15))::bit(60)::bigint"
    return f"{alias}.{quoted(table.key[0])}"
