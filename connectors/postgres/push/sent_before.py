"""POSTs that were sent before: a row that says the same of the same record ends as they did."""

from collections.abc import Mapping
from itertools import count

import psycopg

from connectors.postgres.database import nested_loops
from connectors.postgres.heartbeat import lease_name, who_holds
from connectors.postgres.push.changed_records import TWIN, WRITTEN_BEFORE, same_stored
from connectors.postgres.push.lane import CarriedOut, unanswered_error
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import joined, of_batch, quoted
from schemas.field import Table
from schemas.guards.leases import Held
from schemas.operations import PUSHES
from schemas.reasons import REASONS

AT_SERVICE = ("acknowledged", "in_doubt", "differs", "sending")
"""States of a row that its service has, or may have."""
_SENT_BEFORE = ("acknowledged", "in_doubt", "differs", "sending", "abandoned")
"""States of a row that is not sent again automatically. In an undone batch, nobody sends a row that
is `sending` any more: its run has died, and the next holder of the turn puts it in doubt."""


def elsewhere(service: str) -> str:
    """SQL for the ErrorData of a row whose content went to another service, given as a column."""
    before, after = REASONS["InDoubt"].message(value="it was sent to \0").split("\0")
    return f"""json_build_array(json_build_object('ErrorCode', 'InDoubt', 'FieldName', '',
        'Message', '{before}' || {service} || '{after}', 'Meta', json_build_object('stage', 'push',
        'value', 'sent to ' || {service})))::text"""


def in_order(states: tuple[str, ...], name: str) -> str:
    return f"array_position(ARRAY[{listed(states)}], {name})"


def mark_sent_before(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Let POSTs end as POSTs of the same records in batches that were undone.

    Records are the same if they agree in every column, in whatever file and row they came. Two more
    matches count in batches that were not undone: the same row of the same file, if it was read as
    the same record; and the row that had last written a record, if the service has had nothing else
    of it since, because somebody changed it in the database or a later batch's row was not sent. A
    record that lacks a part of its key is recognised only by its row in the file.
    """
    _find_written_over(connection, table, values)
    earlier = connection.execute(_EARLIER, values).fetchall()
    if earlier:
        sent = {
            **values,
            "earlier": [extract for extract, _ in earlier],
            "batches": sorted({batch for _, batch in earlier}),
            "error": unanswered_error(PUSHES[table.name]),
        }
        # No statistics exist for the rows planned just now; the planner would expect one, and
        # search all earlier rows for each.
        with nested_loops(connection, on=False):
            connection.execute(_end_as_before(table, joined(table), "ob.state = 'undone'"), sent)
            if not table.has_plain_key:
                connection.execute(_end_as_before(table, _same_nameless(table), "FALSE"), sent)
    connection.execute("DROP TABLE written_over")


def _find_written_over(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Create the temporary table `written_over`: the rows that wrote a batch's records before it.

    For each record this is the row that had written it and, if the service never had that row's
    content, the row before that, and so on. If a run has the turn, a waiting row may be on its way
    even so, since the run may have read it while it was the latest.
    """
    connection.execute(
        f"""CREATE TEMP TABLE written_over ON COMMIT DROP AS
        SELECT 0 AS step, i.extract_id, i.record_number, {_WRITER_OF}
        WHERE {of_batch("i")} AND i.record = '{table.name}'
        UNION ALL
        SELECT {_FOUND}, x.extract_id, x.record_number, x.writer_extract_id, x.writer_record_number
        FROM send x WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.twin
            AND x.state = 'unsent' AND {TWIN.replace("o.", "x.")} AND NOT EXISTS (SELECT FROM send o
                WHERE (o.extract_id, o.record_number) =
                    (x.writer_extract_id, x.writer_record_number))""",
        values,
    )
    moving = who_holds(connection, lease_name(Held.PUSH, PUSHES[table.name].name)) != ""
    given = {"there": [*AT_SERVICE, *(["unsent"] if moving else [])]}
    for step in count(_FOUND):
        extracts = connection.execute(
            f"SELECT DISTINCT v.writer_extract_id FROM written_over v WHERE step = %(step)s "
            f"AND {_NEVER_THERE}",
            {**given, "step": step},
        ).fetchall()
        if extracts:
            connection.execute(
                f"""INSERT INTO written_over
                SELECT v.step + 1, v.extract_id, v.record_number, {_WRITER_OF}
                JOIN written_over v ON (i.extract_id, i.record_number) =
                    (v.writer_extract_id, v.writer_record_number)
                WHERE i.extract_id = ANY(%(extracts)s) AND i.record = '{table.name}'
                    AND v.step = %(step)s AND {_NEVER_THERE}""",
                {**given, "step": step, "extracts": [extract for (extract,) in extracts]},
            )
        elif step > _FOUND:
            break
    # These rows end as the row that they follow anyway.
    connection.execute(f"DELETE FROM written_over WHERE step = {_FOUND}")


_FOUND = -1
"""Step of rows that found their record unchanged, written by a row that goes to no service."""
_WRITER_OF = f"""w.writer_extract_id, w.writer_record_number
    FROM before_image i CROSS JOIN LATERAL (SELECT {WRITTEN_BEFORE})
        w (writer_extract_id, writer_record_number)"""
_OF_WRITER = (
    "(o.extract_id, o.record_number) = (v.writer_extract_id, v.writer_record_number)",
    f"""o.writer_extract_id = v.writer_extract_id
        AND o.writer_record_number = v.writer_record_number AND {TWIN}""",
)
"""Conditions for rows `o` with the content of a writer in `written_over` `v`; each has an index."""
_NEVER_THERE = " AND ".join(
    f"""NOT EXISTS (SELECT FROM send o WHERE {one}
        AND (o.state = ANY(%(there)s) OR o.carried_out IS NOT NULL))"""
    for one in _OF_WRITER
)
_MAY_BE = f"o.operation = %(operation)s AND o.state IN ({listed(_SENT_BEFORE)})"
_EARLIER = " UNION ".join(
    (
        f"""SELECT e.id, b.id FROM extract e JOIN batch b ON b.id = e.batch_id
        WHERE e.batch_id <> %(batch)s AND (b.state = 'undone' OR e.sha256 IN
                (SELECT sha256 FROM extract WHERE batch_id = %(batch)s))
            AND EXISTS (SELECT FROM send o WHERE o.batch_id = b.id AND o.extract_id = e.id
                AND {_MAY_BE})""",
        *(
            f"""SELECT o.extract_id, o.batch_id FROM written_over v
            JOIN send o ON {one} AND {_MAY_BE}"""
            for one in _OF_WRITER
        ),
    )
)
"""SQL for the extracts, with their batches, with a row that may have been sent before."""


def _same_nameless(table: Table) -> str:
    """SQL to find the staged row `t` at the place of `s`, if `s` lacks a part of its key."""
    lacks = " OR ".join(f"s.{quoted(name)} IS NULL" for name in table.key)
    return f"t.record_number = s.record_number AND ({lacks or 'FALSE'})"


def _end_as_before(table: Table, same: str, anywhere: str) -> str:
    """SQL that lets sends end as those of the batches `earlier`, each as the best known of these.

    `same` is SQL to find the record of `s` in another staged row `t`; `anywhere` is SQL for whether
    this counts in any file and row of a batch `ob`.
    """
    return f"""UPDATE send x SET state = best.state, error_data = best.error_data,
            service_id = best.service_id, status = best.status, echo = best.echo,
            decision = best.decision, carried_out = best.carried_out
        FROM (
            SELECT DISTINCT ON (y.number) y.number,
                CASE WHEN here AND o.state <> 'sending' THEN o.state ELSE 'in_doubt' END AS state,
                CASE WHEN NOT here THEN {elsewhere("ob.service")}
                    WHEN o.state = 'sending' THEN %(error)s ELSE o.error_data END AS error_data,
                CASE WHEN here THEN o.service_id END AS service_id,
                CASE WHEN here THEN o.status END AS status, CASE WHEN here THEN o.echo END AS echo,
                CASE WHEN here THEN o.decision END AS decision,
                CASE WHEN here AND (o.state = 'abandoned' OR o.carried_out IS NOT NULL)
                    THEN o.carried_out ELSE '{CarriedOut.MAYBE}' END AS carried_out
            FROM send y
            JOIN batch b ON b.id = y.batch_id
            JOIN extract mine ON mine.id = y.extract_id
            JOIN {staged_name(table)} s
                ON s.extract_id = y.extract_id AND s.record_number = y.record_number
            JOIN {staged_name(table)} t ON {same} AND {same_stored(table)}
                AND t.extract_id = ANY(%(earlier)s)
            JOIN send o ON o.extract_id = t.extract_id AND o.record_number = t.record_number
                AND o.operation = y.operation AND o.batch_id = ANY(%(batches)s)
            JOIN extract earlier ON earlier.id = o.extract_id
            LEFT JOIN written_over v
                ON (v.extract_id, v.record_number) = (y.extract_id, y.record_number)
                AND (v.writer_extract_id, v.writer_record_number) =
                    (o.writer_extract_id, o.writer_record_number)
            JOIN batch ob ON ob.id = o.batch_id AND ({anywhere} OR v.extract_id IS NOT NULL
                OR earlier.sha256 = mine.sha256 AND o.record_number = y.record_number)
            CROSS JOIN LATERAL (SELECT ob.service IS NOT DISTINCT FROM b.service AS here) h
            WHERE y.batch_id = %(batch)s AND y.operation = %(operation)s AND y.state = 'unsent'
                AND o.state IN ({listed(_SENT_BEFORE)})
                AND (here OR o.state IN ({listed(AT_SERVICE)}))
                AND {of_batch("s")}
            ORDER BY y.number, here DESC, {in_order(_SENT_BEFORE, "o.state")},
                o.decision IS NOT NULL, o.extract_id, o.record_number
        ) best
        WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.number = best.number"""
