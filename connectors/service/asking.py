"""One question that is asked until its answer will do: at the common pace, and not for ever."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from connectors.service.connection import Failed, Reply
from connectors.service.host import Host
from connectors.service.line import Line
from connectors.service.pace import retry_after

ANSWER_BYTES = 1024 * 1024
_LATER = (408, 429)
"""Beside the server's errors: what the service may answer otherwise the next time."""


class Problem(NamedTuple):
    """What speaks against an answer."""

    text: str
    """Without a full stop."""
    final: bool = False
    """Asked once more, it would be the same."""


def answers_later(reply: Reply) -> bool:
    """Whether an answer says nothing but that there may be another one later."""
    return reply.status >= 500 or reply.status in _LATER


async def ask_until(
    host: Host, line: Line, data: bytes, problem_of: Callable[[Reply | Failed], Problem | None]
) -> str | None:
    """Ask until nothing speaks against the answer; gives what speaks against the last one."""
    settings, loop = host.settings, host.loop
    problem = Problem("")
    for attempt in range(1, settings.health_attempts + 1):
        await asyncio.sleep(host.pace.wait(loop.time()))
        if host.stopped:
            return host.stopped
        host.pace.take(loop.time())
        answer = await line.call(data, ANSWER_BYTES)
        line.drop()
        found = problem_of(answer)
        if found is None:
            return None
        problem, wait = found, host.backoff.wait(attempt)
        if problem.final:
            break
        if isinstance(answer, Reply):
            asked = retry_after(answer.headers.get("retry-after"), host.now()) or 0.0
            if asked > settings.retry_after_most_seconds:
                return f"{problem.text} and asks for a pause of {asked:.0f} s"
            wait = max(wait, asked)
        if attempt < settings.health_attempts:
            await asyncio.sleep(wait)
    return problem.text
