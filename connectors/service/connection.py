"""One HTTP/1.1 connection, one request at a time, read by llhttp (httptools).

It is our own because a lost answer may count as "not sent" only if not one byte was handed over.
Existing clients do not tell, and some repeat a request on their own.
"""

import asyncio
import logging
import select
import socket
import ssl
import struct
from typing import NamedTuple, cast

import httptools

from schemas.counting import quantity

log = logging.getLogger("recon.service")

HEAD_BYTES = 256 * 1024
"""Most bytes of an answer's head, whatever the limit for its body."""
SPEAKS_TLS = "speaks TLS at this port, so RECON_SERVICE_URL has to begin with https://"
TLS_ALERT = b"\x15\x03"
"""First bytes of the answer from a server that expects TLS but gets clear text."""
_OF_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE")
"""Words in the TLS alerts that end a connection before a request on it is read."""


class Reply(NamedTuple):
    """An answer that arrived complete."""

    status: int
    headers: dict[str, str]
    """By lower-case name; the values of a repeated header are joined by a line feed."""
    body: bytes
    proof: str
    """How the end of the body is known; empty if only the end of the connection marks it."""
    repeated: bool = False
    """Whether its body equals that of the previous answer on the same connection."""


class Failed(NamedTuple):
    """A request without an answer."""

    sent: bool
    """Whether a byte may have reached the service."""
    cause: str
    hopeless: bool = False
    """Another attempt would fail the same way, as would every other row."""
    too_large: bool = False
    """The answer is larger than the limit, and would be again."""


def refused_certificate(error: BaseException | None) -> str | None:
    """What a TLS alert says about a missing or refused client certificate; None for any other."""
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if "ALERT" not in reason or not any(word in reason for word in _OF_CERTIFICATE):
        return None
    alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
    return f"it refuses our client certificate, or asks for one ({alert})"


class Connection(asyncio.Protocol):
    """A connection that was opened by `loop.create_connection`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply | Failed] | None = None
        self._readable = select.poll()
        self._encrypted = False
        self._reusable = True
        self._most_bytes = self._received = self._size = self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._body: bytes | None = None
        self._headed = self._sized = False
        self.idle_since = loop.time()
        self.has_received = False
        """Whether the service has ever sent a byte on this connection."""

    @property
    def usable(self) -> bool:
        """Whether a request may be written: the service has sent nothing since its last answer."""
        transport = self._transport
        if transport is None or not self._reusable or transport.is_closing():
            return False
        # Anything the loop has not read yet can only be the end of the connection.
        return not self._readable.poll(0)

    async def call(self, data: bytes, deadline: float, most_bytes: int) -> Reply | Failed:
        """Write a request and wait for its answer until `deadline`, in the loop's time."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return Failed(sent=False, cause="the connection was closed")
        self._reset()
        self._most_bytes = most_bytes
        waiting: asyncio.Future[Reply | Failed] = self._loop.create_future()
        self._waiting = waiting
        transport.write(data)
        # A plain socket is written at once: a transport closing now has handed over nothing.
        if transport.is_closing() and not self._encrypted:
            self._end(Failed(sent=False, cause="the connection was closed"))
        timer = self._loop.call_at(deadline, self._expire)
        try:
            return await waiting
        finally:
            timer.cancel()
            self.idle_since = self._loop.time()
            if self._waiting is not None:  # The caller gave up.
                self.abort()

    def abort(self) -> None:
        """Close without waiting for anything."""
        self._waiting = None
        self._reusable = False
        if self._transport is not None:
            self._transport.abort()

    def drop(self) -> None:
        """Close an idle connection and free its port, which a normal close would keep for a minute.

        Nothing that is still wanted can be on the connection.
        """
        if self._transport is not None:
            own = self._transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._encrypted = transport.get_extra_info("ssl_object") is not None
        self._readable.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            # Unasked data could be taken for the answer to the next request.
            self.abort()
            return
        self._received += len(data)
        if not self.has_received:
            self.has_received = True
            if data.startswith(TLS_ALERT) and not self._encrypted:
                # The request was no TLS greeting, so no server has read it.
                self._end(Failed(False, f"the service {SPEAKS_TLS}", hopeless=True))
                self.abort()
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            if self._waiting is not None:
                why = str(problem)
                if isinstance(problem, httptools.HttpParserUpgrade):  # Its text is an offset.
                    why = f"the service goes on in another protocol ({self._status})"
                self._end(Failed(sent=True, cause=f"the answer is no HTTP: {why}"))
            self.abort()
            return
        if self._waiting is not None and self._is_too_large:
            self._refuse_size()

    def eof_received(self) -> None:
        """Called by the loop; returning None closes our side too."""
        if self._waiting is None:
            return
        if self._headed and not self._sized and self._status >= 200:
            self._complete(proof="")
        else:
            self._end(Failed(True, "the connection was closed before the answer was complete"))
        self._reusable = False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        refused = None if self.has_received else refused_certificate(error)
        if refused and self._waiting is not None:
            self._end(Failed(False, refused, hopeless=True))
        if self._waiting is not None:
            cause = "the connection was reset" if error else "the connection was closed"
            self._end(Failed(sent=True, cause=f"{cause} before the answer was complete"))

    def on_message_begin(self) -> None:
        if self._waiting is None:
            # It answers no request and could be taken for the next answer.
            log.warning("The service sent another answer behind one; the connection is dropped.")
            self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}\n{text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._headed = True
        self._sized = (
            "content-length" in self._headers
            or "chunked" in self._headers.get("transfer-encoding", "").lower()
        )

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._status < 200:  # An interim answer; the real one follows.
            self._headers, self._parts, self._headed = {}, [], False
            return
        if self._waiting is None:
            self._reusable = False
            return
        length = self._headers.get("content-length")
        if length is not None:
            self._complete(f"Content-Length {length} read")
        else:
            self._complete("chunked end read" if self._sized else "an answer without body")

    @property
    def _is_too_large(self) -> bool:
        # A chunk of one byte comes with five bytes of framing.
        around = self._received - self._size
        return self._size > self._most_bytes or around > HEAD_BYTES + 8 * self._size

    def _refuse_size(self) -> None:
        cause = f"the answer has more than {quantity(self._most_bytes, 'byte')}"
        self._end(Failed(True, cause, too_large=True))
        self.abort()

    def _complete(self, proof: str) -> None:
        if self._is_too_large:
            self._refuse_size()
            return
        transport = self._transport
        if (
            not self._parser.should_keep_alive()
            or transport is None
            or transport.get_write_buffer_size()
        ):
            self._reusable = False
        body = b"".join(self._parts)
        repeated = bool(body) and body == self._body
        self._body = body
        self._end(Reply(self._status, self._headers, body, proof, repeated))
        # What follows in the same segment is not part of this answer.
        self._headers, self._parts = {}, []
        if not self._reusable and transport is not None:
            transport.abort()

    def _expire(self) -> None:
        self._end(Failed(sent=True, cause="no complete answer within the deadline"))
        self.abort()

    def _end(self, outcome: Reply | Failed) -> None:
        waiting, self._waiting = self._waiting, None
        if isinstance(outcome, Failed):
            self._reusable = False
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)

    def _reset(self) -> None:
        self._headers, self._parts = {}, []
        self._status = self._received = self._size = 0
        self._headed = self._sized = False
