"""The turn at an operation: one run at a time sends to it, and writes only while it has the turn.

A row found `sending` when no run sends any more may have been carried out. A PUT is then sent
again, a POST is in doubt until somebody decides.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

import psycopg

from connectors.errors import BatchHeldElsewhere, OperationBusy
from connectors.postgres.accounts import batch_label
from connectors.postgres.batches.lease import Lease
from connectors.postgres.heartbeat import holder_text, let_go, take
from connectors.postgres.query import one_value
from connectors.process import holding
from schemas.field import Table
from schemas.guards.leases import Held
from schemas.operations import Operation
from schemas.reasons import REASONS

log = logging.getLogger("recon.push")


class CarriedOut(StrEnum):
    """What is known of the attempts at a row, whatever its state says about the next one."""

    YES = "yes"
    MAYBE = "maybe"


@dataclass(slots=True, eq=False)
class Lane:
    """One run's turn at one operation: a lease of its connection, and the operation's epoch."""

    lease: Lease
    operation: Operation
    epoch: int
    held: bool
    """Whether a run left POSTs in doubt and none succeeded since, so the service is asked first."""
    repeatable: bool
    """Whether the host recognises a repeated POST by its key, so rows in doubt are sent again."""

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """A transaction that commits only while this run holds both the batch and the lane."""
        with self.lease.transaction() as connection:
            row = connection.execute(
                "SELECT epoch, owner FROM push_lane WHERE operation = %s FOR SHARE",
                [self.operation.name],
            ).fetchone()
            if row is None or row[0] != self.epoch:
                raise BatchHeldElsewhere(
                    f"{self.operation.name} was taken over by {row and row[1]}; "
                    "this run has stopped and wrote nothing since."
                )
            yield connection

    def over(self, connection: psycopg.Connection) -> "Lane":
        """The same turn over another connection, valid until the turn or the batch is taken."""
        return replace(self, lease=Lease(connection, self.lease.batch_id, self.lease.epoch))


@contextmanager
def hold_lane(
    lease: Lease, operation: Operation, *, wait_seconds: float, repeatable: bool = False
) -> Iterator[Lane]:
    """Hold the turn at an operation; raises OperationBusy, naming its holder, after the wait.

    Rows that a run left `sending` when it died are settled first, of whichever batch. `repeatable`
    says that the host lets POSTs in doubt be sent again.
    """
    connection, name = lease.connection, operation.name
    taken = take(connection, Held.PUSH, name)
    if taken is None:
        log.info("Waiting for %s", _holder(connection, operation))
        taken = take(connection, Held.PUSH, name, wait_seconds)
    if taken is None:
        raise OperationBusy(
            f"{_holder(connection, operation)}, and did not end within {wait_seconds:g} s: "
            f"{holder_text(connection, Held.PUSH, name)}"
            f"What is unsent of batch {lease.batch_id} stays so and is in its report; "
            f"`recon push {lease.batch_id}` sends it when that run has ended."
        )
    try:
        with lease.transaction():
            epoch, held = _take(lease, operation)
        # The heartbeat of the batch renews all leases of its session, so this one too.
        yield Lane(lease, operation, epoch, held, repeatable)
    finally:
        let_go(connection, taken)


def lock_sends(connection: psycopg.Connection) -> None:
    """Let one transaction at a time decide what is to be sent; runs that send go on meanwhile.

    Each looks for rows of the same content and cannot see uncommitted ones, so two at once would
    each let its own row be sent.
    """
    connection.execute("LOCK TABLE push_lane IN SHARE UPDATE EXCLUSIVE MODE")


def _holder(connection: psycopg.Connection, operation: Operation) -> str:
    row = connection.execute(
        "SELECT batch_id, owner FROM push_lane WHERE operation = %s", [operation.name]
    ).fetchone()
    if row is None:
        return f"{operation.name} is being pushed by another run"
    return f"{operation.name} is being pushed for {batch_label(connection, row[0])} by {row[1]}"


def _take(lease: Lease, operation: Operation) -> tuple[int, bool]:
    before = lease.connection.execute(
        "SELECT batch_id, coalesce(held, FALSE) FROM push_lane WHERE operation = %s FOR UPDATE",
        [operation.name],
    ).fetchone()
    held = not operation.keyed and _is_news(lease, operation)
    if before is not None:
        doubtful = settle_unanswered(lease.connection, operation, before[0])
        held = held or before[1] or doubtful > 0
    taken = lease.connection.execute(
        "INSERT INTO push_lane (operation, batch_id, owner, epoch) VALUES (%s, %s, %s, 1) "
        "ON CONFLICT (operation) DO UPDATE SET batch_id = EXCLUDED.batch_id, "
        "owner = EXCLUDED.owner, epoch = push_lane.epoch + 1 RETURNING epoch",
        [operation.name, lease.batch_id, holding()],
    )
    if held:
        _set_held(lease.connection, operation, held)
    return int(one_value(taken)), held


def _is_news(lease: Lease, operation: Operation) -> bool:
    """Whether another operation has left POSTs in doubt since the last run of this one.

    An outage is the service's, so the next POST here would be lost as well. A later success here
    shows that it is over, even if the other operation still loses every row.
    """
    held = lease.connection.execute(
        """SELECT l.batch_id, l.operation FROM push_lane l JOIN batch b ON b.id = l.batch_id
            JOIN batch mine ON mine.id = %s AND mine.service = b.service
        WHERE l.held AND l.operation <> %s""",
        [lease.batch_id, operation.name],
    ).fetchall()
    # Compared by transaction, since the clock may have been set back meanwhile.
    doubted_since = """SELECT FROM send x LEFT JOIN push_lane own ON own.operation = %s
        WHERE x.batch_id = %s AND x.operation = %s AND x.state = 'in_doubt'
            AND (own.xmin IS NULL OR age(x.xmin) < age(own.xmin)) LIMIT 1"""
    return any(
        lease.connection.execute(doubted_since, [operation.name, *other]).fetchone() is not None
        for other in held
    )


def _set_held(connection: psycopg.Connection, operation: Operation, held: bool) -> None:
    connection.execute(
        "UPDATE push_lane SET held = %s WHERE operation = %s", [held, operation.name]
    )


def keep_held(lane: Lane, held: bool) -> None:
    """Record, if it has changed, whether the next run has to ask the service first."""
    if held is not lane.held:
        _set_held(lane.lease.connection, lane.operation, held)
        lane.held = held


def settle_unanswered(connection: psycopg.Connection, operation: Operation, batch_id: int) -> int:
    """Settle the rows that a run was sending when it died; no other run may be sending them.

    Gives how many are in doubt.
    """
    values: dict[str, object] = {"batch": batch_id, "operation": operation.name}
    if operation.keyed:
        change = "state = 'unsent'"
    else:
        change = "state = 'in_doubt', error_data = %(error)s"
        values["error"] = unanswered_error(operation)
    settled = connection.execute(
        f"UPDATE send SET {change}, carried_out = '{CarriedOut.MAYBE}', changed_at = now() "
        "WHERE batch_id = %(batch)s AND operation = %(operation)s AND state = 'sending'",
        values,
    ).rowcount
    return 0 if operation.keyed else settled


def asking_columns(table: Table) -> str:
    """SQL for the fields of an AskingRow, from send `x`, its extract `e` and its batch `b`.

    A profile shows only that a secret constant exists, so each batch with one counts as different.
    """
    reading = """md5(b.profile || CASE WHEN EXISTS
        (SELECT FROM secret_constant c WHERE c.batch_id = b.id)
        THEN extract(epoch FROM b.opened_at)::text ELSE '' END)"""
    return f"""coalesce(e.sha256, ''), x.record_number, b.opened_at, x.epoch,
        {reading if table.secrets else "''"}"""


def unanswered_error(operation: Operation, why: str = "") -> str:
    """ErrorData of a row whose answer nobody has read, or that is in doubt because of `why`."""
    message = REASONS["InDoubt"].message(value=why or operation.name)
    meta = {"stage": "push", "operation": operation.name}
    error = {"ErrorCode": "InDoubt", "FieldName": "", "Message": message, "Meta": meta}
    return json.dumps([error])
