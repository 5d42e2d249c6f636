"""The lease of a run on its batch, and the epoch that every commit checks."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import psycopg

from connectors.errors import BatchHeldElsewhere, BatchStateError, BatchUnknown
from connectors.postgres.batches.clues import clues_text
from connectors.postgres.batches.ledger import ENDED, Receipt, State
from connectors.postgres.heartbeat import (
    Heartbeat,
    lease_name,
    renewed,
    take,
    when_free,
    who_holds,
)
from connectors.postgres.trail import add_event
from connectors.process import holding
from schemas.derived.sql_names import SCHEMA
from schemas.guards.leases import Held
from schemas.guards.ledger_digests import ENDED_AT, TERMS

_NEVER_HELD = 0
"""The epoch of a batch that no run has held; each hold adds one."""


class Lease:
    """One run's hold on one batch: a lease of its connection, and the epoch of the batch."""

    def __init__(
        self,
        connection: psycopg.Connection,
        batch_id: int,
        epoch: int,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.connection = connection
        self.batch_id = batch_id
        self.epoch = epoch
        self._heartbeat = heartbeat
        self._in_transaction = False

    def why_not(self) -> str | None:
        """Why this run may have no more effects outside the database; None if it may."""
        if self._heartbeat is None:
            return None
        if self._heartbeat.has_ended():
            return "This run lost its session of the database, and may have been taken over."
        if self._heartbeat.holds():
            return None
        return (
            f"This run was frozen, or lost its database, for {self._heartbeat.seconds} s, and may "
            "have been taken over."
        )

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """A transaction that commits only while this run still holds the batch.

        Nested calls join the open transaction; while it lasts, nobody can take the batch.
        """
        if self._in_transaction:
            yield self.connection
            return
        with self.connection.transaction():
            row = self.connection.execute(
                "SELECT lease_epoch, lease_owner FROM batch WHERE id = %s FOR SHARE",
                [self.batch_id],
            ).fetchone()
            if row is None or row[0] != self.epoch:
                raise BatchHeldElsewhere(
                    f"Batch {self.batch_id} was taken over by {row and row[1]}; "
                    "this run has stopped and wrote nothing since."
                )
            self._in_transaction = True
            try:
                yield self.connection
            finally:
                self._in_transaction = False

    def add_receipts(self, receipts: Iterable[Receipt]) -> None:
        """Write the receipts of chunks; call it inside the transaction of their rows."""
        names = Receipt.__dataclass_fields__
        rows = [
            {name: getattr(receipt, name) for name in names}
            | {
                "counts": json.dumps(receipt.counts, sort_keys=True),
                "totals": json.dumps(receipt.totals, sort_keys=True),
                "clues": clues_text(receipt.clues),
                "epoch": self.epoch,
            }
            for receipt in receipts
        ]
        columns = (*names, "epoch")
        # For batches applied side by side these times tell which wrote a record last. So they come
        # from one clock, the server's, at a moment when the target is locked.
        with self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO receipt ({', '.join(columns)}, written_at) "
                f"VALUES ({', '.join(f'%({name})s' for name in columns)}, clock_timestamp())",
                rows,
            )

    def set_state(
        self,
        state: State,
        *,
        held_because: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Set the batch's state; the end of a batch is timed by the database, also in its event."""
        with self.transaction() as connection:
            (ended_at,) = connection.execute(
                "UPDATE batch b SET state = %s, held_because = %s, "
                "ended_at = CASE WHEN %s THEN now() END WHERE id = %s "
                f"RETURNING {TERMS[ENDED_AT]}",
                [state, held_because, state in ENDED, self.batch_id],
            ).fetchone() or (None,)
            if ended_at is not None:
                detail = {**(detail or {}), ENDED_AT: ended_at}
            add_event(
                connection,
                f"batch {state.value}",
                batch_id=self.batch_id,
                reason=held_because,
                detail=detail,
            )


class EndedBatch(Lease):
    """An ended batch that stages look at again, for which nobody has to hold it.

    It opens no transaction, so nothing can be written with it.
    """

    def __init__(self, connection: psycopg.Connection, batch_id: int) -> None:
        super().__init__(connection, batch_id, epoch=_NEVER_HELD)

    def transaction(self) -> NoReturn:
        """Raises BatchStateError."""
        raise BatchStateError(f"Batch {self.batch_id} has ended; nothing of it is written again.")


def worked_on(connection: psycopg.Connection, whose: object = "%") -> list[int]:
    """The batches that runs hold with a valid lease; `whose` asks about one alone."""
    rows = connection.execute(
        f"SELECT split_part(l.name, ' ', 2)::int FROM {SCHEMA}.lease l "
        "JOIN pg_stat_activity a ON a.pid = l.pid "
        "WHERE l.name LIKE %s AND l.expires_at > clock_timestamp()",
        [lease_name(Held.BATCH, whose)],
    )
    return [batch for (batch,) in rows]


@contextmanager
def hold_batch(
    connection: psycopg.Connection, batch_id: int, wait_seconds: float = 0
) -> Iterator[Lease]:
    """Hold a batch for this run; raises BatchHeldElsewhere naming the holder, after the wait.

    The batch comes free with its connection, so a killed run never blocks the next one. A frozen
    run does not renew its lease, and its session is ended.
    """
    taken = take(connection, Held.BATCH, batch_id, wait_seconds)
    if taken is None:
        name = lease_name(Held.BATCH, batch_id)
        holder = who_holds(connection, name) or "another run"
        raise BatchHeldElsewhere(
            f"Batch {batch_id} is being worked on by {holder}. Wait for it, or stop that run. "
            f"{when_free(connection, name)}Nothing was changed."
        )
    with renewed(connection, taken) as heartbeat:
        row = connection.execute(
            "UPDATE batch SET lease_owner = %s, lease_epoch = lease_epoch + 1 WHERE id = %s "
            "RETURNING lease_epoch",
            [holding(), batch_id],
        ).fetchone()
        if row is None:
            raise BatchUnknown(f"There is no batch {batch_id}. `recon status` lists the batches.")
        if taken.former is not None:
            add_event(
                connection,
                "batch taken over",
                batch_id=batch_id,
                reason="its run did not renew its lease",
                detail={"from": taken.former},
            )
        yield Lease(connection, batch_id, row[0], heartbeat)
