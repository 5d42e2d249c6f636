"""Notes on what storing a delivery repaired in the archive."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from connectors.files.archived.removed_contents import list_removed, listed_among
from connectors.files.text.evidence import MISSING
from connectors.postgres.auditing.removals import PUT_BACK, contents_are_back, expected_of
from connectors.postgres.trail import add_event, last_event, last_of_batch
from flows.stages.receiving.known import contents_of
from flows.stages.receiving.opened import Opened

log = logging.getLogger("recon.receive")


def note_back(connection: psycopg.Connection, archive: Path, opened: Sequence[Opened]) -> None:
    """Note that contents which housekeeping removed are kept again."""
    contents = contents_of(opened)
    # A restored database may not know that the home lists a content as removed.
    back = {*contents_are_back(connection, contents), *listed_among(archive, contents)}
    for sha256 in sorted(back):
        list_removed(archive, sha256, datetime.now(UTC), kept=True)


class PutRight:
    """Faults of kept copies, found before the ledger knows of the delivery."""

    def __init__(self, connection: psycopg.Connection, opened: Sequence[Opened]) -> None:
        fresh = [(one.name, one.stored) for one in opened if one.stored and not one.stored.known]
        lost = [stored.sha256 for _, stored in fresh if not stored.replaced]
        missing = expected_of(connection, lost) if lost else set()
        self._wrong = [
            (name, stored.sha256, stored.replaced or MISSING)
            for name, stored in fresh
            if stored.replaced or stored.sha256 in missing
        ]
        self._event = last_event(connection) if self._wrong else 0

    def note(self, connection: psycopg.Connection, batch_id: int | None) -> tuple[str, ...]:
        """Note the repairs, once, and return them in words; None: no batch has them yet."""
        noted = 0 if batch_id is None else last_of_batch(connection, PUT_BACK, batch_id)
        if self._wrong and noted <= self._event:
            for name, sha256, why in self._wrong:
                detail = {"name": name, "sha256": sha256, "found": why}
                add_event(connection, PUT_BACK, batch_id=batch_id, detail=detail)
                log.warning("%s: its kept copy was not as delivered (%s), put back", name, why)
        return tuple(
            f"{name}: the copy in the archive was not what was delivered ({why}); the bytes "
            "delivered now are in its place."
            for name, _, why in self._wrong
        )
