"""One record in the database: its row, the delivered rows that wrote it, and its send.

Nothing here reads a secret. A role that may not read rows as delivered gets what it may read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row, dict_row

from connectors.postgres.batches.corrections import reads_staged
from connectors.postgres.batches.repair_places import DeliveredPlace, place_of
from schemas.derived.sql_names import SCHEMA, TARGET_NAMES, staged_name
from schemas.derived.views import SHOWN, joined, json_expression, quoted
from schemas.field import Table
from schemas.guards.tenants import sees_target

PAST = 20
"""How many earlier writers of a row are listed."""
MOST = 1 << 62
NEAR = 4_096
"""How many records below a line's number are searched first for the one that begins there."""


class RowPlace(NamedTuple):
    """A delivered row, by its extract and record number."""

    extract_id: int
    record_number: int


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A row of the target as it is now, without its secrets."""

    json: str
    """Canonical JSON of its fields."""
    writer: RowPlace
    """The delivered row that last wrote it."""


@dataclass(frozen=True, slots=True)
class SendOfRow:
    """What became of a row at the service."""

    operation: str
    state: str
    attempts: int
    status: int | None
    service_id: str | None
    changed_at: Any


def target_row(
    connection: psycopg.Connection,
    table: Table,
    *,
    key: Mapping[str, int | str] | None,
    by: RowPlace | None,
) -> TargetRow | None:
    """The target row with this key, or else that of the record of a delivered row.

    For a role that may not read rows as delivered, a row that was overwritten since leads to none.
    People limited to some tenants get only rows of these.
    """
    if table.name not in TARGET_NAMES or not (key or by):
        return None
    # Only names from the field tables get here, so they are safe in SQL.
    source, of = f"{SCHEMA}.{table.name} t", "t"
    if not key and reads_staged(connection):
        of = "s"
        source += (
            f" JOIN {SCHEMA}.{staged_name(table)} s ON {joined(table)} AND s.error_data IS NULL"
        )
    where = (
        " AND ".join(f"t.{quoted(name)} = %({name})s" for name in key)
        if key
        else f"{of}.extract_id = %(extract_id)s AND {of}.record_number = %(record_number)s"
    )
    public = replace(
        table, fields=tuple(one for one in table.fields if not one.secret), references=()
    )
    row = connection.execute(
        f"SELECT {json_expression(public, 't')}, t.extract_id, t.record_number "
        f"FROM {source} WHERE {where} AND {sees_target(table.name, 't')} LIMIT 1",
        key or (by._asdict() if by else {}),
    ).fetchone()
    return None if row is None else TargetRow(row[0], RowPlace(row[1], row[2]))


def other_writer(
    connection: psycopg.Connection, table: Table, place: RowPlace
) -> DeliveredPlace | None:
    """The row that last wrote the record of a delivered row, if it is another one.

    None also if the delivered row could not be read, or the target has no such record.
    """
    if table.name not in TARGET_NAMES:
        return None
    row = connection.execute(
        f"SELECT t.batch_id, t.extract_id, t.record_number "
        f"FROM {SCHEMA}.{staged_name(table)} s JOIN {SCHEMA}.{table.name} t ON {joined(table)} "
        "WHERE s.extract_id = %s AND s.record_number = %s AND s.error_data IS NULL",
        place,
    ).fetchone()
    if row is None or row[1:] == place:
        return None
    return place_of(connection, *row)


def row_beginning_at(
    connection: psycopg.Connection,
    batch_id: int,
    file: str,
    line: int,
    key: Mapping[str, int | str] | None,
) -> RowPlace | None:
    """The delivered row that begins at this line of a file; None if no row does.

    If the line became several records, the one with the key, or else the first.
    """
    found = connection.execute(
        "SELECT id FROM extract WHERE batch_id = %s AND name = %s ORDER BY id", [batch_id, file]
    )
    extracts = [number for (number,) in found]
    first = None
    # Nearly always a record's number is just below that of its line; it is far below if records
    # have several lines, and above if a line became several records.
    for least, beyond in ((max(0, line - NEAR), line), (0, line), (line, MOST)):
        for *place, text in connection.execute(
            f"SELECT extract_id, record_number, jsondata FROM {SCHEMA}.{SHOWN} "
            "WHERE batch_id = %s AND extract_id = ANY(%s) AND record_number >= %s "
            "AND record_number < %s AND first_line = %s ORDER BY 1, 2",
            [batch_id, extracts, least, beyond, line],
        ):
            first = first or RowPlace(*place)
            record = json.loads(text) if key and text else {}
            if not record or all(record.get(name) == part for name, part in (key or {}).items()):
                return RowPlace(*place)
    return first


def delivered_row(connection: psycopg.Connection, place: RowPlace) -> dict[str, Any] | None:
    """What a delivered row said and what became of it; null fields if it may hold secrets."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            f"SELECT s.*, e.name AS file, e.sha256, e.cleared_at FROM {SCHEMA}.{SHOWN} s "
            "JOIN extract e ON e.id = s.extract_id "
            "WHERE s.extract_id = %s AND s.record_number = %s",
            place,
        ).fetchone()


def send_of(connection: psycopg.Connection, place: RowPlace) -> SendOfRow | None:
    """What became of a row at the service; None if it was not to be sent."""
    with connection.cursor(row_factory=class_row(SendOfRow)) as cursor:
        return cursor.execute(
            "SELECT operation, state, attempts, status, service_id, changed_at FROM send "
            "WHERE extract_id = %s AND record_number = %s",
            place,
        ).fetchone()


def earlier_writers(
    connection: psycopg.Connection, table: Table, last: RowPlace
) -> list[RowPlace] | None:
    """The rows that wrote a target row before the last writer did, latest first.

    None if this connection's role may not read former contents.
    """
    if not reads_staged(connection):
        return None
    found: list[RowPlace] = []
    while len(found) < PAST:
        row = connection.execute(
            "SELECT (image::json ->> 'extract_id')::int, (image::json ->> 'record_number')::bigint "
            "FROM before_image WHERE extract_id = %s AND record_number = %s AND record = %s",
            [*(found[-1] if found else last), table.name],
        ).fetchone()
        if row is None:
            break
        found.append(RowPlace(*row))
    return found
