"""Reconciliations: the runs of a scope, one after the other, and what each left behind.

A run holds its scope from the moment it reads the run before it until it is saved; its files are
written before, so that what is saved names files that are there.
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
"""What the event of a run keeps of its manifest."""
DECISION_SECONDS = 60
"""How long a decision waits for another one; each takes moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run says of itself when it is saved."""

    id: int
    scope: str
    as_of: date
    rules_hash: str
    verdict: str
    report_hash: str
    chain_hash: str
    previous_id: int | None
    decided_through: int
    """The last decision it has acted on; 0: none."""
    folder: str
    """Of its files, under the reports folder."""
    rules_text: str | None = None
    """None: of a run of an earlier version, which has them in its totals alone."""
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
    """The hash of everything the ledger keeps of a run's breaks, or is about to keep."""
    asked = f"SELECT {breaks_digest(table)} WHERE reconciliation_id = %s"
    return str(one_value(connection.execute(asked, [number])))


def decisions_hash(lines: Iterable[Sequence[object]]) -> str:
    """The hash of decisions, a ceiling last; one without is hashed as before there were any."""
    return content_hash(line if line[-1] is not None else line[:-1] for line in lines)


def scope_hash(scope: str) -> str:
    """What tells two scopes apart."""
    return hashlib.sha256(scope.encode()).hexdigest()


@contextmanager
def hold_scope(connection: psycopg.Connection, scope: str) -> Iterator[None]:
    """Reconcile a scope alone; raises ScopeHeldElsewhere. The hold dies with the connection."""
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
    """A transaction in which nobody else reconciles or decides in a run's scope.

    Raises ScopeHeldElsewhere while a run is under way, because it has read the decisions already,
    and where this process did nothing for so long that it was ended.
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


def runs_of(
    connection: psycopg.Connection, scope: str, through: int, most: int
) -> list[Reconciliation]:
    """The last runs of a scope up to the one of a number, the first one first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        found = cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %s AND id <= %s "
            "ORDER BY id DESC LIMIT %s",
            [scope_hash(scope), through, most],
        ).fetchall()
    return found[::-1]


def maker_of(connection: psycopg.Connection, run: Reconciliation) -> tuple[str, str | None]:
    """Who made a run: the name that was given, and the account that was logged in, if any."""
    row = connection.execute(
        "SELECT by, person FROM event WHERE id = %s", [run.event_id]
    ).fetchone()
    return (str(row[0]), row[1]) if row else ("", None)


def manifest_noted(connection: psycopg.Connection, run: Reconciliation) -> str | None:
    """The SHA-256 of a run's manifest, as its event says it.

    None: of a run of an earlier version, or for an account that does not see the event.
    """
    detail = connection.execute("SELECT detail FROM event WHERE id = %s", [run.event_id])
    noted = read_detail(one_value(detail)).get(MANIFEST_NOTED)
    return None if noted is None else str(noted)


def latest_run(
    connection: psycopg.Connection, scope: str, until: date | None = None
) -> Reconciliation | None:
    """The run of this scope that the next one follows; of those as of a day or before it."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE scope_hash = %s AND as_of <= %s "
            "ORDER BY id DESC LIMIT 1",
            [scope_hash(scope), (until or date.max).isoformat()],
        ).fetchone()


def latest_runs(connection: psycopg.Connection) -> list[Reconciliation]:
    """The last run of every scope, the first one first."""
    with connection.cursor(row_factory=class_row(Reconciliation)) as cursor:
        return cursor.execute(
            "SELECT * FROM reconciliation WHERE id IN "
            "(SELECT max(id) FROM reconciliation GROUP BY scope_hash) ORDER BY id"
        ).fetchall()


def rules_text_of(connection: psycopg.Connection, rules_hash: str) -> str | None:
    """The rules with this hash, as any run of this version kept them: a text that has it."""
    row = connection.execute(
        "SELECT rules_text FROM reconciliation WHERE rules_hash = %s "
        "AND encode(sha256(convert_to(rules_text, 'UTF8')), 'hex') = rules_hash LIMIT 1",
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
    connection: psycopg.Connection, scope: str, before: int | None
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
    return int(one_value(connection.execute("SELECT next_reconciliation()")))
