"""Searching the audit trail: matching events, page by page, for whoever may see them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date

import psycopg
from psycopg.rows import dict_row

from connectors.postgres.auditing.audit import TrailEntry
from connectors.postgres.query import streamed
from schemas.derived.sql_names import listed
from schemas.guards.acceptance_rules import RULE_EVENTS
from schemas.guards.decisions import BY_RULE, DECIDED, RULE_PROPOSED
from schemas.guards.tenants import RUN_OF_EVENT, sees_event
from schemas.life import Choice


@dataclass(frozen=True, slots=True)
class TrailSearch:
    """A search for events that match all criteria given."""

    what: str = ""
    """A part of the event's name."""
    who: str = ""
    """A part of the stated name, or of the name of the account logged in or of the database's.

    For a rule of acceptance its whole name: this finds what was done with the rule, and what it
    accepted, whoever the run was made for.
    """
    text: str = ""
    """A part of the reason or the detail."""
    batch: int | None = None
    run: int | None = None
    since: date | None = None
    until: date | None = None
    """Days in UTC, both included."""


RULE_OF_EVENT = (
    f"CASE WHEN e.what = '{RULE_PROPOSED}' THEN e.id::text "
    f"WHEN e.what IN ({listed(RULE_EVENTS)}) OR e.what = '{DECIDED[Choice.ACCEPT]}' "
    f"AND (e.person IS NULL OR e.\"by\" ~ '^{BY_RULE}$') "
    "THEN substring(e.detail FROM '\"rule\" ?: ?([0-9]+)') END"
)
"""SQL for the number, as text, of the rule of acceptance that an event `e` is about."""
_SEEN = sees_event("e")
_FITS = f"""
    strpos(lower(e.what), lower(%(what)s)) > 0
    AND (%(who)s = '' OR CASE WHEN lower(%(who)s) ~ '^{BY_RULE}$'
        THEN 'rule ' || {RULE_OF_EVENT} = lower(%(who)s)
        ELSE strpos(lower(concat_ws(' ', e.by, e.person, e.account)), lower(%(who)s)) > 0 END)
    AND (%(text)s = '' OR strpos(lower(concat_ws(' ', e.reason, e.detail)), lower(%(text)s)) > 0)
    AND (%(batch)s::int IS NULL OR e.batch_id = %(batch)s)
    AND (%(run)s::text IS NULL OR {RUN_OF_EVENT.format("e")} = %(run)s::text)
    AND (%(since)s::date IS NULL OR e.at >= %(since)s::date)
    AND (%(until)s::date IS NULL OR e.at < %(until)s::date + 1)
    AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
"""


def search_trail(
    connection: psycopg.Connection, search: TrailSearch, most: int | None, before: int | None = None
) -> Iterator[TrailEntry]:
    """Matching events numbered below `before`, latest first, at most `most`."""
    statement = (
        "SELECT c.position, e.*, c.hash FROM event e LEFT JOIN event_chain c ON c.event_id = e.id "
        f"WHERE {_FITS} AND {_SEEN} ORDER BY e.id DESC LIMIT %(most)s"
    )
    given = asdict(search) | {"most": most, "before": before}
    with connection.transaction(), streamed(connection, "trail", dict_row) as cursor:
        cursor.execute(statement, given | {"run": None if search.run is None else str(search.run)})
        for row in cursor:
            yield TrailEntry(**row)
