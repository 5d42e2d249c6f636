"""The bytes of a request: head and body."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from connectors.service.contract import Request
from connectors.service.credentials import ServiceSession
from connectors.service.encoding import CSV, JSON, Record, body, target
from connectors.service.line import LinePlace
from connectors.settings import ServiceSettings
from schemas.operations import Operation

_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
Encoded = tuple[Request, Record]


class Outgoing:
    """Writes requests to one service."""

    def __init__(
        self,
        settings: ServiceSettings,
        place: LinePlace,
        authorization: str | None,
        session: ServiceSession,
    ) -> None:
        self.form = CSV if settings.format == "csv" else JSON
        self.zone = ZoneInfo(settings.zone)
        self._settings = settings
        self._place = place
        self._authorization = authorization
        self._session = session
        self._head = lru_cache(maxsize=256)(self._make_head)

    def write(self, rows: Sequence[Encoded], *, batch: bool) -> bytes:
        """The request for rows of one operation; without `batch`, for the only row."""
        first, record = rows[0]
        operation = first.operation
        written = [(record, request.jsondata) for request, record in rows]
        content = body(self.form, operation.table, written, self.zone, many=batch)
        if batch:
            path = self._batch_path(operation)
            key = ", ".join(request.push_key for request, _ in rows)
        else:
            path, key = target(operation, record), first.push_key
        for request, _ in rows:
            if _KEY.fullmatch(request.push_key) is None:
                subject = f"push key {request.push_key!r} of request {request.number}"
                raise ValueError(f"{subject} is no header value")
        start = f"{operation.method} {self._place.prefix}{path} HTTP/1.1\r\n"
        tail = f"Idempotency-Key: {key}\r\nContent-Length: {len(content)}\r\n\r\n"
        return (
            start + self._head(self.form, self.form, self._session.cookie) + tail
        ).encode() + content

    def read(self, path: str, query: Mapping[str, str]) -> bytes:
        """The request for a listing."""
        asked = f"?{urlencode(query, quote_via=quote)}" if query else ""
        start = f"GET {self._place.prefix}{path}{asked} HTTP/1.1\r\n"
        return (start + self._head(self.form, None, self._session.cookie) + "\r\n").encode()

    def sign_in(self, path: str, content: bytes) -> bytes:
        """The request that begins a session; always JSON."""
        start = f"POST {self._place.prefix}{path} HTTP/1.1\r\n"
        tail = f"Content-Length: {len(content)}\r\n\r\n"
        return (start + self._head(JSON, JSON, None) + tail).encode() + content

    def _batch_path(self, operation: Operation) -> str:
        name = self._settings.operations.get(operation.name, operation.name)
        return f"/{'csv' if self.form == CSV else 'json'}/reply/{name}%5B%5D"

    def _make_head(self, accept: str, content: str | None, cookie: str | None) -> str:
        lines = [
            f"Host: {self._place.authority}",
            # One type and no weights: the service takes any other that is named beside it.
            f"Accept: {accept}",
            # Without this header a server may compress as it likes.
            "Accept-Encoding: identity",
            "User-Agent: recon",
        ]
        if content:
            lines.append(f"Content-Type: {content}")
        if self._authorization:
            lines.append(f"Authorization: {self._authorization}")
        if cookie:
            lines.append(f"Cookie: {cookie}")
        return "".join(f"{line}\r\n" for line in lines)
