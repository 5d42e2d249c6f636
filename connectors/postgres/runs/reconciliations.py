"""Reconciliations: the successive runs of a scope, and what each left behind.

A run holds its scope from reading the run before it until it is saved. Its files are written before
it is saved, so that a saved run names files that exist.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime

import psycopg
from psycopg.rows import class_row

from connectors.errors import ReconciliationUnknown, ScopeHeldElsewhere
from connectors.postgres.heartbeat import Taken, end_if_idle, holder_text, renewed, take
from connectors.postgres.query import one_value
from connectors.postgres.trail import detail_text, read_detail, write_trail
from connectors.process import whoami
from schemas.counting import quantity
from schemas.guards.leases import Held
from schemas.guards.trail_functions import breaks_digest
from schemas.guards.trail_rules import content_hash
from schemas.ledger import BREAK_STATE

MANIFEST_NOTED = "manifest_sha256"
"""Key in a run's event: the hash of its manifest."""
DECISION_SECONDS = 60
"""How long a decision waits for another; each takes only moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts that a run states when it is saved."""

    id: int
    scope: str
    as_of: date
    rules_hash: str
    verdict: str
    report_hash: str
    chain_hash: str
    previous_id: int | None
    decided_through: int
    """The last decision it has acted on; 0 if none."""
    folder: str
    """Folder of its files, below the reports folder."""
    rules_text: str | None = None
    """None for a run of an earlier version, which has them only in its totals."""
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation(RunFacts):
    """One row of the reconciliation table."""

    scope_hash: str
    opened_at: datetime
    event_id: int

    def __post_init__(self) -> None:
        if isinstance(self.as_of, str):
            object.__setattr__(self, "as_of", date.fromisoformat(self.as_of))


def breaks_hash(connection: psycopg.Connection, number: int, table: str = BREAK_STATE.name) -> str:
    """Hash of everything the ledger keeps, or in a draft is to keep, of a run's breaks."""
    asked = f"SELECT {breaks_digest(table)} WHERE reconciliation_id = %s"
    return str(one_value(connection.execute(asked, [number])))


def decisions_hash(lines: Iterable[Sequence[object]]) -> str:
    """Hash of decisions, each with its ceiling last; one without is hashed as before ceilings."""
    return content_hash(line if line[-1] is not None else line[:-1] for line in lines)


def scope_hash(scope: str) -> str:
    """The hash by which scopes are told apart."""
    return hashlib.sha256(scope.encode()).hexdigest()


@contextmanager
def hold_scope(connection: psycopg.Connection, scope: str) -> Iterator[None]:
    """Hold a scope for one run; raises ScopeHeldElsewhere. The hold ends with the connection."""
    whole = scope_hash(scope)
    taken = take(connection, Held.SCOPE, whole)
    if taken is None:
        raise ScopeHeldElsewhere(
            f"Another run reconciles the same scope, {scope}, or somebody decides about its "
            f"breaks: {holder_text(connection, Held.SCOPE, whole)}Wait for it, then run this "
            "again. Nothing was changed."
        )
    with renewed(connection, taken):
        _note_former(connection, taken)
        yield


@contextmanager
def keep_scope(connection: psycopg.Connection, run: Reconciliation) -> Iterator[None]:
    """Open a transaction in which nobody else reconciles or decides in a run's scope.

    Raises ScopeHeldElsewhere during a run, because it has already read the decisions, and if this
    process idled for so long that its session was ended.
    """
    turn = take(connection, Held.DECISION, run.scope_hash, DECISION_SECONDS)
    if turn is None:
        raise ScopeHeldElsewhere(
            f"Somebody else decides about reconciliation {run.id} of {run.scope!r}: "
            f"{holder_text(connection, Held.DECISION, run.scope_hash)}Nothing was changed."
        )
    with renewed(connection, turn):
        taken = take(connection, Held.SCOPE, run.scope_hash)
        if taken is None:
            raise ScopeHeldElsewhere(
                f"The scope {run.scope!r} of reconciliation {run.id} is being reconciled right "
                f"now: {holder_text(connection, Held.SCOPE, run.scope_hash)}Wait for that run and "
                "decide on its result. Nothing was changed."
            )
        began = datetime.now(UTC)
        with renewed(connection, taken) as heartbeat:
            _note_former(connection, taken)
            try:
                with connection.transaction():
                    end_if_idle(connection)
                    yield
            except psycopg.Error as error:
                now = heartbeat.successor()
                if now or isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
                    raise ScopeHeldElsewhere(_frozen(run, began, heartbeat.seconds, now)) from None
                raise


def _frozen(run: Reconciliation, began: datetime, seconds: int, now: str) -> str:
    return (
        f"This decision about reconciliation {run.id} of {run.scope!r}, by {whoami()} since "
        f"{began:%Y-%m-%d %H:%M:%S} UTC, did nothing for longer than its lease of "
        f"{quantity(seconds, 'second')}, and its session was ended. "
        f"{f'The scope is held by {now} now. ' if now else ''}"
        "Nothing was decided: look at the latest run, and decide again."
    )


def _note_former(connection: psycopg.Connection, taken: Taken) -> None:
    if taken.former is not None:
        detail = detail_text({"from": taken.former, "lease": taken.name})
        write_trail(connection, "took_over", whoami(), detail)


def run_of_event(connection: psycopg.Connection, event: int) -> Reconciliation:
    found = connection.execute("SELECT id FROM reconciliation WHERE event_id = %s", [event])
    number = one_value(found)
    assert number is not None, "a run is saved with its event"
    return find_run(connection, number)


def find_run(connection: psycopg.Connection, number: int | None = None) -> Reconciliation:
    """The reconciliation of this number, or the latest; raises ReconciliationUnknown."""
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
    """Every reconciliation, oldest first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute("SELECT * FROM reconciliation ORDER BY id").fetchall()


def runs_of(
    connection: psycopg.Connection, scope: str, through: int, most: int
) -> list[Reconciliation]:
    """The last runs of a scope up to a number, oldest first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        found = cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %s AND id <= %s "
            "ORDER BY id DESC LIMIT %s",
            [scope_hash(scope), through, most],
        ).fetchall()
    return found[::-1]


def maker_of(connection: psycopg.Connection, run: Reconciliation) -> tuple[str, str | None]:
    """Who made a run: the stated name, and the account logged in, if any."""
    row = connection.execute(
        "SELECT by, person FROM event WHERE id = %s", [run.event_id]
    ).fetchone()
    return (str(row[0]), row[1]) if row else ("", None)


def manifest_noted(connection: psycopg.Connection, run: Reconciliation) -> str | None:
    """The SHA-256 of a run's manifest according to its event.

    None for a run of an earlier version, or if the account does not see the event.
    """
    detail = connection.execute("SELECT detail FROM event WHERE id = %s", [run.event_id])
    noted = read_detail(one_value(detail)).get(MANIFEST_NOTED)
    return None if noted is None else str(noted)


def latest_run(
    connection: psycopg.Connection, scope: str, until: date | None = None
) -> Reconciliation | None:
    """The run that a scope's next run follows; with `until`, the last as of that day or earlier."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %s AND as_of <= %s "
            "ORDER BY id DESC LIMIT 1",
            [scope_hash(scope), (until or date.max).isoformat()],
        ).fetchone()


def latest_runs(connection: psycopg.Connection) -> list[Reconciliation]:
    """The latest run of every scope, oldest first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE id IN "
            "(SELECT max(id) FROM reconciliation GROUP BY scope_hash) ORDER BY id"
        ).fetchall()


def rules_text_of(connection: psycopg.Connection, rules_hash: str) -> str | None:
    """The text of the rules with this hash, from any run that kept it; the text is checked."""
    row = connection.execute(
        "SELECT rules_text FROM reconciliation WHERE rules_hash = %s "
        "AND encode(sha256(convert_to(rules_text, 'UTF8')), 'hex') = rules_hash LIMIT 1",
        [rules_hash],
    ).fetchone()
    return None if row is None else str(row[0])


def runs_by_rules(connection: psycopg.Connection, rules_hash: str) -> list[str]:
    """Folders of the runs that used these rules, latest first."""
    rows = connection.execute(
        "SELECT folder FROM reconciliation WHERE rules_hash = %s ORDER BY id DESC", [rules_hash]
    ).fetchall()
    return [str(folder) for (folder,) in rows]


def first_run(
    connection: psycopg.Connection, scope: str, before: int | None
) -> Reconciliation | None:
    """The first run of a scope, if it is before the run of this number."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %(scope)s "
            "AND (%(before)s::int IS NULL OR id < %(before)s) ORDER BY id LIMIT 1",
            {"scope": scope_hash(scope), "before": before},
        ).fetchone()


def next_number(connection: psycopg.Connection) -> int:
    """Draw a number for a run under way, to name its folder; a run that dies leaves a gap."""
    return int(one_value(connection.execute("SELECT next_reconciliation()")))
