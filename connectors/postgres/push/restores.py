"""What was declared about a restored database: which unsent rows the service may already have.

A POST that is unsent in a restored database may have been sent after the backup was made. So may
rows of a delivery that the restored database does not know: its content is in the archive, or is
listed there as removed.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import psycopg

from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.database import nested_loops
from connectors.postgres.push.changed_records import same_stored
from connectors.postgres.push.earlier import SAYS, count_earlier, keep_earlier
from connectors.postgres.push.gate import IN_DOUBT
from connectors.postgres.push.lane import CarriedOut, lock_sends, unanswered_error
from connectors.postgres.push.plan import ALONE
from connectors.postgres.query import one_value
from connectors.postgres.trail import add_event
from schemas.derived.sql_names import staged_name
from schemas.derived.views import joined, of_batch
from schemas.guards.batch_states import RESTORED
from schemas.guards.push_gate import LOST_HASH
from schemas.operations import PUSHES, Operation

_POSTS = tuple(one for one in PUSHES.values() if not one.keyed)


@dataclass(frozen=True, slots=True)
class Restore:
    unsent: str
    """`in_doubt` or `unsent`: what the rows are that the database has as unsent."""
    by: str | None
    reason: str
    lost: Collection[str] = ()
    """Hashes of contents that the archive has or had, and that the database does not know."""


def declare(connection: psycopg.Connection, restore: Restore) -> Mapping[str, int]:
    """Record the declaration, inside the open transaction; gives rows put in doubt by operation.

    Every unsent POST was unsent in the backup, or is to be sent by a decision made there, whatever
    the clock says. Rows planned after this are handled by `doubt_planned`.
    """
    lock_sends(connection)
    last_batch = one_value(connection.execute("SELECT coalesce(max(id), 0) FROM batch"))
    lost = json.dumps(sorted(restore.lost))
    detail = {
        "unsent": restore.unsent,
        "last_batch": last_batch,
        "lost_contents": len(restore.lost),
        LOST_HASH: hashlib.sha256(lost.encode()).hexdigest(),
    }
    event = add_event(connection, RESTORED, by=restore.by, reason=restore.reason, detail=detail)
    connection.execute(
        "INSERT INTO push_restore (event_id, unsent, last_batch, lost, at) "
        "VALUES (%s, %s, %s, %s, now())",
        [event, restore.unsent, last_batch, lost],
    )
    return _put(connection, _POSTS, "TRUE") if restore.unsent == IN_DOUBT else {}


def doubt_planned(
    connection: psycopg.Connection, batch_id: int, planned: Iterable[Operation]
) -> None:
    """Put POSTs of a batch just planned in doubt if a restore casts doubt on them.

    These are rows with contents of batches that existed at the declaration, whichever batch
    delivers them now, and with contents that the archive had and the database did not. They are
    also rows that repeat such a row, if no other row can tell whether that was sent: either no
    other row sends it, or its batch was undone before it was planned. Rows planned earlier were
    looked at then, and may have been resolved since.
    """
    posts = [one for one in planned if not one.keyed]
    for rows in (_DELIVERED, _REPEATED):
        doubted = f"""x.batch_id = %(batch)s
            AND EXISTS (SELECT FROM ({DOUBTFUL}) d WHERE {rows})"""
        _put(connection, posts, doubted, batch=batch_id, in_doubt=IN_DOUBT)
    for operation in posts:
        values = batch_span(connection, batch_id) | {"operation": operation.name}
        found = connection.execute(_NEVER_PLANNED, values | {"in_doubt": IN_DOUBT}).fetchall()
        if undone := [extract_id for (extract_id,) in found]:
            # No statistics exist for the rows planned just now, as in `mark_sent_before`.
            with nested_loops(connection, on=False):
                _put(connection, [operation], _same_as_undone(operation), undone=undone, **values)


def _same_as_undone(operation: Operation) -> str:
    """SQL for planned rows with the content of a row of the extracts `undone`."""
    table = operation.table
    return f"""x.batch_id = %(batch)s AND (x.extract_id, x.record_number) IN (
        SELECT s.extract_id, s.record_number FROM {staged_name(table)} s
        JOIN {staged_name(table)} t ON {joined(table)} AND {same_stored(table)}
            AND t.extract_id = ANY(%(undone)s)
        WHERE {of_batch("s")})"""


_DELIVERED = "x.extract_id = d.id"
_REPEATED = f"x.twin AND x.writer_extract_id = d.id AND {ALONE}"


DOUBTFUL = """SELECT e.id FROM push_restore r JOIN extract e ON r.lost::jsonb ? e.sha256
        OR e.batch_id <= r.last_batch OR EXISTS (SELECT FROM extract before
            WHERE before.sha256 = e.sha256 AND before.batch_id <= r.last_batch)
    WHERE r.unsent = %(in_doubt)s"""
"""SQL for the extracts of which a restored database cannot know what was sent."""


_NEVER_PLANNED = f"""SELECT DISTINCT d.id FROM ({DOUBTFUL}) d JOIN extract e ON e.id = d.id
    JOIN batch b ON b.id = e.batch_id AND b.state = 'undone'
    WHERE NOT EXISTS (SELECT FROM send o WHERE o.batch_id = b.id AND o.operation = %(operation)s)
    ORDER BY 1"""
"""SQL for such extracts of batches that were undone before they were planned."""


def _put(
    connection: psycopg.Connection, posts: Iterable[Operation], doubted: str, **values: object
) -> Mapping[str, int]:
    """Put unsent rows in doubt; gives how many by operation."""
    unsent = f"x.operation = %(operation)s AND x.state = 'unsent' AND {doubted}"
    kept = keep_earlier(f"FROM send x WHERE {SAYS} AND {unsent}", f"'{RESTORED}'", "NULL")
    done = {
        operation.name: connection.execute(
            f"""WITH kept AS ({kept})
            UPDATE send x SET state = 'in_doubt', follows = FALSE, error_data = %(error)s,
                own_key = FALSE, {count_earlier()}, carried_out = '{CarriedOut.MAYBE}',
                decision = NULL, decision_number = NULL, changed_at = now()
            WHERE {unsent}""",
            {"operation": operation.name, "error": unanswered_error(operation), **values},
        ).rowcount
        for operation in posts
    }
    return {name: rows for name, rows in done.items() if rows}


def known_contents(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("SELECT DISTINCT sha256 FROM extract WHERE sha256 IS NOT NULL")
    return {str(row[0]) for row in rows}
