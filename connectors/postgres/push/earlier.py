"""What sends had come to before they are sent again, and whose word the state of each is or was.

Whatever lets a row be sent again forgets its answer, and a decision the one before it. So the same
statements keep it first: pushes write nothing here, and a row that is sent once has none.
"""

from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from connectors.postgres.query import one_value
from connectors.postgres.trail import read_detail
from schemas.guards.batch_states import RESOLVE, UNDO

NUMBER = "number"
"""Of its detail: which decision of its batch it is."""
SAYS = "(x.attempts > 0 OR x.error_data IS NOT NULL OR x.decision IS NOT NULL)"
"""SQL for whether something is known of a send `x` that could be forgotten."""
_KEPT = (
    "batch_id", "extract_id", "record_number", "state", "attempts", "status", "error_data", "echo",
    "service_id", "epoch", "changed_at", "carried_out", "decision", "decision_number",
)  # fmt: skip


def keep_earlier(sends: str, ended_by: str, ended_number: str) -> str:
    """SQL that keeps what some sends have come to; `sends` is a FROM with `x`, the others SQL.

    Whoever changes them counts it by `count_earlier`, in the same transaction.
    """
    return f"""INSERT INTO earlier_send ({", ".join(_KEPT)}, number, ended_by, ended_number)
        SELECT {", ".join(f"x.{name}" for name in _KEPT)}, coalesce(x.earlier, 0) + 1,
            {ended_by}, {ended_number} {sends}"""


def count_earlier(kept: str = SAYS) -> str:
    """SQL of an UPDATE of sends `x` that counts one more earlier send where one was kept."""
    return f"earlier = CASE WHEN {kept} THEN coalesce(x.earlier, 0) + 1 ELSE x.earlier END"


def next_decision(connection: psycopg.Connection, batch_id: int) -> int:
    """Which decision of a batch the next one is; whoever takes it holds the batch."""
    asked = "SELECT count(*) + 1 FROM event WHERE batch_id = %s AND what = %s"
    return int(one_value(connection.execute(asked, [batch_id, RESOLVE])))


class WhoseWord(NamedTuple):
    by: str
    at: datetime
    reason: str | None

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"by {self.by} on {self.at:%Y-%m-%d %H:%M} UTC{why}"


class EarlierSend(NamedTuple):
    """What a send had come to before, and what ended that."""

    state: str
    attempts: int
    status: int | None
    error_data: str | None
    echo: str | None
    service_id: str | None
    epoch: int
    changed_at: datetime
    decision: str | None
    decision_number: int | None
    ended_by: str
    ended_number: int | None


def words_of(connection: psycopg.Connection, batch_id: int) -> dict[int, WhoseWord]:
    """The decisions about sends of a batch by their number."""
    rows = connection.execute(
        'SELECT "by", at, reason, detail FROM event WHERE batch_id = %s AND what = %s ORDER BY id',
        [batch_id, RESOLVE],
    ).fetchall()
    # An event that says another number than its place is of an earlier version, or says it wrongly.
    return {
        place: WhoseWord(by, at, reason)
        for place, (by, at, reason, detail) in enumerate(rows, 1)
        if read_detail(detail).get(NUMBER) == place
    }


def undone_by(connection: psycopg.Connection, batch_id: int) -> WhoseWord | None:
    row = connection.execute(
        'SELECT "by", at, reason FROM event WHERE batch_id = %s AND what = %s ORDER BY id LIMIT 1',
        [batch_id, UNDO],
    ).fetchone()
    return None if row is None else WhoseWord(*row)


def earlier_of(
    connection: psycopg.Connection, extract_id: int, record_number: int
) -> list[EarlierSend]:
    """What a send had come to before, in order."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {', '.join(EarlierSend._fields)} FROM earlier_send "
        "WHERE extract_id = %s AND record_number = %s ORDER BY number",
        [extract_id, record_number],
    ).fetchall()
    return [EarlierSend(*row) for row in rows]
