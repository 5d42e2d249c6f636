"""Turns: the event loop runs only while the caller waits for an answer.

It runs in the caller's own thread, so the caller's work between two answers and the loop's never
wait for each other.
"""

import asyncio
from collections.abc import Sequence

PROMPT_SECONDS = 0.005
"""The caller gets an answer after at most this long, alone or with others."""
QUIET_SECONDS = 0.5
"""The caller gets a turn after this long even if no answer has come."""


class Turn:
    """The loop's turn, which lasts until there is something to tell the caller."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: asyncio.Future[None] = loop.create_future()
        self._prompt: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._problem: BaseException | None = None

    @property
    def timers(self) -> Sequence[asyncio.TimerHandle | None]:
        """The timers that would end a turn."""
        return self._prompt, self._quiet

    def take(self) -> None:
        """Run the loop until there is something to tell or nothing has come for a while."""
        self._ended = self._loop.create_future()
        self._quiet = self._loop.call_later(QUIET_SECONDS, self.end)
        self._loop.run_until_complete(self._ended)
        self._quiet.cancel()
        if self._prompt is not None:
            self._prompt.cancel()
            self._prompt = None
        if self._problem is not None:
            raise self._problem

    def end(self) -> None:
        """Give the caller its turn now."""
        if not self._ended.done():
            self._ended.set_result(None)

    def end_soon(self) -> None:
        """Give the caller its turn in a moment, with whatever else comes until then."""
        if self._prompt is None:
            self._prompt = self._loop.call_later(PROMPT_SECONDS, self.end)

    def worker_ended(self, worker: asyncio.Task[None]) -> None:
        """Raise a worker's exception in the caller's turn."""
        if not worker.cancelled():
            self._problem = self._problem or worker.exception()
            self.end()
