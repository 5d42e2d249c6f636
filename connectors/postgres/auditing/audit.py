"""The audit trail: its events, and the proof that none was changed, removed or inserted.

The chain covers every event. Rows kept elsewhere because of an event (decisions, signatures, runs
and their breaks) are compared with what the event says of them.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row, namedtuple_row

from connectors.errors import AccountRefused
from connectors.postgres.accounts import sees_part
from connectors.postgres.auditing.audit_checks import (
    CHECKS,
    KEPT,
    EventsByKind,
    in_order,
)
from connectors.postgres.auditing.evidence import EVENTS as EVIDENCE
from connectors.postgres.auditing.evidence import check_evidence
from connectors.postgres.batches.corrections import unread_repairs, unrepaired
from connectors.postgres.query import one_value, streamed
from connectors.postgres.schema.completeness import (
    altered_rules,
    switched_off,
    switched_off_message,
)
from connectors.postgres.trail import read_detail
from schemas.accounts import HOURS
from schemas.counting import first_of
from schemas.guards.accounts import LOGGED_IN
from schemas.guards.decisions import DECIDED
from schemas.guards.tenants import sees_event
from schemas.guards.trail_functions import GENESIS, TURN
from schemas.guards.trail_rules import Event, link_hash
from schemas.life import Choice

MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class VerifiedTrail:
    events: int
    """Number of valid links, from the first on."""
    head: str
    """Hash of the last of them; somebody who notes it can ask for it later."""
    broken: str | None = None
    """Faults in words: only the first in the chain itself, but all that the other checks find."""
    unchecked: tuple[str, ...] = ()
    """What could not be checked, in words."""


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """One event as the audit trail lists it."""

    position: int | None
    """Position in the chain; None if it is not in it."""
    id: int
    batch_id: int | None
    at: datetime
    what: str
    by: str
    reason: str | None
    detail: str | None
    account: str | None
    """Database account that wrote it; `by` is the name stated beside it."""
    person: str | None
    """The account that was logged in; None if nobody was."""
    hash: str | None

    @property
    def rule(self) -> str | None:
        """The rule that accepted breaks, whoever its run was made for; None if a person did.

        Whoever decides says what the detail is; but nobody has the name of a rule, and who is
        logged in works for no job, in whose name the rule's events would be.
        """
        if self.what != DECIDED[Choice.ACCEPT]:
            return None
        number = read_detail(self.detail).get("rule")
        accepted = number is not None and (self.person is None or self.by == f"rule {number}")
        return f"rule {number}" if accepted else None


def verify(connection: psycopg.Connection, noted: str | None = None) -> VerifiedTrail:
    """Verify the chain on one snapshot; `noted` is a hash that must still be in it.

    A trigger that is switched off is a fault, since nothing protects what is written from then on.
    So is a function that somebody has altered.
    """
    if sees_part(connection):
        raise AccountRefused(
            "You are not logged in, or see some tenants only, and so see a part of the trail, "
            "which proves nothing. Somebody who sees all of it has to log in and verify it."
        )
    off = "; and ".join(
        filter(None, (switched_off_message(switched_off(connection)), altered_rules(connection)))
    )
    connection.execute("SELECT chain_waiting()")
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        seen = {GENESIS}  # What somebody notes who verifies an empty trail.
        by_kind: EventsByKind = {}
        position, head, stamped = 0, GENESIS, False
        logged_in: dict[str, datetime] = {}
        strangers: list[str] = []
        for row in _links(connection):
            fault = _fault(row, position + 1, head, stamped=stamped)
            if fault:
                return VerifiedTrail(position, head, f"{fault}; and {off}" if off else fault)
            position, head, stamped = row.position, row.hash, row.account is not None
            if noted == head:
                seen.add(head)
            event = _event(row)
            if event.what == LOGGED_IN:
                logged_in[event.by] = event.at
            elif (who := event.person) and not _was_logged_in(event.at, logged_in.get(who)):
                strangers.append(
                    f"link {position} (event {event.id}, {event.what}) is by {who!r}, and no link "
                    "before it says that they had logged in"
                )
            if event.what in KEPT:
                by_kind.setdefault(event.what, []).append((position, event))
        faults = [off] if off else []
        faults += [first_of(strangers, MOST_FAULTS, by="; ", end="; and")] if strangers else []
        if noted is not None and noted not in seen:
            faults.append(
                f"no link has the hash {noted}: events after it were cut off, or all were"
            )
        # A fault found by one check must not hide what another finds.
        found = [[*check(connection, by_kind)] for check in CHECKS]
        evidence = check_evidence(connection, in_order(by_kind, EVIDENCE))
        found.append([*evidence.faults, *unrepaired(connection)])
        faults += [first_of(one, MOST_FAULTS, by="; ", end="; and") for one in found if one]
        unchecked = (*evidence.unchecked, *unread_repairs(connection))
        return VerifiedTrail(position, head, "; ".join(faults) or None, unchecked)


def last_link(connection: psycopg.Connection) -> int:
    """Position of the last link; 0 if there is none."""
    asked = "SELECT coalesce(max(position), 0) FROM event_chain"
    return int(one_value(connection.execute(asked)))


def links_at(connection: psycopg.Connection, positions: Collection[int]) -> dict[int, str]:
    """Hashes of links by position; positions without a link are left out."""
    rows = connection.execute(
        "SELECT position, hash FROM event_chain WHERE position = ANY(%s)", [[*positions]]
    ).fetchall()
    return {int(position): str(hash_) for position, hash_ in rows}


def list_events(
    connection: psycopg.Connection, most: int, *, what: str | None = None, batch: int | None = None
) -> list[TrailEntry]:
    """The latest events that the acting user may see, latest first, linked yet or not.

    `what` is a part of an event's name; `batch` limits them to those about one batch.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT c.position, e.*, c.hash FROM event e "
            "LEFT JOIN event_chain c ON c.event_id = e.id "
            "WHERE (%(what)s::text IS NULL OR strpos(e.what, %(what)s) > 0) "
            "AND (%(batch)s::int IS NULL OR e.batch_id = %(batch)s) "
            f"AND {sees_event('e')} "
            "ORDER BY e.id DESC LIMIT %(most)s",
            {"what": what, "batch": batch, "most": most},
        ).fetchall()
    return [TrailEntry(**row) for row in rows]


def _links(connection: psycopg.Connection) -> Iterator[Any]:
    """Links in order with their events; events outside the chain come last."""
    with streamed(connection, "audit", namedtuple_row) as cursor:
        cursor.execute(
            "SELECT c.position, c.previous_hash, c.hash, c.event_id, e.id, e.batch_id, e.at, "
            "e.what, e.by, e.reason, e.detail, e.account, e.person, "
            f"EXISTS (SELECT FROM {TURN} t WHERE t.event_id = e.id) AS waits FROM event_chain c "
            "FULL JOIN event e ON e.id = c.event_id ORDER BY c.position NULLS LAST, e.id"
        )
        yield from cursor


def _event(row: Any) -> Event:
    return Event._make(getattr(row, name) for name in Event._fields)


def _was_logged_in(at: datetime, since: datetime | None) -> bool:
    """Whether a login at `since` may have lasted until then; a minute is for clock corrections."""
    return since is not None and at - since <= timedelta(hours=HOURS, minutes=1)


def _fault(row: Any, expected: int, head: str, *, stamped: bool) -> str | None:
    """What is wrong with a link, or None; `stamped`: the event before names its account."""
    if row.position is None and row.waits:
        return (
            f"event {row.id} ({row.what}) waits for its link: a session that has written an event "
            "and does not end its transaction keeps the chain. An administrator finds it with "
            "SELECT pid, usename, xact_start FROM pg_stat_activity ORDER BY xact_start"
        )
    if row.position is None:
        return f"event {row.id} ({row.what}) is not in the chain: it was added behind its back"
    if row.position != expected:
        return f"link {expected} is missing: the next one is {row.position}"
    if row.id is None:
        return f"link {expected}: its event {row.event_id} was removed"
    if row.previous_hash != head:
        return f"link {expected} (event {row.id}) does not follow the link before it"
    if row.hash != link_hash(expected, head, _event(row)):
        return f"link {expected}: event {row.id} ({row.what}) was changed after it was written"
    if stamped and row.account is None:
        return (
            f"link {expected}: event {row.id} ({row.what}) names no account: it was not written by "
            "the functions of the trail"
        )
    return None
