"""Runs the desk on a socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn

from connectors.errors import ReconError
from flows.desk.app import Desk, build
from flows.desk.bounded import BoundedHttp
from flows.desk.warm import warming

START_SECONDS, STOP_SECONDS = 30, 5
MOST_AT_ONCE = 256
"""Requests under way; the next one is told to come again."""


class DeskServer:
    """One desk on one socket, until the block ends; `ahead`: it reads runs before anybody asks."""

    def __init__(self, desk: Desk, host: str, port: int, *, ahead: bool = False) -> None:
        self._desk, self._host, self._port, self._ahead = desk, host, port, ahead

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve in a thread; gives the address."""
        with self._listening() as listening:
            config = uvicorn.Config(
                build(self._desk),
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
            ahead = warming(self._desk.workspace, self._desk.kept) if self._ahead else nullcontext()
            try:
                host, port = listening.getsockname()[:2]
                with ahead:
                    yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
            finally:
                server.should_exit = True
                thread.join(STOP_SECONDS * 2)

    def _listening(self) -> socket.socket:
        try:
            # Connections wait here until the server takes them, so nobody has to ask twice.
            return socket.create_server(
                (self._host, self._port),
                family=socket.AF_INET6 if ":" in self._host else socket.AF_INET,
            )
        except OSError as error:
            raise ReconError(
                f"The desk cannot listen on {self._host}:{self._port}: {error.strerror}. Stop what "
                "does, or choose another --port; 0 is any free one."
            ) from None
