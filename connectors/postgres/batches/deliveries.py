"""The batches of one delivery: the one that it began with, and the corrections that follow it."""

import psycopg

from connectors.postgres.batches.ledger import IN_DATABASE
from schemas.derived.sql_names import listed
from schemas.derived.views import ENDS

_ENDS = listed(ENDS)
_IS_SO = "(SELECT {} FROM batch WHERE id = {})"
"""SQL for a property of a batch; a subquery by number, since a join would read every batch."""
_REFUSED_THERE = f"""e.refused IS NOT NULL AND e.batch_id <> own.id
    AND {_IS_SO.format(f"state NOT IN ({_ENDS})", "e.batch_id")}"""
_SAME_FEED = _IS_SO.format("feed = own.feed", "e.batch_id")
_TAKEN_THERE = _IS_SO.format(f"feed = own.feed AND state IN ({listed(IN_DATABASE)})", "o.batch_id")
IS_STATED_SAME = """({0}.manifest = e.manifest
    AND jsonb_strip_nulls(e.manifest::jsonb) - 'manifest' <> '{{}}')"""
"""SQL for whether a manifest says the same of a file as of file `e`, beyond listing it."""
FAMILY = """WITH RECURSIVE above AS (
        SELECT id, corrects FROM batch WHERE id = ANY(%s)
        UNION SELECT b.id, b.corrects FROM batch b JOIN above a ON b.id = a.corrects
            AND b.id < a.id
    ), family AS (
        SELECT id FROM above
        UNION SELECT b.id FROM batch b JOIN family f ON b.corrects = f.id AND b.id > f.id
    )"""
"""SQL to precede a query on `family`: all batches of the deliveries of the given ones."""


def batches_of_delivery(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """A batch and all others of its delivery, except those that were taken back."""
    found = connection.execute(
        f"{FAMILY} SELECT b.id FROM batch b JOIN family USING (id) "
        f"WHERE b.id = %s OR b.state NOT IN ({_ENDS}) ORDER BY 1",
        [[batch_id], batch_id],
    ).fetchall()
    return [one for (one,) in found]


def batches_to_report_again(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The other batches whose reports may change because of a batch.

    If it is a correction, these are batches of its delivery: those that it corrects, directly or
    through others, and those with rows in error, which may now count with one of its rows; other
    complete batches do not change. To these come batches that refused a file that it has or that a
    batch of its delivery refused, and batches of its feed that lacked a file that only it has.
    """
    found = connection.execute(
        f"""{FAMILY}, own AS (SELECT b.id, b.feed, b.corrects, e.sha256, e.name, e.manifest
            FROM batch b LEFT JOIN extract e ON e.batch_id = b.id AND e.refused IS NULL
            WHERE b.id = %s)
        SELECT id FROM family f
        WHERE EXISTS (SELECT FROM own WHERE own.id <> f.id AND corrects IS NOT NULL)
            AND (SELECT state NOT IN ({_ENDS})
                    AND (state <> 'complete' OR id IN (SELECT id FROM above))
                FROM batch WHERE id = f.id)
        UNION SELECT e.batch_id FROM own JOIN extract e ON e.sha256 = own.sha256
            WHERE {_REFUSED_THERE} AND (e.batch_id < own.id OR {_SAME_FEED})
        UNION SELECT e.batch_id FROM own JOIN extract e ON e.name = own.name AND e.sha256 IS NULL
            AND e.batch_id < own.id AND {IS_STATED_SAME.format("own")}
            WHERE {_REFUSED_THERE} AND {_SAME_FEED}
            AND NOT EXISTS (SELECT FROM extract o WHERE o.name = e.name AND o.refused IS NULL
                AND o.batch_id > e.batch_id AND o.batch_id <> own.id
                AND {_TAKEN_THERE} AND {IS_STATED_SAME.format("o")})
        UNION SELECT a.batch_id FROM family f,
            -- Looked up for each, where a join might read every file there is.
            LATERAL (SELECT sha256 FROM extract
                WHERE batch_id = f.id AND refused IS NOT NULL OFFSET 0) e,
            LATERAL (SELECT batch_id FROM extract
                WHERE sha256 = e.sha256 AND refused IS NOT NULL OFFSET 0) a
            WHERE %s NOT IN (f.id, a.batch_id)
            AND {_IS_SO.format(f"state NOT IN ({_ENDS})", "a.batch_id")}
        ORDER BY 1""",
        [[batch_id], batch_id, batch_id],
    ).fetchall()
    return [one for (one,) in found]
