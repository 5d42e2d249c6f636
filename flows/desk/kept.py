"""What pages of a run are made of, kept in memory for as long as nothing is decided on it.

Runs, their breaks and the decisions about these are never changed, only added. So what the breaks
of a run are now follows from the run and the last decision on it, and the database is asked for
that one each time.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

import polars as pl
import psycopg

from connectors.postgres.breaks import newest_decision, proposals_on
from connectors.postgres.ledger import ENDED, Batch, State, last_event
from connectors.postgres.overview import BatchSummary
from connectors.postgres.reconciliations import Reconciliation
from connectors.postgres.signatures import newest_signature
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

Made = TypeVar("Made")
FRAMES, VALUES, REPORTS = 4, 1_000, 50
"""Runs of which breaks are kept (50 MB for 100,000 of them), small values about runs, and reports
of batches."""
ADDING_UP = (*ENDED, State.HELD, State.MERGED, State.FAILED)
"""States in which the rows of a batch add up to something."""


class LastUsed(Generic[Made]):
    """The values used last, each made once however many ask for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()
        self._turns: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value of a key; whoever asks while it is being made waits for it."""
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
        with turn:
            try:
                with self._lock:
                    if key in self._kept:
                        self._kept.move_to_end(key)
                        return self._kept[key]
                made = make()
                with self._lock:
                    self._kept[key] = made
                    while len(self._kept) > self._most:
                        self._kept.popitem(last=False)
                return made
            finally:
                with self._lock:
                    self._turns.pop(key, None)


class Kept:
    """What one desk keeps; ask only about runs that the visit sees."""

    def __init__(self, frames: int = FRAMES) -> None:
        self._left: LastUsed[pl.DataFrame] = LastUsed(frames)
        self._breaks: LastUsed[pl.DataFrame] = LastUsed(frames)
        self._reviews: LastUsed[Review] = LastUsed(VALUES)
        self._changes: LastUsed[Changes] = LastUsed(VALUES)
        self._reports: LastUsed[BatchReport] = LastUsed(REPORTS)
        self._trend: LastUsed[TrendPoint | None] = LastUsed(VALUES)

    def breaks(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> pl.DataFrame:
        """The breaks of a run as they are now: `breaks_now` with severities, ages and proposals.

        `proposed_by` is who proposed an acceptance that somebody else has to take.
        """

        def read() -> pl.DataFrame:
            left = self._left.get((run.id, run.chain_hash), lambda: breaks_left_by(connection, run))
            breaks = breaks_now(connection, run, left=left)
            proposed = proposals_on(connection, run.id, run.decided_through)
            proposed_by = pl.Series([proposed.get(one) for one in breaks["id"]], dtype=pl.String)
            rules = rules_of(place, connection, run.rules_hash) or Rules()
            breaks = breaks.with_columns(
                severities(breaks, rules, run.as_of), proposed_by.alias("proposed_by")
            )
            return with_ages(breaks, run.as_of, rules.calendar)

        return self._breaks.get(_key(connection, run), read)

    def review(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> Review:
        """Its figures, and whether it can be approved."""

        def judge() -> Review:
            return review_of(place, connection, run, self.breaks(place, connection, run))

        return self._reviews.get(_key(connection, run), judge)

    def changes(
        self, place: Workspace, connection: psycopg.Connection, run: Reconciliation
    ) -> Changes:
        """What whoever approves it now accepts with it."""

        def compare() -> Changes:
            return to_accept(place, connection, run, self.breaks(place, connection, run))

        key = _key(connection, run), newest_signature(connection)
        return self._changes.get(key, compare)

    def batch_report(
        self,
        place: Workspace,
        connection: psycopg.Connection,
        batch: Batch,
        line: BatchSummary,
    ) -> BatchReport | None:
        """A batch recounted; None while its rows are still being read or applied.

        `line` counts it as it is now. A correction, which changes what became of rows of another
        batch, says so in the trail.
        """
        if batch.state not in ADDING_UP:
            return None
        said = last_event(connection, of_batches=True)
        sent = tuple(sorted(line.at_service.items()))
        facts = (batch.state, batch.lease_epoch, line.rows, line.errors, line.refused, sent)
        key = batch.id, batch.opened_at, said, facts
        return self._reports.get(key, lambda: build_report(place, connection, batch.id))

    def trend_point(self, place: Workspace, run: Reconciliation) -> TrendPoint | None:
        """What the report of a run said was open; None where it cannot be read."""
        key = run.id, run.report_hash
        return self._trend.get(key, lambda: trend_point(place, run))


def _key(connection: psycopg.Connection, run: Reconciliation) -> Hashable:
    # Of a database that was restored, the same number may be another run.
    return run.id, run.chain_hash, newest_decision(connection, run.id, run.decided_through)
