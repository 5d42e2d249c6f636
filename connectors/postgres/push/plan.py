"""What a batch has to send: one row of the table `send` for every clean row it applied.

A row that changed the database is sent. A row that found its record unchanged is the twin of the
row that wrote it: the service has that content already, or may have, or gets it from there. Only
where none of that holds is the twin sent itself. What went to another service says nothing of this
one: a PUT is sent, and a POST is in doubt, since it may be the same service by another name.
"""

from collections.abc import Mapping

import psycopg

from connectors.postgres.lease import Lease
from connectors.postgres.ledger import batch_span
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import STATE, WRITTEN, joined, of_batch, quoted, told_joins
from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.operations import PUSHES, Operation
from schemas.reasons import REASONS


def plan_sends(lease: Lease, table: Table) -> int:
    """Plan a record kind of the batch, inside the open transaction; planned once, it stays so."""
    operation = PUSHES[table.name]
    values = batch_span(lease.connection, lease.batch_id) | {"operation": operation.name}
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
            _mark_sent_before(lease.connection, table, values)
    return rows


def settle_duplicates(connection: psycopg.Connection, operation: Operation, batch_id: int) -> None:
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
        waiting = f"AND NOT EXISTS (SELECT 1 FROM ({_KNOWN}) o WHERE o.number = x.number)"
    connection.execute(
        f"UPDATE send x SET twin = FALSE, state = 'unsent', error_data = NULL, changed_at = now() "
        f"WHERE {_WAITING} {waiting}",
        values,
    )


_OF_IMAGE = """x.extract_id = (i.image::json ->> 'extract_id')::integer
    AND x.record_number = (i.image::json ->> 'record_number')::bigint"""
"""SQL that finds the send of the row that wrote what a before-image `i` has."""


def may_reopen(connection: psycopg.Connection, table: Table, batch_id: int) -> list[int]:
    """The batches of which the undo of a batch may let rows be sent again."""
    rows = connection.execute(
        f"""SELECT DISTINCT x.batch_id FROM before_image i JOIN send x ON {_OF_IMAGE}
        WHERE {of_batch("i")} AND i.record = '{table.name}' ORDER BY 1""",
        batch_span(connection, batch_id),
    )
    return [batch for (batch,) in rows]


def reopen_restored(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """Let the rows that own their records again after an undo be sent again; returns how many.

    Their records had a newer body from the undone batch, so what the service holds may be that
    one. A POST that was acknowledged stays so: another one would be another effect. Whatever their
    state, a PUT of them is another effect from now on.
    """
    operation = PUSHES[table.name]
    if operation.keyed:
        connection.execute(
            f"""UPDATE send x SET epoch = x.epoch + 1 FROM before_image i
            WHERE {of_batch("i")} AND i.record = '{table.name}' AND {_OF_IMAGE}""",
            batch_span(connection, batch_id),
        )
    overwritten = "OR x.state = 'acknowledged' AND mine.attempts > 0" if operation.keyed else ""
    return connection.execute(
        f"""UPDATE send x SET state = 'unsent', twin = FALSE, changed_at = now()
        FROM before_image i LEFT JOIN send mine
            ON mine.extract_id = i.extract_id AND mine.record_number = i.record_number
        WHERE {of_batch("i")} AND i.record = '{table.name}'
            AND {_OF_IMAGE} AND (x.state = 'superseded' {overwritten})""",
        batch_span(connection, batch_id),
    ).rowcount


def _plan(table: Table) -> str:
    same = " AND ".join(
        f"t.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)}" for name in stored_columns(table)
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
            0, 0, now()
        FROM (
            SELECT s.extract_id, s.record_number, FALSE AS twin,
                s.extract_id AS writer_extract_id, s.record_number AS writer_record_number
            {rows} WHERE {of_batch("s")} AND {STATE} IN ({listed(WRITTEN)})
            UNION ALL
            SELECT s.extract_id, s.record_number, t.extract_id IS NOT NULL,
                t.extract_id, t.record_number
            FROM (SELECT s.* {rows} WHERE {of_batch("s")} AND {STATE} = 'unchanged') s
            LEFT JOIN {table.name} t ON {joined(table)} AND {same}
        ) applied"""


TWIN = "(o.writer_extract_id, o.writer_record_number) <> (o.extract_id, o.record_number)"
"""The condition of the index `send_twins`."""

# The batch that wrote a record may be pushed after the one that delivered it once more.
_MARK_SENT_BY_TWINS = f"""UPDATE send x SET twin = TRUE FROM send o
    WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
        AND o.writer_extract_id = x.extract_id AND o.writer_record_number = x.record_number
        AND {TWIN} AND NOT o.twin"""

_AT_SERVICE = ("acknowledged", "in_doubt", "differs", "sending")
"""States of a row that its service has, or may have."""
_SENT_BEFORE = ("acknowledged", "in_doubt", "differs", "abandoned")
"""States of a row that is not to be sent again by itself."""


def _elsewhere(service: str) -> str:
    """SQL for the ErrorData of a row whose content went to another service, which is a column."""
    before, after = REASONS["InDoubt"].message(value="it was sent to \0").split("\0")
    return f"""json_build_array(json_build_object('ErrorCode', 'InDoubt', 'FieldName', '',
        'Message', '{before}' || {service} || '{after}', 'Meta', json_build_object('stage', 'push',
        'value', 'sent to ' || {service})))::text"""


def _in_order(states: tuple[str, ...], name: str) -> str:
    return f"array_position(ARRAY[{listed(states)}], {name})"


def _mark_sent_before(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Let POSTs end as those of the same rows that a batch sent which was undone.

    The same row of the same file is another record where it was read by another profile.
    """
    earlier = connection.execute(
        """SELECT min(earlier.id), max(earlier.id) FROM extract mine
        JOIN extract earlier ON earlier.sha256 = mine.sha256 AND earlier.id <> mine.id
        WHERE mine.batch_id = %(batch)s
            AND EXISTS (SELECT FROM send o WHERE o.extract_id = earlier.id)""",
        values,
    ).fetchone()
    if earlier is None or earlier[0] is None:
        return
    same = " AND ".join(
        f"p.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)}" for name in stored_columns(table)
    )
    connection.execute(
        f"""UPDATE send x SET state = told.state, error_data = told.error_data,
            service_id = told.service_id, status = told.status, echo = told.echo
        FROM (
            SELECT DISTINCT ON (y.number) y.number,
                CASE WHEN here THEN o.state ELSE 'in_doubt' END AS state,
                CASE WHEN here THEN o.error_data ELSE {_elsewhere("ob.service")} END AS error_data,
                CASE WHEN here THEN o.service_id END AS service_id,
                CASE WHEN here THEN o.status END AS status, CASE WHEN here THEN o.echo END AS echo
            FROM send y
            JOIN batch b ON b.id = y.batch_id
            JOIN extract mine ON mine.id = y.extract_id
            JOIN extract earlier ON earlier.sha256 = mine.sha256 AND earlier.id <> mine.id
            JOIN send o ON o.extract_id = earlier.id AND o.record_number = y.record_number
                AND o.operation = y.operation
            JOIN batch ob ON ob.id = o.batch_id
            CROSS JOIN LATERAL (SELECT ob.service IS NOT DISTINCT FROM b.service AS here) w
            JOIN {staged_name(table)} s
                ON s.extract_id = y.extract_id AND s.record_number = y.record_number
            JOIN {staged_name(table)} p
                ON p.extract_id = o.extract_id AND p.record_number = o.record_number
            WHERE y.batch_id = %(batch)s AND y.operation = %(operation)s AND y.state = 'unsent'
                AND o.state IN ({listed(_SENT_BEFORE)})
                AND (here OR o.state IN ({listed(_AT_SERVICE)}))
                AND {of_batch("s")} AND p.extract_id BETWEEN %(first)s AND %(last)s AND {same}
            ORDER BY y.number, here DESC, {_in_order(_SENT_BEFORE, "o.state")}
        ) told
        WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.number = told.number""",
        {**values, "first": earlier[0], "last": earlier[1]},
    )


_WAITING = """x.batch_id = %(batch)s AND x.operation = %(operation)s
    AND x.twin AND x.state NOT IN ('acknowledged', 'superseded')"""

_OTHERS = f"""
    SELECT x.number, b.service, o.state, o.error_data FROM send x
    JOIN send o ON (o.extract_id, o.record_number) = (x.writer_extract_id, x.writer_record_number)
        AND (o.extract_id, o.record_number) <> (x.extract_id, x.record_number) AND NOT o.twin
    JOIN batch b ON b.id = o.batch_id AND (b.state <> 'undone' OR o.state <> 'unsent')
    WHERE {_WAITING} AND o.state NOT IN ('refused', 'superseded')
    UNION ALL
    SELECT x.number, b.service, o.state, o.error_data FROM send x
    JOIN send o ON o.writer_extract_id = x.writer_extract_id
        AND o.writer_record_number = x.writer_record_number AND {TWIN}
        AND (o.extract_id, o.record_number) <> (x.extract_id, x.record_number) AND NOT o.twin
    JOIN batch b ON b.id = o.batch_id AND (b.state <> 'undone' OR o.state <> 'unsent')
    WHERE {_WAITING} AND o.state NOT IN ('refused', 'superseded')"""
"""The other sends of the content of this batch's waiting twins, whichever service they go to."""

_KNOWN = f"""
    SELECT o.number, here, CASE WHEN here THEN o.state ELSE 'in_doubt' END AS state,
        CASE WHEN here THEN o.error_data ELSE {_elsewhere("o.service")} END AS error_data
    FROM ({_OTHERS}) o CROSS JOIN LATERAL (SELECT o.service IS NOT DISTINCT FROM
        (SELECT service FROM batch WHERE id = %(batch)s) AS here) w
    WHERE here OR o.state IN ({listed(_AT_SERVICE)})"""
"""What they say of this batch's service."""

_KEYED = ("acknowledged",)
_POSTED = ("acknowledged", "in_doubt", "differs", "abandoned", "unsent", "sending")
"""States of another row that a twin takes over, the first one that is found."""


def _settle(known: tuple[str, ...]) -> str:
    return f"""UPDATE send x SET state = told.state, error_data = told.error_data,
            changed_at = now()
        FROM (
            SELECT DISTINCT ON (number) number, replace(state, 'sending', 'unsent') AS state,
                CASE WHEN state <> 'unsent' THEN error_data END AS error_data
            FROM ({_KNOWN}) o WHERE state IN ({listed(known)})
            ORDER BY number, here DESC, {_in_order(known, "o.state")}
        ) told
        WHERE {_WAITING} AND told.number = x.number AND told.state <> x.state"""
