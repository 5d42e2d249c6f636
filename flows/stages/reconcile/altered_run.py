"""Compare what a run builds on, and what is signed, with the audit trail.

Breaks, decisions, signatures and accounts are rows that the database's owner can change. An altered
row must not enter another report, where it would count as genuine from then on.
"""

import psycopg

from connectors.errors import EvidenceBroken
from connectors.postgres.auditing.audit_checks import altered_run
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.stages.reconcile.decision_rules import NAMED
from schemas.counting import first_of


def refuse_altered(connection: psycopg.Connection, scope: str, run: Reconciliation | None) -> None:
    """Raise EvidenceBroken if the ledger has a run of a scope differently than the trail.

    `run` is the last run, or a signed one; None if the scope has none.
    """
    faults = [*altered_run(connection, scope, run)]
    if faults:
        raise EvidenceBroken(
            "Somebody altered in the database what was reconciled, decided or signed before, or "
            "who may decide and sign: "
            f"{first_of(faults, NAMED, by='; ')}. Nothing was reconciled or signed. `recon audit "
            "verify` tells more; put back what stood there, from a backup, and run this again."
        )
