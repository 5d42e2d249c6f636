"""The audit trail as it is written: an event is added by a function of the owner of the schema.

The database stamps when and by which account; nothing is ever taken from the trail.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg

from connectors.postgres.query import one_value
from connectors.process import whoami
from schemas.derived.sql_names import SCHEMA
from schemas.guards.batch_states import PREFIX
from schemas.guards.trail_rules import Event


def add_event(
    connection: psycopg.Connection,
    what: str,
    *,
    batch_id: int | None = None,
    by: str | None = None,
    reason: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> int:
    """Add to the audit trail, which chains it on commit; nothing is ever taken from it."""
    return write_trail(
        connection, "add_event", batch_id, what, by or whoami(), reason, detail_text(detail)
    )


def write_trail(connection: psycopg.Connection, function: str, *values: object) -> int:
    """Call one of the functions of `schemas.guards.trail_functions`; gives the id of the event.

    The database stamps the time and the account; `by` is a note beside it.
    """
    marks = ", ".join(["%s"] * len(values))
    return int(one_value(connection.execute(f"SELECT {SCHEMA}.{function}({marks})", values)))


def detail_text(detail: Mapping[str, object] | None) -> str | None:
    """What an event says beside its reason, as it is kept."""
    return None if detail is None else json.dumps(detail, sort_keys=True)


def read_detail(text: str | None) -> dict[str, Any]:
    """The detail of an event; a text that is no object says nothing."""
    try:
        detail = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


def linked_events(
    connection: psycopg.Connection, where: str, parameters: Sequence[object]
) -> list[tuple[int, Event]]:
    """Some events with the positions of their links, in this order, without verifying the chain.

    `where` is SQL about the event `e`. What waits for its link is behind all that have one.
    """
    rows = connection.execute(
        "SELECT coalesce(c.position, (SELECT max(position) + 1 FROM event_chain), 1), e.id, "
        "e.batch_id, e.at, e.what, e.by, e.reason, e.detail, e.account, e.person FROM event e "
        f"LEFT JOIN event_chain c ON c.event_id = e.id WHERE {where} "
        "ORDER BY c.position NULLS LAST, e.id",
        parameters,
    ).fetchall()
    return [(position, Event(*columns)) for position, *columns in rows]


def events_of_run(
    connection: psycopg.Connection, what: str, run: str
) -> list[tuple[int, Mapping[str, Any]]]:
    """Of the events of a name that a run of Prefect has left: the batch, and what each says."""
    found = connection.execute(
        "SELECT batch_id, detail FROM event WHERE what = %s AND batch_id IS NOT NULL "
        "AND strpos(detail, %s) > 0 ORDER BY id",
        [what, run],
    )
    events = [(int(batch), read_detail(text)) for batch, text in found]
    return [(batch, detail) for batch, detail in events if detail.get("run") == run]


def committed(
    connection: psycopg.Connection, batch_id: int, what: str, tried: Iterable[int]
) -> int | None:
    """Which of these events about a batch was committed; None: none of them.

    For whoever lost the answer to a COMMIT.
    """
    row = connection.execute(
        "SELECT id FROM event WHERE batch_id = %s AND what = %s AND id = ANY(%s)",
        [batch_id, what, list(tried)],
    ).fetchone()
    return None if row is None else int(row[0])


def through_before(one: str, other: str) -> str:
    """SQL for whether a batch was through before another one began.

    A batch may have been held while later ones were applied, and the clocks of two machines differ.
    So the numbers of events tell: each batch is checked before its rows are applied, and merged
    behind that.
    """
    return f"""EXISTS (SELECT FROM event m WHERE m.batch_id = {one} AND m.what = '{PREFIX}merged'
        AND m.id < (SELECT max(c.id) FROM event c
            WHERE c.batch_id = {other} AND c.what = '{PREFIX}checked'))"""


def last_event(connection: psycopg.Connection, *, of_batches: bool = False) -> int:
    """The number of the newest event of the audit trail, or of those about a batch; 0: none."""
    asked = "SELECT coalesce(max(id), 0) FROM event WHERE NOT %s OR batch_id IS NOT NULL"
    return int(one_value(connection.execute(asked, [of_batches])))


def time_of(connection: psycopg.Connection, event: int) -> datetime:
    """When an event was added; a database that was restored may give its number to another."""
    at: datetime = one_value(connection.execute("SELECT at FROM event WHERE id = %s", [event]))
    assert at is not None
    return at


def last_of_batch(connection: psycopg.Connection, what: str, batch_id: int) -> int:
    """The number of the newest event of a name about a batch; 0: there is none."""
    asked = "SELECT coalesce(max(id), 0) FROM event WHERE what = %s AND batch_id = %s"
    return int(one_value(connection.execute(asked, [what, batch_id])))


def last_word(connection: psycopg.Connection, batch_id: int, what: Iterable[str]) -> str | None:
    """Who did one of these last with a batch, and why: `ann: agreed`; None: nobody did."""
    row = connection.execute(
        """SELECT "by" || coalesce(': ' || nullif(reason, ''), '') FROM event
        WHERE batch_id = %s AND what = ANY(%s) ORDER BY id DESC LIMIT 1""",
        [batch_id, list(what)],
    ).fetchone()
    return None if row is None else str(row[0])


def last_detail(connection: psycopg.Connection, batch_id: int, what: str) -> dict[str, Any]:
    """The detail of the last event of a name about a batch; nothing where there is none."""
    text = connection.execute(
        "SELECT detail FROM event WHERE batch_id = %s AND what = %s ORDER BY id DESC LIMIT 1",
        [batch_id, what],
    )
    return read_detail(one_value(text))
