"""What a visit may look at; an account of some tenants sees only what is bound to these.

The database decides, and a batch or run that may not be seen is answered like one that does not
exist.
"""

from collections.abc import Iterable

import psycopg

from connectors.errors import BatchUnknown, LoginRefused, ReconciliationUnknown
from connectors.postgres.accounts import LOGIN_ENDED, acting, is_batch_seen, scopes_seen
from connectors.postgres.batches.ledger import Batch, find_batch
from connectors.postgres.runs.reconciliations import Reconciliation, find_run
from flows.desk.forms import LARGEST
from flows.desk.visit import Visit


def batch_of(visit: Visit, connection: psycopg.Connection) -> Batch:
    """The batch with the `number` in the address; raises BatchUnknown."""
    number = int(visit.path["number"])
    if number > LARGEST or not is_batch_seen(connection, number):
        raise BatchUnknown(
            f"There is no batch {number} that you may see. The page Batches lists those that you "
            "may."
        )
    return find_batch(connection, number)


def named_batch(visit: Visit) -> Batch:
    """The same, over a connection of its own."""
    with visit.place.database.connect() as connection:
        return batch_of(visit, connection)


def refuse_ended(visit: Visit, connection: psycopg.Connection) -> None:
    """Raise LoginRefused if the login has ended, since not everything was read then."""
    if visit.person and acting(connection) is None:
        raise LoginRefused(LOGIN_ENDED)


def shows_text(visit: Visit) -> bool:
    """Whether delivered text is shown: a delivery bound to one tenant may have rows of others."""
    return not visit.is_bound


def run_of(visit: Visit, connection: psycopg.Connection) -> Reconciliation:
    """The run with the `number` in the address; raises ReconciliationUnknown."""
    return run_by(connection, int(visit.path["number"]))


def run_by(connection: psycopg.Connection, number: int) -> Reconciliation:
    """The run with this number, if the account may see it; raises ReconciliationUnknown."""
    unknown = ReconciliationUnknown(
        f"There is no reconciliation {number} that you may see. Home lists those that you may."
    )
    if number > LARGEST:
        raise unknown
    try:
        run = find_run(connection, number)
    except ReconciliationUnknown:
        raise unknown from None
    if not only_seen(connection, [run]):
        raise unknown
    return run


def only_seen(
    connection: psycopg.Connection, runs: Iterable[Reconciliation]
) -> list[Reconciliation]:
    """Those of the runs that the account on the connection may see, in their order."""
    there = list(runs)
    seen = scopes_seen(connection, {run.scope for run in there})
    return [run for run in there if run.scope in seen]
