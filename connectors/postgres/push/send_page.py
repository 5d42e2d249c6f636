"""Rows of a batch that somebody decides about, page by page, each with its evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from connectors.postgres.push.decisions import DECIDABLE, UNANSWERED
from connectors.postgres.push.sends import Selection, Sent, errors_in, list_sends
from connectors.postgres.record_rows import RowPlace, delivered_row, reads_delivered_rows
from schemas.operations import PUSHES

_UNSETTLED = tuple(dict.fromkeys(state for states in DECIDABLE.values() for state in states))


class SendPlace(NamedTuple):
    """A send by what every role reads of it."""

    operation: str
    number: int
    """Its place in the order of the operation."""
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
        """Why it is not settled."""
        return errors_in(self.error_data)


@dataclass(frozen=True, slots=True)
class SendToSettle:
    """One row, with what is known of it."""

    at: SendPlace
    row: Mapping[str, Any]
    """As it was delivered, by `delivered_row`."""
    sent: Sent | None
    """What was sent and answered; None where the role may not read it."""


def count_unsettled(connection: psycopg.Connection, batch_id: int) -> dict[tuple[str, str], int]:
    """Operation and state -> rows that a decision can be taken about."""
    rows = connection.execute(
        "SELECT operation, state, count(*) FROM send x WHERE batch_id = %s AND state = ANY(%s) "
        f"AND {UNANSWERED} GROUP BY 1, 2",
        [batch_id, list(_UNSETTLED)],
    )
    counted = {(operation, state): count for operation, state, count in rows}
    order = [one.name for one in PUSHES.values()]
    return dict(
        sorted(counted.items(), key=lambda one: (order.index(one[0][0]), one[0][1] != "in_doubt"))
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
    """The rows of an operation in a state, in push order, behind a number."""
    with connection.cursor(row_factory=class_row(SendPlace)) as cursor:
        found = cursor.execute(
            "SELECT operation, number, extract_id, record_number, state, attempts, status, "
            "service_id, error_data, decision, changed_at FROM send x "
            "WHERE batch_id = %s AND operation = %s AND state = %s AND number > %s "
            f"AND {UNANSWERED} ORDER BY number LIMIT %s",
            [batch_id, operation, state, after, most],
        ).fetchall()
    places = tuple(RowPlace(one.extract_id, one.record_number) for one in found)
    sent: Iterator[Sent | None] = iter([None] * len(found))
    if found and reads_delivered_rows(connection):
        sent = list_sends(connection, Selection(batch_id, operation, (state,), places))
    return [
        SendToSettle(at, delivered_row(connection, place) or {}, one)
        for at, place, one in zip(found, places, sent, strict=True)
    ]
