"""Notes about records that other deliveries had too: a batch updates them, or adds a second one.

Notes about updates are written per range, while its temporary table `present` exists. From these
notes a reconciliation learns which rows of later batches were overwritten
(`connectors.postgres.batches.overtaken`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from connectors.postgres.batches.attempts import other_repairs
from connectors.postgres.batches.corrections import lock_corrected
from connectors.postgres.batches.ledger import TAKEN_BACK, batch_span, staged_tables
from connectors.postgres.batches.ranges import AppliedTogether, same, without_outcome
from schemas.derived.sql_names import (
    key_columns,
    listed,
    place_number,
    place_of,
    staged_name,
)
from schemas.derived.views import APPLIED, STATE, apply_stage, of_batch, outcome_joins, quoted
from schemas.field import Table
from schemas.reasons import NOT_SHOWN, REASONS

OTHER_FEED, LATER_BATCH, SECOND_RECORD = "OtherFeed", "LaterBatch", "SecondRecord"
OF_OTHERS = (OTHER_FEED, LATER_BATCH, SECOND_RECORD)
"""The codes of these notes."""
OF_LATER = "{0}.extract_id BETWEEN %(first_later)s AND %(last_later)s"
"""SQL that limits rows to later batches by a range, which block range indexes can use."""
_Found = Sequence[tuple[str | None, int, int, int]]
"""Other feeds or batches that delivered records: name, how many, and the place of the first."""
_MINE, _THEIRS = (f"({one}.profile::json ->> 'tenant')::bigint" for one in ("m", "b"))
_MAY_NAME = f"{_MINE} IS NULL OR {_MINE} = {_THEIRS}"
"""SQL for whether notes of a batch `m` may name a batch `b`, or its feed.

People bound to the tenant of a batch read its notes, and may know nothing of a batch that is not
bound to that tenant.
"""


def note_written_over(connection: psycopg.Connection, table: Table, rows: AppliedTogether) -> None:
    """Note which feeds, and which later batches, the updated records came from.

    A batch has one note for each, to which every range adds its rows.
    """
    for code, found in (
        (OTHER_FEED, _of_other_feeds(connection, rows)),
        (LATER_BATCH, _of_later_batches(connection, table, rows)),
    ):
        _add_notes(connection, table, rows.batch_id, code, found)


def note_second_records(connection: psycopg.Connection, batch_id: int) -> None:
    """Note records that a batch has applied for rows of which another batch applied another record.

    A row may be repaired again with another key, and the record of the former repair stays. Nothing
    else would say that one row is now two records. Call it before the rows end as corrected.
    """
    lock_corrected(connection, batch_id)  # If two end at once, the second notes it.
    others = other_repairs(connection, batch_id)
    for table in staged_tables(connection, batch_id) if others else ():
        same_key = " AND ".join(f"s.{quoted(key)} = t.{quoted(key)}" for key in key_columns(table))
        found = connection.execute(
            f"""SELECT w.batch_id::text, count(DISTINCT {place_number("s")}),
                {place_of(f"min({place_number('s')})")}
            FROM unnest(%(extracts)s::int[], %(numbers)s::bigint[], %(batches)s::int[],
                %(known_extracts)s::int[], %(known_numbers)s::bigint[])
                AS w (extract_id, record_number, batch_id, known_extract, known_number)
            JOIN {staged_name(table)} s ON {same("s", "w")}
            JOIN {staged_name(table)} t
                ON t.extract_id = w.known_extract AND t.record_number = w.known_number
            {outcome_joins(table)}
            WHERE {of_batch("s")} AND {STATE} IN ({listed(APPLIED)}) AND NOT ({same_key})
            GROUP BY w.batch_id ORDER BY w.batch_id""",
            {
                **batch_span(connection, batch_id),
                "extracts": [one.repair.extract_id for one in others],
                "numbers": [one.repair.record_number for one in others],
                "batches": [one.batch_id for one in others],
                "known_extracts": [one.known_by.extract_id for one in others],
                "known_numbers": [one.known_by.record_number for one in others],
            },
        ).fetchall()
        _add_notes(connection, table, batch_id, SECOND_RECORD, found)


def _add_notes(
    connection: psycopg.Connection, table: Table, batch_id: int, code: str, found: _Found
) -> None:
    for named, count, *first in found:
        value = named or NOT_SHOWN
        noted = [batch_id, table.name, code, value]
        if connection.execute(
            "UPDATE note SET rows = rows + %s "
            "WHERE batch_id = %s AND record = %s AND code = %s AND value = %s",
            [count, *noted],
        ).rowcount:
            continue
        connection.execute(
            "INSERT INTO note (batch_id, record, code, value, extract_id, record_number, rows, "
            "message, field) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, '')",
            [*noted, *first, count, REASONS[code].message(value=value)],
        )


def _of_other_feeds(connection: psycopg.Connection, rows: AppliedTogether) -> _Found:
    """By feed, how many updated records it had delivered, and the place of the first.

    If a key does not tell senders apart, one feed replaces what another delivered, and nobody would
    notice. The batch's own feed is left out.
    """
    return connection.execute(
        f"""WITH known AS (
            SELECT p.before, count(*) AS count, min({place_number("p")}) AS first
            FROM present p WHERE p.verdict = 'updated' AND {without_outcome(rows.within, "p")}
            GROUP BY 1
        )
        SELECT CASE WHEN {_MAY_NAME} THEN b.feed END AS feed,
            sum(count)::bigint, {place_of("min(first)")}
        FROM known JOIN batch m ON m.id = %(batch)s LEFT JOIN batch b ON b.id = known.before
        WHERE b.feed IS DISTINCT FROM m.feed GROUP BY 1 ORDER BY 1""",
        rows.parameters(),
    ).fetchall()


def _of_later_batches(
    connection: psycopg.Connection, table: Table, rows: AppliedTogether
) -> _Found:
    """By later batch, how many of the records it had delivered too, and the place of the first.

    A batch that was held, or whose run died, may be applied after one that was received later. That
    one may have written the record, or found it unchanged.
    """
    later = _applied_later(connection, table, rows.batch_id)
    if not later:
        return []
    keys = [quoted(key) for key in key_columns(table)]
    joins = outcome_joins(table, batch=False, among=OF_LATER)
    return connection.execute(
        f"""WITH written AS MATERIALIZED (
            SELECT {place_number("p")} AS place, {", ".join(f"w.{key}" for key in keys)}
            FROM present p JOIN {staged_name(table)} w ON {same("p", "w")} AND {rows.within("w")}
            WHERE p.verdict = 'updated' AND {without_outcome(rows.within, "p")}
        )
        SELECT l.named, count(DISTINCT w.place), {place_of("min(w.place)")}
        FROM written w
        JOIN {staged_name(table)} s ON {" AND ".join(f"s.{key} = w.{key}" for key in keys)}
        JOIN unnest(%(later)s::int[], %(names)s::text[]) AS l (batch_id, named)
            ON l.batch_id = s.batch_id
        {joins}
        WHERE {OF_LATER.format("s")} AND {STATE} IN ({listed(APPLIED)}) GROUP BY 1 ORDER BY 1""",
        {
            **rows.parameters(),
            "later": [one.batch_id for one in later],
            "names": [one.named for one in later],
            "first_later": min(one.first for one in later),
            "last_later": max(one.last for one in later),
        },
    ).fetchall()


class _Later(NamedTuple):
    """A batch that was received after a given one."""

    batch_id: int
    named: str | None
    """What notes of the given batch call it; None if they may not name it."""
    first: int
    """The first of its extracts."""
    last: int


def _applied_later(connection: psycopg.Connection, table: Table, batch_id: int) -> list[_Later]:
    """Batches received after this one that have applied such records; usually none."""
    found = connection.execute(
        f"""SELECT b.id, CASE WHEN {_MAY_NAME} THEN b.id::text END,
            min(r.extract_id), max(r.extract_id)
        FROM receipt r JOIN batch b ON b.id = r.batch_id JOIN batch m ON m.id = %(batch)s
        WHERE r.batch_id > %(batch)s AND r.stage = %(stage)s
            AND b.state NOT IN ({listed(TAKEN_BACK)})
        GROUP BY b.id, m.id""",
        {"batch": batch_id, "stage": apply_stage(table)},
    )
    return [_Later(*row) for row in found]
