"""Which batches a visit may look at: an account of some tenants sees those bound to one of them.

The database says so, and a batch that is not seen is answered like one that is not there.
"""

import psycopg

from connectors.errors import BatchUnknown
from connectors.postgres.accounts import is_batch_seen
from connectors.postgres.ledger import Batch, find_batch
from flows.desk.forms import LARGEST
from flows.desk.visit import Visit


def batch_of(visit: Visit, connection: psycopg.Connection) -> Batch:
    """The batch that the address names by its `number`; raises BatchUnknown."""
    number = int(visit.path["number"])
    if number > LARGEST or not is_batch_seen(connection, number):
        raise BatchUnknown(
            f"There is no batch {number} that you may see. The page Batches lists those that you "
            "may."
        )
    return find_batch(connection, number)


def shows_text(visit: Visit) -> bool:
    """Whether delivered text is shown: a delivery bound to one tenant may hold rows of others."""
    return not (visit.person and visit.person.tenants)
