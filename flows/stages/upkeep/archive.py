"""Verify everything that is kept by its hash: delivered contents, and the files of every report."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from connectors.errors import SignatureRefused
from connectors.files.archived.archive import INCOMING, kept_path
from connectors.files.archived.removed_contents import REMOVED_LIST
from connectors.files.disk.listed import OnError, listed
from connectors.files.text.evidence import MISSING, difference
from connectors.postgres.auditing.removals import (
    ONE_BY_ONE,
    VERIFIED,
    expected_of,
    removed_contents,
)
from connectors.postgres.batches.batch_reports import (
    FILES,
    Noted,
    folder_of,
    noted_reports,
    open_corrections,
    owed_by,
    settled_report,
)
from connectors.postgres.batches.lease import worked_on
from connectors.postgres.batches.ledger import ENDED, batches_of
from connectors.postgres.batches.retention import expected_contents
from connectors.postgres.runs.reconciliations import Reconciliation, list_runs
from connectors.postgres.trail import add_event
from flows.report.spelling import visible
from flows.stages.batch_folder import opened_at
from flows.stages.receiving.unknown import Unknown, unknown_contents
from flows.stages.reconcile.kept_signatures import SIGNATURES, altered_signatures
from flows.stages.reconcile.report_files import PASSING, check_files
from flows.stages.workspace import Workspace
from schemas.counting import agree, first_of, grouped, quantity

log = logging.getLogger("recon.archive")
UNKNOWN = "no content of ours has this name"
OUT_OF_DATE = "something that it tells of ended, or was taken back, since it was written"
UNREAD = "it cannot be read"
"""The beginning of the finding on a file or folder that this account may not read."""
UNFINISHED = "the run that wrote it ended before it was done, so nobody can tell what it wrote"
HASH = 64
NAMED = 20
"""How many strange files among the reports a note names; it counts the others."""
_OF_BATCH = r"batch-(\d{1,10})(-opened-.+)?"
"""Folders with the report of a batch, also of one that a database has lost."""
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A kept file that differs from what was kept, or that nothing accounts for."""

    path: str
    """Path below RECON_HOME."""
    found: str
    files: tuple[str, ...] = ()
    """The deliveries that brought it, as `NAME of batch N`."""
    batches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifiedArchive:
    contents: int
    reports: int
    bytes: int
    """Bytes of the contents that are as delivered."""
    mismatches: tuple[Mismatch, ...]
    unhashed: int = 0
    """Files of batch reports that cannot be checked, because an earlier version wrote them."""
    lost: tuple[str, ...] = ()
    """Folders with the report of a batch that the ledger does not know."""
    strange: tuple[str, ...] = ()
    """Files and folders among the reports that belong to no report in the ledger."""
    unnamed: int = 0
    """Contents that an earlier version may have removed, as it only counted removals."""
    unknown: tuple[Unknown, ...] = ()
    """Contents that are as delivered but that no batch knows."""

    def as_json(self) -> dict[str, Any]:
        """The shape that `recon archive verify --json` prints."""
        return asdict(self)


def verify_archive(workspace: Workspace) -> VerifiedArchive:
    """Hash everything that is kept; mismatches go to the audit trail of their batches."""
    archive = workspace.settings.archive
    size = 0
    mismatches: list[Mismatch] = []

    def below_home(path: Path) -> str:
        return str(path.relative_to(workspace.settings.home))

    def unread(error: OSError) -> None:
        place = below_home(Path(error.filename))
        mismatches.append(Mismatch(place, f"{UNREAD}: {error.strerror}"))

    paths = [*_in_archive(archive, unread)]
    there = {path.stem for path in paths if _is_content(path)}
    unbrought: set[str] = set()
    with workspace.database.connect() as connection:
        expected = {one.sha256: one for one in expected_contents(connection)}
        removed = removed_contents(connection)
        wanted = sorted(there | (expected.keys() - removed.keys()))
        unnamed = sum(not named for sha256, named in removed.items() if sha256 not in there)
        for number, sha256 in enumerate(wanted):
            workspace.progress("archive", number, len(wanted))
            path, one = kept_path(archive, sha256), expected.get(sha256)
            fault = difference(path, sha256, one.bytes if one else None)
            if fault is None:
                with suppress(FileNotFoundError):
                    size += path.stat().st_size
                if one is None:
                    unbrought.add(sha256)
            # Housekeeping may have removed it, and noted that, since the ledger was read.
            elif fault != MISSING or expected_of(connection, [sha256]):
                files, batches = (one.files, one.batches) if one else ((), ())
                mismatches.append(Mismatch(below_home(path), fault, files, batches))
        # Contents delivered since the listing are named like contents.
        mismatches += [
            Mismatch(below_home(path), UNKNOWN) for path in paths if not _is_content(path)
        ]
        runs = [*list_runs(connection)]
        mismatches += _altered_runs(workspace, connection, runs)
        noted = [one for one in noted_reports(connection) if not one.removed]
        mismatches += _altered_reports(workspace, connection, noted)
        mismatches += _out_of_date(workspace, connection, noted)
        unhashed, lost, unfinished = _unhashed(workspace, connection, noted)
        mismatches += unfinished
        verified = VerifiedArchive(
            len(wanted),
            len(runs) + len(noted),
            size,
            tuple(mismatches),
            unhashed,
            lost,
            tuple(_strange(workspace, {one.folder for one in runs})),
            unnamed,
            # Asked last, because a delivery that was under way has its batch by now.
            unknown_contents(workspace, connection, unbrought),
        )
        _record(connection, verified)
    workspace.progress("archive", len(wanted), len(wanted))
    return verified


def _in_archive(archive: Path, onerror: OnError) -> Iterator[Path]:
    """The files in the archive and its folders, without its working files."""
    for path in listed(archive, "*", onerror=onerror):
        # A link in a circle is reported as unreadable.
        if path.is_dir() or path.is_symlink():
            if path.name != INCOMING:
                yield from listed(path, "*", onerror=onerror)
        elif not path.name.startswith(".") and path.name != REMOVED_LIST:
            yield path


def _is_content(path: Path) -> bool:
    return path.suffix == ".csv" and len(path.stem) == HASH and path.parent.name == path.stem[:2]


def _altered_runs(
    workspace: Workspace, connection: psycopg.Connection, runs: Iterable[Reconciliation]
) -> Iterator[Mismatch]:
    """Reports of reconciliations that are not as written, or whose signatures were altered."""
    for run in runs:
        try:
            check_files(workspace, connection, run)
        except SignatureRefused as refused:
            yield Mismatch(f"reports/{run.folder}", str(refused))
        else:
            if found := altered_signatures(workspace, connection, run):
                yield Mismatch(f"reports/{run.folder}/{SIGNATURES}", found)


def _altered_reports(
    workspace: Workspace, connection: psycopg.Connection, noted: Iterable[Noted]
) -> Iterator[Mismatch]:
    """Files of batch reports that are not what the audit trail says was written."""
    for one in noted:
        if _altered(workspace, one):
            # A run may have rewritten the report since the trail was read, or be about to note it.
            with settled_report(connection, one.batch_id) as now:
                altered = _altered(workspace, now)
            yield from altered


def _altered(workspace: Workspace, noted: Noted | None) -> list[Mismatch]:
    """The same for one noted report; none if housekeeping removed it."""
    if noted is None or noted.removed:
        return []
    folder = folder_of(workspace.settings.reports, noted.batch_id)
    found = [
        (f"reports/{folder.name}/{name}", difference(folder / name, sha256, None))
        for name, sha256 in sorted(noted.hashes.items())
    ]
    return [Mismatch(path, fault, batches=(noted.batch_id,)) for path, fault in found if fault]


def _out_of_date(
    workspace: Workspace, connection: psycopg.Connection, noted: Iterable[Noted]
) -> Iterator[Mismatch]:
    """Reports that a run made false and did not rewrite, except where a run still will."""
    owed = [one.batch_id for one in noted if one.owed]
    if not owed:
        return
    under_way = {*open_corrections(connection), *worked_on(connection)}
    to_come = {one for batch_id in under_way for one in owed_by(connection, batch_id)}
    for batch_id in owed:
        if batch_id in to_come:
            continue
        with settled_report(connection, batch_id) as now:
            left = now is not None and now.owed
        if left:
            name = folder_of(workspace.settings.reports, batch_id).name
            yield Mismatch(f"reports/{name}", OUT_OF_DATE, batches=(batch_id,))


def _unhashed(
    workspace: Workspace, connection: psycopg.Connection, noted: Iterable[Noted]
) -> tuple[int, tuple[str, ...], list[Mismatch]]:
    """The number of batch report files whose hash the audit trail does not have.

    Also the folders whose batch is missing in the ledger, or is another one there; and the files of
    batches that have not ended, although a batch notes its report before it ends.
    """
    hashes = {one.batch_id: one.hashes for one in noted}
    files: dict[int, set[str]] = {}
    for path in workspace.settings.reports.glob("batch-*/*"):
        number = _number_of(path.parent.name)
        if number is not None and "-opened-" not in path.parent.name and path.name in FILES:
            files.setdefault(number, set()).add(path.name)
    unsaid = {one: names for one, names in files.items() if names - hashes.get(one, {}).keys()}
    batches = {one.id: one for one in batches_of(connection, unsaid)}
    unhashed, lost, unfinished = 0, [], []
    for batch_id, names in sorted(unsaid.items()):
        folder = folder_of(workspace.settings.reports, batch_id)
        batch = batches.get(batch_id)
        if opened_at(folder) not in (None, batch and batch.opened_at):
            lost.append(f"reports/{folder.name}")
            continue
        with settled_report(connection, batch_id) as now:
            left = sorted(names - (now.hashes.keys() if now else set()))
        if batch is None or batch.state in ENDED:
            unhashed += len(left)
        else:
            paths = (f"reports/{folder.name}/{name}" for name in left)
            unfinished += [Mismatch(path, UNFINISHED, batches=(batch_id,)) for path in paths]
    return unhashed, tuple(lost), unfinished


def _number_of(folder: str) -> int | None:
    """The batch that a report folder is named for; None also if no database has such a number."""
    found = re.fullmatch(_OF_BATCH, folder)
    number = int(found[1]) if found else _LARGEST + 1
    return number if number <= _LARGEST else None


def _strange(workspace: Workspace, folders: Collection[str]) -> Iterator[str]:
    """Files among the reports that belong neither to batches nor to these runs.

    An unreadable folder is reported where its report is checked.
    """
    home, reports = workspace.settings.home, workspace.settings.reports
    for path in sorted(reports.glob("[!.]*")):
        if _number_of(path.name) is not None and path.is_dir():
            inside = (one for one in sorted(path.glob("*")) if not one.name.startswith(PASSING))
            yield from (str(one.relative_to(home)) for one in inside if one.name not in FILES)
        elif path.name not in folders and not path.name.startswith(PASSING):
            yield str(path.relative_to(home))


def _record(connection: psycopg.Connection, verified: VerifiedArchive) -> None:
    for one in verified.mismatches:
        log.warning("%s: %s (%s)", one.path, one.found, ", ".join(one.files) or "of no batch")
        for batch_id in one.batches:
            detail = {"path": one.path, "found": one.found}
            what = "report differs" if _is_report(one) else "kept content differs"
            add_event(connection, what, batch_id=batch_id, detail=detail)
    counts = {
        "contents": verified.contents,
        "reports": verified.reports,
        "differ": len(verified.mismatches),
    }
    more = {
        "unhashed": verified.unhashed,
        "lost reports": len(verified.lost),
        "strange": len(verified.strange),
        "unnamed": verified.unnamed,
        "unknown": len(verified.unknown),
    }
    counts |= {what: number for what, number in more.items() if number}
    add_event(connection, VERIFIED, detail={**ONE_BY_ONE, **counts})


def _is_report(one: Mismatch) -> bool:
    return one.path.startswith("reports/")


def _is_signatures(one: Mismatch) -> bool:
    return one.path.endswith(f"/{SIGNATURES}")


def _batches(found: Iterable[Mismatch]) -> list[int]:
    return sorted({batch for one in found for batch in one.batches})


def remedy(verified: VerifiedArchive) -> str:
    """What to do about mismatches."""
    steps = []
    of_reports = [one for one in verified.mismatches if _is_report(one)]
    stale = [one for one in of_reports if one.found in (OUT_OF_DATE, UNFINISHED)]
    unwritten = _batches(stale)
    of_batches = _batches(one for one in of_reports if one not in stale)
    of_contents = [one for one in verified.mismatches if one.batches and not _is_report(one)]
    if any(not one.found.startswith(UNREAD) for one in of_contents):
        steps.append("Import the files named again: that puts their bytes back.")
    if any(one.found == UNKNOWN for one in verified.mismatches):
        steps.append("What has no name of ours is used by nothing: look at it and remove it.")
    of_runs = [one for one in of_reports if not one.batches]
    if any(_is_signatures(one) for one in of_runs):
        steps.append(
            f"Find out who changed {SIGNATURES} or the ledger; where the ledger is right, whoever "
            "signs once more is refused, and the file is written again."
        )
    if not all(map(_is_signatures, of_runs)):
        steps.append("Bring reports back from a backup.")
    if of_batches:
        steps.append(
            "Find out who changed the reports of batches: in a database that was restored, it may "
            f"have been a run that it does not know. `recon rerun {of_batches[0]}` writes that of "
            f"batch {of_batches[0]} again from the database."
        )
    if unwritten:
        steps.append(
            f"`recon rerun {unwritten[0]}` goes on with batch {unwritten[0]}, or writes its report "
            "again."
        )
    unread = [one for one in verified.mismatches if one.found.startswith(UNREAD)]
    if unread:
        steps.append("Give this account the right to read what it cannot.")
    lost = [one for one in verified.mismatches if not one.batches and one.found != MISSING]
    return " ".join(steps) or ("Remove what no batch knows." if lost else "")


def notes(verified: VerifiedArchive) -> Iterator[str]:
    """What could not be checked against anything; none of it is a fault."""
    if files := verified.unhashed:
        yield (
            f"{quantity(files, 'file', grouped)} of batch reports {agree(files, 'has', 'have')} no "
            "hash in the audit trail and cannot be checked: an earlier version wrote "
            f"{agree(files, 'it', 'them')}. `recon rerun N` writes the report of batch N again."
        )
    if lost := verified.lost:
        yield (
            f"{first_of(lost, NAMED)}: the report of a batch that this database does not know, as "
            "after a restore. No other batch is given its number."
        )
    if strange := verified.strange:
        yield (
            f"{first_of(strange, NAMED, visible)}: of no report that the ledger knows. A run that "
            "is under way, or died, has its folder there; anything else somebody put there, and "
            "nothing goes by it."
        )
    if contents := verified.unnamed:
        yield (
            f"{quantity(contents, 'content', grouped)} that housekeeping of an earlier version may "
            "have removed cannot be checked: it only counted what it removed, so one that was lost "
            "looks the same."
        )
    if unknown := verified.unknown:
        yield (
            f"{quantity(len(unknown), 'content', grouped)} that no batch knows: an import stopped "
            "before it had a batch, or the database was restored from before it came. Import what "
            "is needed again."
        )
