"""Housekeeping: remove archived content, reports and kept results that nothing needs any more."""

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg

from connectors.files.archived.archive import hold_archive
from connectors.files.archived.removed_contents import REPORT, forget_long_removed, list_removed
from connectors.files.disk.listed import OnError
from connectors.files.incoming.uploads import uploads_folder
from connectors.postgres.auditing.removals import (
    BEGINS,
    ONE_BY_ONE,
    SWEPT,
    contents_are_back,
    note_removal,
)
from connectors.postgres.batches.batch_reports import (
    MANIFEST,
    Noted,
    note_kept,
    note_removed,
    noted_reports,
)
from connectors.postgres.batches.retention import (
    Unneeded,
    closed_batches,
    closed_deliveries,
    content_of,
    ended_batches,
    is_content_needed,
    is_delivery_closed,
    is_going,
    needed_contents,
    old_files,
    old_folders,
    remove,
    unneeded_contents,
    unneeded_deliveries,
    unneeded_reports,
    unneeded_spools,
)
from connectors.postgres.jobs import awaited_uploads
from connectors.postgres.push.restores import known_contents
from connectors.postgres.runs.listings import clock
from connectors.postgres.trail import add_event
from connectors.recovery import reach
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity

log = logging.getLogger("recon.housekeeping")


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days things are kept after they were last needed."""

    archive_days: int = 90
    report_days: int = 730
    result_days: int = 30


DEFAULT = Retention()
CONTENTS, DELIVERIES = "archived contents", "deliveries of the inbox"
REPORTS = "batch reports"
Find = Callable[[OnError], Iterator[Unneeded]]
"""Finds what may be removed of one sort, and reports what it could not look at."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What was, or would be, removed of one sort."""

    what: str
    number: int
    bytes: int
    oldest: datetime | None
    faults: tuple[str, ...] = ()
    """Items that could not be removed, and what the file system says of each."""


def sweep(
    workspace: Workspace,
    retention: Retention,
    *,
    now: datetime | None = None,
    inbox: Path | None = None,
    results: Path | None = None,
    dry_run: bool = True,
) -> list[Swept]:
    """Remove what nothing needs; a dry run only counts it.

    A batch that has not ended, is held or has rows in error keeps its content and report, however
    old they are. An item that cannot be removed is reported and affects nothing else. `now` is by
    default the time of the database, or of this machine if that is earlier. `inbox` is a watched
    folder, `results` the folder with kept results of runs.
    """
    if now is None:
        # The database dates batches, machines date files: no clock that is ahead removes early.
        with workspace.database.connect() as connection:
            now = min(clock(connection), datetime.now(UTC))
    if not dry_run:
        # Before any removal: an account that may not write the trail must remove nothing.
        with workspace.database.connect() as connection:
            add_event(connection, BEGINS, detail=ONE_BY_ONE)
    swept = [
        _swept(workspace, what, find, before, dry_run=dry_run)
        for what, find, before in _unneeded(workspace, retention, now, inbox, results)
    ]
    if not dry_run:
        forget_long_removed(workspace.settings.archive, now)
        with workspace.database.connect() as connection:
            detail = {
                one.what: {"number": one.number, "bytes": one.bytes}
                | ({"not_removed": len(one.faults)} if one.faults else {})
                for one in swept
            }
            add_event(connection, SWEPT, detail={**ONE_BY_ONE, **detail})
    return swept


def not_removed(swept: Iterable[Swept]) -> str:
    """What could not be looked at or removed, and what to do about it; empty if nothing."""
    faults = [fault for one in swept for fault in one.faults]
    if not faults:
        return ""
    return (
        f"{quantity(len(faults), 'item', grouped)} could not be looked at or removed; everything "
        f"else was done. The first: {faults[0]}. Give this account the right to, then run it again."
    )


def _unneeded(
    workspace: Workspace,
    retention: Retention,
    now: datetime,
    inbox: Path | None,
    results: Path | None,
) -> Iterator[tuple[str, Find, datetime | None]]:
    """What may be removed, sort by sort, and the time by which its batches have to have ended.

    The time is None for a sort that does not belong to batches.
    """
    from connectors.files.incoming.inbox import Inbox  # noqa: PLC0415 -- for help that names our defaults.

    settings = workspace.settings
    archived, reported, kept = (
        now - timedelta(days=days)
        for days in (retention.archive_days, retention.report_days, retention.result_days)
    )
    with workspace.database.connect() as connection:
        closed = closed_batches(connection, archived)
        unneeded = known_contents(connection) - needed_contents(connection, closed)
        deliveries = closed_deliveries(connection, closed)
        manifests = dict.fromkeys(closed_batches(connection, reported))
        for one in noted_reports(connection, manifests):
            manifests[one.batch_id] = one.hashes.get(MANIFEST)
        ended = ended_batches(connection)
        awaited = awaited_uploads(connection)
    old = archived.timestamp()
    yield CONTENTS, partial(unneeded_contents, settings.archive, unneeded, old), archived
    if inbox is not None:
        yield DELIVERIES, partial(unneeded_deliveries, Inbox(inbox), deliveries, old), archived
    reports = partial(unneeded_reports, settings.reports, manifests, reported.timestamp())
    yield REPORTS, reports, reported
    if (spool := settings.spool).is_dir():
        yield "spooled rows of ended batches", partial(unneeded_spools, spool, ended), None
    if (uploads := uploads_folder(settings)).is_dir():
        idle = partial(old_folders, uploads, kept.timestamp(), awaited)
        yield "uploads that no job took in", idle, None
    if results is not None:
        yield "results of runs", partial(old_files, results, kept.timestamp()), None


def _batch_of(path: Path) -> int | None:
    """The batch whose report is in a folder; None if it is no such folder."""
    found = re.fullmatch(r"batch-(\d+)", path.name)
    return int(found[1]) if found else None


@contextmanager
def _noted(connection: psycopg.Connection, archive: Path, what: str, path: Path) -> Iterator[None]:
    """Note a removal before it happens, since a missing item would otherwise count as lost.

    If the removal fails, note that the item is still kept.
    """
    sha256, batch = path.stem, _batch_of(path)
    before: Sequence[Noted] = ()
    if what == CONTENTS:
        list_removed(archive, sha256, note_removal(connection, sha256))
    elif what == REPORTS and batch is not None:
        before = noted_reports(connection, [batch])
        note_removed(connection, batch)
        for manifest in _manifests(before):
            list_removed(archive, manifest, datetime.now(UTC))
    try:
        yield
    except OSError:
        if os.path.lexists(path):
            with connection.transaction():
                if what == CONTENTS:
                    contents_are_back(connection, [sha256])
                    list_removed(archive, sha256, datetime.now(UTC), kept=True)
                for one in before:
                    note_kept(connection, one)
                for manifest in _manifests(before):
                    list_removed(archive, manifest, datetime.now(UTC), kept=True)
        raise


def _manifests(noted: Sequence[Noted]) -> list[str]:
    """The names by which a home lists removed reports."""
    return [f"{REPORT}{one.hashes[MANIFEST]}" for one in noted if MANIFEST in one.hashes]


def _is_still_unneeded(
    connection: psycopg.Connection, what: str, path: Path, before: datetime
) -> bool:
    """Whether it is still unneeded; a batch may have been undone since it was found."""
    if is_going(path):
        return True
    if what == CONTENTS:
        return not is_content_needed(connection, path.stem, before)
    if what == DELIVERIES:
        return is_delivery_closed(connection, content_of(path), before)
    batch = _batch_of(path)
    return batch is None or batch in closed_batches(connection, before, [batch])


def _removed(workspace: Workspace, what: str, one: Unneeded, before: datetime | None) -> bool:
    """Remove an item; False if somebody has delivered, written or needed it again meanwhile.

    `before`: the time by which its batches have to have ended; None if it belongs to no batch.
    """
    if before is None:
        remove(one)
        return True
    with (
        workspace.database.connect() as connection,
        hold_archive(workspace.settings.archive) if what == CONTENTS else nullcontext(),
    ):
        if not (one.is_still() and _is_still_unneeded(connection, what, one.path, before)):
            return False
        with _noted(connection, workspace.settings.archive, what, one.path):
            remove(one)
    return True


def _swept(
    workspace: Workspace, what: str, find: Find, before: datetime | None, *, dry_run: bool
) -> Swept:
    number = size = 0
    oldest: float | None = None
    faults: list[str] = []

    def not_looked_at(error: OSError) -> None:
        faults.append(f"{error.filename or what}: {error.strerror or error}")
        log.warning("Not looked at: %s", faults[-1])

    for one in find(not_looked_at):
        if not dry_run:
            try:
                if not _removed(workspace, what, one, before):
                    continue
            except OSError as error:
                faults.append(f"{one.path}: {error.strerror or error}")
                log.warning("Not removed: %s", faults[-1])
                continue
            reach("housekeeping")
        number, size = number + 1, size + one.bytes
        oldest = one.modified if oldest is None else min(oldest, one.modified)
    done, bytes_ = "kept" if dry_run else "removed", quantity(size, "byte", grouped)
    log.info("%s: %s %s, %s", done, number, what, bytes_)
    when = None if oldest is None else datetime.fromtimestamp(oldest, UTC)
    return Swept(what, number, size, when, tuple(faults))
