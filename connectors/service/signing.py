"""Beginning a session with user and password, for hosts whose scheme is the session cookie."""

import json

from connectors.service.connection import Failed, Reply
from connectors.service.credentials import Credentials
from connectors.service.error_entries import redirect
from connectors.service.line import Line
from connectors.service.outgoing import Outgoing

PATH = "/auth/credentials"
ATTEMPTS = 3
_ANSWER_BYTES = 1024 * 1024


async def sign_in(line: Line, outgoing: Outgoing, credentials: Credentials) -> str | None:
    """Begin a session and keep its cookies in `outgoing`; gives why that cannot be done."""
    told = {"UserName": credentials.user, "Password": credentials.secret}
    data = outgoing.sign_in(PATH, json.dumps(told).encode())
    problem = ""
    for _ in range(ATTEMPTS):
        reply = await line.call(data, _ANSWER_BYTES)
        line.drop()
        if isinstance(reply, Failed):
            problem = f"Signing in failed: {reply.cause}."
        elif reply.status >= 500:
            problem = f"Signing in failed: the service answered {reply.status}."
        else:
            return _begin(reply, outgoing)
    return problem


def _begin(reply: Reply, outgoing: Outgoing) -> str | None:
    if 300 <= reply.status < 400:
        return f"The service refuses to sign us in ({reply.status}): it {redirect(reply)}."
    if reply.status != 200:
        return f"The service refuses to sign us in ({reply.status})."
    cookies = dict(
        line.partition(";")[0].strip().split("=", 1)
        for line in reply.headers.get("set-cookie", "").split("\n")
        if "=" in line.partition(";")[0]
    )
    if not any(name in cookies for name in ("ss-id", "ss-tok")):
        return "The service signed us in without giving a session."
    outgoing.cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return None
