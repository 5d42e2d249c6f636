"""Pull: the service's listings, taken in as a delivery of its own and compared with our records.

A listing becomes an extract in upload shape, kept by its content like any other, so the same
listing is taken once. Its rows are staged and checked but change no target: they are what the
service says, and a comparison would prove nothing if they became our own data.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import chain
from typing import Any

import psycopg
from psycopg.rows import dict_row

from connectors.errors import BatchHeldElsewhere, ServiceUnusable, SettingsError
from connectors.files.disk.atomic import write_file
from connectors.files.disk.scratch import scratch_folder
from connectors.files.profiles.profile import Profile
from connectors.postgres.batches.findings import rejected_rows
from connectors.postgres.batches.ledger import TAKEN_BACK
from connectors.postgres.runs.listings import ASKED, KEPT, PULLED, SERVICE, ZONE, clock
from connectors.postgres.trail import add_event
from connectors.recovery import reach
from connectors.service import Service, open_service, read_credentials
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import Ended, import_delivery
from flows.stages.way_on import SAME_COMMAND, goes_on_by
from flows.stages.workspace import Workspace, named_service
from flows.steps.reconcile.listed import Compared, compare_rows, kinds_of
from schemas.cells.reading import Moment, Number
from schemas.derived.json_text import datetime_text, number_text
from schemas.derived.sql_names import listed
from schemas.derived.views import LISTING_FEED, quoted
from schemas.operations import OPERATIONS, Operation
from schemas.tables import INSERT_BATCH_DATA

LISTINGS: dict[str, Operation] = {
    operation.path.strip("/"): operation for operation in OPERATIONS if operation.returns_list
}
"""The list operations, by the last part of their path."""
COMPARED = INSERT_BATCH_DATA.name
"""The listing that `compare` reads."""
PROFILE = Profile(feed=LISTING_FEED, compare_only=True)


@dataclass(frozen=True, slots=True)
class PulledListing:
    name: str
    rows: int
    sha256: str
    """Hash of the bytes as received."""
    proof: str
    """How the end of the listing is recognised."""
    kept: str
    """Hash of the extract that the listing becomes."""
    asked_at: str
    """When the service was asked, by the clock of the database."""


@dataclass(frozen=True, slots=True)
class Pulled:
    ended: Ended
    listings: tuple[PulledListing, ...]


@dataclass(frozen=True, slots=True)
class PulledFirst:
    """The listings pulled before a reconciliation."""

    pulled: Pulled | None
    """None if no listing was asked for or none could be read."""
    unread: Mapping[str, str]
    """Record kinds whose listings could not be read -> why."""


def pull_compared(workspace: Workspace, scope: Scope) -> PulledFirst:
    """Read the listings that a scope is compared with, before it is reconciled.

    A listing that cannot be read affects only itself: the reconciliation says so, is incomplete,
    and still shows what the other sides say. Raises SettingsError if no service is set.
    """
    named_service(workspace.settings.service)
    names, unread = wanted(workspace, scope), dict[str, str]()
    pulled = _pull(workspace, names, unread) if names else None
    return PulledFirst(pulled, {LISTINGS[name].response: why for name, why in unread.items()})


def pull(workspace: Workspace, names: Sequence[str] = ()) -> Pulled:
    """Read listings and stage them; a listing that did not arrive whole is not taken.

    Raises ServiceUnusable, SettingsError for an unknown listing, and BatchHeldElsewhere if another
    run takes in the same for too long.
    """
    pulled = _pull(workspace, names, None)
    assert pulled is not None, "a listing that cannot be read raises"
    return pulled


def _pull(
    workspace: Workspace, names: Sequence[str], unread: dict[str, str] | None
) -> Pulled | None:
    """Pull listings; those that cannot be read are added to `unread`, or raise if it is None."""
    longest = largest = 0
    unknown = sorted(set(names) - LISTINGS.keys())
    if unknown:
        raise SettingsError(f"There is no listing {unknown[0]!r}. Known: {', '.join(LISTINGS)}.")
    names = tuple(dict.fromkeys(names)) or tuple(LISTINGS)
    pulled = []
    with scratch_folder(workspace.settings.scratch) as folder:
        with _service(workspace) as service:
            for number, name in enumerate(names):
                workspace.progress("pull", number, len(names))
                with workspace.database.connect() as connection:
                    asked_at = clock(connection).astimezone(UTC).isoformat()
                try:
                    listing = service.listing(LISTINGS[name])
                except ServiceUnusable as problem:
                    if unread is None:
                        raise ServiceUnusable(
                            f"{problem}. Nothing was taken in. Once the service gives it whole, "
                            f"pull it again: recon pull {name}"
                        ) from problem
                    unread[name] = str(problem)
                    continue
                lines = [line.encode() for line in listing_lines(LISTINGS[name], listing.rows)]
                longest = max(longest, *map(len, lines))
                content = b"".join(lines)
                largest = max(largest, len(content))
                write_file(folder / f"{name}.csv", content)
                kept = hashlib.sha256(content).hexdigest()
                rows, proof = len(listing.rows), listing.proof
                pulled.append(PulledListing(name, rows, listing.sha256, proof, kept, asked_at))
                reach("pulled")
        if not pulled:
            return None
        turn = workspace.settings.service.turn_seconds
        try:
            with goes_on_by(SAME_COMMAND):  # A rerun of the batch would not note it as pulled.
                place = _fitting(workspace, longest, largest)
                ended = import_delivery(place, [str(folder)], PROFILE, wait_seconds=turn)
        except BatchHeldElsewhere as held:
            if unread is None:
                raise
            unread |= {one.name: str(held) for one in pulled}
            return None
    with workspace.database.connect() as connection:
        _tell(connection, workspace, ended.batch.id, pulled)
        rejected = dict(_rejected(connection, ended.batch.id, [one.name for one in pulled]))
    if rejected and unread is None:
        raise ServiceUnusable("; ".join(rejected.values()))
    if unread is not None:
        unread |= rejected
    return Pulled(ended, tuple(pulled))


def _tell(
    connection: psycopg.Connection,
    workspace: Workspace,
    batch_id: int,
    pulled: Sequence[PulledListing],
) -> None:
    """Record in the audit trail what the service answered, when, and which batch holds it."""
    add_event(
        connection,
        PULLED,
        batch_id=batch_id,
        detail={
            SERVICE: named_service(workspace.settings.service),
            ZONE: workspace.settings.service.zone,
            "listings": {
                one.name: {
                    "rows": one.rows,
                    "sha256": one.sha256,
                    "proof": one.proof,
                    KEPT: one.kept,
                    ASKED: one.asked_at,
                }
                for one in pulled
            },
        },
    )


def _fitting(workspace: Workspace, longest: int, largest: int) -> Workspace:
    """The workspace with limits raised to fit a record and a file of these many bytes.

    The limits for deliveries do not apply to what the service has.
    """
    limits = workspace.settings.limits
    fitting = replace(
        limits,
        file_bytes=max(limits.file_bytes, largest),
        columns=max(limits.columns, *(len(one.table.columns) for one in LISTINGS.values())),
        field_bytes=max(limits.field_bytes, longest),
        record_bytes=max(limits.record_bytes, longest),
    )
    return replace(workspace, settings=replace(workspace.settings, limits=fitting))


def _rejected(
    connection: psycopg.Connection, batch_id: int, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Listings of a batch that have a row with errors, and that row; such listings are unusable."""
    for name in names:
        operation = LISTINGS[name]
        for row in rejected_rows(connection, [operation.table], batch_id, most=1):
            error = json.loads(row.error_data)[0]
            field = f"{error['FieldName']}: " if error["FieldName"] else ""
            yield (
                name,
                f"{operation.name} at {operation.path} is not used: row {row.record_number} of "
                f"what the service listed cannot be read ({field}{error['Message']}). All of it is "
                f"in batch {batch_id}, and it counts for nothing; mend that record at the service, "
                "or undo the batch if an earlier version of recon has read it, then recon pull "
                f"{name}",
            )


def wanted(workspace: Workspace, scope: Scope) -> list[str]:
    """The listings, by name, that a reconciliation compares with the records of a scope.

    The one of insert-batch data, if some of it was to reach the service, and all that were pulled
    before, in a scope of certain batches only those of its record kinds. None if no service is set.
    """
    if workspace.settings.service.url is None:
        return []
    with workspace.database.connect() as connection:
        found = connection.execute(
            "SELECT DISTINCT e.record, b.feed = %(listings)s, b.service IS NOT NULL "
            "FROM extract e JOIN batch b ON b.id = e.batch_id "
            f"WHERE e.refused IS NULL AND b.state NOT IN ({listed(TAKEN_BACK)}) "
            "AND (b.feed = %(listings)s OR (cardinality(%(batches)s::int[]) = 0 "
            "OR b.id = ANY(%(batches)s)) AND (cardinality(%(feeds)s::text[]) = 0 "
            "OR b.feed = ANY(%(feeds)s)))",
            {"listings": LISTING_FEED, "batches": list(scope.batches), "feeds": list(scope.feeds)},
        ).fetchall()
    before = {record for record, listed, _ in found if listed}
    brought = {record for record, listed, _ in found if not listed}
    sent = {record for record, listed, service in found if service and not listed}
    records = (before & brought if scope.narrow else before) | (sent & {INSERT_BATCH_DATA.name})
    return [name for name, one in LISTINGS.items() if one.response in records]


def compare(workspace: Workspace) -> list[Compared]:
    """Compare the service's insert-batch data with our rows, in the fields both have.

    Neither side is changed, and nothing of the listing is kept.
    """
    with _service(workspace) as service:
        theirs = service.listing(LISTINGS[COMPARED]).rows
    with workspace.database.connect() as connection:
        kinds = kinds_of(theirs)
        if kinds is not None:
            # Kinds that the service does not list are compared too, whatever is inside.
            kinds = sorted({*kinds, *_kinds_brought(connection)})
        return compare_rows(our_rows(connection, kinds), theirs)


def _kinds_brought(connection: psycopg.Connection) -> Iterator[str]:
    """The record kinds of rows delivered in insert-batch data, or beside it."""
    found = connection.execute(
        "SELECT DISTINCT k FROM receipt r, jsonb_object_keys(r.totals::jsonb) AS k "
        "WHERE r.stage = 'stage' AND EXISTS (SELECT FROM extract e "
        "WHERE e.batch_id = r.batch_id AND e.record = %s)",
        [INSERT_BATCH_DATA.name],
    )
    return (record for (record,) in found)


def our_rows(
    connection: psycopg.Connection, records: Sequence[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    """Our staged rows in the form of the service's insert-batch data, with their BatchId.

    Only those of `records`; None: of all kinds. A clean row that is kept by reference has no Data.
    """
    columns = (*INSERT_BATCH_DATA.columns, "source_batch_id")
    names = ", ".join(quoted(name) for name in columns)
    with connection.cursor(row_factory=dict_row) as cursor:
        yield from cursor.stream(
            f"SELECT {names} FROM insert_batch_data "
            "WHERE (%(records)s::text[] IS NULL OR record = ANY(%(records)s)) "
            "AND state <> 'undone' ORDER BY extract_id, record_number",
            {"records": None if records is None else list(records)},
        )


def listing_lines(operation: Operation, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A listing in its record's upload shape, header first; an absent value is an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    columns = operation.table.columns
    for cells in chain([columns], ([_cell(row.get(name)) for name in columns] for row in rows)):
        text.seek(0)
        text.truncate()
        writer.writerow(cells)
        yield text.getvalue()


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case Number():
            return number_text(value.exact)
        case Moment():
            return datetime_text(value.wall, value.offset)
    return str(value)


def _service(workspace: Workspace) -> AbstractContextManager[Service]:
    named_service(workspace.settings.service)
    credentials = workspace.credentials or read_credentials()
    return open_service(workspace.settings.service, credentials)
