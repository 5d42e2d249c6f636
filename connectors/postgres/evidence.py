"""What the audit trail holds of the ledger: a hash of it in the event that ends a stage.

The feed profile of a batch, and the service it goes to, are said when it is received, before a row
is read by them; one that goes to none may be asked to later. Files, receipts
and outcomes of a batch are complete when its rows are applied, and stay so. What the service
answered is complete when the batch ends; whoever changes it later (a push, a decision about rows in
doubt, the undo of a later batch) says the hash as it was before, so that nothing can be altered in
between.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import psycopg

from connectors.postgres.ledger import ENDED, State
from connectors.postgres.trail import said_by
from schemas.counting import agree, first_of, quantity
from schemas.derived.sql_names import SCHEMA
from schemas.guards.batch_states import APPLIED_STATES, ASKED_FOR, PREFIX
from schemas.guards.ledger_digests import (
    ANSWERS,
    FILES,
    LEDGER,
    NOTES,
    OUTCOMES,
    RECEIPTS,
    TABLES,
)
from schemas.guards.trail_rules import Event

PROFILE, SERVICE = "profile", "service"
"""Of the detail of the event by which a batch was received: the hash of its feed profile, and the
service that its records go to."""
_PROFILE_HASH = "encode(sha256(convert_to(profile, 'UTF8')), 'hex')"
"""The same of the profile that the table `batch` has."""
BEFORE, REOPENED = "answers_before", "reopened"
"""Of the detail of an event: the answers as they were, and those of other batches."""
UNDO, RESTORED = "undo", "restored"
WHOLE = (*LEDGER, ANSWERS)
_ENDS = {PREFIX + state for state in ENDED}
_BEGUN = {PREFIX + state for state in (State.RECEIVED, State.STAGED, State.CHECKED)}
_RECEIVED = PREFIX + State.RECEIVED
_HELD = PREFIX + State.HELD
_FINAL = {PREFIX + state for state in (*APPLIED_STATES, State.FAILED)}
MOST_TOLD = 20


def ledger_detail(connection: psycopg.Connection, batch_id: int) -> dict[str, object]:
    """What the event says that ends a stage; call it inside the transaction that ends it."""
    return {what: _digest(connection, batch_id, what) for what in LEDGER}


def received_detail(profile: str, service: str | None) -> dict[str, object]:
    """What the event says by which a batch is received."""
    return {PROFILE: hashlib.sha256(profile.encode()).hexdigest(), SERVICE: service}


def is_profile_altered(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether the feed profile of a batch is another than it was received with.

    What an earlier version received says nothing of it.
    """
    row = connection.execute(
        f"SELECT e.detail, {_PROFILE_HASH} FROM event e JOIN batch ON batch.id = e.batch_id "
        "WHERE e.batch_id = %s AND e.what = %s ORDER BY e.id LIMIT 1",
        [batch_id, _RECEIVED],
    ).fetchone()
    return row is not None and said_by(row[0]).get(PROFILE, row[1]) != row[1]


def altered_since_held(connection: psycopg.Connection, batch_id: int) -> list[str]:
    """What of the ledger is another than when a batch was held, since it was staged; in words."""
    row = connection.execute(
        """SELECT detail FROM event WHERE batch_id = %(batch)s AND what = %(held)s AND id > (
            SELECT coalesce(max(id), 0) FROM event WHERE batch_id = %(batch)s AND what = %(staged)s)
        ORDER BY id LIMIT 1""",
        {"batch": batch_id, "held": _HELD, "staged": PREFIX + State.STAGED},
    ).fetchone()
    if row is None:
        return ["the event by which it was held"]
    said, there = said_by(row[0]), ledger_detail(connection, batch_id)
    return [_NAMES[what] for what in LEDGER if said.get(what, there[what]) != there[what]]


def answers_detail(
    connection: psycopg.Connection, batch_id: int, name: str = ANSWERS
) -> dict[str, object]:
    """What an event says of the answers of the service; nothing of a batch that sends nothing."""
    digest = _digest(connection, batch_id, ANSWERS)
    return {} if digest.startswith("0 ") else {name: digest}


def answers_digests(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str]:
    """The hash of the answers to each of some batches."""
    found = _digests(connection, [(number, ANSWERS) for number in batches])
    return {number: digest for (number, _), digest in found.items()}


@dataclass
class _BatchSaid:
    """What the trail says of one batch, as far as it was read."""

    ledger: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What -> link that says so, and the hash."""
    profile: tuple[int, str] | None = None
    service: tuple[int, str | None] | None = None
    answers: tuple[int, str] | None = None
    came_to: str = ""
    reopened: bool = False
    """Rows of it are to be sent again since a later batch was undone."""

    @property
    def goes_nowhere(self) -> bool:
        """Whether nothing says yet that it goes to a service; it stays with the first."""
        return self.service is None or self.service[1] is None


@dataclass(frozen=True, slots=True)
class LedgerProof:
    """What the ledger came to, held against the trail."""

    faults: tuple[str, ...]
    unchecked: tuple[str, ...]


def check_evidence(
    connection: psycopg.Connection,
    events: Iterable[tuple[int, Event]],
    parts: Collection[str] = WHOLE,
) -> LedgerProof:
    """Hold the ledger against what the trail says of it; `events` are links in their order.

    `parts` are those that are hashed for it.
    """
    known: dict[int, _BatchSaid] = {}
    faults: list[str] = []
    for position, event in events:
        faults += _follow(known, position, event)
    expected = [
        (number, what, *said)
        for number, one in sorted(known.items())
        for what, said in (
            *one.ledger.items(),
            *([(ANSWERS, one.answers)] if one.answers is not None else ()),
        )
        if what in parts
    ]
    found = _digests(connection, [(number, what) for number, what, *_ in expected])
    for number, of_batch in groupby(expected, key=lambda one: one[0]):
        faults += [
            f"batch {number}: {_NAMES[what]} (table {TABLES[what]}) "
            f"are not what link {position} says of them: {_counted(said, found[number, what])}"
            for _, what, position, said in of_batch
            if found[number, what] != said
        ]
    faults += _faults_of_terms(connection, known)
    return LedgerProof(tuple(faults), tuple(_unchecked(known)))


def altered_ledger(connection: psycopg.Connection, batches: Collection[int]) -> tuple[str, ...]:
    """What of the files, receipts, outcomes and terms of some batches is not what the trail says.

    No row of theirs is read for it.
    """
    told = connection.execute(
        # What waits for its link is behind all that have one.
        "SELECT coalesce(c.position, (SELECT max(position) + 1 FROM event_chain), 1), e.id, "
        "e.batch_id, e.at, e.what, e.by, e.reason, e.detail, e.account, e.person FROM event e "
        "LEFT JOIN event_chain c ON c.event_id = e.id "
        "WHERE e.batch_id = ANY(%s) AND e.what = ANY(%s) ORDER BY e.id",
        [list(batches), [*_STATES, ASKED_FOR]],
    ).fetchall()
    events = ((position, Event(*said)) for position, *said in told)
    return check_evidence(connection, events, LEDGER).faults


def _faults_of_terms(
    connection: psycopg.Connection, known: Mapping[int, _BatchSaid]
) -> Iterator[str]:
    """Batches that are read by another feed profile, or go to another service, than was said."""
    rows = connection.execute(
        f"SELECT id, {_PROFILE_HASH}, service FROM batch WHERE id = ANY(%s)", [[*known]]
    ).fetchall()
    found = {number: {PROFILE: profile, SERVICE: service} for number, profile, service in rows}
    for number, one in sorted(known.items()):
        said = {PROFILE: one.profile, SERVICE: one.service}
        for what, name in _TERMS.items():
            link = said[what]
            if link is not None and found.get(number, {}).get(what) != link[1]:
                yield f"batch {number}: {name} (table batch) is not what link {link[0]} says"


_TERMS = {PROFILE: "its feed profile", SERVICE: "the service it goes to"}
_NAMES = {
    FILES: "the files that were delivered",
    RECEIPTS: "the receipts of its chunks",
    OUTCOMES: "the outcomes of its rows",
    NOTES: "the findings that reject no row",
    ANSWERS: "the answers of the service",
}


def _follow(known: dict[int, _BatchSaid], position: int, event: Event) -> Iterator[str]:
    """Read one event; what it contradicts of those before it."""
    said = said_by(event.detail)
    if event.what == RESTORED:
        for one in known.values():
            one.answers = None if one.reopened else one.answers
    if event.batch_id is None:
        return
    if event.what == UNDO:
        for number, (before, after) in _reopened(said):
            other = known.setdefault(number, _BatchSaid())
            yield from _differs(number, other, position, before)
            if other.answers is not None:
                other.answers, other.reopened = (position, after), True
    one = known.setdefault(event.batch_id, _BatchSaid())
    if BEFORE in said:
        yield from _differs(event.batch_id, one, position, str(said[BEFORE]))
        one.answers = None
    if event.what == ASKED_FOR and one.goes_nowhere and isinstance(said.get(SERVICE), str):
        one.service = (position, said[SERVICE])
    if event.what in _STATES:
        _came_to(one, position, event.what, said)


def _came_to(one: _BatchSaid, position: int, what: str, said: Mapping[str, Any]) -> None:
    """A stage of the batch has ended, or begins again."""
    if not one.came_to and PROFILE in said:
        one.profile = (position, str(said[PROFILE]))
        if SERVICE in said:
            one.service = (position, said[SERVICE])
    if what in _BEGUN and one.came_to not in _FINAL:
        one.ledger = {}
    for part in LEDGER:
        if part in said:
            # The first time counts: what was changed since would be said as if it had been so.
            one.ledger.setdefault(part, (position, str(said[part])))
    if what == PREFIX + State.MERGED:
        one.answers = None
    elif what in _ENDS and ANSWERS in said:
        one.answers, one.reopened = (position, str(said[ANSWERS])), False
    one.came_to = what


def _reopened(said: Mapping[str, Any]) -> Iterator[tuple[int, tuple[str, str]]]:
    told = said.get(REOPENED)
    for number, pair in (told if isinstance(told, dict) else {}).items():
        if number.isdecimal() and isinstance(pair, list) and len(pair) == 2:
            yield int(number), (str(pair[0]), str(pair[1]))


def _differs(number: int, one: _BatchSaid, position: int, before: str) -> Iterator[str]:
    if one.answers is not None and one.answers[1] != before:
        yield (
            f"batch {number}: {_NAMES[ANSWERS]} (table {TABLES[ANSWERS]}) were changed between "
            f"link {one.answers[0]} and link {position}: {_counted(one.answers[1], before)}"
        )


def _unchecked(known: Mapping[int, _BatchSaid]) -> Iterator[str]:
    under_way = [n for n, one in known.items() if one.came_to in _BEGUN]
    older = [n for n, one in known.items() if one.came_to in (*_FINAL, _HELD) and not one.ledger]
    sending = [n for n, one in known.items() if one.came_to == PREFIX + State.MERGED]
    if under_way:
        yield (
            f"the ledger of {_batches(under_way)}, which {agree(len(under_way), 'is', 'are')} "
            "under way"
        )
    if older:
        yield (
            f"the ledger of {_batches(older)}, of which no event has a hash: an earlier version "
            "took them in, or nothing was applied of them"
        )
    if sending:
        yield f"what the service answered to {_batches(sending)}, whose pushes are not at their end"
    reopened = [n for n, one in known.items() if one.reopened and one.answers is None]
    if reopened:
        yield (
            f"what the service answered to {_batches(reopened)}: rows of them were put in doubt "
            "by a restore"
        )


def _batches(numbers: Collection[int]) -> str:
    word = agree(len(numbers), "batch", "batches")
    return f"{word} {first_of(sorted(numbers), MOST_TOLD)}"


def _counted(said: str, found: str) -> str:
    before, after = said.partition(" ")[0], found.partition(" ")[0]
    if before == after:
        return f"{quantity(int(after), 'row')} as before, and not the same"
    return f"there were {before}, and there are {after}"


def _digest(connection: psycopg.Connection, batch_id: int, what: str) -> str:
    return _digests(connection, [(batch_id, what)])[batch_id, what]


def _digests(
    connection: psycopg.Connection, asked: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    batches: dict[str, set[int]] = {}
    for number, what in asked:
        batches.setdefault(what, set()).add(number)
    return {
        (number, what): digest
        for what, numbers in batches.items()
        for number, digest in connection.execute(
            f"SELECT * FROM {SCHEMA}.ledger_digests(%s, %s)", [sorted(numbers), what]
        )
    }


_STATES = {PREFIX + state for state in State}
EVENTS = {*_STATES, UNDO, RESTORED, "resolve", ASKED_FOR}
"""Events that say something of the ledger."""
