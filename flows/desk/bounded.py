"""What a connection may cost before anybody is known: bytes of its head, and seconds of nothing.

Uvicorn waits for a request for as long as somebody keeps the connection, and keeps headers however
many there are. Whoever opens enough of these would shut out everybody else.
"""

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
"""Of whatever is no body: the head, what is sent after a body, the sizes of its chunks."""
HEAD_SECONDS = 15.0
"""From the connection, or what follows an answer, to the end of a request's head."""


class BoundedHttp(HttpToolsProtocol):
    """One connection, closed once it takes longer or more than a request can."""

    _waiting: TimerHandle | None = None
    _beside_bodies = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._beside_bodies += len(data)
        super().data_received(data)
        if self._beside_bodies > HEAD_BYTES:
            self.send_400_response(f"The head of a request has at most {HEAD_BYTES} bytes.")
        elif self.cycle is None or self.cycle.response_complete:
            self._wait()

    def on_headers_complete(self) -> None:
        self._go_on()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._beside_bodies = 0
        super().on_message_complete()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _go_on(self) -> None:
        self._beside_bodies = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
