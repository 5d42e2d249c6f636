"""When the service gave a listing last, as the audit trail has it."""

import json
from collections.abc import Iterable

import psycopg

from connectors.ledger import Extract

PULLED = "pull"
"""What the event says that is written when listings were read."""
KEPT = "kept"
"""In its detail, of each listing: the hash of the extract that it is taken in as."""


def last_given(connection: psycopg.Connection, listings: Iterable[Extract]) -> list[Extract]:
    """Listings in the order the service gave them.

    What it gives again is taken in once, so the last one need not be the youngest extract.
    """
    batches = sorted({one.batch_id for one in listings})
    # A run that died before it said what it read has opened the batch.
    of_batch = dict(
        connection.execute(
            "SELECT batch_id, min(id) FROM event WHERE batch_id = ANY(%s) GROUP BY 1", [batches]
        ).fetchall()
    )
    of_content: dict[str, int] = {}
    for event, batch, detail in connection.execute(
        "SELECT id, batch_id, detail FROM event WHERE what = %s ORDER BY id", [PULLED]
    ):
        hashes = [one.get(KEPT) for one in json.loads(detail or "{}").get("listings", {}).values()]
        of_content |= dict.fromkeys((one for one in hashes if one), event)
        if None in hashes:
            of_batch[batch] = event  # An earlier version told of the batch alone.

    def given(one: Extract) -> tuple[int, int]:
        events = of_batch.get(one.batch_id, 0), of_content.get(one.sha256 or "", 0)
        return max(events), one.id

    return sorted(listings, key=given)
