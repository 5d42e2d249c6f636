"""What the ledger says of one break across all runs of its scope."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import psycopg
from psycopg.rows import class_row

from schemas.breaks import BREAKS
from schemas.derived.sql_names import HASH_OF
from schemas.guards.decisions import BY_RULE
from schemas.life import Choice


@dataclass(frozen=True, slots=True)
class PastDecision:
    """One decision about a break, as it was recorded."""

    reconciliation_id: int
    what: Choice
    by: str
    reason: str
    until: date | None
    side: str | None
    owner: str | None
    up_to: Decimal | None
    at: datetime
    person: str | None
    """Account that was logged in; None if the name is only what was stated."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", Choice(self.what))
        if self.up_to is not None:
            object.__setattr__(self, "up_to", Decimal(self.up_to))
        if self.until is not None:
            object.__setattr__(self, "until", date.fromisoformat(str(self.until)))

    @property
    def is_self_declared(self) -> bool:
        """Whether only a stated name stands for it; for a rule stand those who made it."""
        return self.person is None and re.fullmatch(BY_RULE, self.by) is None


@dataclass(frozen=True, slots=True)
class PastState:
    """A break as one run of its scope left it."""

    reconciliation_id: int
    as_of: date
    state: str
    currency: int | None
    amount: Decimal | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "as_of", date.fromisoformat(str(self.as_of)))


def decisions_about(
    connection: psycopg.Connection, scope_hash: str, breaks: Sequence[str]
) -> list[PastDecision]:
    """All decisions about these breaks in a scope, latest first."""
    with connection.cursor(row_factory=class_row(PastDecision)) as cursor:
        return cursor.execute(
            """SELECT d.reconciliation_id, d.what, d.by, d.reason, d.until, d.side,
                d.owner, d.up_to, e.at, e.person
            FROM reconciliation r JOIN decision d ON d.reconciliation_id = r.id
            JOIN event e ON e.id = d.event_id
            WHERE r.scope_hash = %s AND d.break_id = ANY(%s) ORDER BY d.id DESC""",
            [scope_hash, list(breaks)],
        ).fetchall()


def states_of(
    connection: psycopg.Connection, scope_hash: str, break_id: str, through: int
) -> list[PastState]:
    """The state of a break in each run of a scope up to this number, latest first."""
    with connection.cursor(row_factory=class_row(PastState)) as cursor:
        return cursor.execute(
            """SELECT b.reconciliation_id, r.as_of, b.state, b.currency, b.amount
            FROM break_state b JOIN reconciliation r ON r.id = b.reconciliation_id
            WHERE b.break_id = %s AND r.scope_hash = %s AND r.id <= %s ORDER BY r.id DESC""",
            [break_id, scope_hash, through],
        ).fetchall()


def breaks_of_record(
    connection: psycopg.Connection, number: int, break_id: str, most: int
) -> list[str]:
    """Ids of the other breaks that a run left about the same record, going by its key.

    A debt or plan is not the record of the same key.
    """
    together = [code for code, of in BREAKS.items() if of.together]
    # Either by the same key, which an index finds, or both without; comparing nulls would read all.
    hashes = f"{HASH_OF.format('k.key')} = {HASH_OF.format('b.key')}"
    rows = connection.execute(
        f"""SELECT o.break_id FROM break_state b CROSS JOIN LATERAL (
            SELECT k.* FROM break_state k
            WHERE k.reconciliation_id = b.reconciliation_id AND {hashes} AND k.key = b.key
            UNION ALL
            SELECT n.* FROM break_state n
            WHERE b.key IS NULL AND n.reconciliation_id = b.reconciliation_id
                AND {HASH_OF.format("n.key")} IS NULL) o
        WHERE b.reconciliation_id = %s AND b.break_id = %s AND o.break_id <> b.break_id
            AND (o.record, o.tenant) IS NOT DISTINCT FROM (b.record, b.tenant)
            AND (o.code = ANY(%s) AND coalesce(o.facts::json ->> 'side', '') = '')
                = (b.code = ANY(%s) AND coalesce(b.facts::json ->> 'side', '') = '')
        ORDER BY o.break_id LIMIT %s""",
        [number, break_id, together, together, most],
    ).fetchall()
    return [str(one) for (one,) in rows]
