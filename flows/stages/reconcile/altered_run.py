"""What a run goes on from, and what is signed, held against the audit trail.

Breaks, decisions, signatures and accounts are rows that the owner of the database can change. What
was changed is not carried into another report, which would have it as its own from then on.
"""

import psycopg

from connectors.errors import EvidenceBroken
from connectors.postgres.auditing.audit_checks import altered_run
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.stages.reconcile.decision_rules import NAMED
from schemas.counting import first_of


def refuse_altered(connection: psycopg.Connection, scope: str, run: Reconciliation | None) -> None:
    """Raise EvidenceBroken where the ledger has a run of a scope otherwise than the trail.

    `run` is the last one, or one that is signed; None: the scope has none.
    """
    faults = [*altered_run(connection, scope, run)]
    if faults:
        raise EvidenceBroken(
            "Somebody altered in the database what was reconciled, decided or signed before, or "
            "who may decide and sign: "
            f"{first_of(faults, NAMED, by='; ')}. Nothing was reconciled or signed. `recon audit "
            "verify` tells more; put back what stood there, from a backup, and run this again."
        )
