"""What the audit trail says of the report files of batches, so that altered ones are noticed.

And those that are to be written again: what makes them false is committed before they are written.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from connectors.files.archived.removed_contents import REPORT
from connectors.postgres.auditing.evidence import reopened_batches
from connectors.postgres.batches.deliveries import batches_of_delivery, batches_to_report_again
from connectors.postgres.batches.ledger import ENDED
from connectors.postgres.heartbeat import ended_if_idle
from connectors.postgres.trail import add_event, last_detail, last_of_batch, read_detail
from schemas.guards.batch_states import BY_UNDO, REOPENED, UNDO

WRITTEN, REMOVED = "report written", "report removed"
OWED = "report to be written again"
"""It says what is not so any more: a correction of its batch ended, or was taken back, or so did a
batch that has a file that it refused."""
PAGE, TEXT = RENDERINGS = "report.html", "report.txt"
MANIFEST = "manifest.json"
FILES = (*RENDERINGS, MANIFEST)
"""What the folder of a batch's report holds."""


def folder_of(reports: Path, batch_id: int) -> Path:
    return reports / f"batch-{batch_id}"


class Noted(NamedTuple):
    """The report of a batch as it was last written, and whether housekeeping removed it."""

    batch_id: int
    hashes: Mapping[str, str]
    removed: bool
    owed: bool
    """Whether it is to be written again; one that was removed is not."""


def note_written(connection: psycopg.Connection, batch_id: int, hashes: Mapping[str, str]) -> None:
    """Write down the SHA-256 of each file, unless that is what is written down already."""
    last = noted_reports(connection, [batch_id])
    if not last or last[0].removed or last[0].owed or last[0].hashes != hashes:
        detail = {"sha256": dict(hashes)}
        add_event(connection, WRITTEN, batch_id=batch_id, detail=detail)


def note_removed(connection: psycopg.Connection, batch_id: int) -> None:
    """Write down that a report is about to be removed: one that is missing else was lost."""
    if noted_reports(connection, [batch_id]):
        add_event(connection, REMOVED, batch_id=batch_id)


def take_over_removed(
    connection: psycopg.Connection, reports: Path, listed: Collection[str]
) -> list[int]:
    """Write down that reports were removed which a restored database has as written.

    `listed` are those that the home says were removed.
    """
    gone = [
        one.batch_id
        for one in noted_reports(connection)
        if not one.removed
        and f"{REPORT}{one.hashes.get(MANIFEST)}" in listed
        and not os.path.lexists(folder_of(reports, one.batch_id))
    ]
    for batch_id in gone:
        note_removed(connection, batch_id)
    return gone


def note_kept(connection: psycopg.Connection, noted: Noted) -> None:
    """Write down again what was, of a report that could not be removed."""
    if not noted.removed:
        note_written(connection, noted.batch_id, noted.hashes)
        if noted.owed:
            note_owed(connection, [noted.batch_id])


def note_owed(connection: psycopg.Connection, batches: Collection[int]) -> None:
    """Write down that reports are to be written again, in the transaction that makes them false.

    Where nothing is written down of one there is none, or housekeeping removed it.
    """
    for one in noted_reports(connection, batches):
        if not one.removed and not one.owed:
            add_event(connection, OWED, batch_id=one.batch_id)


def owed_by(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The batches whose reports are to be written again, of those that this one makes false.

    They are those of its delivery, itself with them, those that refused a file that it has, and
    those whose rows its undo reopened.
    """
    delivery = batches_of_delivery(connection, batch_id) + batches_to_report_again(
        connection, batch_id
    )
    concerned = {*delivery, *_reopened_by(connection, batch_id)}
    return [one.batch_id for one in noted_reports(connection, concerned) if one.owed]


def _reopened_by(connection: psycopg.Connection, batch_id: int) -> Iterator[int]:
    """The batches whose rows the last undo of a batch lets be sent again."""
    undo = last_of_batch(connection, UNDO, batch_id)
    if not undo:
        return
    yield from (number for number, *_ in reopened_batches(last_detail(connection, batch_id, UNDO)))
    for (number,) in connection.execute(
        "SELECT batch_id FROM event WHERE id > %s AND what = %s "
        f"AND detail::jsonb -> '{BY_UNDO}' = to_jsonb(%s)",
        [undo, REOPENED, undo],
    ):
        yield number


def open_corrections(connection: psycopg.Connection) -> list[int]:
    """The batches that correct another one and have not ended."""
    rows = connection.execute(
        "SELECT id FROM batch WHERE corrects IS NOT NULL AND state <> ALL(%s)", [list(ENDED)]
    )
    return [batch for (batch,) in rows]


@contextmanager
def settled_report(connection: psycopg.Connection, batch_id: int) -> Iterator[Noted | None]:
    """What is written down of a batch's report while no run is writing it; None: nothing is.

    A run writes files and note in one transaction of its lease, which this one waits for. No run of
    another batch may end whoever is frozen in here.
    """
    with connection.transaction(), ended_if_idle(connection):
        connection.execute("SELECT FROM batch WHERE id = %s FOR NO KEY UPDATE", [batch_id])
        yield next(iter(noted_reports(connection, [batch_id])), None)


def noted_reports(
    connection: psycopg.Connection, batches: Collection[int] | None = None
) -> list[Noted]:
    """The last word on the report of each batch, or of these; none of an earlier version's.

    One that a version before this wrote down may lack the hash of its manifest.
    """
    rows = connection.execute(
        """SELECT DISTINCT ON (batch_id) batch_id, detail, what,
            what = %(written)s AND EXISTS (SELECT FROM event o
                WHERE o.batch_id = e.batch_id AND o.what = %(owed)s AND o.id > e.id)
        FROM event e WHERE what IN (%(written)s, %(removed)s) AND batch_id IS NOT NULL
            AND (%(batches)s::int[] IS NULL OR batch_id = ANY(%(batches)s))
        ORDER BY batch_id, id DESC""",
        {
            "written": WRITTEN,
            "removed": REMOVED,
            "owed": OWED,
            "batches": None if batches is None else [*batches],
        },
    )
    noted = []
    for batch, detail, what, owed in rows:
        hashes = read_detail(detail).get("sha256")
        by_file = hashes.items() if isinstance(hashes, dict) else ()
        noted.append(Noted(batch, {name: str(one) for name, one in by_file}, what == REMOVED, owed))
    return noted
