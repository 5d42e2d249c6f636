"""One question asked until its answer is acceptable, at the common pace and not for ever.

Signing in is such a question.
"""

import asyncio
import json
from collections.abc import Callable
from typing import NamedTuple

from connectors.service.connection import Failed, Reply
from connectors.service.host import Host
from connectors.service.line import Line
from connectors.service.pace import asked_pause

ANSWER_BYTES = 1024 * 1024
_LATER = (408, 429)
"""Statuses that may change by the next attempt, besides server errors."""


class Problem(NamedTuple):
    """An objection to an answer."""

    text: str
    """Without a full stop."""
    final: bool = False
    """Asking again would give the same answer."""


def answers_later(reply: Reply) -> bool:
    """Whether an answer only says that there may be another answer later."""
    return reply.status >= 500 or reply.status in _LATER


async def ask_until(
    host: Host, line: Line, data: bytes, problem_of: Callable[[Reply | Failed], Problem | None]
) -> str | None:
    """Ask until an answer is acceptable and return None, else the objection to the last one."""
    settings = host.settings
    problem = Problem("")
    for attempt in range(1, settings.health_attempts + 1):
        await host.pace.turn(host.loop.time)
        if host.stopped:
            return host.stopped
        answer = await line.call(data, ANSWER_BYTES)
        line.drop()
        found = problem_of(answer)
        if found is None:
            return None
        problem, wait = found, host.backoff.wait(attempt)
        if problem.final:
            break
        if isinstance(answer, Reply):
            asked = asked_pause(answer.headers, host.now()) or 0.0
            if asked > settings.retry_after_most_seconds:
                return f"{problem.text} and asks for a pause of {asked:.0f} s"
            wait = max(wait, asked)
        if attempt < settings.health_attempts:
            await asyncio.sleep(wait)
    return problem.text


PATH = "/auth/credentials"
BEGUN_BY = {"ss-id", "ss-tok"}
"""A session has at least one of these cookies."""
SHOWN_BY = BEGUN_BY | {"ss-pid", "ss-reftok"}
"""Cookies with which somebody else could continue the session or begin another."""


async def sign_in(host: Host, line: Line) -> str | None:
    """Begin a session if one is missing; returns the reason if that fails."""
    async with host.signing:
        session = host.session
        if not session.missing:
            return None
        body = {"UserName": host.credentials.user, "Password": host.credentials.secret}
        data = host.outgoing.sign_in(PATH, json.dumps(body).encode())
        problem = await ask_until(host, line, data, lambda answer: _begin(host, answer))
        return problem and f"{problem.removesuffix('.')}."


def _begin(host: Host, answer: Reply | Failed) -> Problem | None:
    if isinstance(answer, Failed):
        return Problem(f"Signing in failed: {answer.cause}", final=answer.hopeless)
    if answers_later(answer):
        return Problem(f"Signing in failed: the service answered {answer.status}")
    refused = f"The service refuses to sign us in ({answer.status})"
    if 300 <= answer.status < 400:
        return Problem(f"{refused}: it {host.classifier.redirect(answer)}", final=True)
    if answer.status != 200:
        return Problem(refused, final=True)
    cookies = dict(
        line.partition(";")[0].strip().split("=", 1)
        for line in answer.headers.get("set-cookie", "").split("\n")
        if "=" in line.partition(";")[0]
    )
    if not cookies.keys() & BEGUN_BY:
        return Problem("The service signed us in without giving a session", final=True)
    host.classifier.hide_session(cookies[name] for name in cookies.keys() & SHOWN_BY)
    host.session.cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return None
