"""Files that nobody needs any more: found by the state of their batches, and removed.

Each removal is one rename or one unlink, so a killed run leaves nothing half removed that the next
run would not finish.
"""

import hashlib
import math
import shutil
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from connectors.files.disk.atomic import GOING
from connectors.files.disk.listed import OnError, files_below, listed, raise_error
from connectors.postgres.batches.attempts import settled_by_others
from connectors.postgres.batches.batch_reports import MANIFEST, folder_of
from connectors.postgres.batches.ledger import ENDED, TAKEN_BACK
from connectors.postgres.batches.overview import COUNTED
from schemas.derived.views import LISTING_FEED
from schemas.life import UNRESOLVED, BreakState
from schemas.tables import INSERT_BATCH_DATA

if TYPE_CHECKING:
    from connectors.files.incoming.inbox import Inbox


@dataclass(frozen=True, slots=True)
class Unneeded:
    """A file or folder that may be removed."""

    path: Path
    bytes: int
    modified: float

    def is_still(self) -> bool:
        """Whether it has not been delivered or written again since it was found."""
        try:
            return self.path.lstat().st_mtime == self.modified
        except FileNotFoundError:
            return False


def closed_batches(
    connection: psycopg.Connection, before: datetime, only: Collection[int] | None = None
) -> set[int]:
    """Batches that ended before a time and need nothing more; `only` limits the question to some.

    The rows and files decide, not the state, which says how a batch ended: a correction may have
    been undone since, or rows have to be sent again. A batch with rows in error or a refused file
    stays open, however old it is: these are written out for correction from the delivered content,
    are delivered again, or wait for a decision. Rows with another attempt that was taken in do not
    count. A batch also stays open for a row behind a break that asks for action, or may again,
    since a report offers it for correction. A batch and its corrections close together with the
    last of them, because undoing one puts what it repaired in error again.
    """
    rows = connection.execute(
        f"""WITH RECURSIVE asked AS (
            SELECT id, corrects FROM batch WHERE ended_at < %(before)s AND state = ANY(%(ended)s)
                AND (%(only)s::int[] IS NULL OR id = ANY(%(only)s))
        ), above AS (
            SELECT id AS asked, id, corrects FROM asked
            UNION SELECT a.asked, b.id, b.corrects FROM batch b
                JOIN above a ON b.id = a.corrects AND b.id < a.id
        ), family AS (
            SELECT asked, id FROM above
            UNION SELECT f.asked, b.id FROM batch b
                JOIN family f ON b.corrects = f.id AND b.id > f.id
        ), behind AS MATERIALIZED (
            SELECT DISTINCT (facts::json ->> 'batch_id')::int AS id FROM break_state
            WHERE reconciliation_id IN (SELECT max(id) FROM reconciliation GROUP BY scope_hash)
                AND state = ANY(%(unresolved)s) AND (state <> %(accepted)s
                OR accepted_until IS NOT NULL)
        ), shown AS (
            SELECT * FROM batch WHERE id IN (
                SELECT f.asked FROM family f JOIN batch b ON b.id = f.id
                LEFT JOIN behind ON behind.id = b.id GROUP BY 1 HAVING bool_and(
                    b.state = ANY(%(ended)s) AND b.ended_at < %(before)s AND behind.id IS NULL))
        ), {COUNTED}
        SELECT b.id, CASE WHEN b.state = ANY(%(taken_back)s) THEN 0
            ELSE coalesce(s.rejected, 0) + coalesce(t.errors, 0) END::bigint
        FROM shown b LEFT JOIN files f ON f.batch_id = b.id
        LEFT JOIN staged s ON s.batch_id = b.id LEFT JOIN told t ON t.batch_id = b.id
        LEFT JOIN sent u ON u.batch_id = b.id
        WHERE b.state = ANY(%(taken_back)s)
            OR (coalesce(u.undecided, 0) + coalesce(u.waiting, 0) = 0
            AND coalesce(f.to_deliver, 0) = 0)""",
        {
            "before": before,
            "only": None if only is None else [*only],
            "ended": [*ENDED],
            "taken_back": [*TAKEN_BACK],
            "unresolved": [*UNRESOLVED],
            "accepted": BreakState.ACCEPTED,
        },
    ).fetchall()
    in_error = {batch: errors for batch, errors in rows if errors}
    settled = Counter(row.batch_id for row in settled_by_others(connection, in_error))
    return {batch for batch, _ in rows if in_error.get(batch, 0) <= settled[batch]}


def ended_batches(connection: psycopg.Connection) -> set[int]:
    """Batches at an end, so that nothing of them waits to be applied."""
    rows = connection.execute("SELECT id FROM batch WHERE state = ANY(%s)", [[*ENDED]])
    return {int(row[0]) for row in rows}


def needed_contents(
    connection: psycopg.Connection, closed: Collection[int], only: str | None = None
) -> set[str]:
    """Hashes of the delivered contents of every batch that is not closed, and of some closed ones.

    Every reconciliation reads the content of insert-batch data while its batch is in force. `only`
    asks about one hash.
    """
    rows = connection.execute(
        f"""SELECT DISTINCT e.sha256 FROM extract e JOIN batch b ON b.id = e.batch_id
        WHERE {"e.sha256 IS NOT NULL" if only is None else "e.sha256 = %(only)s"}
            AND (NOT b.id = ANY(%(closed)s) OR e.record = %(read)s
            AND e.refused IS NULL AND b.feed <> %(listings)s
            AND NOT b.state = ANY(%(taken_back)s))""",
        {
            "only": only,
            "closed": list(closed),
            "read": INSERT_BATCH_DATA.name,
            "listings": LISTING_FEED,
            "taken_back": [*TAKEN_BACK],
        },
    )
    return {str(row[0]) for row in rows}


def is_content_needed(connection: psycopg.Connection, sha256: str, before: datetime) -> bool:
    """Whether a content is needed now, some time after the needed ones were listed."""
    rows = connection.execute("SELECT batch_id FROM extract WHERE sha256 = %s", [sha256])
    closed = closed_batches(connection, before, [batch_id for (batch_id,) in rows])
    return bool(needed_contents(connection, closed, sha256))


@dataclass(frozen=True, slots=True)
class Expected:
    """One content that the archive should hold, as the ledger has it."""

    sha256: str
    bytes: int
    files: tuple[str, ...]
    batches: tuple[int, ...]


def expected_contents(connection: psycopg.Connection) -> list[Expected]:
    """The contents that the archive should hold according to the ledger, by hash."""
    rows = connection.execute(
        "SELECT sha256, max(bytes), "
        "array_agg(format('%s of batch %s', name, batch_id) ORDER BY id), "
        "array_agg(DISTINCT batch_id) FROM extract WHERE sha256 IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    return [Expected(row[0], row[1], tuple(row[2]), tuple(row[3])) for row in rows]


def closed_deliveries(connection: psycopg.Connection, closed: Collection[int]) -> set[str]:
    """Content ids all of whose batches are closed; ids unknown to the ledger are left out."""
    rows = connection.execute(
        "SELECT content_id FROM batch WHERE content_id <> '' GROUP BY 1 "
        "HAVING bool_and(id = ANY(%s))",
        [list(closed)],
    )
    return {str(row[0]) for row in rows}


def is_delivery_closed(connection: psycopg.Connection, content_id: str, before: datetime) -> bool:
    """Whether a content id is closed now, some time after the closed ones were listed."""
    rows = connection.execute("SELECT id FROM batch WHERE content_id = %s", [content_id])
    batches = {batch_id for (batch_id,) in rows}
    return bool(batches) and batches == closed_batches(connection, before, batches)


def unneeded_contents(
    archive: Path, unneeded: Collection[str], before: float, onerror: OnError
) -> Iterator[Unneeded]:
    """Old archived contents that no batch needs.

    Contents unknown to the ledger stay: it may be another database, or older than the archive.
    """
    for path in listed(archive, "??", "*.csv", onerror=onerror):
        if path.stem in unneeded:
            yield from _old(path, before, onerror)


def unneeded_reports(
    reports: Path, closed: Mapping[int, str | None], before: float, onerror: OnError
) -> Iterator[Unneeded]:
    """Leftovers of earlier removals, and the report folders of closed batches.

    `closed` gives the hash of the manifest with which each report was written, if known. A folder
    with another manifest stays: somebody altered it, or it belongs to a batch of the same number in
    another database.
    """
    for path in listed(reports, f"{GOING}*", onerror=onerror):
        yield from _old(path, math.inf, onerror)
    for batch, manifest in sorted(closed.items()):
        folder = folder_of(reports, batch)
        try:
            if manifest is not None:
                content = (folder / MANIFEST).read_bytes()
                if hashlib.sha256(content).hexdigest() != manifest:
                    continue
        except FileNotFoundError:
            continue
        except OSError as error:
            onerror(error)
            continue
        yield from _old(folder, before, onerror)


def unneeded_spools(spool: Path, ended: Collection[int], onerror: OnError) -> Iterator[Unneeded]:
    """Spooled rows of batches that have ended: their run was killed before it removed them."""
    names = {f"batch-{batch}" for batch in ended}
    for path in listed(spool, "*", onerror=onerror):
        if path.name in names or is_going(path):
            yield from _old(path, math.inf, onerror)


def content_of(delivery: Path) -> str:
    """The content id of a delivery that an inbox has archived."""
    return delivery.name.partition("-")[0]


def unneeded_deliveries(
    inbox: "Inbox", closed: Collection[str], before: float, onerror: OnError
) -> Iterator[Unneeded]:
    """Old deliveries that an inbox has archived, under keys that begin with their content id.

    A delivery that waits for a batch stays, since earlier batches of its content may be undone.
    """
    try:
        awaited = {content_of(note) for note in listed(inbox.waiting, "*", onerror=raise_error)}
    except OSError as error:
        onerror(error)
        return
    for path in listed(inbox.archive, "??", "*", onerror=onerror):
        content = content_of(path)
        if (content in closed and content not in awaited) or is_going(path):
            yield from _old(path, before, onerror)


def old_folders(
    folder: Path, before: float, awaited: Collection[str], onerror: OnError
) -> Iterator[Unneeded]:
    """Leftovers of earlier removals, and folders unchanged since a time.

    Folders whose names are awaited stay.
    """
    for path in listed(folder, "*", onerror=onerror):
        if path.name not in awaited:
            yield from _old(path, before, onerror)


def old_files(folder: Path, before: float, onerror: OnError) -> Iterator[Unneeded]:
    """Regular files last written before a time; the purpose of anything else is unknown."""
    for path, status in files_below(folder, onerror=onerror):
        if stat.S_ISREG(status.st_mode) and status.st_mtime < before:
            yield Unneeded(path, status.st_size, status.st_mtime)


def remove(found: Unneeded) -> None:
    """Remove a file or link, or a folder after renaming it; if it is gone already, do nothing."""
    with suppress(FileNotFoundError):
        if found.path.is_symlink() or not found.path.is_dir():
            found.path.unlink()
            return
        going = found.path
        if not going.name.startswith(GOING):
            going = found.path.with_name(GOING + found.path.name)
            found.path.rename(going)
        # If another run removes the same folder, rmtree stops at what has vanished under it.
        while going.is_dir():
            with suppress(FileNotFoundError):
                shutil.rmtree(going)


def is_going(path: Path) -> bool:
    """Whether an earlier removal was killed before it was done."""
    return path.name.startswith(GOING)


def _old(path: Path, before: float, onerror: OnError) -> Iterator[Unneeded]:
    """Yield the file, folder or link if it is old, or left by an earlier removal.

    A folder that cannot be read completely could not be removed either, and stays.
    """
    try:
        status = path.lstat()
        if status.st_mtime >= (math.inf if is_going(path) else before):
            return
        size = _folder_bytes(path) if stat.S_ISDIR(status.st_mode) else status.st_size
    except FileNotFoundError:
        return
    except OSError as error:
        onerror(error)
        return
    yield Unneeded(path, size, status.st_mtime)


def _folder_bytes(folder: Path) -> int:
    return sum(status.st_size for _, status in files_below(folder, onerror=raise_error))
