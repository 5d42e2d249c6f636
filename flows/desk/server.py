"""Runs the desk on a socket, and limits what a connection may cost before its user is known.

Uvicorn waits for a request as long as a connection is open, and keeps any number of headers. With
enough connections, one client could shut out everybody else.
"""

import socket
import threading
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from connectors.errors import ReconError
from flows.desk.app import Desk, build
from flows.desk.kept import warming

STOP_SECONDS = 5
MOST_AT_ONCE = 256
"""The most requests under way; further ones are told to come again."""
HEAD_BYTES = 64 * 1024
"""The most bytes besides bodies: the head, data after a body, the sizes of its chunks."""
HEAD_SECONDS = 15.0
"""From the connection, or from the answer before, to the end of a request's head."""


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed once it takes longer, or sends more, than a request can."""

    _waiting: TimerHandle | None = None
    _outside_bodies = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._outside_bodies += len(data)
        super().data_received(data)
        if self._outside_bodies > HEAD_BYTES:
            self.send_400_response(f"The head of a request has at most {HEAD_BYTES} bytes.")
        elif self.cycle is None or self.cycle.response_complete:
            self._wait()

    def on_headers_complete(self) -> None:
        self._go_on()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._outside_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._outside_bodies = 0
        super().on_message_complete()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _go_on(self) -> None:
        self._outside_bodies = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


@contextmanager
def serving(
    desk: Desk, host: str, port: int, *, ahead: bool = False, option: str = "--port"
) -> Iterator[str]:
    """Serve the desk on a socket, in a thread, until the block ends; gives its address.

    `ahead`: read runs before they are needed. `option`: the caller's name for the port.
    """
    with _listening(host, port, option) as listening:
        config = uvicorn.Config(
            build(desk),
            http=BoundedHttp,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=STOP_SECONDS,
            lifespan="off",
            ws="none",
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            host, port = listening.getsockname()[:2]
            with warming(desk.workspace, desk.kept) if ahead else nullcontext():
                yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
        finally:
            server.should_exit = True
            thread.join(STOP_SECONDS * 2)


def _listening(host: str, port: int, option: str) -> socket.socket:
    try:
        # Connections wait here until the server takes them, so that nobody has to try again.
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise ReconError(
            f"The desk cannot listen on {host}:{port}: {error.strerror}. Stop what does, or choose "
            f"another {option}; 0 is any free one."
        ) from None
