"""Checks that rows kept elsewhere because of an event are what the event says of them.

They cover decisions, signatures, runs and their breaks, states of batches, accounts, limits,
subscriptions, jobs and restores.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

from connectors.postgres.accounts import is_shown_part
from connectors.postgres.auditing.evidence import EVENTS as EVIDENCE
from connectors.postgres.batches.ledger import State
from connectors.postgres.query import one_value, streamed
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    breaks_hash,
    decisions_hash,
    scope_hash,
)
from connectors.postgres.schema.completeness import altered_rules
from connectors.postgres.trail import linked_events, read_detail
from schemas.derived.sql_names import SCHEMA
from schemas.guards.accounts import SUBSCRIBED, UNSUBSCRIBED
from schemas.guards.batch_states import PREFIX, RESTORED
from schemas.guards.decisions import DECIDED, SIGNED
from schemas.guards.jobs import JOB_AGAIN, JOB_END, JOB_ENDED, JOB_ORDERED, JOB_REFUSED, job_hash
from schemas.guards.push_gate import EPOCH, LOST_HASH, SEALED, epoch_hash, seal_hash
from schemas.guards.trail_functions import RUN_FACTS, SAVED
from schemas.guards.trail_rules import Event, chain_hash
from schemas.jobs import JobState

_DECIDED = (
    "reconciliation_id", "break_id", "what", "by", "reason", "until", "side", "owner", "up_to"
)  # fmt: skip
EventsByKind = dict[str, list[tuple[int, Event]]]


def altered_run(
    connection: psycopg.Connection, scope: str, run: Reconciliation | None
) -> Iterator[str]:
    """Report where a run, and what is signed or decided with it, differs from the trail.

    Compared are the run, its breaks and the decisions about them, the runs of its scope from there
    on (None: all that the trail has of the scope), all signatures, and who may decide and sign, up
    to which amount. The chain is not verified. For people who see only a part of the ledger, this
    leaves out the signatures of others.
    """
    if rules := altered_rules(connection):
        yield rules
    with connection.transaction():
        by_kind = _events_of(connection, run)
        saved = {
            number: one
            for number, one in _by_id(by_kind, [SAVED]).items()
            if one[1].get("scope_hash") == scope_hash(scope)
        }
        named = "event_id = ANY(%s) OR id = %s", [[*saved], run.id if run else 0]
        for row in _rows(connection, "reconciliation", named):
            position, detail = saved.pop(row["event_id"], (None, {}))
            if run is not None and row["id"] == run.id:
                yield from _of_run(connection, row, position, detail)
        yield from _missing(saved, "reconciliation")
        yield from _decisions(connection, by_kind, run.id if run else 0)
        yield from _signatures(connection, by_kind)
        yield from _rights(connection, by_kind)


def _events_of(connection: psycopg.Connection, run: Reconciliation | None) -> EventsByKind:
    """Events of signatures and, from a run's event on, of runs and of decisions about this run."""
    events = linked_events(
        connection,
        "e.what = ANY(%s) OR (e.what = ANY(%s) AND e.id >= %s)",
        [[*SIGNED.values()], [SAVED, *DECIDED.values()], run.event_id if run else 0],
    )
    # People who see a part also see their own events, even under runs that they do not see.
    is_part = is_shown_part(connection)
    seen = one_value(connection.execute(f"SELECT {SCHEMA}.seen_runs(true)")) if is_part else ()
    by_kind: EventsByKind = {}
    for position, event in events:
        about = read_detail(event.detail).get("reconciliation")
        if event.what in SIGNED.values():
            is_meant = not is_part or about in seen
        else:
            is_meant = event.what == SAVED or (run is not None and about == run.id)
        if is_meant:
            by_kind.setdefault(event.what, []).append((position, event))
    return by_kind


def _decisions(
    connection: psycopg.Connection, by_kind: EventsByKind, run: int | None = None
) -> Iterator[str]:
    """Check decisions; `run` limits this to decisions about its breaks."""
    of_run = {"run": run}
    events = _by_id(by_kind, DECIDED.values())
    without_rows = {**events}
    with streamed(connection, "decisions", tuple_row) as cursor:
        cursor.execute(
            f"SELECT event_id, {', '.join(_DECIDED)} FROM decision WHERE {_OF_RUN} "
            'ORDER BY event_id, break_id COLLATE "C"',
            of_run,
        )
        for number, rows in groupby(cursor, key=itemgetter(0)):
            position, detail = without_rows.pop(number, (None, {}))
            content = decisions_hash(row[1:] for row in rows)
            if content != detail.get("sha256"):
                yield f"decisions of event {number} are not what {_link(position)} says of them"
    yield from _missing(without_rows, "decisions")
    for (number,) in connection.execute(_OUT_OF_ORDER, of_run).fetchall():
        position, _ = events.get(number, (None, {}))
        yield (
            f"decisions of event {number} ({_link(position)}) have numbers of another time: those "
            "taken before it, or the runs that acted on it, are not as the trail has them"
        )


def _signatures(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    events = _by_id(by_kind, SIGNED.values())
    names = ("reconciliation_id", "role", "report_hash", "by", "comment")
    for row in _rows(connection, "signature"):
        position, detail = events.pop(row["event_id"], (None, {}))
        stated = [detail.get(name) for name in ("reconciliation", *names[1:3], "by", "reason")]
        if [row[name] for name in names] != stated:
            yield (
                f"the signature {row['role']!r} under reconciliation {row['reconciliation_id']} "
                f"is not what {_link(position)} says of it"
            )
    yield from _missing(events, "signature")


def _runs(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    events = _by_id(by_kind, [SAVED])
    chains: dict[int | None, str | None] = {None: None}
    followed: dict[tuple[str, int | None], int] = {}
    for row in _rows(connection, "reconciliation"):
        position, detail = events.pop(row["event_id"], (None, {}))
        number = row["id"]
        yield from _of_run(connection, row, position, detail)
        chains[number] = row["chain_hash"]
        if row["chain_hash"] != chain_hash(chains.get(row["previous_id"]), row["report_hash"]):
            yield f"reconciliation {number} does not follow reconciliation {row['previous_id']}"
        place = row["scope_hash"], row["previous_id"]
        if other := followed.get(place):
            behind = f"behind reconciliation {place[1]}" if place[1] else "the first of its scope"
            yield f"reconciliation {number} is {behind}, and so is reconciliation {other}"
        followed[place] = number
    yield from _missing(events, "reconciliation")


def _of_run(
    connection: psycopg.Connection,
    row: Mapping[str, Any],
    position: int | None,
    detail: Mapping[str, Any],
) -> Iterator[str]:
    """Report where a run or its breaks differ from the run's event."""
    number, rules = row["id"], row["rules_text"]
    if any(row[name] != detail.get(name) for name in RUN_FACTS):
        yield f"reconciliation {number} is not what {_link(position)} says of it"
    if scope_hash(row["scope"]) != row["scope_hash"]:
        yield f"the scope of reconciliation {number} is not the one that {_link(position)} says"
    if row["version"] != detail.get("version"):
        yield f"reconciliation {number} is not of the version that {_link(position)} says"
    if rules is None and detail.get("version") is not None:
        yield f"the text of the rules of reconciliation {number} was removed"
    if rules is not None and hashlib.sha256(rules.encode()).hexdigest() != row["rules_hash"]:
        yield f"the rules of reconciliation {number} are not those it was judged by"
    if breaks_hash(connection, number) != detail.get("breaks_hash"):
        yield f"the breaks of reconciliation {number} are not what {_link(position)} says"


def _batches(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    """Check that each batch is in the state to which its last event brought it."""
    last: dict[int | None, tuple[int, Event]] = {}
    for what in _CAME_TO:
        for position, event in by_kind.get(what, []):
            if event.batch_id not in last or last[event.batch_id][1].id < event.id:
                last[event.batch_id] = (position, event)
    for number, state, because in connection.execute(
        "SELECT id, state, held_because FROM batch ORDER BY id"
    ).fetchall():
        found = last.get(number)
        if found is None or found[1].what != PREFIX + state:
            words = f"{_link(found[0])} says {found[1].what!r}" if found else "no event says so"
            yield f"batch {number} is {state}, and {words}: it was changed outside of the program"
        elif state == State.HELD and found[1].reason != because:
            yield f"batch {number} is held for another reason than {_link(found[0])} says"
        elif state != State.HELD and because is not None:
            yield f"batch {number} is {state}, and held_because says why it is held (table batch)"


def _rights(connection: psycopg.Connection, _: EventsByKind) -> Iterator[str]:
    """Check rights, logins and limits for two people against the last events about them."""
    for (fault,) in connection.execute(f"SELECT fault FROM {SCHEMA}.altered_rights()").fetchall():
        yield fault


def _subscriptions(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    """Check who gets which reports at which address against the last event about each."""
    stated: dict[tuple[str, str], tuple[int, tuple[str, str, int] | None]] = {}
    for position, event in in_order(by_kind, (SUBSCRIBED, UNSUBSCRIBED)):
        detail = read_detail(event.detail)
        name, scope = str(detail.get("name")), str(detail.get("scope"))
        kept = (scope_hash(scope), str(detail.get("address")), event.id)
        stated[name, scope] = position, kept if event.what == SUBSCRIBED else None
    there = {
        (row["account"], row["scope"]): (row["scope_hash"], row["address"], row["event_id"])
        for row in _rows(connection, "subscription")
    }
    for name, scope in sorted({*stated, *there}):
        last, wanted = stated.get((name, scope), (None, None))
        if there.get((name, scope)) != wanted:
            of = f"the subscription of {name!r} to the scope {scope!r}"
            yield f"{of} is not what {_link(last)} says of it"


def _jobs(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    """Check what was asked for, by whom and with what result against the last events about it."""
    events = _by_id(by_kind, [JOB_ORDERED])
    ends = _ends_of_jobs(by_kind)
    # Since the first such event, each job that ends has one; earlier versions wrote none.
    since = min((position for position, _ in by_kind.get(JOB_ENDED, [])), default=None)
    refused = {str(read_detail(one.detail).get("job")) for _, one in by_kind.get(JOB_REFUSED, [])}
    for number, event, state, fact, end in connection.execute(
        f"SELECT j.id, j.event_id, j.state, {job_hash('j')}, {job_hash('j', JOB_END)} FROM job j "
        "ORDER BY j.id"
    ).fetchall():
        position, detail = events.pop(event, (None, {}))
        if (number, fact) != (detail.get("job"), detail.get("sha256")):
            yield f"job {number} is not what {_link(position)} says of it"
        has_event = str(number) in ends or str(number) in refused
        if not has_event and state == JobState.ENDED and since and since < (position or 0):
            yield f"job {number} has ended, and no event says so"
        # In earlier versions, the event of a refusal had no hash either.
        position, hashed = ends.pop(str(number), (None, end))
        if end != hashed:
            yield f"what came of job {number} is not what {_link(position)} says of it"
    yield from _missing(events, "job")
    for job, (position, _) in ends.items():
        yield f"{_link(position)} says what came of job {job}, which is not there"


def _ends_of_jobs(by_kind: EventsByKind) -> dict[str, tuple[int, object]]:
    """For each job not ordered again since, the link of its last end, and the hash that it has."""
    ends: dict[str, tuple[int, object]] = {}
    for position, event in in_order(by_kind, (JOB_ENDED, JOB_REFUSED, JOB_AGAIN)):
        detail = read_detail(event.detail)
        job = str(detail.get("job"))
        ends.pop(job, None)
        if event.what == JOB_ENDED or (event.what == JOB_REFUSED and "sha256" in detail):
            ends[job] = position, detail.get("sha256")
    return ends


def _restores(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    """Check from where pushes went on after a restore against the event that declared it."""
    events = _by_id(by_kind, [RESTORED])
    for row in _rows(connection, "push_restore"):
        position, detail = events.pop(row["event_id"], (None, {}))
        lost = hashlib.sha256(row["lost"].encode()).hexdigest()
        stated = [detail.get(name) for name in ("unsent", "last_batch")]
        # Events of an earlier version do not say which contents were lost.
        if [row["unsent"], row["last_batch"]] != stated or detail.get(LOST_HASH, lost) != lost:
            yield f"the restore of event {row['event_id']} is not what {_link(position)} says of it"
    hashed = {number: one for number, one in events.items() if LOST_HASH in one[1]}
    yield from _missing(hashed, "restore")


def _epochs(connection: psycopg.Connection, by_kind: EventsByKind) -> Iterator[str]:
    """Check from which database, home and marker rows were sent against the events about them."""
    for what, table, hashed in (
        (EPOCH, "push_epoch", epoch_hash("p")),
        (SEALED, "push_seal", seal_hash("p")),
    ):
        stated = {
            number: (position, detail.get("sha256"))
            for position, event in by_kind.get(what, [])
            if isinstance(number := (detail := read_detail(event.detail)).get("epoch"), int)
        }
        # Earlier versions wrote no such events; the first batch has that of the first epoch.
        since = min(stated, default=None)
        there: dict[int, str] = dict(
            connection.execute(
                f"SELECT p.number, {hashed} FROM {table} p WHERE p.number >= %s", [since]
            ).fetchall()
        )
        for number in sorted({*stated, *there}):
            position, found = stated.get(number, (None, None))
            if there.get(number) != found:
                yield f"epoch {number} of pushes (table {table}) is not what {_link(position)} says"


def in_order(by_kind: EventsByKind, kinds: Collection[str]) -> list[tuple[int, Event]]:
    return sorted((one for what in kinds for one in by_kind.get(what, [])), key=itemgetter(0))


def _by_id(
    by_kind: EventsByKind, kinds: Collection[str]
) -> dict[int, tuple[int | None, dict[str, Any]]]:
    return {
        event.id: (position, read_detail(event.detail) | {"by": event.by, "reason": event.reason})
        for what in kinds
        for position, event in by_kind.get(what, [])
    }


def _rows(
    connection: psycopg.Connection,
    table: str,
    where: tuple[str, Sequence[object]] = ("TRUE", ()),
) -> list[dict[str, Any]]:
    condition, parameters = where
    statement = f"SELECT * FROM {table} WHERE {condition} ORDER BY event_id"
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, parameters).fetchall()


def _missing(events: dict[int, tuple[int | None, Any]], what: str) -> Iterator[str]:
    for number, (position, _) in sorted(events.items()):
        yield f"the {what} that event {number} ({_link(position)}) tells of was removed"


def _link(position: int | None) -> str:
    return "any event" if position is None else f"link {position}"


CHECKS = (
    _decisions, _signatures, _runs, _batches, _rights, _subscriptions, _jobs, _restores, _epochs
)  # fmt: skip
# The numbers of decisions tell which is the last about a break, and which a run has acted on.
# Deciding and reconciling both hold the scope, so the numbers ascend as the events do.
_OF_RUN = "(%(run)s::int IS NULL OR reconciliation_id = %(run)s)"
_OUT_OF_ORDER = f"""
    SELECT d.event_id FROM (
        SELECT reconciliation_id, event_id, min(id) AS low, max(id) AS high,
            lag(max(id)) OVER (PARTITION BY reconciliation_id ORDER BY event_id) AS before
        FROM decision WHERE {_OF_RUN} GROUP BY 1, 2) d
    JOIN reconciliation r ON r.id = d.reconciliation_id
    LEFT JOIN reconciliation n ON n.previous_id = r.id
    WHERE d.low <= d.before OR d.low <= r.decided_through
        OR (d.event_id < n.event_id AND d.high > n.decided_through)
        OR (d.event_id > n.event_id AND d.low <= n.decided_through)
    ORDER BY 1"""
_CAME_TO = {PREFIX + state for state in State}
KEPT = {
    *EVIDENCE,
    *DECIDED.values(),
    *SIGNED.values(),
    SAVED,
    *_CAME_TO,
    SUBSCRIBED,
    UNSUBSCRIBED,
    EPOCH,
    SEALED,
    JOB_ORDERED,
    JOB_AGAIN,
    JOB_ENDED,
    JOB_REFUSED,
    RESTORED,
}
"""Events that tell of rows in other tables."""
