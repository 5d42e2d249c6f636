"""The life of a row, top to bottom: the stages of a batch in their order.

The command line runs this; `flows/import_batch.py` runs the same stages in the same order as tasks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import psycopg

from connectors.errors import (
    OF_ONE_BATCH,
    STOPS_PUSH,
    BatchStateError,
    OperationBusy,
    ReconError,
    RowsUnsent,
    ServiceUnusable,
)
from connectors.files.profiles.profile import Profile
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.batches.ledger import TAKEN_BACK, Batch, State
from connectors.postgres.push.sends import waiting_batches
from connectors.postgres.resume import resumed
from flows.stages.apply import apply
from flows.stages.check import check, not_held, release
from flows.stages.finish import build_report, finish, write_owed
from flows.stages.push import push
from flows.stages.receive import Received, archived
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.receiving.kept import prove_batch
from flows.stages.receiving.terms import StatedTerms
from flows.stages.stage import stage
from flows.stages.undo import discard
from flows.stages.way_on import goes_on_by
from flows.stages.workspace import Workspace, named_service
from flows.steps.batch_report import BatchReport

HARDLY_SECONDS = 1.0
"""How long a run waits for its turn after it has already waited for a long one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch at the end of a run, and its report."""

    batch: Batch
    report: BatchReport
    messages: tuple[str, ...] = ()
    new: bool = True

    @property
    def exit_code(self) -> int:
        """0: everything reconciled; 1: rejects, or a batch that waits for a decision."""
        ended = self.batch.state in (State.COMPLETE, State.COMPLETE_WITH_ERRORS)
        return 0 if ended and self.report.verdict == "complete" else 1


def import_delivery(
    workspace: Workspace,
    paths: Sequence[str],
    profile: Profile,
    *,
    record: str | None = None,
    corrects: int | None = None,
    files_hash: str | None = None,
    wait_seconds: float = 0,
) -> Ended:
    """Take a delivery through; if it was taken before, name its batch and change nothing.

    Waits `wait_seconds` for another run that takes in the same; raises BatchHeldElsewhere after
    that.
    """
    stated = StatedTerms(profile, record, corrects)
    delivery = archived(workspace, paths, stated, files_hash)
    received: Received | None = None

    def go() -> Ended:
        nonlocal received
        with workspace.database.connect() as connection:
            received = received or delivery.register(connection)
            if not received.ended:
                with hold_batch(connection, received.batch_id, wait_seconds) as lease:
                    return _go_on(workspace, lease, received)
            write_owed(workspace, connection, received.batch_id)
        return look(workspace, received.batch_id, received)

    return resumed(workspace.database, go)


def run_batch(workspace: Workspace, batch_id: int) -> Ended:
    """Take a batch from where it is to its end; every stage resumes where a dead run stopped."""

    def go() -> Ended:
        with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
            return _go_on(workspace, lease)

    return resumed(workspace.database, go)


def _go_on(
    workspace: Workspace, lease: Lease, received: Received | None = None, *, proven: bool = False
) -> Ended:
    """Run the stages; `proven`: this process has just proved the content and the staged rows."""
    refuse_if_taken_back(lease.connection, lease.batch_id)
    with goes_on_by(f"recon rerun {lease.batch_id}"):
        if not proven and (received is None or not received.new):
            prove_batch(workspace, lease.connection, lease.batch_id)
        proven = stage(workspace, lease) or proven
        check(workspace, lease)
        apply(workspace, lease, proven=proven)
        report = push_and_finish(workspace, lease)
    return _ended(lease.connection, lease.batch_id, report, received)


def _ended(
    connection: psycopg.Connection,
    batch_id: int,
    report: BatchReport,
    received: Received | None = None,
) -> Ended:
    messages, new = (received.messages, received.new) if received else ((), False)
    return Ended(ledger.find_batch(connection, batch_id), report, messages, new)


def push_batch(
    workspace: Workspace, batch_id: int, *, most: int | None = None, named: bool = True
) -> Ended:
    """Send the unsent rows of a batch in the database, then recount and report it.

    `named`: somebody asked for this batch, so it may go to another service.
    """

    def go() -> Ended:
        with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
            refuse_if_taken_back(connection, batch_id)
            ask_for_service(workspace, lease, named=named)
            report = push_and_finish(workspace, lease, most=most, named=named)
            return _ended(connection, batch_id, report)

    # Running it again would send `most` rows once more.
    return resumed(workspace.database, go) if most is None else go()


def waiting_to_push(workspace: Workspace) -> list[int]:
    """The batches that have something to push, longest untried first."""
    settings = workspace.settings.service
    with workspace.database.connect() as connection:
        service = None
        if settings.url:
            service = ledger.known_service(connection, named_service(settings))
        return waiting_batches(connection, service, repeatable=settings.idempotent)


def push_waiting(
    workspace: Workspace, *, most: int | None = None
) -> Iterator[tuple[int, Ended | ReconError]]:
    """Push all waiting batches: the number of each, and how it ended or what keeps it back.

    An error of one batch does not stop the others; one that concerns them all does. A run that
    sends the same records is waited for once; after that, batches without such records go ahead.
    """
    for number in waiting_to_push(workspace):
        ended: Ended | ReconError
        try:
            ended = push_batch(workspace, number, most=most, named=False)
        except OperationBusy as busy:
            ended, workspace = busy, hardly_waiting(workspace)
        except (*OF_ONE_BATCH, RowsUnsent) as error:
            ended = error
        except ServiceUnusable as down:
            yield number, down
            return
        yield number, ended


def hardly_waiting(workspace: Workspace) -> Workspace:
    """The workspace with a turn so short that it hardly waits for other runs."""
    service = workspace.settings.service
    hardly = replace(service, turn_seconds=min(service.turn_seconds, HARDLY_SECONDS))
    return replace(workspace, settings=replace(workspace.settings, service=hardly))


def push_and_finish(
    workspace: Workspace, lease: Lease, *, most: int | None = None, named: bool = True
) -> BatchReport:
    """Push if the batch asks for it; the report is written even if something stops the push."""
    try:
        push(workspace, lease, most=most, named=named)
    except STOPS_PUSH:
        finish(workspace, lease)
        raise
    return finish(workspace, lease)


def refuse_if_taken_back(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise BatchStateError for a batch that was undone or discarded, since it cannot go on."""
    batch = ledger.find_batch(connection, batch_id)
    if batch.state in TAKEN_BACK:
        raise BatchStateError(
            f"Batch {batch.id} is {batch.state}. Import its files again; they are taken as new."
        )


def release_batch(workspace: Workspace, batch_id: int, *, by: str | None, reason: str) -> Ended:
    """Let a held batch go on with its clean rows.

    One lease covers the release and the run, so that no other run can take the batch in between.
    """
    released = False

    def go() -> Ended:
        nonlocal released
        refuse_unless_held(workspace, batch_id, released=released)
        with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
            now = not released or ledger.find_batch(connection, batch_id).state is State.HELD
            if now:
                # Before the call: if the database's answer is lost, the release may be done.
                released = True
                release(workspace, lease, by=by, reason=reason)
            return _go_on(workspace, lease, proven=now)

    return resumed(workspace.database, go)


def release_held(
    workspace: Workspace, batch_id: int, *, by: str | None, reason: str, held: int
) -> None:
    """Only release a held batch; its next run applies the clean rows.

    `held` is the event that the person deciding has seen.
    """
    refuse_unless_held(workspace, batch_id)
    with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
        release(workspace, lease, by=by, reason=reason, held=held)


def discard_batch(
    workspace: Workspace, batch_id: int, *, by: str | None, reason: str, held: int | None = None
) -> None:
    """End a held batch without applying anything; `held` as in `release`, if it was seen.

    If an earlier run discarded it and died before all reports were written, write those.
    """
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
        if batch.state is State.DISCARDED and write_owed(workspace, connection, batch_id):
            return
    refuse_unless_held(workspace, batch_id)
    with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
        discard(workspace, lease, by=by, reason=reason, held=held)


def refuse_unless_held(workspace: Workspace, batch_id: int, *, released: bool = False) -> None:
    """Raise BatchStateError if nothing is to be decided, without taking the batch.

    Taking it, however briefly, could make another run find it taken.
    """
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
    if batch.state is not State.HELD and not released:
        raise BatchStateError(not_held(batch))


def report_again(workspace: Workspace, batch_id: int) -> Ended:
    """Recount a batch and write its report, which a run that died may not have written."""
    with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
        return _ended(connection, batch_id, finish(workspace, lease))


def look(workspace: Workspace, batch_id: int, received: Received | None = None) -> Ended:
    """The report of a batch, computed again; writes nothing and waits for nobody."""
    with workspace.database.connect() as connection:
        report = build_report(workspace, connection, batch_id)
        return _ended(connection, batch_id, report, received)
