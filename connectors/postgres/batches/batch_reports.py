"""What the audit trail says of the report files of batches, so that altered files are noticed.

It also says which reports must be written again; the change that outdates a report notes this in
its own transaction.
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
"""The report is out of date: a correction of its batch ended or was taken back, or so did a batch
that contains a file that its batch refused."""
PAGE, TEXT = RENDERINGS = "report.html", "report.txt"
MANIFEST = "manifest.json"
FILES = (*RENDERINGS, MANIFEST)
"""The files in the folder of a batch's report."""


def folder_of(reports: Path, batch_id: int) -> Path:
    return reports / f"batch-{batch_id}"


class Noted(NamedTuple):
    """A batch's report as last written, and whether housekeeping has removed it."""

    batch_id: int
    hashes: Mapping[str, str]
    removed: bool
    owed: bool
    """Whether it must be written again; false for one that was removed."""


def note_written(connection: psycopg.Connection, batch_id: int, hashes: Mapping[str, str]) -> None:
    """Note the SHA-256 of each file, unless the trail already says just that."""
    last = noted_reports(connection, [batch_id])
    if not last or last[0].removed or last[0].owed or last[0].hashes != hashes:
        detail = {"sha256": dict(hashes)}
        add_event(connection, WRITTEN, batch_id=batch_id, detail=detail)


def note_removed(connection: psycopg.Connection, batch_id: int) -> None:
    """Note that a report is about to be removed; a report missing without this was lost."""
    if noted_reports(connection, [batch_id]):
        add_event(connection, REMOVED, batch_id=batch_id)


def take_over_removed(
    connection: psycopg.Connection, reports: Path, listed: Collection[str]
) -> list[int]:
    """Note as removed the reports that a restored database believes written.

    `listed` are those that the home folder lists as removed.
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
    """Restore the previous note of a report that could not be removed."""
    if not noted.removed:
        note_written(connection, noted.batch_id, noted.hashes)
        if noted.owed:
            note_owed(connection, [noted.batch_id])


def note_owed(connection: psycopg.Connection, batches: Collection[int]) -> None:
    """Note that reports must be written again, in the transaction that outdates them.

    A batch without a note has no report, and one that housekeeping removed stays removed.
    """
    for one in noted_reports(connection, batches):
        if not one.removed and not one.owed:
            add_event(connection, OWED, batch_id=one.batch_id)


def owed_by(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The batches whose reports this batch has outdated and that must be written again.

    They are among its delivery, itself included, the batches that refused a file that it has, and
    those whose rows its undo reopened.
    """
    delivery = batches_of_delivery(connection, batch_id) + batches_to_report_again(
        connection, batch_id
    )
    concerned = {*delivery, *_reopened_by(connection, batch_id)}
    return [one.batch_id for one in noted_reports(connection, concerned) if one.owed]


def _reopened_by(connection: psycopg.Connection, batch_id: int) -> Iterator[int]:
    """The batches whose rows the last undo of a batch allows to be sent again."""
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
    """The batches that correct another batch and have not ended."""
    rows = connection.execute(
        "SELECT id FROM batch WHERE corrects IS NOT NULL AND state <> ALL(%s)", [list(ENDED)]
    )
    return [batch for (batch,) in rows]


@contextmanager
def settled_report(connection: psycopg.Connection, batch_id: int) -> Iterator[Noted | None]:
    """What is noted of a batch's report, while no run writes it; None if nothing is.

    A run writes files and note in one transaction that locks the batch, and this one waits for that
    lock. No other run may end this session, so it ends itself if its process is frozen.
    """
    with connection.transaction(), ended_if_idle(connection):
        connection.execute("SELECT FROM batch WHERE id = %s FOR NO KEY UPDATE", [batch_id])
        yield next(iter(noted_reports(connection, [batch_id])), None)


def noted_reports(
    connection: psycopg.Connection, batches: Collection[int] | None = None
) -> list[Noted]:
    """The latest note on the report of each batch, or of these batches, if it has one.

    Notes of earlier versions may lack the hash of the manifest.
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
