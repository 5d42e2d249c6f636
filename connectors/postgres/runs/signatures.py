"""Signatures: who prepared and who approved the report of a run, bound to the report's hash.

The database also keeps, once each, what an account has opened of a run at the desk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from connectors.postgres.query import one_value
from connectors.postgres.runs.reconciliations import Reconciliation
from connectors.postgres.trail import detail_text, read_detail, write_trail
from schemas.accounts import approval
from schemas.derived.sql_names import SCHEMA
from schemas.guards.accounts import NOT_ALLOWED
from schemas.guards.decisions import SIGNED
from schemas.life import Role

ACCEPTED = "accepted_changes"
ACCEPTED_RULES = "accepted_rules"
"""Key that an earlier version used: the hash of the changed rules alone."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One row of the signature table; its time is that of its event, which the chain protects."""

    reconciliation_id: int
    role: Role
    by: str
    comment: str
    at: datetime
    report_hash: str
    event_id: int
    account: str = ""
    """Who typed it, according to the audit trail."""
    accepted_changes: str = ""
    """Hash of the changes in how the figures are made that were accepted with it."""
    person: str | None = None
    """The account that was logged in; None if the name is self-declared."""
    kept_at: datetime | None = None
    """The time in the signature table, which differs if an earlier version wrote it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))


def approval_of(signatures: Mapping[Role, Signature]) -> str | None:
    """What the signatures of a run amount to; see `accounts.approval`."""
    return approval({role: one.person for role, one in signatures.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSignature:
    """A signature to be recorded, and what else its event says."""

    role: Role
    by: str
    comment: str
    process: str
    """Who typed it, which the audit trail keeps beside the name."""
    said_by: str | None
    """A name that was stated besides that of the account."""
    accepted_changes: str | None
    """Hash of the changes in how the figures are made, if they are accepted with it."""
    not_opened: Mapping[str, object] | None
    """Figures of what the account had not opened at the desk by then."""


def add_signature(
    connection: psycopg.Connection, run: Reconciliation, signature: NewSignature
) -> None:
    role, by, comment = signature.role, signature.by, signature.comment
    detail: dict[str, object] = {
        "reconciliation": run.id,
        "role": role.value,
        "report_hash": run.report_hash,
        "process": signature.process,
    }
    more = {
        ACCEPTED: signature.accepted_changes,
        "said_by": signature.said_by,
        "not_opened": signature.not_opened,
    }
    detail |= {name: value for name, value in more.items() if value and value != by}
    connection.execute("SELECT draft('signature')")
    connection.execute(
        "INSERT INTO draft_signature (reconciliation_id, role, by, comment, report_hash) "
        "VALUES (%s, %s, %s, %s, %s)",
        [run.id, role.value, by, comment, run.report_hash],
    )
    write_trail(connection, "sign", SIGNED[role], by, comment, detail_text(detail))


def why_interested(connection: psycopg.Connection, person: str, number: int) -> str | None:
    """Which rule keeps an account from approving a run, whoever else signs; None if none does."""
    try:
        connection.execute("SELECT refuse_interested(%s, %s)", [person, number])
    except psycopg.Error as error:
        if error.sqlstate != NOT_ALLOWED:
            raise
        message = error.diag.message_primary or ""
        return f"{message[:1].upper()}{message[1:]}."
    return None


def signatures_of(connection: psycopg.Connection, number: int) -> dict[Role, Signature]:
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(
            "SELECT s.reconciliation_id, s.role, s.by, s.comment, coalesce(e.at, s.at) AS at, "
            "s.at AS kept_at, s.report_hash, s.event_id, e.account, e.person, e.detail "
            "FROM signature s LEFT JOIN event e ON e.id = s.event_id "
            "WHERE s.reconciliation_id = %s",
            [number],
        ).fetchall()
    return {signature.role: signature for signature in map(_signature, found)}


def _signature(row: dict[str, Any]) -> Signature:
    detail = read_detail(row.pop("detail"))
    account = row.pop("account") or detail.get("process") or ""
    accepted = detail.get(ACCEPTED) or detail.get(ACCEPTED_RULES) or ""
    return Signature(**row, account=str(account), accepted_changes=str(accepted))


def signed_reports(connection: psycopg.Connection) -> set[tuple[str, str, str]]:
    """Report hash, role and name of every signature."""
    rows = connection.execute("SELECT report_hash, role, by FROM signature").fetchall()
    return {(str(hash_), str(role), str(by)) for hash_, role, by in rows}


def newest_signature(connection: psycopg.Connection) -> int:
    """The event of the latest signature of all; 0 if there is none."""
    return int(one_value(connection.execute("SELECT coalesce(max(event_id), 0) FROM signature")))


def last_approved(
    connection: psycopg.Connection,
    scope_hash: str,
    until: date | None = None,
    before: int | None = None,
    signed_before: int | None = None,
) -> Reconciliation | None:
    """The latest run of a scope whose report was approved, as of a day or earlier.

    `before` limits it to runs before this number, `signed_before` to runs approved before this
    event.
    """
    runs = approved_runs(connection, scope_hash, until, signed_before)
    earlier = (run for run in runs if before is None or run.id < before)
    return max(earlier, key=lambda run: run.id, default=None)


def last_approved_runs(
    connection: psycopg.Connection, signed_before: int | None = None
) -> list[Reconciliation]:
    """For every scope, the last run whose report was approved before an event, if one is given."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT DISTINCT ON (r.scope_hash) r.* FROM reconciliation r "
            "JOIN signature s ON s.reconciliation_id = r.id WHERE s.role = %(role)s "
            "AND (%(signed_before)s::bigint IS NULL OR s.event_id < %(signed_before)s) "
            "ORDER BY r.scope_hash, r.id DESC",
            {"role": Role.APPROVED.value, "signed_before": signed_before},
        ).fetchall()


def approved_runs(
    connection: psycopg.Connection,
    scope_hash: str,
    until: date | None,
    signed_before: int | None = None,
) -> list[Reconciliation]:
    """The runs of a scope whose reports were approved, earliest day first.

    `signed_before` limits them to runs approved before this event.
    """
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT r.* FROM reconciliation r JOIN signature s ON s.reconciliation_id = r.id "
            "WHERE r.scope_hash = %(scope)s AND s.role = %(role)s AND r.as_of <= %(until)s "
            "AND (%(signed_before)s::bigint IS NULL OR s.event_id < %(signed_before)s) "
            "ORDER BY r.as_of, r.id",
            {
                "scope": scope_hash,
                "role": Role.APPROVED.value,
                "until": (until or date.max).isoformat(),
                "signed_before": signed_before,
            },
        ).fetchall()


def look_at(connection: psycopg.Connection, number: int, what: str) -> None:
    """Record that whoever is logged in opened this: one of `Look`, or a break by its id.

    Nothing is recorded if nobody is logged in, or there is no such thing that they may see.
    """
    connection.execute(f"SELECT {SCHEMA}.look_at(%s, %s)", [number, what])


def looked_at(connection: psycopg.Connection, account: str, number: int) -> frozenset[str]:
    rows = connection.execute(
        "SELECT what FROM look WHERE account = %s AND reconciliation_id = %s", [account, number]
    ).fetchall()
    return frozenset(str(what) for (what,) in rows)
