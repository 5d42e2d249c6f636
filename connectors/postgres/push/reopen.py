"""What an undo lets be sent again: rows that own their records once more.

The service may hold what they said, or a newer body: that of the undone batch, or of one that wrote
over it and was undone before. Whichever row sent that, the next push brings the service back.
"""

import psycopg

from connectors.postgres.ledger import batch_span
from connectors.postgres.push.lane import lock_sends
from connectors.postgres.push.plan import TWIN
from schemas.derived.views import of_batch
from schemas.field import Table
from schemas.operations import PUSHES


def may_reopen(connection: psycopg.Connection, table: Table, batch_id: int) -> list[int]:
    """The batches of which the undo of a batch may let rows be sent again."""
    rows = connection.execute(
        f"{_owners(table)} SELECT DISTINCT batch_id FROM owner ORDER BY 1",
        batch_span(connection, batch_id),
    )
    return [batch for (batch,) in rows]


def reopen_restored(connection: psycopg.Connection, table: Table, batch_id: int) -> None:
    """Let the rows that own their records again after an undo be sent again.

    A PUT is, where a newer body was sent. A POST that was carried out stays so: another one would
    be another effect. A row that waits is touched, so that a push that took it for an older body
    meanwhile finds it changed. Whatever their state, a PUT of them is another effect from now on.
    """
    lock_sends(connection)
    # Looked for again: sends may have ended since they were looked at without the lock.
    connection.execute(
        f"""CREATE TEMP TABLE sends_reopened ON COMMIT DROP AS
        {_owners(table)} SELECT extract_id, record_number, newer_sent FROM owner""",
        batch_span(connection, batch_id),
    )
    if PUSHES[table.name].keyed:
        connection.execute(
            """UPDATE send x SET epoch = x.epoch + 1 FROM sends_reopened o
            WHERE (x.extract_id, x.record_number) = (o.extract_id, o.record_number)"""
        )
    carried_out = "OR o.newer_sent AND x.state IN ('acknowledged', 'differs', 'refused')"
    connection.execute(
        f"""UPDATE send x SET state = 'unsent', twin = x.twin AND x.state = 'unsent',
            error_data = CASE WHEN x.state IN ('unsent', 'superseded') THEN x.error_data END,
            changed_at = now()
        FROM sends_reopened o
        WHERE (x.extract_id, x.record_number) = (o.extract_id, o.record_number)
            AND (x.state IN ('unsent', 'superseded')
                {carried_out if PUSHES[table.name].keyed else ""})"""
    )
    connection.execute("DROP TABLE sends_reopened")


def _named(image: str) -> str:
    return f"""({image}.image::json ->> 'extract_id')::integer,
        ({image}.image::json ->> 'record_number')::bigint"""


def _owners(table: Table) -> str:
    """SQL for `owner`: the sends that own their records again, and whether a newer body was sent.

    Where the row that wrote a record was never planned, the row that sent its content for it is.
    """
    return f"""WITH RECURSIVE newer (extract_id, record_number, newer_extract, newer_record) AS (
            SELECT {_named("i")}, i.extract_id, i.record_number
            FROM before_image i WHERE {of_batch("i")} AND i.record = '{table.name}'
                -- Asked once, first: where nothing was ever planned no image is read.
                AND EXISTS (SELECT FROM send)
            UNION
            SELECT n.extract_id, n.record_number, i.extract_id, i.record_number
            FROM newer n JOIN (
                SELECT i.* FROM batch b JOIN extract e ON e.batch_id = b.id
                JOIN before_image i ON i.extract_id = e.id AND i.record = '{table.name}'
                WHERE b.state = 'undone'
            ) i ON (n.newer_extract, n.newer_record) = ({_named("i")})
        ), sent AS (
            SELECT DISTINCT n.extract_id, n.record_number FROM newer n
            JOIN send o ON (o.extract_id, o.record_number) = (n.newer_extract, n.newer_record)
            WHERE o.attempts > 0
            UNION
            SELECT n.extract_id, n.record_number FROM newer n
            JOIN send o ON o.writer_extract_id = n.newer_extract
                AND o.writer_record_number = n.newer_record AND {TWIN}
            WHERE o.attempts > 0
        ), restored AS (
            SELECT DISTINCT n.extract_id, n.record_number, s.extract_id IS NOT NULL AS newer_sent
            FROM newer n LEFT JOIN sent s USING (extract_id, record_number)
        ), owner AS (
            SELECT o.batch_id, o.extract_id, o.record_number, w.newer_sent
            FROM restored w JOIN send o USING (extract_id, record_number)
            UNION ALL
            SELECT o.batch_id, o.extract_id, o.record_number, w.newer_sent
            FROM restored w JOIN send o ON o.writer_extract_id = w.extract_id
                AND o.writer_record_number = w.record_number AND {TWIN} AND NOT o.twin
            JOIN batch b ON b.id = o.batch_id AND b.state <> 'undone'
            WHERE NOT EXISTS (SELECT FROM send own
                WHERE (own.extract_id, own.record_number) = (w.extract_id, w.record_number))
        )"""
