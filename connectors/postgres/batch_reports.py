"""What the audit trail says of the report files of batches, so that altered ones are noticed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from connectors.postgres.trail import add_event, said_by

WRITTEN, REMOVED = "report written", "report removed"
RENDERINGS = ("report.html", "report.txt")
MANIFEST = "manifest.json"
FILES = (*RENDERINGS, MANIFEST)
"""What the folder of a batch's report holds."""


class Noted(NamedTuple):
    """The report of a batch as it was last written, and whether housekeeping removed it."""

    batch_id: int
    hashes: Mapping[str, str]
    removed: bool


def note_written(connection: psycopg.Connection, batch_id: int, hashes: Mapping[str, str]) -> None:
    """Write down the SHA-256 of each file, unless that is what is written down already."""
    last = noted_reports(connection, batch_id)
    if not last or last[0].removed or last[0].hashes != hashes:
        detail = {"sha256": dict(hashes)}
        add_event(connection, WRITTEN, batch_id=batch_id, detail=detail)


def note_removed(connection: psycopg.Connection, batch_id: int) -> None:
    """Write down that a report is about to be removed: one that is missing else was lost."""
    if noted_reports(connection, batch_id):
        add_event(connection, REMOVED, batch_id=batch_id)


@contextmanager
def settled_report(connection: psycopg.Connection, batch_id: int) -> Iterator[Noted | None]:
    """What is written down of a batch's report while no run is writing it; None: nothing is.

    A run writes files and note in one transaction of its lease, which this one waits for.
    """
    with connection.transaction():
        connection.execute("SELECT FROM batch WHERE id = %s FOR NO KEY UPDATE", [batch_id])
        yield next(iter(noted_reports(connection, batch_id)), None)


def noted_reports(connection: psycopg.Connection, batch_id: int | None = None) -> list[Noted]:
    """The last word on the report of each batch, or of one; none of an earlier version's.

    One that a version before this wrote down may lack the hash of its manifest.
    """
    rows = connection.execute(
        "SELECT DISTINCT ON (batch_id) batch_id, detail, what FROM event "
        "WHERE what IN (%(written)s, %(removed)s) AND batch_id IS NOT NULL "
        "AND (%(batch)s::int IS NULL OR batch_id = %(batch)s) ORDER BY batch_id, id DESC",
        {"written": WRITTEN, "removed": REMOVED, "batch": batch_id},
    )
    return [Noted(batch, _hashes(detail), what == REMOVED) for batch, detail, what in rows]


def _hashes(detail: str | None) -> Mapping[str, str]:
    """The hash of each file, as an event says it."""
    said = said_by(detail).get("sha256")
    return {name: str(one) for name, one in said.items()} if isinstance(said, dict) else {}
