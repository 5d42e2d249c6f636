"""Requests on their way: which is next, what is tried again, and when to stop."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from connectors.service.asking import sign_in
from connectors.service.classify import ClassifiedResponse, shows_every_row
from connectors.service.connection import Failed, Reply
from connectors.service.contract import CARRIED_OUT, Answer, Request, Verdict
from connectors.service.error_entries import UNSENT, ErrorEntry, error_entry
from connectors.service.host import Host
from connectors.service.line import Line
from connectors.service.outage import Outage, wait_until_back
from connectors.service.pace import asked_pause
from connectors.service.turn import Turn
from connectors.service.waiting_rows import SentRow, WaitingRows, sent_row

END_SECONDS = 5
"""How long answers are awaited if the run ends early; a task that an interrupt tore out of the
loop never ends."""
MOST_ENDED = 3
"""A row that meets an ended session more often than this in a row is what ends the sessions."""
ENDED = "The run ended before there was an answer."


class Sending:
    """The requests of one `send`."""

    def __init__(self, host: Host, *, ask_first: bool) -> None:
        self._host = host
        self._loop = host.loop
        settings = host.settings
        self._batch = settings.rows_at_once
        self._enough = settings.concurrency * self._batch
        self.outage = Outage(self._enough, settings.concurrency)
        if ask_first:
            self.outage.hold()
        self._waiting = WaitingRows(self._loop, self._wake)
        self._ready = self._waiting.ready
        self._idle: list[asyncio.Future[None]] = []
        self._gate: asyncio.TimerHandle | None = None
        self._turn = Turn(self._loop)
        self._answers: deque[Answer] = deque()
        self._unanswered: dict[SentRow, None] = {}
        """Every row taken and not answered, in the order they were taken."""
        self._carried: dict[Line, list[SentRow]] = {}
        """Rows of a request whose first byte may have left, until the outcome is known."""
        self._exhausted = self._ending = False
        self._grown = False
        """The host has just shown that it counts rows: the next request waits to be filled."""
        self._workers: dict[Line, asyncio.Task[None]] = {}

    def answers(
        self, requests: Iterable[Request], quiet: Callable[[], None]
    ) -> Generator[Answer, None, None]:
        """Yield one answer for every request; requests are taken as there is room for them.

        `quiet` is called whenever no answer came for a while.
        """
        source = iter(requests)
        self._workers = {
            line: self._loop.create_task(self._work(line)) for line in self._host.lines
        }
        for worker in self._workers.values():
            worker.add_done_callback(self._turn.worker_ended)
        try:
            while True:
                self._fill(source)
                if not self._answers:
                    if not self._unanswered:
                        return
                    self._turn.take()
                if not self._answers:
                    quiet()
                while self._answers:
                    yield self._answers[0]
                    self._answers.popleft()  # After the yield: a stopped caller may not have it.
        finally:
            self.end()

    @property
    def window(self) -> int:
        """How many rows can be in flight now: one while POSTs are held or the service is tried."""
        if self._held:
            return 1
        counts = self._host.classifier.counts is True
        return self._host.settings.concurrency * (self._batch if counts else 1)

    @property
    def _held(self) -> bool:
        return self.outage.open and not self._host.settings.idempotent

    def undelivered(self) -> list[Answer]:
        """Answers that the caller may not have taken; it may have taken the first."""
        return [*self._answers]

    def _fill(self, source: Iterator[Request]) -> None:
        while not self._exhausted:
            most = 1 if self._held else 2 * self.window
            if len(self._unanswered) + len(self._answers) >= most:
                break
            request = next(source, None)
            if request is None:
                self._exhausted = True
                break
            row = sent_row(request)
            self._unanswered[row] = None
            if self._host.stopped:
                self._halt(row)
            else:
                self._waiting.add(row)
        if self._grown:
            self._grown = False
            self._wake()

    def end(self) -> None:
        """Begin nothing more, wait a moment for requests under way, then drop them.

        Afterwards every row that was taken has an answer.
        """
        self._ending = True
        for timer in (self._gate, *self._turn.timers):
            if timer is not None:
                timer.cancel()
        workers, self._workers = self._workers, {}
        for line, worker in workers.items():
            if line not in self._carried:
                worker.cancel()
        for _ in range(2):
            if going := [worker for worker in workers.values() if not worker.done()]:
                self._wait(going)
            for worker in going:
                worker.cancel()
        for worker in workers.values():
            if worker.done() and not worker.cancelled():
                worker.exception()  # It was raised already.
        self._end_rows()

    def _wait(self, workers: Sequence[asyncio.Task[None]]) -> None:
        # An interrupted turn may have lost a worker's next step, so the worker never ends. It may
        # also have left its own stop behind, which ends one more turn early.
        ended = self._loop.create_task(asyncio.wait(workers, timeout=END_SECONDS))
        try:
            self._loop.run_until_complete(ended)
        except RuntimeError:
            self._loop.run_until_complete(ended)

    def _end_rows(self) -> None:
        """Answer every unanswered row; in doubt are only those whose request may have left."""
        self._waiting.take_all()
        answered = {answer.number for answer in self._answers}
        carried = {row for rows in self._carried.values() for row in rows}
        for row in [*self._unanswered]:
            if row.request.number in answered:
                continue
            if row in carried:
                row.in_doubt = True
                if not self._repeatable(row):
                    self.outage.hold()
            self._halt(row)

    async def _work(self, line: Line) -> None:
        while not self._ending:
            if self._ready and self._host.session.missing:
                if problem := await sign_in(self._host, line):
                    self._stop(problem)
                continue
            if self._ready and self.outage.to_ask and not self._repeatable(self._ready[0]):
                await self._ask(line)
                continue
            if rows := self._next():
                await self._attempt(rows, line)
                continue
            waiting = self._loop.create_future()
            self._idle.append(waiting)
            await waiting

    def _next(self) -> list[SentRow]:
        """The rows of the next request; empty if there are none or it is not time yet."""
        if not self._ready or self._grown:
            return []
        if why := self._host.may_not_send():
            self._stop(why)
            return []
        first = self._ready[0]
        repeatable = self._repeatable(first)
        if not (repeatable or self.outage.may_begin):
            return []
        now = self._loop.time()
        wait = self._host.pace.wait(now)
        if wait > 0:
            if self._gate is None:
                self._gate = self._loop.call_later(wait, self._open_gate)
            return []
        self._host.pace.take(now)
        rows = [self._ready.popleft()]
        # A batch without a count leaves all its rows in doubt, so the host must have shown one.
        shared = not self.outage.alone and self._host.classifier.counts is True
        most = self._batch if shared else 1
        if not repeatable:
            self.outage.begin()
        while self._batches(first) and len(rows) < most and self._ready:
            other = self._ready[0]
            if other.request.operation is not first.request.operation or other.alone:
                break
            rows.append(self._ready.popleft())
        if self._ready:
            self._wake()
        return rows

    def _batches(self, row: SentRow) -> bool:
        shared = self._batch > 1 and self._host.classifier.counts is not False
        return shared and not row.alone and not row.request.operation.keyed

    def _repeatable(self, row: SentRow) -> bool:
        """Whether sending the row again changes nothing: its key or the host sees to that."""
        return row.request.operation.keyed or self._host.settings.idempotent

    def _open_gate(self) -> None:
        self._gate = None
        self._wake()

    def _wake(self) -> None:
        # The line that became idle last has the most recently used connection.
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def _attempt(self, rows: list[SentRow], line: Line) -> None:
        host, now, session = self._host, self._loop.time(), self._host.session.cookie
        for row in rows:
            row.attempts += 1
            row.began = now
            row.deadline = min(row.deadline, now + host.settings.row_seconds)
        batch = self._batches(rows[0])
        encoded = [(row.request, row.record) for row in rows]
        data = host.outgoing.write(encoded, batch=batch)
        most = host.settings.answer_bytes * len(rows)

        def may_not() -> str | None:
            why = host.may_not_send()
            if why is None:
                self._carried[line] = rows
            return why

        reply = await line.call(data, most, may_not)
        if isinstance(reply, Failed):
            classified = [host.classifier.failed(reply)] * len(rows)
        elif batch:
            counted = host.classifier.counts
            classified = host.classifier.batch(encoded, reply)
            self._grown |= host.classifier.counts is True and counted is None
        else:
            classified = [host.classifier.single(rows[0].request, rows[0].record, reply)]
        status, asked = None, None
        if isinstance(reply, Reply):
            status, asked = reply.status, self._heed(reply)
            if not shows_every_row(reply, classified):
                line.drop()
            classified = self._signed_in(rows, classified, session)
        if not self._repeatable(rows[0]):
            self._watch(now, reply, classified)
        if len(rows) > 1 and all(one.in_doubt for one in classified):
            # Whatever the reason, the next batch may end the same way; a single row risks less.
            host.classifier.counts = False
        wait = 0.0
        if any(one.verdict is None for one in classified):
            # The same wait for all, so that the rows of a batch stay together.
            wait = max(host.backoff.wait(rows[0].attempts), asked or 0.0)
        # In reverse, so that rows put back at the front keep the caller's order.
        for row, one in reversed(list(zip(rows, classified, strict=True))):
            row.status = status
            self._settle(row, one, wait)
        self._carried.pop(line, None)

    def _signed_in(
        self, rows: Sequence[SentRow], classified: list[ClassifiedResponse], session: str | None
    ) -> list[ClassifiedResponse]:
        """Turn rows that met an ended session into rows to send again with the next session."""
        ended = [row for row, one in zip(rows, classified, strict=True) if one.signed_out]
        if not ended:
            self._host.session.was_known(session)
        for row in rows:
            row.signed_out = row.signed_out + 1 if row in ended else 0
        often = any(row.signed_out > MOST_ENDED for row in ended)
        if not ended or often or not self._host.session.was_unknown(session):
            return classified
        return [
            replace(one, stop=None, again=not one.in_doubt) if one.signed_out else one
            for one in classified
        ]

    def _watch(
        self, began: float, reply: Reply | Failed, classified: Sequence[ClassifiedResponse]
    ) -> None:
        """Hold POSTs after one that may have been carried out; release them after a good one."""
        doubtful = sum(one.in_doubt for one in classified)
        if doubtful:
            if self.outage.in_doubt(began, doubtful):
                self._stop_at(
                    "The service says that it is back, and leaves one row after another without "
                    "a usable answer",
                    next(one for one in reversed(classified) if one.in_doubt),
                )
        elif isinstance(reply, Reply):
            self.outage.answered(began)
        else:
            self.outage.not_read(began)

    async def _ask(self, line: Line) -> None:
        """Wait until the service is back; stop where it does not come back."""
        self.outage.asked()
        problem = await wait_until_back(self._host, line)
        if problem is None:
            self.outage.is_back(self._loop.time())
        else:
            self._stop(problem)

    def _heed(self, reply: Reply) -> float | None:
        """The pause asked for, which applies to all requests; stops if it is too long."""
        if reply.status not in (429, 503):
            return None
        asked = asked_pause(reply.headers, self._host.now())
        if asked is None:
            return None
        if asked > self._host.settings.retry_after_most_seconds:
            self._stop(
                f"The service asks for a pause of {asked:.0f} s; "
                f"the limit is {self._host.settings.retry_after_most_seconds:.0f} s."
            )
        else:
            self._host.pace.pause(self._loop.time(), asked)
        return asked

    def _settle(self, row: SentRow, classified: ClassifiedResponse, wait: float) -> None:
        """Give the row its answer, or plan its next attempt in `wait` seconds."""
        row.in_doubt = row.in_doubt or classified.in_doubt
        objections, operation = self._host.objections, row.request.operation.name
        if classified.verdict in CARRIED_OUT:
            objections.taken(operation, row.began)
        classified = self._weighed(row, classified)
        if classified.stop:
            risky = classified.in_doubt and not self._repeatable(row)
            met = (operation, row.request.push_key, self._loop.time())
            if classified.of_row and not risky and not objections.met(*met):
                self._host.breaker.answered()
                errors = (
                    error_entry(UNSENT, classified.stop, status=row.status),
                    *classified.errors,
                )
                self._answer(row, row.undecided(errors))
                return
            self._stop(classified.stop)
        if classified.verdict is not None:
            self._host.breaker.answered()
            own = row.status == 409 or not row.request.operation.keyed
            if classified.verdict is Verdict.REFUSED and row.in_doubt and own:
                # The cause may be the outcome of an earlier attempt whose answer was lost.
                self._answer(row, row.undecided(classified.errors))
            else:
                seen = (classified.echo, classified.service_id)
                self._answer(row, row.answer(classified.verdict, classified.errors, *seen))
            return
        if classified.in_doubt and not self._repeatable(row):
            self._give_up(row, classified)
        elif self._host.stopped:
            self._halt(row, classified.errors)
        elif classified.again:
            row.alone = row.alone or classified.alone
            self._waiting.offer(row, first=True)
        else:
            self._later(row, classified, wait)

    def _weighed(self, row: SentRow, classified: ClassifiedResponse) -> ClassifiedResponse:
        """Keep a refusal without a reason as a verdict only if it must be about the row."""
        if not classified.stop or classified.verdict is None:
            return classified
        asked = row.request
        again = asked.last_status == row.status
        if again and self._host.objections.of_row(asked.operation.name, asked.push_key):
            return replace(classified, stop=None)
        return replace(classified, verdict=None, errors=())

    def _later(self, row: SentRow, classified: ClassifiedResponse, wait: float) -> None:
        too_late = self._loop.time() + wait > row.deadline
        if row.attempts >= self._host.settings.attempts or too_late:
            self._give_up(row, classified)
        else:
            self._waiting.offer_in(row, wait)

    def _give_up(self, row: SentRow, classified: ClassifiedResponse) -> None:
        self._answer(row, row.undecided(classified.errors))
        if not classified.failure:
            self._host.breaker.answered()
        elif self._host.breaker.failed(row.began, self._loop.time()):
            many = "The service gave no usable answer to too many rows one after another"
            self._stop_at(many, classified)

    def _stop_at(self, reason: str, last: ClassifiedResponse) -> None:
        """Stop because many rows failed, quoting what the last of them met."""
        self._stop(f"{reason}; to the last one: {last.errors[0]['Message']}")

    def _stop(self, reason: str) -> None:
        """Send nothing more; requests under way are awaited."""
        if self._host.stopped:
            return
        self._host.stopped = reason
        for row in self._waiting.take_all():
            self._halt(row)

    def _halt(self, row: SentRow, errors: Sequence[ErrorEntry] = ()) -> None:
        self._answer(
            row, row.undecided((*errors, error_entry(UNSENT, self._host.stopped or ENDED)))
        )

    def _answer(self, row: SentRow, answer: Answer) -> None:
        self._answers.append(answer)
        self._unanswered.pop(row, None)
        self._waiting.free(row)
        hungry = not self._ready and not self._exhausted
        if hungry or not self._unanswered or len(self._answers) >= self._enough:
            self._turn.end()
        else:
            self._turn.end_soon()
