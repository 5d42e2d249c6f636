"""Which service a batch goes to: the one that was asked for, or another that is set later."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack

import psycopg

from connectors.addresses import service_address
from connectors.errors import BatchStateError
from connectors.postgres.auditing.batch_hashes import answers_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import IN_DATABASE, Batch, State
from connectors.postgres.push.gate import pass_gate
from connectors.postgres.push.plan import plan_again
from connectors.postgres.push.restores import doubt_planned
from connectors.postgres.push.sends import SETTLED, count_states, is_bound_to_service, is_unsettled
from connectors.postgres.trail import add_event
from connectors.service import Service, open_service, read_credentials
from flows.report.next_step import decisions
from flows.stages.workspace import Workspace, named_service
from schemas.field import Table
from schemas.guards.batch_states import ASKED_FOR, INSTEAD_OF
from schemas.guards.ledger_digests import BEFORE, SERVICE
from schemas.operations import PUSHES

log = logging.getLogger("recon.push")


def ask_for_service(workspace: Workspace, lease: Lease, *, named: bool = True) -> None:
    """Name the service of a batch, and continue with it if some of its rows are unsent.

    A batch that has ended and that somebody `named` also continues if it goes to another service
    now and has rows that are not settled. Raises SettingsError if no service is set, and
    BatchStateError for a batch that is not applied.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state not in IN_DATABASE:
        held = batch.state is State.HELD
        todo = decisions(batch.id) if held else f"`recon rerun {batch.id}` goes on with it"
        raise BatchStateError(
            f"Batch {batch.id} is {batch.state}, so nothing of it is in the database yet. {todo}."
        )
    if batch.service is None:
        service = named_service(workspace.settings.service)
        service = ledger.known_service(lease.connection, service)
        with lease.transaction() as connection:
            _name_service(connection, batch, service)
            lease.set_state(State.MERGED)
    elif batch.state in ledger.ENDED:
        repeatable = workspace.settings.service.idempotent
        if is_unsettled(lease.connection, batch.id, repeatable=repeatable) or (
            named and _ends_elsewhere(workspace, lease, batch)
        ):
            with lease.transaction() as connection:
                before = answers_detail(connection, batch.id, BEFORE)
                lease.set_state(State.MERGED, detail=before)


def _name_service(connection: psycopg.Connection, batch: Batch, service: str) -> None:
    """Note the service that a batch goes to, and the one that it replaces."""
    instead = {} if batch.service is None else {INSTEAD_OF: batch.service}
    add_event(connection, ASKED_FOR, batch_id=batch.id, detail={SERVICE: service, **instead})
    connection.execute("UPDATE batch SET service = %s WHERE id = %s", [service, batch.id])


def _ends_elsewhere(workspace: Workspace, lease: Lease, batch: Batch) -> bool:
    """Whether a batch that has ended goes to another service with unsettled rows."""
    if _other_service(workspace, lease, batch) is None:
        return False
    states = {state for of in count_states(lease.connection, batch.id).values() for state in of}
    return not states <= SETTLED


def _other_service(workspace: Workspace, lease: Lease, batch: Batch) -> str | None:
    """The service that is set, if it differs and no row of the batch may be at the batch's own."""
    service = workspace.settings.service
    if batch.service is None or service.url is None:
        return None
    named = named_service(service)
    if named == service_address(batch.service) or is_bound_to_service(lease.connection, batch.id):
        return None
    return named


def go_over(workspace: Workspace, lease: Lease, batch: Batch, tables: Sequence[Table]) -> Batch:
    """Move a batch to the service that is set, if none of its rows may be elsewhere."""
    settings, named = workspace.settings, _other_service(workspace, lease, batch)
    if named is None:
        return batch
    pass_gate(lease.connection, settings.home, settings.service.turn_seconds)
    service = ledger.known_service(lease.connection, named)
    with lease.transaction() as connection:
        _name_service(connection, batch, service)
        planned = [PUSHES[table.name] for table in tables if plan_again(lease, table)]
        doubt_planned(connection, batch.id, planned)
    log.info("Batch %s goes to %s: nothing of it is at %s", batch.id, service, batch.service)
    return ledger.find_batch(lease.connection, batch.id)


def open_for(workspace: Workspace, lease: Lease, batch: Batch, opened: ExitStack) -> Service:
    """The service of a batch, closed with `opened`; raises BatchStateError if another is set.

    If the service may not be sent to yet, this waits at the gate.
    """
    settings = workspace.settings
    service = named_service(settings.service)
    if batch.service is None or service != service_address(batch.service):
        way_on = (
            "The first one can have no row of it: set that one again, or let the batch go to "
            f"the other one by `recon push {batch.id}`."
        )
        if is_bound_to_service(lease.connection, batch.id):
            way_on = (
                "Its records belong to one service, which has rows of it or may have them; set "
                "that one, or undo the batch."
            )
        raise BatchStateError(
            f"Batch {batch.id} goes to {batch.service}, but RECON_SERVICE_URL names {service}. "
            + way_on
        )
    pass_gate(lease.connection, settings.home, settings.service.turn_seconds)
    credentials = workspace.credentials or read_credentials()
    return opened.enter_context(open_service(settings.service, credentials))
