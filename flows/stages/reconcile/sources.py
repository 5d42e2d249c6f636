"""Gather the sources of a reconciliation: which batches count, and their rows as frames."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import polars as pl
import psycopg

from connectors.currencies import read_currencies
from connectors.errors import EvidenceBroken
from connectors.postgres.auditing.evidence import altered_ledger
from connectors.postgres.batches import ledger
from connectors.postgres.batches.attempts import delivered_again
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.digests import Digests
from connectors.postgres.batches.ledger import TAKEN_BACK, Batch, Extract
from connectors.postgres.batches.overview import files_to_deliver
from connectors.postgres.one_moment import aside, one_moment, others_at_it
from connectors.postgres.push.sends import batches_with_sends
from connectors.postgres.runs.listings import listing_batches
from connectors.postgres.runs.side_sizes import kinds_there
from flows.stages.receiving.kept import unproven
from flows.stages.reconcile.around import rows_of
from flows.stages.reconcile.listings import PULLED, Counting, counting_listings
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.side_frames import SideFrames
from flows.stages.reconcile.tied import Found, altered, staged_digests, untied
from flows.stages.rows.batch_rows import delivered_batch_rows
from flows.stages.workspace import Workspace, named_service
from flows.steps.frames.parts import PartedSide, changed, held
from flows.steps.frames.sources import REFUSED, Sources
from flows.steps.reconcile.countable import counted_once
from schemas.derived.views import LISTING_FEED
from schemas.guards.ledger_digests import BEFORE, LEDGER
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


@dataclass(frozen=True)
class Gathered:
    """The sources, and facts to report about them."""

    sources: Sources
    extracts: tuple[Extract, ...]
    """Readable files of the batches that count, by id."""
    listings: tuple[Extract, ...]
    """The service's listings that count: the latest answer for each record kind."""
    service: bool
    """Whether any batch is to reach the service."""
    waiting: tuple[Batch, ...]
    """Batches that have not ended, so that their rows are incomplete."""
    batches: frozenset[int] = frozenset()
    """Batches the run is about, with listings; of named batches only those not taken back."""
    unfit: dict[str, int] = field(default_factory=dict)
    """Record kind -> amounts that are not compared and appear in no break."""
    older: frozenset[str] = frozenset()
    """Record kinds whose newest listing is older than what was sent, so that none is used."""
    spoiled: frozenset[str] = frozenset()
    """Record kinds whose newest listing has rejected rows, so that none is used."""
    untied: tuple[str, ...] = ()
    """Where the kept data of an extract are not what was taken in."""
    altered: frozenset[int] = frozenset()
    """Extracts, listings included, whose rows are not those that were staged."""
    unproven: dict[int, str] = field(default_factory=dict)
    """Extracts, listings included, whose kept content cannot be proven: why, and what to do.

    Of an extract, only rows are read that were staged while it was proven, with their texts; rows
    kept by reference have no text and match nothing (`Sources.unproven`). A listing is not read,
    nor is anything that would need the content itself.
    """
    unshown: Found = field(default_factory=dict)
    """Totals of rows without a text that can be shown, by extract and record kind."""
    nameless: Found = field(default_factory=dict)
    """For a scope of tenants: totals of rows that name none, in deliveries bound to none.

    Some may belong to the scope's tenants; no scope of tenants has them.
    """


@dataclass(frozen=True)
class _Delivered:
    """What was delivered for a scope, by the ledger, and the listings it is compared with."""

    batches: tuple[Batch, ...]
    files: tuple[Extract, ...]
    """The extracts of its batches, including refused ones."""
    records: tuple[str, ...]
    """Their record kinds, including those inside insert-batch data, and others of the target."""
    listings: Counting
    """Listings whose kept content is proven."""
    unproven: Mapping[int, str]
    """Extracts and listings whose kept content is not proven, and why."""
    database_alone: frozenset[int]
    """Its batches of which nothing is to reach the service."""

    @property
    def service(self) -> bool:
        """Whether any batch is to reach the service."""
        return not self.database_alone.issuperset(self.batch_ids)

    @property
    def batch_ids(self) -> list[int]:
        return [batch.id for batch in self.batches]

    @property
    def not_withdrawn(self) -> list[int]:
        """Its batches without those taken back, which it only has if they are named."""
        return [batch.id for batch in self.batches if batch.state not in TAKEN_BACK]

    @property
    def extracts(self) -> tuple[Extract, ...]:
        """The files that are not refused."""
        return tuple(one for one in self.files if one.refused is None)

    @property
    def readable(self) -> tuple[Extract, ...]:
        return (*self.extracts, *self.listings.extracts)

    @property
    def staged_in(self) -> list[int]:
        """The batches that the rows are in, including those of listings."""
        return sorted({*self.batch_ids, *(one.batch_id for one in self.listings.extracts)})

    def staged_digests(self, connection: psycopg.Connection) -> Digests:
        """The hashes of their staged rows."""
        listed = (one.record for one in self.listings.extracts if one.record is not None)
        return staged_digests(connection, sorted({*self.records, *listed}), self.staged_in)


def gather_sources(
    workspace: Workspace,
    connection: psycopg.Connection,
    scope: Scope,
    signed: Mapping[str, pl.DataFrame],
    approved: tuple[tuple[int, date], ...] = (),
) -> Gathered:
    """Read E, D, A and G of every record kind that the scope's batches brought.

    `signed` is P: the records of the scope's last approved run; `approved` are all approved runs
    with their days. Everything is read at one moment. Differences from receipts, and kept files
    that are not as delivered, are listed.
    """
    with one_moment(connection), others_at_it(connection, workspace.database, 2) as others:
        delivered = _find_delivered(workspace, connection, scope)
        # One connection hashes the staged rows while the others read them.
        digests = aside(connection, others[1:], delivered.staged_digests)
        frames, unreadable = _read_sides(workspace, connection, others[:1], scope, delivered)
        extract = _counted_once(connection, delivered, frames)
        around = frames.around()
        untied = [*_untied(workspace, connection, delivered, frames)]
        read = {*delivered.records, *frames.listed}
        hashed = {of: digest for of, digest in digests().items() if of[1] in read}
        others_now = [*altered(connection, hashed, delivered.staged_in, delivered.readable)]
        return Gathered(
            sources=Sources(
                extract,
                PartedSide(frames.database),
                frames.answers,
                PartedSide(frames.listed),
                dict(signed),
                approved,
                unproven=frames.unproven,
                lost=frames.lost,
                zones=delivered.listings.zones,
                refused=_refused(connection, delivered),
                database_alone=delivered.database_alone,
                around=around,
                around_extract=rows_of(connection, around),
            ),
            extracts=delivered.extracts,
            listings=delivered.listings.extracts,
            service=delivered.service,
            waiting=tuple(one for one in delivered.batches if one.state not in ledger.ENDED),
            batches=frozenset([*delivered.not_withdrawn, *listing_batches(connection)]),
            unfit=frames.unfit,
            older=delivered.listings.older,
            spoiled=delivered.listings.spoiled,
            untied=(*untied, *(text for text, _ in others_now)),
            altered=frozenset[int]().union(*(of for _, of in others_now)),
            unproven={**delivered.unproven, **unreadable},
            unshown=frames.unshown,
            nameless=frames.nameless,
        )


def _find_delivered(
    workspace: Workspace, connection: psycopg.Connection, scope: Scope
) -> _Delivered:
    batches = _of_scope(connection, scope)
    ids = [batch.id for batch in batches]
    files = tuple(file for number in ids for file in ledger.list_extracts(connection, number))
    extracts = tuple(one for one in files if one.refused is None)
    settings = workspace.settings.service
    service = None if settings.url is None else named_service(settings)
    listings = counting_listings(connection, extracts, service, narrow=scope.narrow)
    unproven = _unproven(workspace, extracts, listings.extracts)
    proven = tuple(one for one in listings.extracts if one.id not in unproven)
    unasked = [batch.id for batch in batches if not batch.service]
    return _Delivered(
        batches=batches,
        files=files,
        records=_records(connection, scope, ids, extracts),
        listings=replace(listings, extracts=proven),
        unproven=unproven,
        database_alone=frozenset(unasked) - batches_with_sends(connection, unasked),
    )


def _of_scope(connection: psycopg.Connection, scope: Scope) -> tuple[Batch, ...]:
    """The batches of a scope, without listings of the service, which count for every scope.

    Named batches belong to it however they ended. A batch bound to a tenant has no row of another.
    """
    if scope.batches:
        named = [ledger.find_batch(connection, number) for number in scope.batches]
        batches = [one for one in named if one.feed != LISTING_FEED]
    else:
        batches = ledger.batches_in_force(connection, scope.feeds)
    return tuple(batch for batch in batches if scope.may_have(batch))


def _records(
    connection: psycopg.Connection,
    scope: Scope,
    batches: Sequence[int],
    extracts: Iterable[Extract],
) -> tuple[str, ...]:
    """Record kinds that were delivered, including those inside insert-batch data.

    Also kinds that only the target has, unless the scope is of batches or feeds.
    """
    inside = connection.execute(
        "SELECT DISTINCT k FROM receipt, jsonb_object_keys(totals::jsonb) AS k "
        "WHERE stage = 'stage' AND batch_id = ANY(%s)",
        [list(batches)],
    ).fetchall()
    brought = (extract.record for extract in extracts if extract.record)
    found = {*brought, *(record for (record,) in inside)}
    if not scope.narrow:
        found |= kinds_there(connection, scope.tenants, found)
    return tuple(record for record in EXTRACTS if record in found)


def _unproven(
    workspace: Workspace, extracts: Iterable[Extract], listings: Iterable[Extract]
) -> dict[int, str]:
    faults = [*unproven(workspace, extracts)]
    for listing in listings:
        assert listing.record is not None
        pull = f"Pull the listing again: recon pull {PULLED[listing.record]}."
        faults += unproven(workspace, [listing], remedy=pull)
    return {extract.id: str(fault) for extract, fault in faults}


def _read_sides(
    workspace: Workspace,
    connection: psycopg.Connection,
    others: Sequence[psycopg.Connection],
    scope: Scope,
    delivered: _Delivered,
) -> tuple[SideFrames, dict[int, str]]:
    """The rows of every source, and the extracts whose content could not be read, and why."""
    bound = frozenset(one.id for one in delivered.batches if one.tenant in scope.tenants)
    frames = SideFrames(
        connection,
        others,
        scope.tenants,
        bound,
        frozenset(delivered.unproven),
        workspace.settings.limits.reconcile_bytes,
        narrow=scope.narrow,
    )
    batches = delivered.batch_ids
    known = [(extract.id, extract.name) for extract in delivered.readable]
    schema = {"extract_id": pl.Int32(), "file": pl.String()}
    names = pl.DataFrame(known, schema=schema, orient="row")
    unreadable: dict[int, str] = {}
    for record in delivered.records:
        if record != INSERT_BATCH_DATA.name:
            frames.add(record, batches, names, service=delivered.service)
            continue
        rows, unreadable = _batch_rows(
            workspace,
            connection,
            # Rows of insert-batch data name no tenant.
            [one for one in delivered.extracts if not scope.tenants or one.batch_id in bound],
            delivered.unproven,
        )
        if rows is not None:
            frames.extract[record] = (held(rows),)
    unproven = {*delivered.unproven, *unreadable}
    unread = {one.record for one in delivered.extracts if one.id in unproven} - {*frames.extract}
    for listing in delivered.listings.extracts:
        assert listing.record is not None
        if listing.record not in unread:
            zone = delivered.listings.zones[listing.record]
            frames.add_listing(listing, names, batches, zone)
    return frames, unreadable


def _batch_rows(
    workspace: Workspace,
    connection: psycopg.Connection,
    extracts: Iterable[Extract],
    unproven: Collection[int],
) -> tuple[pl.DataFrame | None, dict[int, str]]:
    """Rows of insert-batch data from kept content, of all extracts or of none.

    If some were missing, the rows that the service lists of those would seem never to have been
    sent.
    """
    own = [extract for extract in extracts if extract.record == INSERT_BATCH_DATA.name]
    rows: list[pl.DataFrame] = []
    unreadable: dict[int, str] = {}
    for extract in own:
        if extract.id not in unproven:
            try:
                rows.append(delivered_batch_rows(workspace, connection, [extract]))
            except EvidenceBroken as fault:
                unreadable[extract.id] = str(fault)
    return (pl.concat(rows) if rows and len(rows) == len(own) else None), unreadable


def _counted_once(
    connection: psycopg.Connection, delivered: _Delivered, frames: SideFrames
) -> Mapping[str, pl.DataFrame]:
    """Side E, where a row that was delivered again counts for one of its attempts only."""
    again = delivered_again(connection, delivered.batch_ids)
    side = PartedSide(frames.extract)
    return changed(side, lambda rows: counted_once(rows, again)) if again else side


def _refused(connection: psycopg.Connection, delivered: _Delivered) -> pl.DataFrame:
    tenants = {batch.id: batch.tenant for batch in delivered.batches}
    files = [
        (one.batch_id, tenants[one.batch_id], one.name, one.refused)
        for one in files_to_deliver(connection, delivered.not_withdrawn)
    ]
    return pl.DataFrame(files, schema=REFUSED, orient="row")


def _untied(
    workspace: Workspace, connection: psycopg.Connection, delivered: _Delivered, frames: SideFrames
) -> Iterator[str]:
    """Where ledger, repairs and totals do not agree with what was read."""
    yield from altered_ledger(connection, delivered.batch_ids, (*LEDGER, *BEFORE))
    yield from unrepaired(connection, delivered.batch_ids)
    tables = {one: EXTRACTS[one] for one in delivered.records if one != INSERT_BATCH_DATA.name}
    yield from untied(
        connection,
        tables,
        delivered.batches,
        delivered.files,
        frames.found,
        read_currencies(workspace.settings.currencies),
    )
