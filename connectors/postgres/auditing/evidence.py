"""What the audit trail has of the ledger: a hash in the event that ends a stage.

The event that receives a batch has its feed profile, its secret constants and its service, before a
row is read by them; a batch without a service may be sent to one later. Files, receipts, outcomes
and before-images of a batch are complete when its rows are applied, and stay so. Answers of the
service are complete when the batch ends; the event of anything that changes them later (a push, a
decision about rows in doubt, the undo of a later batch) has the hash from before, so that nothing
can be altered in between.

`check_evidence` reads the events in order, keeps the last hashes of each batch that must still be
true, and compares them with the ledger.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import psycopg

from connectors.postgres.auditing.batch_hashes import FINAL, HELD, NAMES, RECEIVED, digests_of
from connectors.postgres.batches.digests import CLUES, STAGED, clues_digests
from connectors.postgres.batches.ledger import ENDED, State
from connectors.postgres.trail import linked_events, read_detail
from schemas.counting import agree, first_of, quantity
from schemas.guards.batch_states import (
    ASKED_FOR,
    INSTEAD_OF,
    PREFIX,
    REOPENED,
    RESOLVE,
    RESTORED,
    UNDO,
)
from schemas.guards.ledger_digests import (
    ANSWERS,
    APPLIED,
    BEFORE,
    BIRTH_DATABASE,
    CONSTANTS,
    ENDED_AT,
    LEDGER,
    OPENED_AT,
    PROFILE,
    RECEIPTS,
    SERVICE,
    TABLES,
    TERMS,
)
from schemas.guards.trail_rules import Event

_OTHERS_REOPENED = "reopened"
"""Key in an undo's event of an earlier version: answers of other batches before and after."""
WHOLE = (*APPLIED, CONSTANTS, *BEFORE)
_ENDS = {PREFIX + state for state in ENDED}
_BEGUN = {PREFIX + state for state in (State.RECEIVED, State.STAGED, State.CHECKED)}
_MERGED = PREFIX + State.MERGED
_STATES = {PREFIX + state for state in State}
_OF_OTHERS = {UNDO, RESTORED}
"""Events that also concern the answers of batches other than their own."""
EVENTS = {*_STATES, *_OF_OTHERS, REOPENED, RESOLVE, ASKED_FOR}
"""Events that change what the ledger must be."""
_TERMS = {
    PROFILE: "its feed profile (table batch)",
    SERVICE: "the service it goes to (table batch)",
    OPENED_AT: "when it was opened (table batch)",
    ENDED_AT: "when it ended (table batch)",
    BIRTH_DATABASE: "the database that it came to (table push_epoch)",
}
_MOST_LISTED = 20


_Value = TypeVar("_Value")


class _Link(NamedTuple, Generic[_Value]):
    """A value in the trail, and the position of its link."""

    position: int
    value: _Value


@dataclass
class _Record:
    """What the trail has of one batch, up to the last event read."""

    ledger: dict[str, _Link[str]] = field(default_factory=dict)
    """Hashes by part of the ledger."""
    terms: dict[str, _Link[str | None]] = field(default_factory=dict)
    """The terms in `_TERMS` that the trail has; None if it has no service, or has not ended."""
    constants: _Link[str] | None = None
    clues: _Link[str] | None = None
    answers: dict[str, _Link[str]] = field(default_factory=dict)
    """Hashes by part of the sends."""
    state: str = ""
    reopened: bool = False
    """Whether rows of it are to be sent again since a later batch was undone."""

    def hashes(self) -> dict[str, _Link[str]]:
        constants = {CONSTANTS: self.constants} if self.constants else {}
        return self.ledger | constants | self.answers

    def enter(self, state: str, position: int, detail: Mapping[str, Any]) -> None:
        """Take in the event that a stage of the batch has ended, or begins again."""
        if not self.state and PROFILE in detail:
            for term in detail.keys() & {PROFILE, SERVICE, OPENED_AT, BIRTH_DATABASE}:
                self.terms[term] = _Link(position, detail[term])
            if CONSTANTS in detail:
                self.constants = _Link(position, str(detail[CONSTANTS]))
        if state in _BEGUN and self.state not in FINAL:
            self.ledger = {}
        if state == STAGED and CLUES in detail:
            self.clues = _Link(position, str(detail[CLUES]))
        elif state == RECEIVED:
            self.clues = None
        for part in APPLIED:
            if part in detail:
                # The first hash counts; a later one would hide what was changed in between.
                self.ledger.setdefault(part, _Link(position, str(detail[part])))
        if state == _MERGED:
            self.answers = {}
        elif state in _ENDS and ANSWERS in detail:
            self.answers, self.reopened = _answers(position, detail), False
        self.terms.pop(ENDED_AT, None)
        # In an event of an earlier version, the end of a batch has no time.
        if state not in _ENDS or ENDED_AT in detail:
            self.terms[ENDED_AT] = _Link(position, detail.get(ENDED_AT))
        self.state = state

    def reopen(self, position: int, after: Mapping[str, object]) -> None:
        """Take in that an undo lets rows be sent again; a part unknown before stays unknown."""
        found = _answers(position, after)
        self.answers = {part: found[part] for part in found.keys() & self.answers.keys()}
        self.reopened = self.reopened or bool(self.answers)

    def send_to(self, service: object, instead_of: object, position: int) -> None:
        """Take in that it goes to a service instead of the one that is known, if any."""
        known = self.terms.get(SERVICE)
        if (known.value if known else None) == instead_of and isinstance(service, str):
            self.terms[SERVICE] = _Link(position, service)


@dataclass(frozen=True, slots=True)
class LedgerProof:
    faults: tuple[str, ...]
    unchecked: tuple[str, ...]


def check_evidence(
    connection: psycopg.Connection,
    events: Iterable[tuple[int, Event]],
    parts: Collection[str] = WHOLE,
) -> LedgerProof:
    """Compare these parts of the ledger with the trail; `events` are links in order."""
    records: defaultdict[int, _Record] = defaultdict(_Record)
    faults = [one for position, event in events for one in _read(records, position, event)]
    faults += _altered_parts(connection, records, parts)
    faults += _altered_clues(connection, records)
    faults += _altered_terms(connection, records)
    return LedgerProof(tuple(faults), tuple(_unchecked(records)))


def altered_ledger(
    connection: psycopg.Connection, batches: Collection[int], parts: Collection[str] = LEDGER
) -> tuple[str, ...]:
    """Files, receipts, outcomes and terms of these batches that differ from the trail.

    No rows of the batches are read. Events of other batches are read if they also concern the
    answers of these.
    """
    events = linked_events(
        connection,
        "e.batch_id = ANY(%s) AND e.what = ANY(%s) OR e.what = ANY(%s)",
        [list(batches), [*EVENTS], [*_OF_OTHERS]],
    )
    return check_evidence(connection, events, parts).faults


def _read(records: defaultdict[int, _Record], position: int, event: Event) -> Iterator[str]:
    """Take one event into the records; yields where it contradicts earlier ones.

    An event may have a hash of the answers from before it, from after it, or both.
    """
    detail = read_detail(event.detail)
    if event.what == RESTORED:
        for record in records.values():
            record.answers = {} if record.reopened else record.answers
    if event.batch_id is None:
        return
    if event.what == UNDO:
        for number, before, after in reopened_batches(detail):
            reopened = records[number]
            yield from _changed_answers(number, reopened, position, {ANSWERS: before})
            reopened.reopen(position, {ANSWERS: after})
    record = records[event.batch_id]
    known = {part: detail[name] for part, name in BEFORE.items() if name in detail}
    if known:
        yield from _changed_answers(event.batch_id, record, position, known)
        record.reopen(position, detail if event.what == REOPENED else {})
    if event.what == ASKED_FOR:
        record.send_to(detail.get(SERVICE), detail.get(INSTEAD_OF), position)
    if event.what in _STATES:
        record.enter(event.what, position, detail)


def reopened_batches(detail: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Batches whose rows an undo lets be sent again, with hashes of their answers before and after.

    Only events of earlier versions have them; now each such batch has an event of its own.
    """
    batches = detail.get(_OTHERS_REOPENED)
    for number, pair in (batches if isinstance(batches, dict) else {}).items():
        if re.fullmatch("[0-9]{1,9}", number) and isinstance(pair, list) and len(pair) == 2:
            yield int(number), str(pair[0]), str(pair[1])


def _answers(position: int, detail: Mapping[str, object]) -> dict[str, _Link[str]]:
    return {part: _Link(position, str(detail[part])) for part in BEFORE if part in detail}


def _changed_answers(
    number: int, record: _Record, position: int, before: Mapping[str, object]
) -> Iterator[str]:
    """Report answers whose hash in an event differs from the last one that the trail has."""
    for part, known in record.answers.items():
        found = str(before.get(part, known.value))
        if _hash_of(known.value) != _hash_of(found):
            yield (
                f"batch {number}: {NAMES[part]} (table {TABLES[part]}) were changed between "
                f"link {known.position} and link {position}: {_difference(known.value, found)}"
            )


def _altered_parts(
    connection: psycopg.Connection, records: Mapping[int, _Record], parts: Collection[str]
) -> Iterator[str]:
    """Report parts of the ledger whose hash differs from the trail's."""
    expected = {
        (number, part): link
        for number, record in sorted(records.items())
        for part, link in record.hashes().items()
        if part in parts
    }
    found = digests_of(connection, expected)
    for (number, part), link in expected.items():
        if _hash_of(found[number, part]) != _hash_of(link.value):
            yield (
                f"batch {number}: {NAMES[part]} (table {TABLES[part]}) are not what link "
                f"{link.position} says of them: {_difference(link.value, found[number, part])}"
            )


def _altered_clues(connection: psycopg.Connection, records: Mapping[int, _Record]) -> Iterator[str]:
    """Report batches whose chunks' clues differ from when all were staged."""
    expected = {number: one.clues for number, one in sorted(records.items()) if one.clues}
    found = clues_digests(connection, expected)
    for number, link in expected.items():
        if found.get(number, "") != link.value:
            yield (
                f"batch {number}: {NAMES[RECEIPTS]} (table receipt, column clues) are not what "
                f"link {link.position} says of them"
            )


def _altered_terms(connection: psycopg.Connection, records: Mapping[int, _Record]) -> Iterator[str]:
    """Report batches whose feed profile, service or times differ from the trail.

    The times affect the keys of requests, and what may be removed.
    """
    rows = connection.execute(
        f"SELECT b.id, {', '.join(TERMS.values())} FROM batch b WHERE b.id = ANY(%s)", [[*records]]
    ).fetchall()
    found = {number: dict(zip(TERMS, terms, strict=True)) for number, *terms in rows}
    for number, record in sorted(records.items()):
        for term, name in _TERMS.items():
            link = record.terms.get(term)
            if link is not None and found.get(number, {}).get(term) != link.value:
                yield f"batch {number}: {name} is not what link {link.position} says"


def _unchecked(records: Mapping[int, _Record]) -> Iterator[str]:
    for text, applies in _UNCHECKED.items():
        if numbers := sorted(number for number, one in records.items() if applies(one)):
            word, verb = agree(len(numbers), "batch", "batches"), agree(len(numbers), "is", "are")
            batches = f"{word} {first_of(numbers, _MOST_LISTED)}"
            yield text.format(batches=batches, verb=verb)


_UNCHECKED: Mapping[str, Callable[[_Record], bool]] = {
    "the ledger of {batches}, which {verb} under way": lambda one: one.state in _BEGUN,
    "the ledger of {batches}, of which no event has a hash: an earlier version took them in, or "
    "nothing was applied of them": lambda one: one.state in (*FINAL, HELD) and not one.ledger,
    "what the service answered to {batches}, whose pushes are not at their end": (
        lambda one: one.state == _MERGED
    ),
    "what the service answered to {batches}: rows of them were put in doubt by a restore": (
        lambda one: one.reopened and not one.answers
    ),
}


def _difference(recorded: str, found: str) -> str:
    """How two hashes differ, in words; each may begin with a number of rows."""
    before, after = recorded.rpartition(" ")[0], found.rpartition(" ")[0]
    if not (before and after):
        return "they are not the same"
    if before == after:
        return f"{quantity(int(after), 'row')} as before, and not the same"
    return f"there were {before}, and there are {after}"


def _hash_of(digest: str) -> str:
    """A hash without the number of rows that may precede it."""
    return digest.rpartition(" ")[2]
