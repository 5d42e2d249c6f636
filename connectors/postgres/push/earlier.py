"""Earlier states of sends, and whose decision each state is or was.

Sending a row again overwrites its answer, and a decision overwrites the former one. So the
statements that do this keep the earlier state first. Pushes write nothing here, and a row that was
sent only once has no earlier state.
"""

from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from connectors.postgres.query import one_value
from connectors.postgres.trail import WHO, read_detail
from schemas.guards.batch_states import RESOLVE, UNDO

NUMBER = "number"
"""Key in the detail of a decision's event: its number among those of the batch."""
SAYS = "(x.attempts > 0 OR x.error_data IS NOT NULL OR x.decision IS NOT NULL)"
"""SQL for whether anything is known of a send `x` that could be lost."""
_KEPT = (
    "batch_id", "extract_id", "record_number", "state", "attempts", "status", "error_data", "echo",
    "service_id", "epoch", "changed_at", "carried_out", "decision", "decision_number",
)  # fmt: skip


def keep_earlier(sends: str, ended_by: str, ended_number: str) -> str:
    """SQL that keeps the state of sends; `sends` is a FROM with `x`, the other arguments are SQL.

    The caller changes these sends in the same transaction and counts them by `count_earlier`.
    """
    return f"""INSERT INTO earlier_send ({", ".join(_KEPT)}, number, ended_by, ended_number)
        SELECT {", ".join(f"x.{name}" for name in _KEPT)}, coalesce(x.earlier, 0) + 1,
            {ended_by}, {ended_number} {sends}"""


def count_earlier(kept: str = SAYS) -> str:
    """SQL for an UPDATE of sends `x` that counts one more earlier send if one was kept."""
    return f"earlier = CASE WHEN {kept} THEN coalesce(x.earlier, 0) + 1 ELSE x.earlier END"


def next_decision(connection: psycopg.Connection, batch_id: int) -> int:
    """The number of a batch's next decision; the caller must hold the batch."""
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
    """An earlier state of a send, and what ended it."""

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
    """The decisions about a batch's sends, by number."""
    rows = connection.execute(
        f"SELECT {WHO}, at, reason, detail FROM event WHERE batch_id = %s AND what = %s "
        "ORDER BY id",
        [batch_id, RESOLVE],
    ).fetchall()
    # An event whose number is not its place is of an earlier version, or wrong.
    return {
        place: WhoseWord(by, at, reason)
        for place, (by, at, reason, detail) in enumerate(rows, 1)
        if read_detail(detail).get(NUMBER) == place
    }


def undone_by(connection: psycopg.Connection, batch_id: int) -> WhoseWord | None:
    row = connection.execute(
        f"SELECT {WHO}, at, reason FROM event WHERE batch_id = %s AND what = %s "
        "ORDER BY id LIMIT 1",
        [batch_id, UNDO],
    ).fetchone()
    return None if row is None else WhoseWord(*row)


def earlier_of(
    connection: psycopg.Connection, extract_id: int, record_number: int
) -> list[EarlierSend]:
    """The earlier states of a send, in order."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {', '.join(EarlierSend._fields)} FROM earlier_send "
        "WHERE extract_id = %s AND record_number = %s ORDER BY number",
        [extract_id, record_number],
    ).fetchall()
    return [EarlierSend(*row) for row in rows]
