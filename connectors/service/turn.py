"""Whose turn it is: the event loop runs only while the caller waits for an answer.

It runs in the caller's own thread: the caller's work between two answers and ours never wait for
one another.
"""

import asyncio
from collections.abc import Sequence

PROMPT_SECONDS = 0.005
"""An answer is given to the caller after at most so long, alone or with others."""
QUIET_SECONDS = 0.5
"""Where no answer comes for so long, the caller has a turn all the same."""


class Turn:
    """The loop's turn, until there is something to tell the caller."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: asyncio.Future[None] = loop.create_future()
        self._prompt: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._problem: BaseException | None = None

    @property
    def timers(self) -> Sequence[asyncio.TimerHandle | None]:
        """What would end a turn by and by."""
        return self._prompt, self._quiet

    def take(self) -> None:
        """Let the loop run until there is something to tell, or has been nothing for long."""
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
        """Give the caller its turn."""
        if not self._ended.done():
            self._ended.set_result(None)

    def end_soon(self) -> None:
        """Give the caller its turn in a moment, with what else comes until then."""
        if self._prompt is None:
            self._prompt = self._loop.call_later(PROMPT_SECONDS, self.end)

    def worker_ended(self, worker: asyncio.Task[None]) -> None:
        """Raise in the caller's turn what a worker has raised."""
        if not worker.cancelled():
            self._problem = self._problem or worker.exception()
            self.end()
