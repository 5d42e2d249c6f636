"""What people decide about sends that are not settled; a decision is no answer of the service.

Another decision may replace it until the row has been sent because of it. The answer, and what is
known of the attempts, stay beside it; if the row is sent again, they move to `earlier_send`. Rows
to decide about are listed page by page, each with its evidence.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from connectors.errors import BatchStateError
from connectors.postgres.batches.corrections import reads_staged
from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.batches.record_rows import RowPlace, delivered_row
from connectors.postgres.push.changed_records import part_decided
from connectors.postgres.push.earlier import (
    NUMBER,
    SAYS,
    count_earlier,
    keep_earlier,
    next_decision,
)
from connectors.postgres.push.lane import lock_sends
from connectors.postgres.push.plan import CURRENT, FOLLOWERS, sent_by_another
from connectors.postgres.push.sends import (
    Selection,
    SendDecision,
    SendState,
    Sent,
    errors_in,
    list_sends,
    where_chosen,
)
from connectors.postgres.query import one_value
from connectors.postgres.trail import committed, events_of_run
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import joined, of_batch
from schemas.field import Table
from schemas.guards.batch_states import RESOLVE
from schemas.operations import BY_NAME

MOST_NAMED = 1_000
"""Rows of a decision that its event in the trail lists; further ones only refer to the event."""

_OPEN = (SendState.IN_DOUBT, SendState.DIFFERS)
_SETTLES: dict[SendDecision, tuple[SendState, ...]] = {
    SendDecision.CONFIRM: _OPEN,
    SendDecision.RESEND: (*_OPEN, SendState.REFUSED, SendState.ABANDONED),
    SendDecision.ABANDON: (*_OPEN, SendState.REFUSED, SendState.UNSENT),
}
_TAKES_BACK: dict[SendDecision, tuple[SendState, ...]] = {
    SendDecision.CONFIRM: (SendState.ABANDONED, SendState.UNSENT),
    SendDecision.RESEND: (SendState.ACKNOWLEDGED,),
    SendDecision.ABANDON: (SendState.ACKNOWLEDGED,),
}
"""States that a decision covers only if the rows or the states are named, not by operation."""
DECIDABLE = {one: (*_SETTLES[one], *_TAKES_BACK[one]) for one in SendDecision}
"""The states that each decision covers, for rows that are `UNANSWERED`."""
UNANSWERED = f"(x.state <> 'acknowledged' OR x.decision = '{SendDecision.CONFIRM}')"
"""SQL that leaves out what the service acknowledged; only decisions may be taken back."""
_MAY_BE_THERE = f"(x.state IN ({listed(_OPEN)}) OR x.carried_out IS NOT NULL)"
"""SQL for rows that may be confirmed."""
_FORGETS = f"({SAYS} AND (%(to)s = '{SendState.UNSENT}' OR x.decision IS NOT NULL))"
"""SQL for whether a decision overwrites something that is recorded nowhere else."""
_LEADS_TO = {
    SendDecision.CONFIRM: SendState.ACKNOWLEDGED,
    SendDecision.RESEND: SendState.UNSENT,
    SendDecision.ABANDON: SendState.ABANDONED,
}


def decide(
    connection: psycopg.Connection, chosen: Selection, decision: SendDecision
) -> dict[str, Any]:
    """Settle the chosen sends, inside the open transaction; gives the detail for the audit trail.

    Only rows in states that the decision covers are changed. The service's answer stays beside the
    decision as evidence; if a row is sent again, or had a decision before, that is kept as an
    earlier send. `decision` and its number tell whose word a state is. A POST that is sent again
    keeps its push key, a PUT gets another. A row that was decided upon no longer follows another
    row, except a POST whose content another row is to send too, since one of them is enough.
    """
    lock_sends(connection)
    leads_on = DECIDABLE if chosen.states or chosen.rows is not None else _SETTLES
    number = next_decision(connection, chosen.batch_id)
    where, values = where_chosen(chosen)
    is_sent = f"(b.extract_id, b.record_number) IN ({sent_by_another(where)})"
    rows = connection.execute(
        f"""WITH before AS (
            SELECT x.*, {_FORGETS} AS forgets FROM send x
            WHERE {where} AND x.state = ANY(%(from)s) AND {UNANSWERED}
                AND (%(to)s <> '{SendState.ACKNOWLEDGED}' OR {_MAY_BE_THERE})
            FOR UPDATE
        ), kept AS (
            {keep_earlier("FROM before x WHERE x.forgets", "%(decision)s", "%(number)s")}
        )
        UPDATE send x SET state = %(to)s, decision = %(decision)s, changed_at = now(),
            decision_number = %(number)s,
            {count_earlier("b.forgets")},
            epoch = x.epoch + (%(to)s = 'unsent')::int,
            twin = %(to)s = 'unsent' AND {is_sent},
            carried_out = coalesce(x.carried_out, CASE x.state WHEN 'differs' THEN 'yes'
                WHEN 'in_doubt' THEN 'maybe' END),
            error_data = CASE WHEN %(to)s <> 'unsent' THEN x.error_data END
        FROM before b WHERE b.extract_id = x.extract_id AND b.record_number = x.record_number
        RETURNING b.operation, b.state, b.extract_id, b.record_number""",
        values
        | {
            "from": [state.value for state in leads_on[decision]],
            "to": _LEADS_TO[decision],
            "decision": decision,
            "number": number,
        },
    ).fetchall()
    counts: dict[str, Counter[str]] = {}
    for operation, state, *_ in rows:
        counts.setdefault(operation, Counter())[state] += 1
    for operation in counts:
        part_decided(connection, table_of(operation, chosen.batch_id), chosen.batch_id, number)
    named = sorted((extract_id, number) for *_, extract_id, number in rows)[:MOST_NAMED]
    return {
        "decision": decision.value,
        NUMBER: number,
        "operation": chosen.operation,
        "states": list(chosen.states),
        "rows": len(rows),
        "counts": counts,
        "overwritten": sum(
            _overwritten(connection, chosen.batch_id, name, number)
            for name in (counts if decision is SendDecision.RESEND else ())
        ),
        "named": [f"{extract_id}:{number}" for extract_id, number in named],
    }


def table_of(operation: str, batch_id: int) -> Table:
    """The record kind that an operation sends; raises BatchStateError if there is none."""
    if operation not in BY_NAME:
        raise BatchStateError(
            f"Rows of batch {batch_id} are kept as sends of {operation}, an operation that no "
            "record kind has any more: nothing can be decided about them. `recon row` shows what "
            "became of each; look at the service for what it has. Nothing was changed."
        )
    return BY_NAME[operation].table


def settled_by(
    connection: psycopg.Connection, chosen: Selection, decision: SendDecision, number: int
) -> set[tuple[int, int]]:
    """Extract and record number of the chosen rows that already are as the decision wants them."""
    where, values = where_chosen(chosen)
    rows = connection.execute(
        f"SELECT x.extract_id, x.record_number FROM send x WHERE {where} "
        "AND (x.decision_number = %(number)s OR x.state = %(to)s)",
        values | {"number": number, "to": _LEADS_TO[decision]},
    )
    return set(rows.fetchall())


def followers(connection: psycopg.Connection, batch_id: int, number: int) -> list[int]:
    """Other batches with a row that ended like one whose confirmation a decision took back.

    The decision's event does not name them, since its readers may not know of these batches.
    """
    rows = connection.execute(
        f"""SELECT DISTINCT x.batch_id FROM send o JOIN {FOLLOWERS}
        WHERE o.batch_id = %(batch)s AND o.decision_number = %(number)s
            AND x.batch_id <> o.batch_id ORDER BY 1""",
        {"batch": batch_id, "number": number},
    )
    return [one for (one,) in rows]


def _overwritten(connection: psycopg.Connection, batch_id: int, operation: str, number: int) -> int:
    """How many rows of a decision to resend a later batch has overwritten; these are not sent."""
    table = table_of(operation, batch_id)
    found = connection.execute(
        f"""SELECT count(*) FROM send x JOIN {staged_name(table)} s
            ON s.extract_id = x.extract_id AND s.record_number = x.record_number
        LEFT JOIN {table.name} t ON {joined(table)}
        WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND x.state = 'unsent'
            AND x.decision_number = %(number)s AND {of_batch("s")} AND NOT {CURRENT}""",
        batch_span(connection, batch_id) | {"operation": operation, "number": number},
    )
    return int(one_value(found))


def decided_by(
    connection: psycopg.Connection,
    batch_id: int,
    tried: Mapping[int, dict[str, Any]],
    run: str | None,
) -> dict[str, Any] | None:
    """What was committed about a batch by one of these events, or by a run; None if nothing was.

    `tried` maps each event to its detail.
    """
    event = committed(connection, batch_id, RESOLVE, tried)
    if event is not None:
        return tried[event]
    events = events_of_run(connection, RESOLVE, run) if run else []
    return next((dict(detail) for batch, detail in events if batch == batch_id), None)


def count_decidable(
    connection: psycopg.Connection, batch_id: int, operation: str, state: str
) -> dict[SendDecision, int]:
    """How many rows of an operation in a state each decision covers, where it covers any."""
    ((every, may_be_there),) = connection.execute(
        f"SELECT count(*), count(*) FILTER (WHERE {_MAY_BE_THERE}) FROM send x "
        f"WHERE batch_id = %s AND operation = %s AND state = %s AND {UNANSWERED}",
        [batch_id, operation, state],
    )
    counts = {
        one: may_be_there if one is SendDecision.CONFIRM else every
        for one, states in DECIDABLE.items()
        if state in states
    }
    return {one: count for one, count in counts.items() if count}


_UNSETTLED = tuple(dict.fromkeys(state for states in DECIDABLE.values() for state in states))


class SendPlace(NamedTuple):
    """A send, as far as every role may read it."""

    operation: str
    number: int
    """Its place in the push order of the operation."""
    extract_id: int
    record_number: int
    state: str
    attempts: int
    status: int | None
    service_id: str | None
    error_data: str | None
    decision: str | None
    changed_at: datetime

    @property
    def errors(self) -> list[dict[str, Any]]:
        return errors_in(self.error_data)


@dataclass(frozen=True, slots=True)
class SendToSettle:
    """A row to decide about, with what is known of it."""

    at: SendPlace
    row: Mapping[str, Any]
    """The row as it was delivered, from `delivered_row`."""
    sent: Sent | None
    """What was sent and answered.

    None if the role may not read it, or the row's record kind no longer has that operation.
    """


def count_unsettled(connection: psycopg.Connection, batch_id: int) -> dict[tuple[str, str], int]:
    """How many rows a decision can be made about, by operation and state.

    Operations that no record kind has any more come last, for people to look at.
    """
    rows = connection.execute(
        "SELECT operation, state, count(*) FROM send x WHERE batch_id = %s AND state = ANY(%s) "
        f"AND {UNANSWERED} GROUP BY 1, 2",
        [batch_id, list(_UNSETTLED)],
    )
    counted = {(operation, state): count for operation, state, count in rows}
    places = {name: place for place, name in enumerate(BY_NAME)}
    last = len(places)
    return dict(
        sorted(
            counted.items(),
            key=lambda one: (places.get(one[0][0], last), one[0][0], one[0][1] != "in_doubt"),
        )
    )


def list_unsettled(
    connection: psycopg.Connection,
    batch_id: int,
    operation: str,
    state: str,
    *,
    after: int,
    most: int,
) -> list[SendToSettle]:
    """The rows of an operation in a state after a number, in push order, at most `most`."""
    with connection.cursor(row_factory=class_row(SendPlace)) as cursor:
        found = cursor.execute(
            "SELECT operation, number, extract_id, record_number, state, attempts, status, "
            "service_id, error_data, decision, changed_at FROM send x "
            "WHERE batch_id = %s AND operation = %s AND state = %s AND number > %s "
            f"AND {UNANSWERED} ORDER BY number LIMIT %s",
            [batch_id, operation, state, after, most],
        ).fetchall()
    places = tuple(RowPlace(one.extract_id, one.record_number) for one in found)
    sent: list[Sent | None] = []
    if found and reads_staged(connection):
        sent = [*list_sends(connection, Selection(batch_id, operation, (state,), places))]
    # If the operation belongs to another record kind by now, none of these rows is listed.
    sent = sent or [None] * len(found)
    return [
        SendToSettle(at, delivered_row(connection, place) or {}, one)
        for at, place, one in zip(found, places, sent, strict=True)
    ]
