"""Whether a held batch goes on, as whoever decides has seen it."""

from collections.abc import Mapping
from typing import Protocol

import psycopg

from connectors.errors import BatchStateError
from connectors.postgres import ledger
from connectors.postgres.ledger import Batch, State
from connectors.postgres.trail import last_of_batch
from flows.stages.sequence import discard_batch, refuse_unless_held, release_held
from flows.stages.workspace import Workspace
from schemas.guards.batch_states import PREFIX
from schemas.jobs import JobKind


class _Decision(Protocol):
    def __call__(
        self, workspace: Workspace, batch_id: int, *, by: str | None, reason: str
    ) -> None: ...


DECISIONS: Mapping[JobKind, _Decision] = {
    JobKind.RELEASE: release_held,
    JobKind.DISCARD: discard_batch,
}


def held_as(connection: psycopg.Connection, batch: Batch) -> str:
    """What a decision is bound to: who had the batch last, and when it was said to be held."""
    event = last_of_batch(connection, PREFIX + State.HELD, batch.id)
    return f"{batch.lease_epoch} {event}"


def refuse_unless_seen(workspace: Workspace, batch_id: int, seen: str) -> None:
    """Raise BatchStateError unless the batch is held, and as it was when `held_as` said this."""
    refuse_unless_held(workspace, batch_id)
    with workspace.database.connect() as connection:
        now = held_as(connection, ledger.find_batch(connection, batch_id))
    if seen != now:
        raise BatchStateError(
            f"Batch {batch_id} was worked on since that page was loaded. Look at what it holds "
            "now, and decide again. Nothing was changed."
        )
