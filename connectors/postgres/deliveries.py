"""The batches of one delivery: the one that it began with, and the corrections behind that one."""

import psycopg

from schemas.derived.sql_names import listed
from schemas.derived.views import ENDS

FAMILY = """WITH RECURSIVE above AS (
        SELECT id, corrects FROM batch WHERE id = ANY(%s)
        UNION SELECT b.id, b.corrects FROM batch b JOIN above a ON b.id = a.corrects
            AND b.id < a.id
    ), family AS (
        SELECT id FROM above
        UNION SELECT b.id FROM batch b JOIN family f ON b.corrects = f.id AND b.id > f.id
    )"""
"""SQL in front of a query for `family`: all batches of the deliveries that some belong to."""


def batches_of_delivery(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """A batch and all others of its delivery, but for those that were taken back."""
    found = connection.execute(
        f"{FAMILY} SELECT b.id FROM batch b JOIN family USING (id) "
        f"WHERE b.id = %s OR b.state NOT IN ({listed(ENDS)}) ORDER BY 1",
        [[batch_id], batch_id],
    ).fetchall()
    return [one for (one,) in found]


def told_otherwise(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The other batches of its delivery whose reports may say something else because of a batch.

    They are those that it corrects, one after the other, and those with rows in error, which may
    count with a row of it. Of another one that is complete nothing changes.
    """
    found = connection.execute(
        f"""{FAMILY} SELECT b.id FROM batch b JOIN family USING (id)
        WHERE b.id <> %s AND b.state NOT IN ({listed(ENDS)})
            AND (b.state <> 'complete' OR b.id IN (SELECT id FROM above)) ORDER BY 1""",
        [[batch_id], batch_id],
    ).fetchall()
    return [one for (one,) in found]
