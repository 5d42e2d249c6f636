"""Beginning a session with user and password, for hosts whose scheme is the session cookie."""

import json

from connectors.service.asking import Problem, answers_later, ask_until
from connectors.service.connection import Failed, Reply
from connectors.service.credentials import ServiceSession
from connectors.service.error_entries import redirect
from connectors.service.host import Host
from connectors.service.line import Line

PATH = "/auth/credentials"


async def sign_in(host: Host, line: Line) -> str | None:
    """Begin a session where one is missing; gives why that cannot be done."""
    async with host.signing:
        session = host.session
        if not session.missing:
            return None
        body = {"UserName": host.credentials.user, "Password": host.credentials.secret}
        data = host.outgoing.sign_in(PATH, json.dumps(body).encode())
        problem = await ask_until(host, line, data, lambda answer: _begin(session, answer))
        return problem and f"{problem.removesuffix('.')}."


def _begin(session: ServiceSession, answer: Reply | Failed) -> Problem | None:
    if isinstance(answer, Failed):
        return Problem(f"Signing in failed: {answer.cause}", final=answer.hopeless)
    if answers_later(answer):
        return Problem(f"Signing in failed: the service answered {answer.status}")
    refused = f"The service refuses to sign us in ({answer.status})"
    if 300 <= answer.status < 400:
        return Problem(f"{refused}: it {redirect(answer)}", final=True)
    if answer.status != 200:
        return Problem(refused, final=True)
    cookies = dict(
        line.partition(";")[0].strip().split("=", 1)
        for line in answer.headers.get("set-cookie", "").split("\n")
        if "=" in line.partition(";")[0]
    )
    if not any(name in cookies for name in ("ss-id", "ss-tok")):
        return Problem("The service signed us in without giving a session", final=True)
    session.cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return None
