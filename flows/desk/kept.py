"""The data that pages about runs are made from, kept in memory, and read before they are needed.

Runs, their breaks and the decisions about them are never changed, only added. So the present breaks
of a run follow from the run and its decisions: each time, the database is asked for the latest
decision, and new ones are taken in.

Kept data are shown to everybody who may see them, while PostgreSQL silently shows nothing to a
login that has ended. So data are neither kept nor shown unless the reader still sees everything
after
reading: a login that has ended does not come back.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

import polars as pl
import psycopg

from connectors.errors import LoginRefused, ReconError
from connectors.postgres.accounts import (
    LOGIN_ENDED,
    acting,
    is_batch_seen,
    list_limits,
    sees_breaks,
    sees_part,
)
from connectors.postgres.batches.ledger import ENDED, UNDER_WAY, Batch, State
from connectors.postgres.batches.overview import BatchSummary
from connectors.postgres.runs.breaks import (
    decided_after,
    newest_decision,
    newest_in_scope,
    proposals_on,
)
from connectors.postgres.runs.reconciliations import Reconciliation, latest_runs
from connectors.postgres.runs.signatures import newest_signature, why_interested
from connectors.postgres.trail import last_event
from flows.desk.review import Review, review_of
from flows.desk.trend import TrendPoint, trend_point
from flows.stages.finish import build_report
from flows.stages.reconcile.breaks import breaks_left_by, breaks_now
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.since_signed import to_accept
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.severity import severities
from flows.steps.reconcile.report import Changes
from flows.steps.rules.rules import Rules

log = logging.getLogger("recon.desk")

Made = TypeVar("Made")
FRAMES, VALUES, REPORTS = 4, 1_000, 50
"""How many runs' breaks (50 MB for 100,000 of them), small values about runs, and batch reports are
kept."""
LOOK_SECONDS, STOP_SECONDS = 15, 5
"""Seconds between looks for new runs, and for a look under way to end."""
ADDING_UP = (*ENDED, State.HELD, *UNDER_WAY)
"""States in which the rows of a batch have totals."""


class LastUsed(Generic[Made]):
    """The most recently used values, each made once however many ask for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()
        self._turns: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value of a key; callers wait while another one makes it."""
        return self.renewed(key, lambda kept: kept[0] if kept else make())

    def renewed(self, key: Hashable, make: Callable[[Sequence[Made]], Made]) -> Made:
        """The value of a key, made from the kept one, or the kept one itself if it still holds."""
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
        with turn:
            try:
                with self._lock:
                    kept = [self._kept[key]] if key in self._kept else []
                made = make(kept)
                with self._lock:
                    self._kept[key] = made
                    self._kept.move_to_end(key)
                    while len(self._kept) > self._most:
                        self._kept.popitem(last=False)
                return made
            finally:
                with self._lock:
                    self._turns.pop(key, None)


@dataclass(frozen=True, slots=True)
class _CurrentBreaks:
    through: tuple[int, datetime] | None
    """The last decision that was taken in; None if there was none."""
    breaks: pl.DataFrame


class Kept:
    """What one desk keeps; only ask about runs that the visit may see."""

    def __init__(self) -> None:
        self._left: LastUsed[pl.DataFrame] = LastUsed(FRAMES)
        self._breaks: LastUsed[_CurrentBreaks] = LastUsed(FRAMES)
        self._reviews: LastUsed[Review] = LastUsed(VALUES)
        self._changes: LastUsed[Changes] = LastUsed(VALUES)
        self._interested: LastUsed[str | None] = LastUsed(VALUES)
        self._reports: LastUsed[BatchReport] = LastUsed(REPORTS)
        self._trend: LastUsed[TrendPoint | None] = LastUsed(VALUES)

    def breaks(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> pl.DataFrame:
        """The present breaks of a run: `breaks_now` with severities, ages and proposals.

        `proposed_by` is the person whose proposed acceptance somebody else has to confirm. If
        breaks are kept, only those with decisions since are brought up to date.
        """
        # Asked first, so that a decision in between is taken in twice rather than overlooked.
        newest = newest_decision(connection, run.id, run.decided_through)

        def take_in(kept: Sequence[_CurrentBreaks]) -> _CurrentBreaks:
            before = kept[0] if kept else None
            if before is not None and before.through == newest:
                return before
            left = self._breaks_left(place, connection, run)
            ids = decided_after(connection, run.id, before.through) if before else None
            if before is None or ids is None:
                now = _decided(connection, run, left)
            else:
                changed = pl.col("id").is_in(ids)
                again = _decided(connection, run, left.filter(changed), ids)
                now = pl.concat([before.breaks.filter(~changed), again]).sort("id")
            _refuse_ended(sees_breaks(connection, run.id))
            return _CurrentBreaks(newest, now)

        return self._breaks.renewed((run.id, run.chain_hash), take_in).breaks

    def _breaks_left(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> pl.DataFrame:
        """The part of a run's breaks that no decision changes, in the order of their ids."""

        def read() -> pl.DataFrame:
            rules = rules_of(place, connection, run.rules_hash) or Rules()
            left = breaks_left_by(connection, run).sort("id")
            left = left.with_columns(severities(left, rules, run.as_of))
            _refuse_ended(sees_breaks(connection, run.id))
            return with_ages(left, run.as_of, rules.calendar)

        return self._left.get((run.id, run.chain_hash), read)

    def review(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> Review:
        """A run's figures, and whether it can be approved."""

        def compute() -> Review:
            return review_of(place, connection, run, self.breaks(place, connection, run))

        return self._reviews.get(_key(connection, run), compute)

    def changes(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> Changes:
        """What approving the run now accepts with it, as far as the account sees what is signed."""
        seen = _signed_for(connection)

        def compare() -> Changes:
            # Only breaks set aside by rules matter, which decisions do not change.
            left = self._breaks_left(place, connection, run)
            changes = to_accept(place, connection, run, left)
            _refuse_ended(sees_breaks(connection, run.id) and _signed_for(connection) == seen)
            return changes

        key = run.id, run.chain_hash, newest_signature(connection), seen
        return self._changes.get(key, compare)

    def why_interested(
        self, connection: psycopg.Connection, run: Reconciliation, account: str
    ) -> str | None:
        """The rule that prevents an account from approving a run; None if there is none.

        It depends on who prepared the run, on decisions before it was made, and on the limits.
        """
        limits = tuple(list_limits(connection).items())
        key = run.id, run.chain_hash, account, newest_signature(connection), limits
        return self._interested.get(key, lambda: why_interested(connection, account, run.id))

    def batch_report(
        self, place: Workspace, connection: psycopg.Connection, batch: Batch, line: BatchSummary
    ) -> BatchReport | None:
        """A batch recounted; None while its rows are still being read or applied.

        `line` has its present counts. A correction changes the outcome of another batch's rows, and
        leaves an event about that in the trail.
        """
        if batch.state not in ADDING_UP:
            return None
        newest = last_event(connection, of_batches=True)
        sent = tuple(sorted(line.at_service.items()))
        facts = (batch.state, batch.lease_epoch, line.rows, line.errors, line.refused, sent)
        key = batch.id, batch.opened_at, newest, facts

        def build() -> BatchReport:
            report = build_report(place, connection, batch.id)
            _refuse_ended(is_batch_seen(connection, batch.id))
            return report

        return self._reports.get(key, build)

    def trend_point(self, place: Workspace, run: Reconciliation) -> TrendPoint | None:
        """What was open according to a run's report; None if the report cannot be read."""
        key = run.id, run.report_hash
        return self._trend.get(key, lambda: trend_point(place, run))


def _signed_for(connection: psycopg.Connection) -> tuple[int, ...] | None:
    """The tenants whose signed reports the acting account may see; None if all."""
    if not sees_part(connection):
        return None
    person = acting(connection)
    return person.tenants if person else ()


def _refuse_ended(sees: bool) -> None:
    if not sees:
        raise LoginRefused(LOGIN_ENDED)


def _decided(
    connection: psycopg.Connection,
    run: Reconciliation,
    left: pl.DataFrame,
    ids: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Breaks that a run left, with the decisions about them; `ids` if they are not all."""
    breaks = breaks_now(connection, run, ids, left=left)
    proposed = proposals_on(connection, run.id, run.decided_through, ids)
    by = pl.Series("proposed_by", [proposed.get(one) for one in breaks["id"]], dtype=pl.String)
    return breaks.with_columns(by)


def _key(connection: psycopg.Connection, run: Reconciliation) -> Hashable:
    # In a restored database, the same number may be another run. Decisions on a later run may take
    # back what this one shows as accepted.
    newest = newest_in_scope(connection, run.scope_hash, run.decided_through)
    return run.id, run.chain_hash, newest


@contextmanager
def warming(place: Workspace, kept: Kept) -> Iterator[None]:
    """Read the last run of each scope once, newest first, until the block ends.

    Permissions are checked where a run is shown, not here. If the database account sees nothing
    without a login (recon_desk, once there are accounts), nothing is read ahead.
    """
    stopped = Event()
    known: set[tuple[int, str]] = set()

    def go() -> None:
        while not stopped.is_set():
            try:
                warm(place, kept, known, stopped)
            except ReconError as error:  # Pages that need the database report it themselves.
                log.warning("Nothing is read ahead: %s", error)
            stopped.wait(LOOK_SECONDS)

    thread = Thread(target=go, name="warming", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(STOP_SECONDS)


def warm(place: Workspace, kept: Kept, known: set[tuple[int, str]], stopped: Event) -> None:
    """Read runs that are not `known`, up to the number that are kept, and add them to `known`."""
    with place.database.connect() as connection:
        latest = sorted(latest_runs(connection), key=lambda run: run.id, reverse=True)
    for run in latest[:FRAMES]:
        if (run.id, run.chain_hash) in known or stopped.is_set():
            continue
        # A connection for each run, so that none stays idle while another run is read.
        with place.database.connect() as connection:
            kept.review(place, connection, run)
            kept.changes(place, connection, run)
        known.add((run.id, run.chain_hash))
