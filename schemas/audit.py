"""The audit trail's rules in the database: chained when it is committed, never changed afterwards.

A link's hash covers its position, the hash before it and everything its event says. Links are
written when the transaction of the event commits: only then is the one lock of the chain taken, so
that no run waits for another run's work, and nothing else is ever waited for under that lock.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from schemas.sql import SCHEMA

GENESIS = "0" * 64
"""What the first link names as the hash before it."""

APPEND_ONLY = ("event", "event_chain", "reconciliation", "break_state", "decision", "signature")
"""Tables that refuse every UPDATE, DELETE and TRUNCATE."""


class Event(NamedTuple):
    """One event as its link's hash covers it."""

    id: int
    batch_id: int | None
    at: datetime
    what: str
    by: str
    reason: str | None
    detail: str | None


def link_hash(position: int, previous_hash: str, event: Event) -> str:
    """The hash of a link; the database computes the same when it writes one."""
    at = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    content = [position, previous_hash, *event._replace(at=at)]  # type: ignore[arg-type]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def content_hash(lines: Iterable[Sequence[object]]) -> str:
    """The hash of rows of another table, which the event that brought them keeps."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


def report_hash(sha256: Mapping[str, str]) -> str:
    """The hash of a report: over the hashes of its files by name."""
    return content_hash(sorted(sha256.items()))


def chain_hash(previous: str | None, report: str) -> str:
    """The hash of a run in its scope's chain: over the run before it and its own report."""
    return hashlib.sha256(f"{previous or GENESIS}{report}".encode()).hexdigest()


_CHAIN_EVENT = f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.chain_event(wanted bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    one {SCHEMA}.event;
    place bigint;
    before text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('{SCHEMA} audit'));
    SELECT * INTO STRICT one FROM {SCHEMA}.event e WHERE e.id = wanted;
    SELECT c.position + 1, c.hash INTO place, before
        FROM {SCHEMA}.event_chain c ORDER BY c.position DESC LIMIT 1;
    IF NOT FOUND THEN
        place := 1;
        before := '{GENESIS}';
    END IF;
    INSERT INTO {SCHEMA}.event_chain (position, event_id, previous_hash, hash)
    VALUES (place, one.id, before, encode(sha256(convert_to(json_build_array(
        place, before, one.id, one.batch_id,
        to_char(one.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        one.what, one."by", one.reason, one.detail
    )::text, 'UTF8')), 'hex'));
END $$"""

_CHAIN_INSERTED = f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.chain_inserted() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {SCHEMA}.chain_event(NEW.id);
    RETURN NULL;
END $$"""

_REFUSE_CHANGE = f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE =
        TG_TABLE_NAME || ' is only ever added to: ' || TG_OP || ' is refused';
END $$"""

TRIGGERS: tuple[str, ...] = (
    _CHAIN_EVENT,
    _CHAIN_INSERTED,
    _REFUSE_CHANGE,
    # Events of a time before the chain are its beginning, once.
    f"SELECT {SCHEMA}.chain_event(e.id) FROM (SELECT id FROM {SCHEMA}.event ORDER BY id) e "
    f"WHERE NOT EXISTS (SELECT FROM {SCHEMA}.event_chain)",
    f"DROP TRIGGER IF EXISTS event_chained ON {SCHEMA}.event",
    f"CREATE CONSTRAINT TRIGGER event_chained AFTER INSERT ON {SCHEMA}.event "
    f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.chain_inserted()",
    *(
        f"CREATE OR REPLACE TRIGGER {table}_append_only "
        f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {SCHEMA}.{table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse_change()"
        for table in APPEND_ONLY
    ),
)
"""Statements that put the rules in place; repeating them changes nothing."""
