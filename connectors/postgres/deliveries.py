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
