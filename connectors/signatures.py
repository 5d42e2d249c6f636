"""Signatures: who prepared and who approved the report of a run, bound to the report's hash."""

from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from psycopg.rows import class_row

from connectors.ledger import add_event
from connectors.reconciliations import Reconciliation
from schemas.life import Role

SIGNED: dict[str, str] = {
    Role.PREPARED: "report prepared",
    Role.APPROVED: "report approved",
}
"""The event of each kind of signature."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One row of the signature table."""

    reconciliation_id: int
    role: Role
    by: str
    comment: str
    at: datetime
    report_hash: str
    event_id: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))


def add_signature(
    connection: psycopg.Connection,
    run: Reconciliation,
    role: Role,
    *,
    by: str,
    comment: str,
    process: str,
) -> None:
    """Keep a signature; `process` is who typed it, which the audit trail keeps beside the name."""
    event = add_event(
        connection,
        SIGNED[role],
        by=by,
        reason=comment,
        detail={
            "reconciliation": run.id,
            "role": role.value,
            "report_hash": run.report_hash,
            "process": process,
        },
    )
    connection.execute(
        "INSERT INTO signature (reconciliation_id, role, by, comment, at, report_hash, event_id) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [run.id, role.value, by, comment, datetime.now(UTC), run.report_hash, event],
    )


def signatures_of(connection: psycopg.Connection, number: int) -> dict[Role, Signature]:
    """The signatures under the report of a run."""
    with connection.cursor(row_factory=class_row(Signature)) as cursor:
        found = cursor.execute(
            "SELECT * FROM signature WHERE reconciliation_id = %s", [number]
        ).fetchall()
    return {signature.role: signature for signature in found}


def last_approved(connection: psycopg.Connection, scope_hash: str) -> Reconciliation | None:
    """The latest run of a scope whose report was approved."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT r.* FROM reconciliation r JOIN signature s ON s.reconciliation_id = r.id "
            "WHERE r.scope_hash = %s AND s.role = %s ORDER BY r.id DESC LIMIT 1",
            [scope_hash, Role.APPROVED.value],
        ).fetchone()
