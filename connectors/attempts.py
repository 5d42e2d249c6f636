"""Attempts: a row in error that was delivered again, in error too, is one reject and not two.

It belongs to the delivery that brought it last. Once one attempt was taken in, none is left.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import psycopg

from connectors.corrections import read_name, staged_tables
from connectors.ledger import batch_span
from schemas.field import Table
from schemas.sql import staged_name
from schemas.views import CORRECTED, ERRORS, STATE, of_batch, told_joins


class Row(NamedTuple):
    """A staged row by its place, in the order attempts are made in."""

    batch_id: int
    extract_id: int
    record_number: int


def delivered_again(connection: psycopg.Connection, batches: Collection[int]) -> frozenset[Row]:
    """Rows in error of these batches that count with another attempt of theirs, or with none."""
    corrections = connection.execute(
        "SELECT id, corrects FROM batch WHERE id = ANY(%s) AND corrects = ANY(%s) "
        "AND corrects < id ORDER BY id",
        [list(batches), list(batches)],
    ).fetchall()
    repairs: dict[Row, Row] = {}
    for batch_id, corrected in corrections:
        for row, parent in _repairs_in_error(connection, batch_id):
            if place := read_name(parent):
                repairs[row] = Row(corrected, *place)
    attempts: dict[Row, list[Row]] = {}
    for row in repairs:
        first = row
        while first in repairs:
            first = repairs[first]
        attempts.setdefault(first, []).append(row)
    states = _states(connection, attempts)
    again: set[Row] = set()
    for first, rows in attempts.items():
        if states.get(first) == CORRECTED:
            again.update(rows)
        else:
            several = [first, *rows] if states.get(first) in ERRORS else rows
            again.update(sorted(several)[:-1])
    return frozenset(again)


def _repairs_in_error(connection: psycopg.Connection, batch_id: int) -> Iterator[tuple[Row, str]]:
    listed = ", ".join(f"'{state}'" for state in ERRORS)
    for table in staged_tables(connection, batch_id):
        for extract_id, number, parent in connection.execute(
            f"""SELECT s.extract_id, s.record_number, s.parent
            FROM {staged_name(table)} s {told_joins(table)}
            WHERE {of_batch("s")} AND s.parent IS NOT NULL AND {STATE} IN ({listed})""",
            batch_span(connection, batch_id),
        ):
            yield Row(batch_id, extract_id, number), parent


def _states(connection: psycopg.Connection, rows: Collection[Row]) -> dict[Row, str]:
    found: dict[Row, str] = {}
    for batch_id in sorted({row.batch_id for row in rows}):
        mine = [row for row in rows if row.batch_id == batch_id]
        for table in staged_tables(connection, batch_id):
            found |= _states_of(connection, table, batch_id, mine)
    return found


def _states_of(
    connection: psycopg.Connection, table: Table, batch_id: int, rows: Collection[Row]
) -> dict[Row, str]:
    lines = connection.execute(
        f"""SELECT s.extract_id, s.record_number, {STATE}
        FROM {staged_name(table)} s {told_joins(table)}
        JOIN unnest(%(extracts)s::int[], %(numbers)s::bigint[]) AS w (extract_id, number)
            ON s.extract_id = w.extract_id AND s.record_number = w.number
        WHERE {of_batch("s")}""",
        batch_span(connection, batch_id)
        | {
            "extracts": [row.extract_id for row in rows],
            "numbers": [row.record_number for row in rows],
        },
    )
    return {Row(batch_id, extract, number): state for extract, number, state in lines}
