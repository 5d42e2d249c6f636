"""Listings pulled from the service: which one counts, and since when.

A listing that comes again is kept once, so the batch in which it first came does not tell its age.
Instead every pull notes in the audit trail which contents the service answered and when it was
asked. Times are by the database's clock, which also stamps the sends.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from psycopg.rows import class_row

from connectors.addresses import service_address
from connectors.postgres.batches.ledger import TAKEN_BACK, Extract
from connectors.postgres.query import one_value
from connectors.postgres.trail import read_detail
from connectors.settings import zone_of
from schemas.derived.sql_names import SCHEMA, listed, staged_name
from schemas.derived.views import ERRORS, LISTING_FEED
from schemas.operations import OPERATIONS
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

PULLED = "pull"
"""The event written when listings have been read."""
KEPT, ASKED = "kept", "asked_at"
"""Keys of each listing in its detail: the hash of its extract, and when the service was asked."""
SERVICE, ZONE = "service", "zone"
"""Further keys: the address of the service, and its server's time zone, in which it shows times."""
DEFAULT_ZONE = "UTC"
"""Zone if a pull names none, as in earlier versions: the default of the setting."""


@dataclass(frozen=True, slots=True)
class ListingPulled:
    """The newest complete listing of a record kind."""

    extract: Extract
    asked_at: datetime
    """When the service was asked; what was sent later need not be in the listing."""
    zone: str = DEFAULT_ZONE
    """Time zone of the server, as it was set then."""
    spoiled: bool = False
    """Whether some of its rows were rejected, so that it is incomplete and proves nothing."""


def clock(connection: psycopg.Connection) -> datetime:
    """The time by the clock of the database, which also stamps sends."""
    moment: datetime = one_value(connection.execute("SELECT clock_timestamp()"))
    return moment


def newest_listings(
    connection: psycopg.Connection, service: str | None
) -> dict[str, ListingPulled]:
    """The listing that the service answered last, by record kind, whatever its batch.

    A listing whose batch has not ended is not complete and does not count, nor does one that was
    taken back or that another service answered. `service` is an address; None accepts any.
    """
    with connection.cursor(row_factory=class_row(Extract)) as cursor:
        extracts = cursor.execute(
            "SELECT e.* FROM extract e JOIN batch b ON b.id = e.batch_id WHERE b.feed = %s "
            "AND e.refused IS NULL AND b.state IN ('complete', 'complete_with_errors') "
            "ORDER BY e.id",
            [LISTING_FEED],
        ).fetchall()
    # If a run died before it wrote its event, the opening of its batch gives the time.
    opened: dict[int, datetime] = dict(
        connection.execute(
            "SELECT id, opened_at FROM batch WHERE feed = %s", [LISTING_FEED]
        ).fetchall()
    )
    answered = _answered(connection, service)
    newest: dict[str, ListingPulled] = {}
    for extract in extracts:
        assert extract.record is not None
        assert extract.sha256 is not None
        named = [answered[key] for key in (extract.sha256, extract.batch_id) if key in answered]
        last = max(filter(None, named or [(opened[extract.batch_id], DEFAULT_ZONE)]), default=None)
        if last is None:
            continue
        pulled = ListingPulled(extract, *last)
        known = newest.get(extract.record)
        if known is None or pulled.asked_at >= known.asked_at:
            newest[extract.record] = pulled
    spoiled = _spoiled(connection, [one.extract.id for one in newest.values()])
    return {
        record: replace(one, spoiled=one.extract.id in spoiled) for record, one in newest.items()
    }


def _spoiled(connection: psycopg.Connection, extracts: list[int]) -> set[int]:
    """Those of these extracts that have a row with errors."""
    found = connection.execute(
        "SELECT extract_id FROM receipt WHERE extract_id = ANY(%(of)s) AND stage = 'stage' "
        "AND (counts::json ->> 'rejected')::bigint > 0 "
        "UNION SELECT extract_id FROM outcome "
        f"WHERE extract_id = ANY(%(of)s) AND verdict IN ({listed(ERRORS)})",
        {"of": extracts},
    )
    return {extract for (extract,) in found}


def _answered(
    connection: psycopg.Connection, service: str | None
) -> dict[str | int | None, tuple[datetime, str] | None]:
    """For each content that the service answered, when it was last asked for it, and its zone then.

    None for contents that only other services answered. Earlier versions named only the batch,
    whose number then stands for its contents.
    """
    found: dict[str | int | None, tuple[datetime, str] | None] = {}
    events = connection.execute(
        "SELECT at, batch_id, detail FROM event WHERE what = %s", [PULLED]
    ).fetchall()
    for at, batch, detail in events:
        pull = read_detail(detail)
        listings, zone = pull.get("listings"), _zone(pull.get(ZONE))
        of_another = service is not None and _address(pull.get(SERVICE, service)) != service
        entries = [*listings.values()] if isinstance(listings, dict) else []
        kept = [one for one in entries if isinstance(one, dict) and KEPT in one]
        asked = [(str(one[KEPT]), _moment(one[ASKED]) if ASKED in one else at) for one in kept]
        for content, moment in asked if kept else [(batch, at)]:
            if moment is not None:
                known = found.setdefault(content, None)
                # No request is later than the event that tells of it.
                last = min(moment, at)
                if not of_another and (known is None or last >= known[0]):
                    found[content] = last, zone
    return found


def _moment(text: object) -> datetime | None:
    """A time as a pull states it; None if it is no time with a zone."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _address(text: object) -> str | None:
    """A service's address as a pull states it; earlier versions stated it as configured."""
    try:
        return service_address(str(text))
    except ValueError:
        return None


def _zone(stated: object) -> str:
    """A time zone as a pull states it, or the default."""
    try:
        return zone_of(str(stated)).key
    except (KeyError, ValueError, OSError):
        return DEFAULT_ZONE


def listing_batches(connection: psycopg.Connection) -> list[int]:
    rows = connection.execute("SELECT id FROM batch WHERE feed = %s", [LISTING_FEED]).fetchall()
    return [number for (number,) in rows]


def last_sent(connection: psycopg.Connection, extracts: Sequence[int]) -> dict[str, datetime]:
    """By record kind of these extracts, when the last row for the service was sent.

    Kinds that no operation takes reach the service in other ways, not before they are delivered
    here, so their delivery counts. Rows being sent count as sent now.
    """
    return dict(
        connection.execute(
            "SELECT e.record, max(greatest(r.at, "
            "(SELECT max(CASE state WHEN 'sending' THEN clock_timestamp() ELSE changed_at END) "
            "FROM send WHERE extract_id = e.id AND state <> 'unsent'))) "
            "FROM extract e JOIN batch b ON b.id = e.batch_id, LATERAL (SELECT min(at) AS at "
            "FROM event WHERE batch_id = b.id AND what = 'batch received' HAVING count(*) > 0) r "
            "WHERE e.id = ANY(%s) AND e.record = ANY(%s) AND b.service IS NOT NULL GROUP BY 1",
            [list(extracts), [one.response for one in OPERATIONS if one.returns_list]],
        ).fetchall()
    )


def brought_elsewhere(
    connection: psycopg.Connection, numbers: Collection[int], batches: Sequence[int]
) -> set[int]:
    """Those batches of the service that also have rows from batches other than these."""
    extracts = connection.execute(
        "SELECT e.id FROM extract e JOIN batch b ON b.id = e.batch_id WHERE e.record = %s "
        f"AND e.refused IS NULL AND b.state NOT IN ({listed(TAKEN_BACK)}) AND b.feed <> %s "
        "AND b.id <> ALL(%s)",
        [INSERT_BATCH_DATA.name, LISTING_FEED, list(batches)],
    ).fetchall()
    found: set[int] = set()
    if not extracts:
        return found
    others = [extract for (extract,) in extracts]
    for record, table in EXTRACTS.items():
        own = ', "BatchId"' if record == INSERT_BATCH_DATA.name else ""
        rows = connection.execute(
            f"SELECT DISTINCT coalesce(source_batch_id{own}) FROM {SCHEMA}.{staged_name(table)} "
            f"WHERE extract_id = ANY(%s) AND coalesce(source_batch_id{own}) = ANY(%s)",
            [others, list(numbers)],
        ).fetchall()
        found.update(number for (number,) in rows)
    return found
