"""Windows of sends: claimed in a commit before their first byte leaves, answered in another."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import psycopg

from connectors.postgres.push.lane import (
    CarriedOut,
    Lane,
    asking_columns,
    lock_sends,
    unanswered_error,
)
from connectors.postgres.push.plan import CURRENT, TO_SEND
from connectors.postgres.query import one_value
from connectors.service.contract import Answer, Request, Verdict
from schemas.derived.nested import sound_text
from schemas.derived.push_keys import ASKING, AskingRow, push_key
from schemas.derived.sql_names import staged_name
from schemas.derived.views import joined, json_expression, quoted
from schemas.operations import Operation
from schemas.reasons import REASONS

FAR_APART = 2_000
"""Gap in record numbers from which on neighbouring rows are read separately."""
PLAIN_STATUS = 200
_CODES = {
    Verdict.IN_DOUBT: "InDoubt",
    Verdict.DIFFERS: "EchoDiffers",
    Verdict.REFUSED: "Refused",
}
"""Error codes for rows that are not settled and for which the service gave no reason."""

_OWN_TO_SEND = f"""x.batch_id = %(batch)s AND x.operation = %(operation)s AND NOT x.twin
    AND {TO_SEND}"""


def count_to_send(lane: Lane) -> int:
    """How many rows of the batch this run may send."""
    asked = f"SELECT count(*) FROM send x WHERE {_OWN_TO_SEND}"
    return int(one_value(lane.lease.connection.execute(asked, _lane_values(lane))))


class OutgoingRow(NamedTuple):
    """One row that may be sent."""

    request: Request
    current: bool
    """False if a later batch has written the record since, so that this is an older body."""
    changed_at: datetime
    """When the row was last changed, as of reading it."""


def next_transaction(connection: psycopg.Connection) -> str:
    """The number of the server's next transaction that changes something."""
    asked = "SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text"
    return str(one_value(connection.execute(asked)))


def next_rows(
    lane: Lane, after: int, most: int, answered_before: str | None = None
) -> list[OutgoingRow]:
    """Up to `most` rows to send after a number, in push order.

    These have no answer yet. With `answered_before`, the number of a transaction, they are rows
    that were answered before it and are to be sent all the same.
    """
    connection, values = lane.lease.connection, _lane_values(lane)
    if answered_before is None:
        asked = "x.status IS NULL"
    else:
        # Compared by transaction, since the clock may have been set back meanwhile.
        asked = """x.status IS NOT NULL
            AND age(x.xmin) NOT BETWEEN 0 AND age(%(answered_before)s::xid)"""
    places = connection.execute(
        f"SELECT x.number, x.extract_id, x.record_number FROM send x WHERE {_OWN_TO_SEND} "
        f"AND {asked} AND x.number > %(after)s ORDER BY x.number LIMIT %(most)s",
        values | {"after": after, "most": most, "answered_before": answered_before},
    ).fetchall()
    wanted = {number for number, *_ in places}
    read = (row for run in _runs([_Place(*place) for place in places]) for row in _read(lane, run))
    return [row for row in read if row.request.number in wanted]


class _Place(NamedTuple):
    number: int
    extract_id: int
    record_number: int


def _runs(places: Sequence[_Place]) -> Iterator[Sequence[_Place]]:
    """Group neighbours of one extract, so that each group is read as one range of staged rows."""
    start = 0
    for end, (one, next_one) in enumerate(pairwise(places), 1):
        is_far = next_one.record_number - one.record_number > FAR_APART
        if is_far or one.extract_id != next_one.extract_id:
            yield places[start:end]
            start = end
    if places:
        yield places[start:]


def _read(lane: Lane, run: Sequence[_Place]) -> Iterator[OutgoingRow]:
    table = lane.operation.table
    key = ", ".join(f"s.{quoted(name)}" for name in table.identity)
    rows = lane.lease.connection.execute(
        f"""SELECT x.number, {asking_columns(table)},
            {json_expression(table, "s")},
            {CURRENT}, x.state = 'in_doubt', x.status, x.changed_at, {key}
        FROM send x
        JOIN batch b ON b.id = x.batch_id
        JOIN extract e ON e.id = x.extract_id
        JOIN {staged_name(table)} s
            ON s.extract_id = x.extract_id AND s.record_number = x.record_number
        LEFT JOIN {table.name} t ON {joined(table)}
        WHERE {_OWN_TO_SEND} AND x.number BETWEEN %(first)s AND %(last)s
            AND s.extract_id = %(extract)s
            AND s.record_number BETWEEN %(first_record)s AND %(last_record)s
        ORDER BY x.number""",
        _lane_values(lane)
        | {
            "first": run[0].number,
            "last": run[-1].number,
            "extract": run[0].extract_id,
            "first_record": run[0].record_number,
            "last_record": run[-1].record_number,
        },
    )
    for number, *facts in rows:
        jsondata, current, in_doubt, status, changed_at, *identity = facts[ASKING:]
        asking = AskingRow(*facts[:ASKING])
        name = push_key(lane.operation, jsondata, tuple(identity), asking)
        request = Request(number, lane.operation, jsondata, name, in_doubt, status)
        yield OutgoingRow(request, current, changed_at)


def supersede(lane: Lane, rows: Sequence[OutgoingRow]) -> None:
    """Mark rows as superseded whose record a later batch has written; only the newer body is sent.

    A row changed since it was read is left alone: an undo may have given it the record back. A row
    in doubt stays in doubt but is no longer sent again automatically, so nothing waits for it.
    """
    lock_sends(lane.lease.connection)
    lane.lease.connection.execute(
        "UPDATE send x SET state = replace(x.state, 'unsent', 'superseded'), "
        "changed_at = CASE x.state WHEN 'unsent' THEN now() ELSE x.changed_at END, "
        "own_key = CASE x.state WHEN 'unsent' THEN x.own_key ELSE FALSE END "
        "FROM unnest(%(numbers)s::bigint[], %(read)s::timestamptz[]) AS old(number, changed_at) "
        "WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s "
        "AND x.number = old.number AND x.state IN ('unsent', 'in_doubt') "
        "AND x.changed_at = old.changed_at",
        _lane_values(lane)
        | {
            "numbers": [row.request.number for row in rows],
            "read": [row.changed_at for row in rows],
        },
    )


def claim(lane: Lane, window: Sequence[Request], *, own_key: bool = False) -> Sequence[Request]:
    """Mark the rows of a window as being sent; commit this before the first byte leaves.

    Gives the rows that may still be sent, since a row may have been settled after it was read.
    `own_key` says that each row is sent in a request of its own.
    """
    rows = lane.lease.connection.execute(
        "UPDATE send x SET state = 'sending', attempts = attempts + 1, status = NULL, "
        "error_data = NULL, echo = NULL, decision = NULL, decision_number = NULL, "
        "changed_at = now(), "
        "own_key = %(own_key)s AND (attempts = 0 OR coalesce(own_key, FALSE)) "
        f"WHERE {_OWN_TO_SEND} AND x.number = ANY(%(numbers)s) RETURNING x.number",
        _lane_values(lane)
        | {"numbers": [request.number for request in window], "own_key": own_key},
    )
    claimed = {number for (number,) in rows}
    return [request for request in window if request.number in claimed]


def give_back(lane: Lane, window: Sequence[Request]) -> None:
    """Take back the claim of a window of which no byte has left or will leave."""
    lane.lease.connection.execute(
        "UPDATE send SET attempts = attempts - 1, changed_at = now(), "
        "state = CASE WHEN number = ANY(%(doubted)s) THEN 'in_doubt' ELSE 'unsent' END, "
        "error_data = CASE WHEN number = ANY(%(doubted)s) THEN %(error)s END "
        "WHERE batch_id = %(batch)s AND operation = %(operation)s "
        "AND number = ANY(%(numbers)s) AND state = 'sending'",
        _lane_values(lane)
        | {
            "numbers": [request.number for request in window],
            "doubted": [request.number for request in window if request.in_doubt],
            "error": unanswered_error(lane.operation),
        },
    )


def record_answers(lane: Lane, answers: Sequence[Answer]) -> None:
    """Record the answers: plain acknowledgements all together, others with their details."""
    others = [answer for answer in answers if not _plain(answer)]
    values = _lane_values(lane)
    if others:
        lane.lease.connection.execute(
            """UPDATE send x SET state = a.state, attempts = x.attempts - 1 + a.attempts,
                status = a.status, error_data = a.error_data, echo = a.echo,
                service_id = coalesce(a.service_id, x.service_id), changed_at = now(),
                carried_out = coalesce(a.carried_out, x.carried_out)
            FROM unnest(%(numbers)s::bigint[], %(states)s::text[], %(attempts)s::int[],
                %(statuses)s::int[], %(errors)s::text[], %(echoes)s::text[], %(ids)s::text[],
                %(carried_out)s::text[]) AS a(number, state, attempts, status, error_data, echo,
                service_id, carried_out)
            WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s
                AND x.number = a.number AND x.state = 'sending'""",
            values
            | {
                "numbers": [answer.number for answer in others],
                "states": [_state(lane.operation, answer) for answer in others],
                "attempts": [answer.attempts for answer in others],
                "statuses": [answer.status for answer in others],
                "errors": [_error_text(answer) for answer in others],
                "echoes": [_sound(answer.echo) for answer in others],
                "ids": [_sound(answer.service_id) for answer in others],
                "carried_out": [_carried_out(answer) for answer in others],
            },
        )
    plain = [answer.number for answer in answers if _plain(answer)]
    if plain:
        lane.lease.connection.execute(
            f"UPDATE send SET state = 'acknowledged', status = {PLAIN_STATUS}, "
            f"changed_at = now(), carried_out = '{CarriedOut.YES}' "
            "WHERE batch_id = %(batch)s AND operation = %(operation)s "
            "AND number = ANY(%(numbers)s) AND state = 'sending'",
            values | {"numbers": plain},
        )


def _plain(answer: Answer) -> bool:
    return (
        answer.verdict is Verdict.ACKNOWLEDGED
        and answer.attempts == 1
        and answer.status == PLAIN_STATUS
        and answer.service_id is None
        and not answer.errors
    )


def _state(operation: Operation, answer: Answer) -> str:
    """The state after an answer; an unanswered PUT is sent again, without asking the service."""
    if answer.verdict is Verdict.IN_DOUBT and operation.keyed:
        return Verdict.UNSENT.value
    return answer.verdict.value


def _carried_out(answer: Answer) -> CarriedOut | None:
    """What an answer says about the effect of its attempts; None if nothing new."""
    if answer.verdict in (Verdict.ACKNOWLEDGED, Verdict.DIFFERS):
        return CarriedOut.YES
    lost = answer.in_doubt or answer.verdict is Verdict.IN_DOUBT
    return CarriedOut.MAYBE if lost else None


def _error_text(answer: Answer) -> str | None:
    if answer.errors:
        return _sound(json.dumps(answer.errors, ensure_ascii=False))
    code = _CODES.get(answer.verdict)
    if code is None:
        return None
    value = f"HTTP {answer.status}" if answer.status else "no answer"
    message = REASONS[code].message(value=value)
    meta = {"stage": "push", "value": value}
    error = {"ErrorCode": code, "FieldName": "", "Message": message, "Meta": meta}
    return json.dumps([error])


def _sound(text: str | None) -> str | None:
    """Text of the service in a form that PostgreSQL can hold and parse as JSON."""
    return None if text is None else sound_text(text).replace("\\u0000", "\\ufffd")


def _lane_values(lane: Lane) -> dict[str, object]:
    return {
        "batch": lane.lease.batch_id,
        "operation": lane.operation.name,
        "repeatable": lane.repeatable,
    }
