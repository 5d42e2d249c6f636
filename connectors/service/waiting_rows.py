"""Rows waiting to be sent, in the caller's order and at most one in flight per record."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from connectors.service.contract import Answer, Request, Verdict
from connectors.service.encoding import Record, read_record
from connectors.service.error_entries import IN_DOUBT, ErrorEntry, error_entry


@dataclass(slots=True, eq=False)
class SentRow:
    """A row on its way to the service."""

    request: Request
    record: Record
    place: Hashable
    """The record it writes; requests for one record go one at a time, in the caller's order."""
    attempts: int = 0
    began: float = 0.0
    deadline: float = float("inf")
    status: int | None = None
    in_doubt: bool = False
    """An attempt may have been carried out."""
    alone: bool = False
    signed_out: int = 0
    """How many times in a row it met an ended session."""

    def answer(
        self,
        verdict: Verdict,
        errors: tuple[ErrorEntry, ...] = (),
        echo: str | None = None,
        service_id: str | None = None,
    ) -> Answer:
        return Answer(
            number=self.request.number,
            verdict=verdict,
            attempts=self.attempts,
            status=self.status,
            errors=errors,
            echo=echo,
            service_id=service_id,
            in_doubt=self.in_doubt,
        )

    def undecided(self, errors: tuple[ErrorEntry, ...]) -> Answer:
        """The answer of a row without a verdict: UNSENT, or IN_DOUBT if any attempt was."""
        if not self.in_doubt:
            return self.answer(Verdict.UNSENT, errors)
        if not any(error["ErrorCode"] == IN_DOUBT for error in errors):
            message = "An attempt may have been carried out."
            errors = (error_entry(IN_DOUBT, message), *errors)
        return self.answer(Verdict.IN_DOUBT, errors)


def sent_row(request: Request) -> SentRow:
    """A row that has not been tried yet."""
    record = read_record(request.jsondata)
    operation = request.operation
    key = operation.addressed if operation.keyed else operation.table.key
    values = [record.get(name) for name in key]
    # A row that lacks a part of its key counts as a record of its own.
    place = (request.number,) if None in values else tuple(map(str, values))
    return SentRow(request, record, (request.operation.name, *place), in_doubt=request.in_doubt)


class WaitingRows:
    """Which rows are next, which come later, and which wait for a request for the same record."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self.ready: deque[SentRow] = deque()
        self._loop = loop
        self._wake = wake
        self._blocked: dict[Hashable, deque[SentRow]] = {}
        """By record: rows waiting for the request for that record that is under way."""
        self._delayed: dict[SentRow, asyncio.TimerHandle] = {}

    def add(self, row: SentRow) -> None:
        """Add a new row; it waits for earlier rows of the same record."""
        if row.place in self._blocked:
            self._blocked[row.place].append(row)
        else:
            self._blocked[row.place] = deque()
            self.offer(row)

    def offer(self, row: SentRow, *, first: bool = False) -> None:
        """Let the row go now; with `first`, before all others."""
        if first:
            self.ready.appendleft(row)
        else:
            self.ready.append(row)
        self._wake()

    def offer_in(self, row: SentRow, seconds: float) -> None:
        """Let the row go in `seconds`, before all others."""
        self._delayed[row] = self._loop.call_later(seconds, self._due, row)

    def free(self, row: SentRow) -> None:
        """End the row, so that the next request for the same record may go."""
        if waiting := self._blocked.get(row.place):
            self.offer(waiting.popleft(), first=True)
        else:
            self._blocked.pop(row.place, None)

    def take_all(self) -> list[SentRow]:
        """Remove and return all rows; none waits any more."""
        for timer in self._delayed.values():
            timer.cancel()
        blocked = [row for rows in self._blocked.values() for row in rows]
        waiting = [*self.ready, *self._delayed, *blocked]
        for rows in (self.ready, self._delayed, self._blocked):
            rows.clear()
        return waiting

    def _due(self, row: SentRow) -> None:
        del self._delayed[row]
        self.offer(row, first=True)
