"""What was said of a restored database: which of its unsent rows the service may have already.

A POST that is unsent in a restored database may have been sent after the backup was made. So may
the rows of a delivery that the restored database does not know: its content lies in the archive.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import psycopg

from connectors.postgres.push.gate import IN_DOUBT
from connectors.postgres.push.window import unanswered_error
from connectors.postgres.trail import add_event
from schemas.operations import PUSHES

_POSTS = tuple(one for one in PUSHES.values() if not one.keyed)


@dataclass(frozen=True, slots=True)
class Restore:
    """One declaration."""

    unsent: str
    """`in_doubt` or `unsent`: what rows are that the database has as unsent."""
    by: str | None
    reason: str
    lost: Collection[str] = ()
    """Hashes of contents that the archive has and the database does not know."""


def declare(connection: psycopg.Connection, restore: Restore) -> Mapping[str, int]:
    """Write it down, inside the open transaction; gives rows put in doubt by operation."""
    row = connection.execute("SELECT coalesce(max(id), 0) FROM batch").fetchone()
    assert row is not None
    detail = {"unsent": restore.unsent, "last_batch": row[0], "lost_contents": len(restore.lost)}
    event = add_event(connection, "restored", by=restore.by, reason=restore.reason, detail=detail)
    connection.execute(
        "INSERT INTO push_restore (event_id, unsent, last_batch, lost, at) "
        "VALUES (%s, %s, %s, %s, now())",
        [event, restore.unsent, row[0], json.dumps(sorted(restore.lost))],
    )
    return put_in_doubt(connection)


def put_in_doubt(connection: psycopg.Connection, batch_id: int | None = None) -> Mapping[str, int]:
    """Put POSTs in doubt that a restore casts doubt on; rows that were resolved since are not.

    Covered are the batches there were at the declaration, and files whose content the archive had
    and the database did not. `now()` is the time of the rows planned in this transaction.
    """
    done = {}
    for operation in _POSTS:
        done[operation.name] = connection.execute(
            """UPDATE send x SET state = 'in_doubt', error_data = %(error)s, own_key = FALSE,
                changed_at = now()
            FROM extract e, push_restore r
            WHERE e.id = x.extract_id AND x.operation = %(operation)s AND x.state = 'unsent'
                AND (%(batch)s::int IS NULL OR x.batch_id = %(batch)s) AND r.unsent = %(in_doubt)s
                AND (x.batch_id <= r.last_batch OR r.lost::jsonb ? e.sha256)
                AND (x.changed_at <= r.at OR x.changed_at = now())""",
            {
                "batch": batch_id,
                "operation": operation.name,
                "error": unanswered_error(operation),
                "in_doubt": IN_DOUBT,
            },
        ).rowcount
    return {name: rows for name, rows in done.items() if rows}


def known_contents(connection: psycopg.Connection) -> set[str]:
    """Hashes of every content a batch knows."""
    rows = connection.execute("SELECT DISTINCT sha256 FROM extract WHERE sha256 IS NOT NULL")
    return {str(row[0]) for row in rows}
