"""Reconciliations: the runs of a scope, one after the other, and what each left behind.

A run holds its scope from the moment it reads the run before it until it is saved; its files are
written before, so that what is saved names files that are there.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl
import psycopg
from psycopg.rows import class_row

from connectors.breaks import DRAFTED_BREAKS, breaks_hash, copy_breaks
from connectors.errors import ReconciliationUnknown, ScopeHeldElsewhere
from connectors.heartbeat import end_if_idle, leased, taken_over, when_free
from connectors.ledger import detail_text, whoami, write_trail

_LOCK = "hashtext('recon scope'), hashtext(%s)"


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One row of the reconciliation table."""

    id: int
    scope: str
    scope_hash: str
    as_of: date
    rules_hash: str
    verdict: str
    report_hash: str
    chain_hash: str
    previous_id: int | None
    decided_through: int
    """The last decision it has acted on; 0: none."""
    opened_at: datetime
    folder: str
    """Of its files, under the reports folder."""
    event_id: int
    rules_text: str | None = None
    """None: of a run of an earlier version, which has them in its totals alone."""
    version: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.as_of, str):
            object.__setattr__(self, "as_of", date.fromisoformat(self.as_of))


def scope_hash(scope: str) -> str:
    """What tells two scopes apart."""
    return hashlib.sha256(scope.encode()).hexdigest()


@contextmanager
def hold_scope(connection: psycopg.Connection, scope: str) -> Iterator[None]:
    """Reconcile a scope alone; raises ScopeHeldElsewhere. The hold dies with the connection."""
    name, whole = _scope_lease(scope_hash(scope)), scope_hash(scope)

    def locked() -> bool:
        row = connection.execute(f"SELECT pg_try_advisory_lock({_LOCK})", [whole]).fetchone()
        return bool(row and row[0])

    if not locked() and not _take_over(connection, name, locked):
        raise ScopeHeldElsewhere(
            "Another run reconciles the same scope, or somebody decides about its breaks. "
            f"Wait for it, then run this again. {when_free(connection, name)}Nothing was changed."
        )
    try:
        with leased(connection, name):
            yield
    finally:
        if not connection.closed:
            connection.execute(f"SELECT pg_advisory_unlock({_LOCK})", [scope_hash(scope)])


def keep_scope(connection: psycopg.Connection, run: Reconciliation) -> None:
    """Let nobody reconcile or decide in a run's scope until this transaction ends.

    Raises ScopeHeldElsewhere while a run is under way, because it has read the decisions already.
    """

    def locked() -> bool:
        row = connection.execute(
            f"SELECT pg_try_advisory_xact_lock_shared({_LOCK})", [run.scope_hash]
        ).fetchone()
        return bool(row and row[0])

    end_if_idle(connection)
    name = _scope_lease(run.scope_hash)
    if not locked() and not _take_over(connection, name, locked):
        raise ScopeHeldElsewhere(
            f"The scope of reconciliation {run.id} is being reconciled right now. Wait for that "
            f"run and decide on its result. {when_free(connection, name)}Nothing was changed."
        )
    connection.execute(
        "SELECT pg_advisory_xact_lock(hashtext('recon decision'), hashtext(%s))", [run.scope_hash]
    )


def _scope_lease(whole: str) -> str:
    return f"scope {whole}"


def _take_over(connection: psycopg.Connection, name: str, locked: Callable[[], bool]) -> bool:
    former = taken_over(connection, name, locked)
    if former is not None:
        write_trail(connection, "took_over", whoami(), detail_text({"from": former, "lease": name}))
    return former is not None


def find_run(connection: psycopg.Connection, number: int | None = None) -> Reconciliation:
    """The reconciliation of this number, or the latest of all; raises ReconciliationUnknown."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        run = cursor.execute(
            "SELECT * FROM reconciliation WHERE %(id)s::int IS NULL OR id = %(id)s "
            "ORDER BY id DESC LIMIT 1",
            {"id": number},
        ).fetchone()
    if run is None:
        missing = "no reconciliation yet" if number is None else f"no reconciliation {number}"
        raise ReconciliationUnknown(f"There is {missing}. `recon reconcile` makes one.")
    return run


def list_runs(connection: psycopg.Connection) -> list[Reconciliation]:
    """Every reconciliation, the first one first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute("SELECT * FROM reconciliation ORDER BY id").fetchall()


def latest_run(connection: psycopg.Connection, scope: str) -> Reconciliation | None:
    """The run of this scope that the next one follows."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %s ORDER BY id DESC LIMIT 1",
            [scope_hash(scope)],
        ).fetchone()


def latest_runs(connection: psycopg.Connection) -> list[Reconciliation]:
    """The last run of every scope, the first one first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE id IN "
            "(SELECT max(id) FROM reconciliation GROUP BY scope_hash) ORDER BY id"
        ).fetchall()


def rules_text_of(connection: psycopg.Connection, rules_hash: str) -> str | None:
    """The rules with this hash, as any run of this version kept them."""
    row = connection.execute(
        "SELECT rules_text FROM reconciliation "
        "WHERE rules_hash = %s AND rules_text IS NOT NULL LIMIT 1",
        [rules_hash],
    ).fetchone()
    return None if row is None else str(row[0])


def runs_by_rules(connection: psycopg.Connection, rules_hash: str) -> list[str]:
    """Folders of the runs that used these rules, the latest first."""
    rows = connection.execute(
        "SELECT folder FROM reconciliation WHERE rules_hash = %s ORDER BY id DESC", [rules_hash]
    ).fetchall()
    return [str(folder) for (folder,) in rows]


def first_run(
    connection: psycopg.Connection, scope: str, before: int | None = None
) -> Reconciliation | None:
    """The first run of a scope, where it is one before the run of this number."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %(scope)s "
            "AND (%(before)s::int IS NULL OR id < %(before)s) ORDER BY id LIMIT 1",
            {"scope": scope_hash(scope), "before": before},
        ).fetchone()


def next_number(connection: psycopg.Connection) -> int:
    """A number for a run that is under way, to name its folder; one that dies leaves a gap."""
    row = connection.execute("SELECT next_reconciliation()").fetchone()
    assert row is not None
    return int(row[0])


def save_run(
    connection: psycopg.Connection,
    *,
    number: int,
    scope: str,
    as_of: date,
    rules_hash: str,
    verdict: str,
    report_hash: str,
    chain_hash: str,
    previous: Reconciliation | None,
    decided_through: int,
    folder: str,
    breaks: pl.DataFrame,
    by: str | None = None,
    reason: str = "",
    rules_text: str | None = None,
    version: str | None = None,
) -> Reconciliation:
    """Save a run with its breaks in one transaction; the caller holds the scope.

    `reason` is that of a restatement. `breaks` has the columns of the ledger's break states,
    without the run's number.
    """
    facts = {
        "id": number,
        "scope_hash": scope_hash(scope),
        "as_of": as_of.isoformat(),
        "rules_hash": rules_hash,
        "verdict": verdict,
        "report_hash": report_hash,
        "chain_hash": chain_hash,
        "previous_id": previous.id if previous else None,
        "decided_through": decided_through,
        "folder": folder,
    }
    with connection.transaction():
        last = latest_run(connection, scope)
        assert (last and last.id) == facts["previous_id"], "the scope is held by its caller"
        copy_breaks(connection, number, breaks)
        hashed = breaks_hash(connection, number, DRAFTED_BREAKS)
        told = facts | {"version": version, "breaks": breaks.height, "breaks_hash": hashed}
        detail = detail_text(told | ({"restates": reason} if reason else {}))
        values = facts | {"scope": scope, "rules_text": rules_text, "version": version}
        connection.execute("SELECT draft('reconciliation')")
        connection.execute(
            f"INSERT INTO draft_reconciliation ({', '.join(values)}) "
            f"VALUES ({', '.join(f'%({name})s' for name in values)})",
            values,
        )
        write_trail(connection, "conclude", by or whoami(), detail)
    return find_run(connection, number)
