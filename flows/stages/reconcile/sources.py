"""Gather the truth sources of a reconciliation: which batches count, and their rows as frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import polars as pl
import psycopg

from connectors.errors import EvidenceBroken
from connectors.postgres import ledger
from connectors.postgres.attempts import delivered_again
from connectors.postgres.corrections import unrepaired
from connectors.postgres.evidence import altered_ledger
from connectors.postgres.ledger import TAKEN_BACK, Batch, Extract
from connectors.postgres.listings import listing_batches
from connectors.postgres.one_moment import aside, one_moment, others_at_it
from connectors.postgres.push.sends import any_sends
from flows.stages.kept import unproven
from flows.stages.reconcile.around import rows_of
from flows.stages.reconcile.listings import PULLED, counting_listings
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.side_frames import SideFrames
from flows.stages.reconcile.tied import Found, altered, staged_digests, untied
from flows.stages.rows.batch_rows import delivered_batch_rows
from flows.stages.workspace import Workspace
from flows.steps.frames.parts import PartedSide, changed, held
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.countable import counted_once
from schemas.derived.views import LISTING_FEED
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


@dataclass(frozen=True)
class Gathered:
    """The sources, and what is to be told of them."""

    sources: Sources
    extracts: tuple[Extract, ...]
    """Readable files of the batches that count, by id."""
    listings: tuple[Extract, ...]
    """The listings of the service that count: of each record kind the one answered last."""
    service: bool
    """Whether any batch is to reach the service."""
    waiting: tuple[Batch, ...]
    """Batches that have not come to an end: what they bring is not all there."""
    batches: frozenset[int] = frozenset()
    """Batches the run is about, listings included; of those that are named, none taken back."""
    unfit: dict[str, int] = field(default_factory=dict)
    """Record kind -> amounts that are not judged, and of which no break tells."""
    older: frozenset[str] = frozenset()
    """Record kinds whose newest listing is older than what was sent, so that none is used."""
    untied: tuple[str, ...] = ()
    """Where what is kept of an extract is not what was taken in."""
    unproven: dict[int, str] = field(default_factory=dict)
    """Extracts, listings included, whose kept content cannot be proven: why, and what to do.

    Of an extract, what is read are the rows that were staged while it was proven, with their texts;
    those kept by reference have none, and match nothing (`Sources.unproven`). Nothing of a listing
    is read, and nothing that would need the content itself.
    """
    unshown: Found = field(default_factory=dict)
    """What the rows come to of which no text can be shown, by extract and record kind."""


def gather_sources(
    workspace: Workspace,
    connection: psycopg.Connection,
    scope: Scope,
    signed: Mapping[str, pl.DataFrame],
    approved: tuple[tuple[int, date], ...] = (),
) -> Gathered:
    """Read E, D, A and G of every record kind that the scope's batches brought.

    `signed` is P: the records of the last run of the scope that was approved; `approved` are all of
    these, with their days. All is read as it was at one moment. What does not tie with its receipts
    is told, and so is a kept file that is not what was delivered.
    """
    with one_moment(connection), others_at_it(connection, workspace.database, 2) as others:
        return _gathered(workspace, connection, others, scope, signed, approved)


def _gathered(
    workspace: Workspace,
    connection: psycopg.Connection,
    others: Sequence[psycopg.Connection],
    scope: Scope,
    signed: Mapping[str, pl.DataFrame],
    approved: tuple[tuple[int, date], ...],
) -> Gathered:
    standing = _standing(connection)
    delivered = _batches(connection, scope, standing)
    numbers = [batch.id for batch in delivered]
    files = _extracts(connection, delivered)
    extracts = tuple(one for one in files if one.refused is None)
    counting = counting_listings(connection, extracts, narrow=scope.narrow)
    listings = counting.extracts
    broken = _unproven(workspace, extracts, listings)
    listings = tuple(one for one in listings if one.id not in broken)
    service = any(batch.service for batch in delivered) or any_sends(connection, numbers)
    at_once = workspace.settings.limits.reconcile_bytes
    places = _places((*extracts, *listings))
    records = _records(connection, numbers, extracts)
    hashed = sorted({*records, *(one.record for one in listings if one.record is not None)})
    of_batches = sorted({*numbers, *(one.batch_id for one in listings)})
    # The server hashes what is staged while that is read.
    digests = aside(connection, others[1:], lambda other: staged_digests(other, hashed, of_batches))
    bound = frozenset(one.id for one in delivered if one.tenant in scope.tenants)
    frames = SideFrames(
        connection,
        others[:1],
        scope.tenants,
        bound,
        {one.id: one.tenant for one in standing},
        frozenset(broken),
        at_once,
        narrow=scope.narrow,
    )
    for record in records:
        if record == INSERT_BATCH_DATA.name:
            # Its rows name no tenant.
            theirs = [one for one in extracts if not scope.tenants or one.batch_id in bound]
            _add_batch_rows(workspace, connection, frames, theirs, broken)
        else:
            frames.add(record, numbers, places, service=service)
    again = delivered_again(connection, numbers)
    extract: Mapping[str, pl.DataFrame] = PartedSide(frames.extract)
    if again:
        extract = changed(extract, lambda rows: counted_once(rows, again))
    unread = {one.record for one in extracts if one.id in broken} - frames.extract.keys()
    for listing in listings:
        assert listing.record is not None
        if listing.record in unread:
            continue
        frames.add_listing(listing, places, numbers, counting.zones[listing.record])
    around = frames.around()
    tied = {one: EXTRACTS[one] for one in records if one != INSERT_BATCH_DATA.name}
    untold = [
        *altered_ledger(connection, numbers),
        *unrepaired(connection, numbers),
        *untied(connection, tied, delivered, files, frames.found),
        *altered(
            connection,
            {of: one for of, one in digests().items() if of[1] in {*records, *frames.listed}},
            of_batches,
            (*extracts, *listings),
        ),
    ]
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
            zones=counting.zones,
            around=around,
            around_extract=rows_of(connection, around),
        ),
        extracts=extracts,
        listings=listings,
        service=service,
        waiting=tuple(one for one in delivered if one.state not in ledger.ENDED),
        batches=frozenset(
            [
                *(one.id for one in delivered if one.state not in TAKEN_BACK),
                *listing_batches(connection),
            ]
        ),
        unfit=frames.unfit,
        older=counting.older,
        untied=tuple(untold),
        unproven=broken,
        unshown=frames.unshown,
    )


def _unproven(
    workspace: Workspace, extracts: Iterable[Extract], listings: Iterable[Extract]
) -> dict[int, str]:
    faults = dict(_by_id(unproven(workspace, extracts)))
    for listing in listings:
        assert listing.record is not None
        pull = f"Pull the listing again: recon pull {PULLED[listing.record]}."
        faults |= _by_id(unproven(workspace, [listing], remedy=pull))
    return faults


def _by_id(faults: Iterable[tuple[Extract, EvidenceBroken]]) -> Iterator[tuple[int, str]]:
    return ((extract.id, str(fault)) for extract, fault in faults)


def _add_batch_rows(
    workspace: Workspace,
    connection: psycopg.Connection,
    frames: SideFrames,
    extracts: Iterable[Extract],
    broken: dict[int, str],
) -> None:
    """Rows of insert-batch data are read with the kept content: all of its extracts, or none.

    With some of them missing, what the service lists of those would be told as never sent.
    """
    rows = []
    for extract in extracts:
        if extract.record != INSERT_BATCH_DATA.name or extract.id in broken:
            continue
        try:
            rows.append(delivered_batch_rows(workspace, connection, [extract]))
        except EvidenceBroken as fault:
            broken[extract.id] = str(fault)
    unproven = any(one.id in broken for one in extracts if one.record == INSERT_BATCH_DATA.name)
    if rows and not unproven:
        frames.extract[INSERT_BATCH_DATA.name] = (held(pl.concat(rows)),)


def _standing(connection: psycopg.Connection) -> list[Batch]:
    """What was delivered and not taken back."""
    every = ledger.list_batches(connection, limit=1_000_000)
    standing = (one for one in every if one.state not in TAKEN_BACK and one.feed != LISTING_FEED)
    return sorted(standing, key=lambda batch: batch.id)


def _batches(
    connection: psycopg.Connection, scope: Scope, standing: Iterable[Batch]
) -> list[Batch]:
    """What was delivered; a listing of the service counts for every scope, named or not.

    A batch that is bound to a tenant has no row of another.
    """
    if scope.batches:
        named = [ledger.find_batch(connection, number) for number in scope.batches]
        standing = (one for one in named if one.feed != LISTING_FEED)
    return [batch for batch in standing if scope.may_have(batch)]


def _extracts(connection: psycopg.Connection, batches: Iterable[Batch]) -> tuple[Extract, ...]:
    return tuple(
        extract for batch in batches for extract in ledger.list_extracts(connection, batch.id)
    )


def _places(extracts: Iterable[Extract]) -> pl.DataFrame:
    known = [(extract.id, extract.name) for extract in extracts]
    return pl.DataFrame(known, schema={"extract_id": pl.Int32(), "file": pl.String()}, orient="row")


def _records(
    connection: psycopg.Connection, batches: Sequence[int], extracts: Iterable[Extract]
) -> list[str]:
    """Record kinds that were delivered, those inside insert-batch data included."""
    found = {extract.record for extract in extracts}
    inside = connection.execute(
        "SELECT DISTINCT k FROM receipt, jsonb_object_keys(totals::jsonb) AS k "
        "WHERE stage = 'stage' AND batch_id = ANY(%s)",
        [list(batches)],
    ).fetchall()
    found.update(record for (record,) in inside)
    return [record for record in EXTRACTS if record in found]
