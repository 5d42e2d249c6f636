"""The audit trail's rules: what a link's hash covers, and that nothing is changed afterwards.

A link's hash covers its position, the hash before it and everything its event says, including the
database account that wrote it. `schemas.guards.trail_functions` has the functions that write.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from schemas.derived.sql_names import SCHEMA
from schemas.guards.batch_states import STATES
from schemas.guards.delivered import CORRECTED_ROWS, DELIVERED_FILES
from schemas.guards.leases import LEASES
from schemas.guards.push_gate import PUSH_GATE
from schemas.guards.trail_functions import FUNCTIONS, GENESIS

APPEND_ONLY = (
    "event",
    "event_chain",
    "reconciliation",
    "break_state",
    "decision",
    "signature",
    "push_epoch",
    "push_seal",
    "push_restore",
    "earlier_send",
    "secret_constant",
)
"""Tables that refuse every UPDATE, DELETE and TRUNCATE."""


class Event(NamedTuple):
    """One event, with the fields that its link's hash covers."""

    id: int
    batch_id: int | None
    at: datetime
    what: str
    by: str
    reason: str | None
    detail: str | None
    account: str | None = None
    """The database account signed in; None for events written before this was kept."""
    person: str | None = None
    """The account that was logged in; None if nobody was."""


def link_hash(position: int, previous_hash: str, event: Event) -> str:
    """The hash of a link; the database computes the same when it writes one."""
    at = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    facts: tuple[object, ...] = event._replace(at=at)  # type: ignore[arg-type]
    if event.person is None:
        facts = facts[:-1] if event.account is not None else facts[:-2]
    content = [position, previous_hash, *facts]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def content_hash(lines: Iterable[Sequence[object]]) -> str:
    """The hash of rows of another table, which the event that brought them has."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


def report_hash(sha256: Mapping[str, str]) -> str:
    """The hash of a report, over its files' names and hashes."""
    return content_hash(sorted(sha256.items()))


def chain_hash(previous: str | None, report: str) -> str:
    """The hash of a run in its scope's chain, over the run before it and its own report."""
    return hashlib.sha256(f"{previous or GENESIS}{report}".encode()).hexdigest()


_REFUSE_CHANGE = f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE =
        TG_TABLE_NAME || ' is only ever added to: ' || TG_OP || ' is refused';
END $$"""

TRIGGERS: tuple[str, ...] = (
    *FUNCTIONS,
    *LEASES,
    *STATES,
    *CORRECTED_ROWS,
    *DELIVERED_FILES,
    *PUSH_GATE,
    _REFUSE_CHANGE,
    f"REVOKE ALL ON FUNCTION {SCHEMA}.refuse_change() FROM PUBLIC",
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
