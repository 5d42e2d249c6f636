"""What a batch has to send: one row of the table `send` for every clean row it applied.

A row that changed the database is sent. A row that found its record unchanged is the twin of the
row that wrote it: the service has that content already, or may have, or gets it from there. Only
where none of that holds is the twin sent itself.
"""

import psycopg

from connectors.lease import Lease
from connectors.ledger import batch_span
from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.operations import PUSHES, Operation
from schemas.sql import key_columns, staged_name
from schemas.views import STATE, of_batch, quoted, told_joins


def plan_sends(lease: Lease, table: Table) -> int:
    """Plan a record kind of the batch, inside the open transaction; planned once, it stays so."""
    operation = PUSHES[table.name]
    values = batch_span(lease.connection, lease.batch_id) | {
        "operation": operation.name,
        "epoch": lease.epoch,
    }
    planned = lease.connection.execute(
        "SELECT 1 FROM send WHERE batch_id = %(batch)s AND operation = %(operation)s LIMIT 1",
        values,
    ).fetchone()
    if planned:
        return 0
    rows = lease.connection.execute(_plan(table), values).rowcount
    if rows:
        lease.connection.execute(_MARK_SENT_BY_TWINS, values)
        if not operation.keyed:
            lease.connection.execute(_MARK_SENT_BEFORE, values)
    return rows


def settle_twins(connection: psycopg.Connection, operation: Operation, batch_id: int) -> None:
    """Let twins end as the row that sends their content did; those without such a row are sent.

    A POST whose content may be at the service is not sent again by a twin: it is in doubt too. A
    PUT does no harm, so its twin waits for nobody.
    """
    values = {"operation": operation.name, "batch": batch_id}
    known = _KEYED if operation.keyed else _POSTED
    connection.execute(_settle(known), values)
    if operation.keyed:
        waiting = ""
    else:
        waiting = f"AND NOT EXISTS (SELECT 1 FROM ({_OTHERS}) o WHERE o.number = x.number)"
    connection.execute(
        f"UPDATE send x SET twin = FALSE, state = 'unsent', error_data = NULL, changed_at = now() "
        f"WHERE {_WAITING} {waiting}",
        values,
    )


def reopen_restored(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """Let the rows that own their records again after an undo be sent again; returns how many.

    Their records had a newer body from the undone batch, so what the service holds may be that
    one. A POST that was acknowledged stays so: another one would be another effect.
    """
    operation = PUSHES[table.name]
    overwritten = "OR x.state = 'acknowledged' AND mine.attempts > 0" if operation.keyed else ""
    return connection.execute(
        f"""UPDATE send x SET state = 'unsent', twin = FALSE, changed_at = now()
        FROM before_image i LEFT JOIN send mine
            ON mine.extract_id = i.extract_id AND mine.record_number = i.record_number
        WHERE {of_batch("i")} AND i.record = '{table.name}'
            AND x.extract_id = (i.image::json ->> 'extract_id')::integer
            AND x.record_number = (i.image::json ->> 'record_number')::bigint
            AND (x.state = 'superseded' {overwritten})""",
        batch_span(connection, batch_id),
    ).rowcount


def _plan(table: Table) -> str:
    key, columns = key_columns(table), stored_columns(table)
    joined = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
    same = " AND ".join(
        f"t.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)}" for name in columns
    )
    rows = f"FROM {staged_name(table)} s {told_joins(table)}"
    # An unchanged row whose record has changed since says nothing about the service any more.
    return f"""
        INSERT INTO send (batch_id, extract_id, record_number, operation, number, state, twin,
            writer_extract_id, writer_record_number, attempts, epoch, changed_at)
        SELECT %(batch)s, extract_id, record_number, %(operation)s,
            row_number() OVER (ORDER BY extract_id, record_number),
            CASE WHEN writer_extract_id IS NULL THEN 'superseded' ELSE 'unsent' END, twin,
            coalesce(writer_extract_id, extract_id), coalesce(writer_record_number, record_number),
            0, %(epoch)s, now()
        FROM (
            SELECT s.extract_id, s.record_number, FALSE AS twin,
                s.extract_id AS writer_extract_id, s.record_number AS writer_record_number
            {rows} WHERE {of_batch("s")} AND {STATE} IN ('inserted', 'updated')
            UNION ALL
            SELECT s.extract_id, s.record_number, t.extract_id IS NOT NULL,
                t.extract_id, t.record_number
            FROM (SELECT s.* {rows} WHERE {of_batch("s")} AND {STATE} = 'unchanged') s
            LEFT JOIN {table.name} t ON {joined} AND {same}
        ) applied"""


_TWIN = "(o.writer_extract_id, o.writer_record_number) <> (o.extract_id, o.record_number)"
"""The condition of the index `send_twins`."""

# The batch that wrote a record may be pushed after the one that delivered it once more.
_MARK_SENT_BY_TWINS = f"""UPDATE send x SET twin = TRUE FROM send o
    WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
        AND o.writer_extract_id = x.extract_id AND o.writer_record_number = x.record_number
        AND {_TWIN} AND NOT o.twin"""

# The same record of the same file has the same push key: a batch that was undone may have sent it.
_MARK_SENT_BEFORE = """UPDATE send x SET state = o.state, error_data = o.error_data,
        service_id = o.service_id
    FROM extract mine
    JOIN extract earlier ON earlier.sha256 = mine.sha256 AND earlier.id <> mine.id
    JOIN send o ON o.extract_id = earlier.id
    WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
        AND mine.id = x.extract_id AND o.record_number = x.record_number
        AND o.operation = x.operation
        AND o.state IN ('acknowledged', 'in_doubt', 'differs', 'abandoned')"""

_WAITING = """x.batch_id = %(batch)s AND x.operation = %(operation)s
    AND x.twin AND x.state NOT IN ('acknowledged', 'superseded')"""

_OTHERS = f"""
    SELECT x.number, o.state, o.error_data FROM send x
    JOIN send o ON (o.extract_id, o.record_number) = (x.writer_extract_id, x.writer_record_number)
        AND (o.extract_id, o.record_number) <> (x.extract_id, x.record_number) AND NOT o.twin
    JOIN batch b ON b.id = o.batch_id AND (b.state <> 'undone' OR o.state <> 'unsent')
    WHERE {_WAITING} AND o.state NOT IN ('refused', 'superseded')
    UNION ALL
    SELECT x.number, o.state, o.error_data FROM send x
    JOIN send o ON o.writer_extract_id = x.writer_extract_id
        AND o.writer_record_number = x.writer_record_number AND {_TWIN}
        AND (o.extract_id, o.record_number) <> (x.extract_id, x.record_number) AND NOT o.twin
    JOIN batch b ON b.id = o.batch_id AND (b.state <> 'undone' OR o.state <> 'unsent')
    WHERE {_WAITING} AND o.state NOT IN ('refused', 'superseded')"""
"""The other sends of the content of this batch's waiting twins."""

_KEYED = ("acknowledged",)
_POSTED = ("acknowledged", "in_doubt", "differs", "abandoned", "unsent", "sending")
"""States of another row that a twin takes over, the first one that is found."""


def _settle(known: tuple[str, ...]) -> str:
    states = ", ".join(f"'{state}'" for state in known)
    return f"""UPDATE send x SET state = told.state, error_data = told.error_data,
            changed_at = now()
        FROM (
            SELECT DISTINCT ON (number) number, replace(state, 'sending', 'unsent') AS state,
                CASE WHEN state <> 'unsent' THEN error_data END AS error_data
            FROM ({_OTHERS}) o WHERE state IN ({states})
            ORDER BY number, array_position(ARRAY[{states}], o.state)
        ) told
        WHERE {_WAITING} AND told.number = x.number AND told.state <> x.state"""
