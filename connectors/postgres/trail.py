"""Writing and reading the audit trail; a function owned by the schema's owner adds events.

The database stamps when and by which account; nothing is ever removed from the trail.
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

WHO = 'coalesce(person, "by")'
"""SQL for who did what an event tells: whoever was logged in, else the stated name."""


def add_event(
    connection: psycopg.Connection,
    what: str,
    *,
    batch_id: int | None = None,
    by: str | None = None,
    reason: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> int:
    """Add an event to the audit trail, which chains it on commit; no event is ever removed."""
    return write_trail(
        connection, "add_event", batch_id, what, by or whoami(), reason, detail_text(detail)
    )


def write_trail(connection: psycopg.Connection, function: str, *values: object) -> int:
    """Call a function of `schemas.guards.trail_functions`; gives the id of the event.

    The database stamps the time and the account; the `by` of an event is only a note beside them.
    """
    marks = ", ".join(["%s"] * len(values))
    return int(one_value(connection.execute(f"SELECT {SCHEMA}.{function}({marks})", values)))


def detail_text(detail: Mapping[str, object] | None) -> str | None:
    """The detail of an event as JSON text, as it is stored; None if there is none."""
    return None if detail is None else json.dumps(detail, sort_keys=True)


def read_detail(text: str | None) -> dict[str, Any]:
    """Parse the detail of an event; a text that is no JSON object gives an empty one."""
    try:
        detail = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


def linked_events(
    connection: psycopg.Connection, where: str, parameters: Sequence[object]
) -> list[tuple[int, Event]]:
    """Events with their positions in the chain, in chain order; does not verify the chain.

    `where` is SQL about the event `e`. Events not linked yet get the position after the last one.
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
    """The batch and detail of each event of a name that a Prefect run has left."""
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
    """Which of these events about a batch was committed; None if none was.

    For a caller that lost the answer to a COMMIT.
    """
    row = connection.execute(
        "SELECT id FROM event WHERE batch_id = %s AND what = %s AND id = ANY(%s)",
        [batch_id, what, list(tried)],
    ).fetchone()
    return None if row is None else int(row[0])


def through_before(one: str, other: str) -> str:
    """SQL for whether one batch was finished before another one began.

    A batch may have been held while later ones were applied, and the clocks of two machines differ.
    So the numbers of events decide: each batch is checked before its rows are applied, and merged
    after that.
    """
    return f"""EXISTS (SELECT FROM event m WHERE m.batch_id = {one} AND m.what = '{PREFIX}merged'
        AND m.id < (SELECT max(c.id) FROM event c
            WHERE c.batch_id = {other} AND c.what = '{PREFIX}checked'))"""


def last_event(connection: psycopg.Connection, *, of_batches: bool = False) -> int:
    """The number of the newest event, of all or only of those about a batch; 0 if none."""
    asked = "SELECT coalesce(max(id), 0) FROM event WHERE NOT %s OR batch_id IS NOT NULL"
    return int(one_value(connection.execute(asked, [of_batches])))


def time_of(connection: psycopg.Connection, event: int) -> datetime:
    """When an event was added; after a restore another event may have its number."""
    at: datetime = one_value(connection.execute("SELECT at FROM event WHERE id = %s", [event]))
    assert at is not None
    return at


def last_of_batch(connection: psycopg.Connection, what: str, batch_id: int) -> int:
    """The number of the newest event of a name about a batch; 0 if there is none."""
    asked = "SELECT coalesce(max(id), 0) FROM event WHERE what = %s AND batch_id = %s"
    return int(one_value(connection.execute(asked, [what, batch_id])))


def last_word(connection: psycopg.Connection, batch_id: int, what: Iterable[str]) -> str | None:
    """Who last did one of these to a batch, and why: `ann: agreed`; None if nobody did."""
    row = connection.execute(
        f"""SELECT {WHO} || coalesce(': ' || nullif(reason, ''), '') FROM event
        WHERE batch_id = %s AND what = ANY(%s) ORDER BY id DESC LIMIT 1""",
        [batch_id, list(what)],
    ).fetchone()
    return None if row is None else str(row[0])


def last_detail(connection: psycopg.Connection, batch_id: int, what: str) -> dict[str, Any]:
    """The detail of the newest event of a name about a batch; empty if there is none."""
    text = connection.execute(
        "SELECT detail FROM event WHERE batch_id = %s AND what = %s ORDER BY id DESC LIMIT 1",
        [batch_id, what],
    )
    return read_detail(one_value(text))
