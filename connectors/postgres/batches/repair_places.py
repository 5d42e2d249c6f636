"""Where rows that repair each other are, as shown to somebody who asks for one of them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from connectors.postgres.batches.corrections import corrected_by, corrections_of
from connectors.postgres.batches.ledger import batch_span, staged_tables, tables_of_extract
from schemas.derived.sql_names import key_columns, listed, staged_name
from schemas.derived.views import (
    CORRECTED,
    REPAIRING,
    SETTLING,
    of_batch,
    quoted,
    repair_joins,
    repair_state,
    staged_rows,
)
from schemas.own_columns import ROW_NAME


class DeliveredPlace(NamedTuple):
    """The place of a row that repairs another, is repaired by it, or wrote the same record."""

    batch_id: int
    extract_id: int
    file: str
    record_number: int
    line: int
    state: str


def repaired_row(connection: psycopg.Connection, batch_id: int, name: str) -> DeliveredPlace | None:
    """The row that a row of this batch repairs, given the name in its column."""
    found = read_name(name)
    corrected = corrected_by(connection, batch_id)
    if found is None or corrected is None:
        return None
    return place_of(connection, corrected, *found)


def read_name(name: str) -> tuple[int, int] | None:
    """Extract and record number of the row that a ReconRow names; None if it is no such name."""
    found = re.fullmatch(ROW_NAME, name)
    return (int(found[1]), int(found[2])) if found else None


def repairs_of(
    connection: psycopg.Connection, batch_id: int, extract_id: int, record_number: int
) -> list[DeliveredPlace]:
    """The rows delivered to repair a row, in order of arrival, whatever became of them.

    Rows that name none are among them if the row was corrected by them.
    """
    batches = connection.execute(
        "SELECT id FROM batch WHERE corrects = %s AND id > corrects ORDER BY id", [batch_id]
    ).fetchall()
    places = []
    for (correction,) in batches:
        for table in staged_tables(connection, correction):
            rows = connection.execute(
                f"""SELECT extract_id, record_number FROM {staged_name(table)} s
                WHERE {of_batch("s")} AND s.parent = %(name)s ORDER BY 1, 2""",
                batch_span(connection, correction) | {"name": f"{extract_id}:{record_number}"},
            ).fetchall()
            places += [place_of(connection, correction, *row) for row in rows]
    places += _repairs_by_key(connection, extract_id, record_number)
    return [place for place in places if place is not None]


def taken_in_for(connection: psycopg.Connection, row: DeliveredPlace) -> DeliveredPlace | None:
    """The row taken in for a corrected one: its repair, or the last repair of that."""
    repairs = repairs_of(connection, row.batch_id, row.extract_id, row.record_number)
    standing = corrections_of(connection, row.batch_id)
    taken_in = (one for one in repairs if one.state in REPAIRING and one.batch_id in standing)
    last = max(taken_in, default=None)
    return taken_in_for(connection, last) if last and last.state == CORRECTED else last


def _repairs_by_key(
    connection: psycopg.Connection, extract_id: int, record_number: int
) -> Iterator[DeliveredPlace | None]:
    found = connection.execute(
        f"""SELECT (error_data::json -> 0 -> 'Meta' ->> 'batch')::int FROM outcome
        WHERE extract_id = %s AND record_number = %s AND verdict = '{CORRECTED}'
            AND error_data IS NOT NULL""",
        [extract_id, record_number],
    ).fetchone()
    if found is None:
        return
    for table in staged_tables(connection, found[0]):
        if not table.key:
            continue
        same = " AND ".join(f"w.{quoted(key)} = s.{quoted(key)}" for key in key_columns(table))
        rows = connection.execute(
            f"""SELECT s.extract_id, s.record_number
            FROM {staged_name(table)} s {repair_joins(table)}
            JOIN {staged_name(table)} w ON {same}
            WHERE w.extract_id = %(extract)s AND w.record_number = %(record)s
                AND {of_batch("s")} AND s.parent IS NULL
                AND {repair_state(table)} IN ({listed(SETTLING)})
            ORDER BY 1, 2""",
            batch_span(connection, found[0]) | {"extract": extract_id, "record": record_number},
        ).fetchall()
        yield from (place_of(connection, found[0], *row) for row in rows)


def place_of(
    connection: psycopg.Connection, batch_id: int, extract_id: int, record_number: int
) -> DeliveredPlace | None:
    """Where a row of a batch was delivered, and its state; None if there is no such row."""
    rows = staged_rows(tables_of_extract(connection, extract_id))
    if not rows:
        return None
    row = connection.execute(
        f"SELECT e.name, s.first_line, s.state FROM ({rows}) s "
        "JOIN extract e ON e.id = s.extract_id "
        "WHERE s.batch_id = %s AND s.extract_id = %s AND s.record_number = %s",
        [batch_id, extract_id, record_number],
    ).fetchone()
    return DeliveredPlace(batch_id, extract_id, row[0], record_number, *row[1:]) if row else None
