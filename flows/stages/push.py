"""Push: send what a batch applied to the service, operation by operation, in windows.

A window of rows is noted as being sent before its first byte leaves, in one commit with the
answers that arrived meanwhile. A run that stops early notes what is known of each row. A run that
is killed leaves the last few windows without an answer: their PUTs are sent again, their POSTs are
in doubt.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

import psycopg

from connectors.errors import ReconError, RowsUnsent, ServiceUnusable
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Batch
from connectors.postgres.database import analyse
from connectors.postgres.push.count import count_window, note_window
from connectors.postgres.push.lane import Lane, hold_lane, keep_held
from connectors.postgres.push.plan import plan_sends, settle_duplicates
from connectors.postgres.push.restores import doubt_planned
from connectors.postgres.push.sends import count_states, row_name
from connectors.postgres.push.window import (
    claim,
    count_to_send,
    give_back,
    next_rows,
    next_transaction,
    record_answers,
    supersede,
)
from connectors.postgres.resume import connected_again
from connectors.recovery import reach
from connectors.service import Answer, Request, Service, Verdict
from flows.stages.advised import advised
from flows.stages.receiving.batch_service import go_over, open_for
from flows.stages.receiving.kept import prove_to_send
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from schemas.counting import agree, quantity
from schemas.field import Table
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS, OWN

log = logging.getLogger("recon.push")
BLOCK = 4_000
"""Rows read from the database in one query."""
PUT_WINDOW = 500
"""PUTs that are noted as being sent in one commit."""
WRITE_SECONDS = 1.5
"""The longest time until answers are noted; sooner if no further answer comes for a moment. A crash
repeats the PUTs of this time."""
NO_SUCCESS = 300
"""From this status on the service did not take the row, because of it or for another reason."""
WAIT, NOT_SIGNED_IN = 429, 401
"""Statuses that are not about the row; NOT_SIGNED_IN may be once the service has taken others."""
_UNDECIDED = (Verdict.UNSENT, Verdict.IN_DOUBT)
PASSES = 3
"""How often a run returns to rows that were proved unsent."""


class _SendNumber(NamedTuple):
    """A row of the batch; each operation numbers its own rows from 1."""

    operation: str
    number: int


def push(
    workspace: Workspace, lease: Lease, *, most: int | None = None, named: bool = True
) -> None:
    """Send the unsent rows of a batch that asks for a service; raises one of STOPS_PUSH.

    A refused row affects only itself. A service that refuses us, or does not answer at all, stops
    the run once; unsent rows stay unsent and a later run sends them. `most` limits the rows of this
    run. Only a batch that somebody `named` may go to another service, because nobody has said of
    every waiting batch that it is meant for the one that is set. Raises EvidenceBroken if somebody
    altered the rows or their outcomes.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.service is None or batch.state not in ledger.UNDER_WAY:
        return
    staged = ledger.staged_tables(lease.connection, lease.batch_id)
    tables = [table for table in staged if table.name in PUSHES]
    if tables:
        prove_to_send(lease.connection, lease.batch_id)
    if named:
        batch = go_over(workspace, lease, batch, tables)
    for table in staged:
        if table not in tables:
            log.info("%s", not_sent_text(table))
    with lease.transaction():
        planned = [PUSHES[table.name] for table in tables if plan_sends(lease, table)]
        doubt_planned(lease.connection, lease.batch_id, planned)
    if planned:
        analyse(lease.connection, "send")
    reach("push-plan")
    with ExitStack() as opened:
        run = _Run(workspace, lease, lambda: open_for(workspace, lease, batch, opened))
        run.total = _unsent(lease)
        run.room = most
        service = workspace.settings.service
        for table in tables:
            with hold_lane(
                lease,
                PUSHES[table.name],
                wait_seconds=service.turn_seconds,
                repeatable=service.idempotent,
            ) as lane:
                run.push_operation(lane)
    workspace.progress("push", run.total, run.total)
    for name, states in count_states(lease.connection, lease.batch_id).items():
        counts = ", ".join(f"{rows:,} {state.replace('_', ' ')}" for state, rows in states.items())
        log.info("%s: %s", name, counts)
    if (why := run.why_unsent or run.why_lost) and (left := _unsent(lease)):
        # Too few rows to trip the circuit breaker: the service is down, or does not take these.
        message = _unsent_text(why, lease, left, run.failing)
        if run.why_unsent is None and run.taken:
            log.warning("%s", message)
            return
        others_go = run.taken or (run.why_unsent is None and run.failing)
        raise (RowsUnsent if others_go else ServiceUnusable)(message)


def not_sent(batch: Batch, report: BatchReport) -> list[Table]:
    """The record kinds of a batch to be sent that no operation takes; they stay in the database."""
    names = [chain.record for chain in report.chains if batch.service is not None]
    return [EXTRACTS[name] for name in names if name not in PUSHES]


def not_sent_text(table: Table) -> str:
    """Why no row of a record kind is sent."""
    why = "its definition names" if table.name in OWN.tables else "the service documents"
    return f"{table.title}: not sent, because {why} no operation that takes it."


def _unsent_text(why: str, lease: Lease, left: int, failing: _SendNumber | None) -> str:
    batch_id, rows = lease.batch_id, quantity(left, "row")
    why = why.removesuffix(".")
    if not left:
        return f"{why}. No row of batch {batch_id} is unsent; see `recon sends {batch_id}`."
    message = (
        f"{why}. {rows} of batch {batch_id} {agree(left, 'is', 'are')} unsent "
        f"and nothing is lost. `recon push {batch_id}` goes on when it is mended."
    )
    if failing is None:
        return message
    row = row_name(lease.connection, batch_id, *failing)
    given = {"row": row, "as": "abandon", "reason": "..."}
    return (
        f"{message} The last row that the service answered and did not take is {row}. Where it is "
        f"this row every time: `{advised('resolve', [batch_id], given)}` sets it aside."
    )


def _unsent(lease: Lease) -> int:
    counts = count_states(lease.connection, lease.batch_id)
    return sum(states.get("unsent", 0) for states in counts.values())


@dataclass(slots=True)
class _Run:
    """The push of one batch."""

    workspace: Workspace
    lease: Lease
    connect: Callable[[], Service]
    service: Service | None = None
    done: int = 0
    total: int = 0
    room: int | None = None
    """Rows that this run may still send; None: all of them."""
    why_unsent: str | None = None
    """What kept the last pass of an operation from sending a row."""
    why_lost: str | None = None
    """What became of the last attempt at a PUT whose outcome is unknown, so that it is unsent."""
    failing: _SendNumber | None = None
    """The last row whose answer settled nothing; None once it gets another answer."""
    taken: set[str] = field(default_factory=set)
    """Operations of which the service took a row."""

    def push_operation(self, lane: Lane) -> None:
        """Send the rows of one operation, coming back to those that could not be sent."""
        with lane.transaction() as connection:
            settle_duplicates(connection, lane.operation, self.lease.batch_id)
        left = count_to_send(lane)
        for _ in range(PASSES):
            if not left or self.room == 0:
                return
            # Connect first: if that fails, no row may be left that seems to be on its way.
            self.service = self.service or self.connect()
            self.service.may_not_send = self.lease.why_not
            going = _Pass(self, lane, self.service)
            going.run()
            before, left = left, count_to_send(lane)
            if left == before and not going.has_settled:
                break
        if left and self.room != 0:
            self.why_unsent = self.why_unsent or going.why_unsent
            self.why_lost = self.why_lost or going.why_lost

    def tell(self, rows: int) -> None:
        """Count rows as done, for progress."""
        self.done += rows
        self.workspace.progress("push", min(self.done, self.total), self.total)


@dataclass(slots=True)
class _Pass:
    """One pass through the rows of an operation that may be sent."""

    push: _Run
    lane: Lane
    service: Service
    kept: dict[int, Request] = field(default_factory=dict)
    """Requests by number that are noted as being sent, but not yet handed to the service."""
    answers: list[Answer] = field(default_factory=list)
    """Answers that are not noted yet."""
    why_unsent: str | None = None
    why_lost: str | None = None
    has_settled: bool = False
    """Whether an answer settled a row."""
    uncounted: ReconError | None = None
    """Why a window could not be counted at home; no window begins after that."""
    written: float = field(default_factory=monotonic)

    def run(self) -> None:
        """Send, and note every answer however the pass ends; raises ServiceUnusable."""
        ask_first = self.lane.held and not self.lane.operation.keyed
        sent = self.service.send(self._requests(), ask_first=ask_first, quiet=self._write)
        try:
            with closing(sent):
                for answer in sent:
                    self.answers.append(answer)
                    self._note_failing(answer)
                    self._note_why(answer)
                    self.has_settled |= answer.verdict not in _UNDECIDED
                    reach("push-sent")
                    if monotonic() - self.written > WRITE_SECONDS:
                        self._write()
            self._write_end(self.lane)
        except BaseException:
            self.answers += self.service.undelivered()
            with suppress(ReconError):
                self._write_end_anyhow()
            raise
        self.push.tell(len(self.answers))
        reach("push-recorded")
        if self.uncounted:
            raise self.uncounted
        if self.service.stopped:
            lease = self.push.lease
            message = _unsent_text(self.service.stopped, lease, _unsent(lease), self.push.failing)
            raise ServiceUnusable(message)

    def _write_end_anyhow(self) -> None:
        """Note the end, over a new connection if that of the run is lost or torn.

        Rows that cannot be noted stay `sending`; the next run settles them.
        """
        try:
            self._write_end(self.lane)
        except psycopg.Error:
            # A connection that a stop has torn would keep its row locks.
            self.lane.lease.connection.close()
            database = self.push.workspace.database
            with connected_again(database, monotonic() + database.wait_seconds) as connection:
                self._write_end(self.lane.over(connection))

    def _write_end(self, lane: Lane) -> None:
        """In one commit, note the last answers and release requests that were not handed over."""
        with lane.transaction():
            record_answers(lane, self.answers)
            if self.kept:
                give_back(lane, [*self.kept.values()])
            if not lane.operation.keyed:
                keep_held(lane, self.service.held)

    def _note_why(self, answer: Answer) -> None:
        if answer.verdict is Verdict.UNSENT and answer.errors:
            self.why_unsent = str(answer.errors[0]["Message"])
        elif answer.verdict is Verdict.IN_DOUBT and answer.errors and self.lane.operation.keyed:
            # Errors of earlier attempts come before the last one.
            self.why_lost = str(answer.errors[-1]["Message"])

    def _note_failing(self, answer: Answer) -> None:
        operation, status = self.lane.operation.name, answer.status or 0
        row = _SendNumber(operation, answer.number)
        if answer.verdict is Verdict.ACKNOWLEDGED:
            self.push.taken.add(operation)
        of_row = status != NOT_SIGNED_IN or operation in self.push.taken
        if answer.verdict in _UNDECIDED and status >= NO_SUCCESS and status != WAIT and of_row:
            self.push.failing = row
        elif self.push.failing == row:
            self.push.failing = None

    def _requests(self) -> Iterator[Request]:
        """The rows to send in push order; a window is claimed when its first row is asked for."""
        for rows in self._windows():
            window = rows[: self.push.room]
            if self.service.stopped or not window:
                return
            written = len(self.answers)
            window = self._claim(window)
            if self.push.room is not None:
                self.push.room -= len(window)
            if self.uncounted:
                return  # Requests in flight are waited for.
            if written:
                reach("push-recorded")
            reach("push-sending")
            for request in window:
                yield request
                # Only now: a stop may fall between, and then the answer tells who has the request.
                del self.kept[request.number]

    def _claim(self, window: Sequence[Request]) -> Sequence[Request]:
        """In one commit, note the answers so far and claim the next window; gives the claimed rows.

        Rows may have changed since the window was read; those are not claimed, and so not sent.
        """
        operation = self.lane.operation
        # Before the commit, whose answer may be lost although the claim was made.
        self.kept = {request.number: request for request in window}
        with self.lane.transaction() as connection:
            record_answers(self.lane, self.answers)
            alone = self.push.workspace.settings.service.rows_at_once == 1
            window = claim(self.lane, window, own_key=alone)
            if window and not operation.keyed:
                count = count_window(connection, operation.name)
        self._written()
        if window and not operation.keyed:
            try:
                note_window(self.push.workspace.settings.home, operation.name, count)
            except ReconError as error:
                with self.lane.transaction():
                    give_back(self.lane, window)
                self.uncounted, window = error, ()
        self.kept = {request.number: request for request in window}
        return window

    def _write(self) -> None:
        if self.answers:
            with self.lane.transaction():
                record_answers(self.lane, self.answers)
            self._written()
            reach("push-recorded")

    def _written(self) -> None:
        self.written = monotonic()
        self.push.tell(len(self.answers))
        self.answers.clear()

    def _windows(self) -> Iterator[Sequence[Request]]:
        """Current rows in windows; a row whose record has a newer body is left out.

        Unsent rows that were answered before go last: the answers to the others show whether the
        fault lies with the row.
        """
        began = next_transaction(self.lane.lease.connection)
        for answered_before in (None, began):
            yield from self._windows_of(answered_before)

    def _windows_of(self, answered_before: str | None) -> Iterator[Sequence[Request]]:
        lane, after = self.lane, 0
        while rows := next_rows(lane, after, BLOCK, answered_before):
            after = rows[-1].request.number
            old = [row for row in rows if not row.current]
            if old:
                with lane.transaction():
                    supersede(lane, old)
                self.push.tell(len(old))
            requests = [row.request for row in rows if row.current]
            start = 0
            while start < len(requests):
                # Claimed rows are in doubt if this process is killed, so claim only what is useful.
                size = PUT_WINDOW if lane.operation.keyed else self.service.window
                yield requests[start : start + size]
                start += size
