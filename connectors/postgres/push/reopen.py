"""What an undo lets be sent again: rows that own their records once more.

The service may hold their content or a newer body: that of the undone batch, or of a batch that
overwrote it and was undone before. Whichever row sent it, the next push restores the service. It
sends every row that sends the content itself, since each may go to another service.
"""

import psycopg

from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.database import nested_loops
from connectors.postgres.push.changed_records import OVERWRITTEN, TWIN, WRITTEN_BEFORE, same_stored
from connectors.postgres.push.earlier import SAYS, count_earlier, keep_earlier
from connectors.postgres.push.gate import IN_DOUBT
from connectors.postgres.push.lane import CarriedOut, lock_sends, unanswered_error
from connectors.postgres.push.restores import DOUBTFUL
from schemas.derived.sql_names import staged_name
from schemas.derived.views import joined, of_batch
from schemas.field import Table
from schemas.guards.batch_states import UNDO
from schemas.operations import PUSHES


def may_reopen(connection: psycopg.Connection, table: Table, batch_id: int) -> list[int]:
    """The batches with rows that the undo of a batch may let be sent again."""
    rows = _ask(connection, table, batch_id, "SELECT DISTINCT batch_id FROM owner ORDER BY 1")
    return [batch for (batch,) in rows]


def reopen_restored(connection: psycopg.Connection, table: Table, batch_id: int) -> None:
    """Let the rows that own their records again after an undo be sent again.

    A PUT is sent again if a newer body was sent. A POST that was carried out stays so, since
    another would be a second effect. A POST that a restored database has as superseded is in doubt:
    the same undo may have let it be sent after the backup. A waiting row gets a new `changed_at`,
    so that a push that just took it for an older body notices. Whatever its state, a PUT counts as
    a new effect from now on. The earlier state of each row is kept.
    """
    lock_sends(connection)
    # Asked again under the lock, since sends may have ended meanwhile.
    _ask(
        connection,
        table,
        batch_id,
        "SELECT * FROM owner",
        into="CREATE TEMP TABLE sends_reopened ON COMMIT DROP AS",
    )
    keyed = PUSHES[table.name].keyed
    carried_out = "OR o.newer_sent AND x.state IN ('acknowledged', 'differs', 'refused')"
    these = "(x.extract_id, x.record_number) = (o.extract_id, o.record_number)"
    waits = "x.state IN ('unsent', 'superseded')"
    is_unsent = f"({waits} {carried_out if keyed else ''})"
    # A PUT gets a new epoch, and with it a new key, whatever its state.
    other = "TRUE" if keyed else is_unsent
    # Runs go on sending, so lock the rows: what is kept must be what is changed.
    connection.execute(f"SELECT FROM send x JOIN sends_reopened o ON {these} FOR UPDATE OF x")
    kept = f"FROM send x WHERE {SAYS} AND EXISTS (SELECT FROM sends_reopened o WHERE {these})"
    connection.execute(keep_earlier(f"{kept} AND {other}", f"'{UNDO}'", "%s"), [batch_id])
    connection.execute(
        f"""UPDATE send x SET epoch = x.epoch + {int(keyed)},
            {count_earlier()}
        FROM sends_reopened o WHERE {these} AND {other}"""
    )
    # What another row told about a body that was overwritten since no longer counts.
    doubted = "FALSE" if keyed else "(o.maybe_sent AND x.state = 'superseded')"
    connection.execute(
        f"""UPDATE send x SET state = CASE WHEN {doubted} THEN 'in_doubt' ELSE 'unsent' END,
            twin = x.twin AND {waits} {"AND NOT o.newer_sent" if keyed else ""},
            writer_extract_id = o.writer_extract_id, writer_record_number = o.writer_record_number,
            error_data = CASE WHEN {doubted} THEN %s WHEN {waits} THEN x.error_data END,
            follows = x.follows AND NOT {doubted}, own_key = x.own_key AND NOT {doubted},
            carried_out = CASE WHEN {doubted} THEN '{CarriedOut.MAYBE}' ELSE x.carried_out END,
            decision = NULL, decision_number = NULL, changed_at = now()
        FROM sends_reopened o WHERE {these} AND {is_unsent}""",
        [unanswered_error(PUSHES[table.name])],
    )
    connection.execute("DROP TABLE sends_reopened")


def _ask(
    connection: psycopg.Connection, table: Table, batch_id: int, what: str, *, into: str = ""
) -> psycopg.Cursor:
    """Run a query about `owner`, inside the open transaction."""
    operation = PUSHES[table.name].name
    values = batch_span(connection, batch_id) | {"operation": operation, "in_doubt": IN_DOUBT}
    overwritten = connection.execute(
        f"SELECT FROM send x WHERE x.operation = %(operation)s AND {OVERWRITTEN} LIMIT 1", values
    ).fetchone()
    # Without statistics the planner expects one such row, and would search all rows for each.
    with nested_loops(connection, on=overwritten is None):
        return connection.execute(f"{into} {_owners(table)} {what}", values)


def _owners(table: Table) -> str:
    """SQL for `owner`: the sends that own their records again, and whether a newer body was sent.

    They are the send of the row that wrote the record, and every other that sends its content; if
    that is a POST, only if the writer was never planned. A row whose record was overwritten before
    it was planned names no writer, which is found by its content. A newer body counts if it went to
    the same service, or if a restored database cannot know whether it was sent. `maybe_sent` says
    that it cannot know this of the rows themselves.
    """
    keyed = PUSHES[table.name].keyed
    unplanned = """AND NOT EXISTS (SELECT FROM send own
        WHERE (own.extract_id, own.record_number) = (w.extract_id, w.record_number))"""
    return f"""WITH RECURSIVE newer (extract_id, record_number, newer_extract, newer_record) AS (
            SELECT {WRITTEN_BEFORE}, i.extract_id, i.record_number
            FROM before_image i WHERE {of_batch("i")} AND i.record = '{table.name}'
                -- Asked once, first: where nothing was ever planned no image is read.
                AND EXISTS (SELECT FROM send)
            UNION
            SELECT n.extract_id, n.record_number, i.extract_id, i.record_number
            FROM newer n JOIN (
                SELECT i.* FROM batch b JOIN extract e ON e.batch_id = b.id
                JOIN before_image i ON i.extract_id = e.id AND i.record = '{table.name}'
                WHERE b.state = 'undone'
            ) i ON (n.newer_extract, n.newer_record) = ({WRITTEN_BEFORE})
        ), doubtful AS ({DOUBTFUL}), sent AS (
            SELECT n.extract_id, n.record_number, b.service FROM newer n
            JOIN send o ON (o.extract_id, o.record_number) = (n.newer_extract, n.newer_record)
            JOIN batch b ON b.id = o.batch_id
            WHERE o.attempts > 0
            UNION
            SELECT n.extract_id, n.record_number, b.service FROM newer n
            JOIN send o ON o.writer_extract_id = n.newer_extract
                AND o.writer_record_number = n.newer_record AND {TWIN}
            JOIN batch b ON b.id = o.batch_id
            WHERE o.attempts > 0
        ), unknown AS (
            SELECT DISTINCT n.extract_id, n.record_number FROM newer n
            JOIN doubtful d ON d.id = n.newer_extract
        ), restored AS (
            SELECT DISTINCT extract_id, record_number FROM newer
        ), overwritten AS MATERIALIZED (
            SELECT x.batch_id AS of_batch, s.* FROM send x
            JOIN batch b ON b.id = x.batch_id AND b.state <> 'undone'
            JOIN {staged_name(table)} s
                ON s.extract_id = x.extract_id AND s.record_number = x.record_number
            WHERE x.operation = %(operation)s AND {OVERWRITTEN}
        ), found AS (
            SELECT o.batch_id, o.extract_id, o.record_number,
                o.writer_extract_id, o.writer_record_number
            FROM restored w JOIN send o USING (extract_id, record_number)
            UNION ALL
            SELECT o.batch_id, o.extract_id, o.record_number,
                o.writer_extract_id, o.writer_record_number
            FROM restored w JOIN send o ON o.writer_extract_id = w.extract_id
                AND o.writer_record_number = w.record_number AND {TWIN} AND NOT o.twin
            JOIN batch b ON b.id = o.batch_id AND b.state <> 'undone'
            WHERE TRUE {"" if keyed else unplanned}
            UNION ALL
            SELECT s.of_batch, s.extract_id, s.record_number, w.extract_id, w.record_number
            FROM restored w JOIN {staged_name(table)} t
                ON t.extract_id = w.extract_id AND t.record_number = w.record_number
            JOIN overwritten s ON {joined(table)} AND {same_stored(table)}
            -- Asked once, first: there are next to none.
            WHERE EXISTS (SELECT FROM overwritten)
        ), owner AS (
            SELECT f.*, coalesce(s.extract_id, u.extract_id) IS NOT NULL AS newer_sent,
                EXISTS (SELECT FROM doubtful d
                    WHERE d.id IN (f.extract_id, f.writer_extract_id)) AS maybe_sent
            FROM found f JOIN batch b ON b.id = f.batch_id
            LEFT JOIN sent s ON s.service = b.service
                AND (s.extract_id, s.record_number) =
                    (f.writer_extract_id, f.writer_record_number)
            LEFT JOIN unknown u ON (u.extract_id, u.record_number) =
                (f.writer_extract_id, f.writer_record_number)
        )"""
