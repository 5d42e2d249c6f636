"""What a batch has to send: one row of the table `send` for every clean row it applied.

A row that changed the database is sent. A row that found its record unchanged is the twin of the
row that wrote it: the service has that content already, may have it, or gets it from that row. The
twin itself is sent only if none of this holds. Content sent to another service proves nothing for
this one: a PUT is sent, and a POST is in doubt, since it may be the same service by another name.
"""

from collections.abc import Mapping

import psycopg

from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.push.changed_records import (
    TWIN,
    WRITTEN_BEFORE,
    part_from_changed,
    same_stored,
    supersede_changed,
)
from connectors.postgres.push.lane import lock_sends
from connectors.postgres.push.sent_before import AT_SERVICE, elsewhere, in_order, mark_sent_before
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import STATE, WRITTEN, joined, of_batch, outcome_joins
from schemas.field import Table
from schemas.operations import PUSHES, Operation


def plan_sends(lease: Lease, table: Table) -> int:
    """Plan a record kind of the batch, inside the open transaction, unless that was done."""
    planned = lease.connection.execute(
        "SELECT FROM send WHERE batch_id = %s AND operation = %s LIMIT 1",
        [lease.batch_id, PUSHES[table.name].name],
    )
    return 0 if planned.fetchone() is not None else _planned(lease, table, _plan(table))


def plan_again(lease: Lease, table: Table) -> int:
    """Plan once more a batch that now goes to another service.

    The states of its rows came only from other rows, and concerned the former service.
    """
    return _planned(lease, table, _FORGET)


def _planned(lease: Lease, table: Table, statement: str) -> int:
    """Plan rows by a statement, and let them follow rows that send or have sent their content."""
    connection, operation = lease.connection, PUSHES[table.name]
    values = batch_span(connection, lease.batch_id) | {"operation": operation.name}
    lock_sends(connection)
    rows = connection.execute(statement, values).rowcount
    if not rows:
        return 0
    connection.execute(_MARK_SENT_BY_TWINS, values)
    if not operation.keyed:
        mark_sent_before(connection, table, values)
    part_from_changed(connection, table, values)
    if not operation.keyed:
        _note_doubts(connection, table, values)
    return rows


def settle_duplicates(connection: psycopg.Connection, operation: Operation, batch_id: int) -> None:
    """Let twins end as the row that sends their content did, and send those without such a row.

    If the content of a POST may be at the service, its twin is not sent but in doubt too. A
    repeated PUT does no harm, so its twin does not wait.
    """
    lock_sends(connection)
    supersede_changed(connection, operation.table, batch_id)
    values = {"operation": operation.name, "batch": batch_id}
    connection.execute(_settle(_KEYED if operation.keyed else _POSTED), values)
    if not operation.keyed:
        connection.execute(_KEEP_OWN, values)
    connection.execute(
        f"UPDATE send x SET twin = FALSE, state = 'unsent', error_data = NULL, changed_at = now() "
        f"WHERE {_WAITING} {'' if operation.keyed else f'AND {_UNKNOWN}'}",
        values,
    )


def _plan(table: Table) -> str:
    rows = f"FROM {staged_name(table)} s {outcome_joins(table)}"
    # An unchanged row whose record has changed since tells nothing about the service.
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
            SELECT s.extract_id, s.record_number, TRUE, t.extract_id, t.record_number
            FROM (SELECT s.* {rows} WHERE {of_batch("s")} AND {STATE} = 'unchanged') s
            LEFT JOIN {table.name} t ON {joined(table)} AND {same_stored(table)}
        ) applied"""


CURRENT = """(t.extract_id, t.record_number) IS NOT DISTINCT FROM
    (x.writer_extract_id, x.writer_record_number)"""
"""SQL for whether target row `t` has the content of row `x`, since no later batch wrote it."""
TO_SEND = "(x.state = 'unsent' OR %(repeatable)s AND x.state = 'in_doubt' AND x.own_key)"
"""SQL for whether a row `x` may be sent; `repeatable` says that the host accepts POSTs in doubt.

A row in doubt stays so until it is claimed, since a run that ends before has proved nothing. Only
rows that were never sent in a batch are repeated, because the host knows one key for a whole batch.
"""
WAITS = f"(x.state = 'sending' OR {TO_SEND})"
"""SQL for whether a row `x` is to be sent, or is being sent by a run that may have died."""
# The batch that wrote a record may be pushed after the batch that repeated it.
_MARK_SENT_BY_TWINS = f"""UPDATE send x SET twin = TRUE FROM send o
    WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
        AND o.writer_extract_id = x.extract_id AND o.writer_record_number = x.record_number
        AND {TWIN} AND NOT o.twin"""

_FORGET = """UPDATE send x SET state = 'unsent', attempts = 0, changed_at = now(),
        twin = (x.writer_extract_id, x.writer_record_number) <> (x.extract_id, x.record_number),
        status = NULL, error_data = NULL, echo = NULL, service_id = NULL, carried_out = NULL,
        follows = NULL, own_key = NULL, decision = NULL, decision_number = NULL
    WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state <> 'superseded'"""


def _note_doubts(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Note POSTs whose record has an earlier POST in doubt: the service may have both.

    Notes about the former service are removed.
    """
    connection.execute(
        "DELETE FROM note WHERE batch_id = %(batch)s AND record = %(record)s AND code = 'InDoubt'",
        {**values, "record": table.name},
    )
    connection.execute(
        f"""INSERT INTO note (batch_id, extract_id, record_number, record, code, field, value, rows,
            message)
        SELECT %(batch)s, (min(place))[1], (min(place))[2], '{table.name}', 'InDoubt', '',
            'batch ' || earlier, count(*), replace(%(message)s, '0', earlier::text)
        FROM (
            SELECT o.batch_id AS earlier, ARRAY[x.extract_id, x.record_number] AS place
            FROM send x JOIN batch mine ON mine.id = x.batch_id
            JOIN before_image i ON i.extract_id = x.extract_id
                AND i.record_number = x.record_number AND i.record = '{table.name}'
                AND {of_batch("i")}
            JOIN send o ON (o.extract_id, o.record_number) = ({WRITTEN_BEFORE})
                AND o.operation = x.operation AND o.state = 'in_doubt'
            JOIN batch b ON b.id = o.batch_id AND b.service = mine.service
            WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
        ) beside GROUP BY earlier""",
        {**values, "message": _BOTH_MAY_BE_THERE},
    )


_BOTH_MAY_BE_THERE = (
    "An earlier version of the record was posted by batch 0 and was in doubt there when this one "
    "was to be posted: the service may have both. `recon sends 0 --state in_doubt` lists those "
    "that still are."
)
_WRITER = "(o.extract_id, o.record_number) = (x.writer_extract_id, x.writer_record_number)"
_TWINS = f"""o.writer_extract_id = x.writer_extract_id
    AND o.writer_record_number = x.writer_record_number AND {TWIN}"""

_SAME = tuple(
    f"{same} AND NOT o.twin AND (o.extract_id, o.record_number) <> (x.extract_id, x.record_number)"
    for same in (_WRITER, _TWINS)
)
"""Conditions for a row `o` that itself sends the content of another row `x`; each has an index."""
ALONE = " AND ".join(f"NOT EXISTS (SELECT FROM send o WHERE {same})" for same in _SAME)
"""SQL for rows `x` whose content no other row sends itself."""


_LEFT_ALONE = " AND ".join(
    f"NOT EXISTS (SELECT FROM send o WHERE {same} AND o.state = 'acknowledged')" for same in _SAME
)
FOLLOWS = f"""x.twin AND (x.state NOT IN ('acknowledged', 'superseded')
    OR x.state = 'acknowledged' AND x.follows AND {_LEFT_ALONE})"""
"""SQL for whether a row `x` is to end as another row does.

An acknowledged row does so if it was acknowledged only because another row was confirmed, and
that confirmation has been taken back.
"""
_ALIKE = f"""send x ON x.writer_extract_id = o.writer_extract_id
    AND x.writer_record_number = o.writer_record_number AND {TWIN.replace("o.", "x.")}"""
_FORMERLY = f"x.state = 'acknowledged' AND {FOLLOWS}"
_BY_ANOTHER = "x.twin AND x.state IN ('in_doubt', 'differs', 'abandoned')"
"""SQL for rows `x` without an answer of their own that are to end as another row does."""
FOLLOWERS = f"{_ALIKE} AND ({_FORMERLY} OR {_BY_ANOTHER} AND x.follows AND x.state <> o.state)"
"""SQL to join rows `x` that ended as a row `o` of their content had, and are to end again."""
_WAITING = f"x.batch_id = %(batch)s AND x.operation = %(operation)s AND {FOLLOWS}"

_KEYED = ("acknowledged",)
_POSTED = ("acknowledged", "in_doubt", "differs", "abandoned", "unsent", "sending")
"""States of another row that a twin takes over, by preference."""
_KEYED_NAMES = tuple(one.name for one in PUSHES.values() if one.keyed)


def _others(which: str) -> str:
    """SQL for the other sends of the content of rows `x`, to whichever service they go."""
    return " UNION ALL ".join(
        f"""SELECT x.extract_id, x.record_number, x.operation, x.number, o.error_data,
            o.state, b.service,
            b.service IS NOT DISTINCT FROM mine.service AS here,
            o.state NOT IN ('refused', 'superseded')
                AND (b.state <> 'undone' OR o.state <> 'unsent'
                    AND x.operation NOT IN ({listed(_KEYED_NAMES)})) AS tells
        FROM send x JOIN batch mine ON mine.id = x.batch_id
        JOIN send o ON {same} JOIN batch b ON b.id = o.batch_id
        WHERE {which}"""
        for same in _SAME
    )


def sent_by_another(which: str) -> str:
    """SQL for the POSTs among rows `x` whose content another row sends, or has sent.

    Gives extract and record number.
    """
    posts = [one.name for one in PUSHES.values() if not one.keyed]
    return f"""SELECT extract_id, record_number FROM ({_others(which)}) o
        WHERE tells AND here AND operation IN ({listed(posts)})
            AND state IN ('unsent', 'sending', 'acknowledged')"""


_OTHERS_NOW = f"""SELECT DISTINCT ON (extract_id, record_number) extract_id, record_number, state
    FROM (SELECT extract_id, record_number, here,
            CASE WHEN here THEN state ELSE 'in_doubt' END AS state
        FROM ({_others(_BY_ANOTHER)}) o WHERE tells AND (here OR state IN ({listed(AT_SERVICE)}))
    ) o ORDER BY extract_id, record_number, here DESC, {in_order(_POSTED, "state")}"""
LEFT_BEHIND = f"""SELECT x.batch_id FROM earlier_send e
    JOIN send o ON (o.extract_id, o.record_number) = (e.extract_id, e.record_number)
    JOIN {_ALIKE} WHERE e.decision = 'confirm' AND {_FORMERLY}
    UNION ALL
    SELECT x.batch_id FROM send x LEFT JOIN ({_OTHERS_NOW}) now USING (extract_id, record_number)
    WHERE {_BY_ANOTHER} AND (now.state IS NOT NULL OR x.follows)
        AND coalesce(now.state, 'refused') NOT IN (x.state, 'unsent', 'sending')"""
"""SQL for the batches with a row that followed another row whose end has changed since.

Acknowledged rows are found from confirmations taken back: there are hardly any of these, but as
many acknowledged rows as rows delivered twice. If the other row is yet to be sent, its end is
awaited.
"""

_OTHERS = _others(_WAITING)
_KNOWN = f"""
    SELECT o.number, here, CASE WHEN here THEN o.state ELSE 'in_doubt' END AS state,
        CASE WHEN here THEN o.error_data ELSE {elsewhere("o.service")} END AS error_data
    FROM ({_OTHERS}) o
    WHERE tells AND (here OR o.state IN ({listed(AT_SERVICE)}))"""
"""SQL for what the other rows tell about this batch's service."""

_UNKNOWN = f"NOT EXISTS (SELECT 1 FROM ({_KNOWN}) o WHERE o.number = x.number)"
_KEEP_OWN = f"""UPDATE send x SET twin = FALSE
    WHERE {_WAITING} AND x.state <> 'unsent' AND x.follows IS NOT TRUE AND {_UNKNOWN}"""
"""SQL for twins whose end no other row tells: it is their own, by a restore or before an undo."""


def _settle(known: tuple[str, ...]) -> str:
    return f"""UPDATE send x SET state = best.state, follows = TRUE, error_data = best.error_data,
            decision = NULL, decision_number = NULL, changed_at = now()
        FROM (
            SELECT DISTINCT ON (number) number, replace(state, 'sending', 'unsent') AS state,
                CASE WHEN state <> 'unsent' THEN error_data END AS error_data
            FROM ({_KNOWN}) o WHERE state IN ({listed(known)})
            ORDER BY number, here DESC, {in_order(known, "o.state")}
        ) best
        WHERE {_WAITING} AND best.number = x.number AND best.state <> x.state"""
