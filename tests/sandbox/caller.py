"""A caller that sends what it is told and shows the answer whole, reason phrase included."""

import base64
import http.client
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    body: str

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def codes(self) -> list[tuple[str, str]]:
        """Code and field of every field error."""
        errors = self.json()["ResponseStatus"].get("Errors", [])
        return [(error["ErrorCode"], error["FieldName"]) for error in errors]


def basic(name: str, password: str = "p@ss") -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class Caller:
    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=10)

    def send(
        self,
        method: str,
        target: str,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        chunked: bool = False,
    ) -> Answer:
        """Exactly these headers, and Host; a body has its length, unless chunked."""
        content = body.encode() if isinstance(body, str) else body
        connection = self._connection
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if chunked:
            connection.putheader("Transfer-Encoding", "chunked")
        elif content is not None:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content, encode_chunked=chunked)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, response.reason, found, response.read().decode())

    def as_client(
        self,
        method: str,
        target: str,
        body: object = None,
        accept: str = "application/json",
        content_type: str = "application/json",
        user: str = "client",
    ) -> Answer:
        """With Basic credentials; a body that is no text is sent as JSON."""
        headers = {"Accept": accept, "Authorization": basic(user)}
        if body is None:
            return self.send(method, target, None, headers)
        text = body if isinstance(body, str) else json.dumps(body)
        return self.send(method, target, text, {**headers, "Content-Type": content_type})

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
