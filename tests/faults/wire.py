"""A proxy in front of PostgreSQL that knows where a client's message ends, and cuts at the n-th.

Before: the server never sees the message. After: the server has executed it, and its answer is
lost. Either way the server's process is gone, with its locks, when the client learns of it.
"""

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, urlsplit

READ_BYTES = 1 << 16
SHOWN = 60


class Cut(Enum):
    """On which side of its execution the message is cut."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True)
class Proxy:
    """What went through, and where to cut."""

    target: str
    """Path of the server's socket."""
    at: int = 0
    """Number of the client's message, over all connections; 0: cut nowhere."""
    cut: Cut = Cut.BEFORE
    stays_down: bool = False
    """Whether nobody gets through any more after the cut."""
    seen: list[str] = field(default_factory=list)
    """Every message of the client: its type, and the text of a statement."""
    done: bool = False
    port: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: set[socket.socket] = field(default_factory=set)

    def url(self, database: str) -> str:
        """The database through this proxy."""
        return (
            f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
            "?sslmode=disable&gssencmode=disable"
        )

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self.done and self.stays_down:
                client.close()
                continue
            threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def _connection(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.target)
        with self._lock:
            self._open |= {client, server}
        muted = threading.Event()
        gone = threading.Event()
        back = threading.Thread(
            target=self._answers, args=(server, client, muted, gone), daemon=True
        )
        back.start()
        with suppress(OSError):
            for message in _messages(client):
                if not self._is_cut(message):
                    server.sendall(message)
                    continue
                muted.set()
                if self.cut is Cut.AFTER:
                    server.sendall(message)
                if self.stays_down:
                    self._end(self._open - {client, server})
                break
        with suppress(OSError):
            # The server reads what was sent to it, executes it, and only then finds the end.
            server.shutdown(socket.SHUT_WR)
        gone.wait()
        back.join()
        for one in (client, server):
            one.close()
        with self._lock:
            self._open -= {client, server}

    def _is_cut(self, message: bytes) -> bool:
        with self._lock:
            self.seen.append(_described(message))
            if len(self.seen) != self.at:
                return False
            self.done = True
            return True

    def _answers(
        self,
        server: socket.socket,
        client: socket.socket,
        muted: threading.Event,
        gone: threading.Event,
    ) -> None:
        with suppress(OSError):
            while data := server.recv(READ_BYTES):
                if not muted.is_set():
                    client.sendall(data)
        gone.set()
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut whatever is left."""
        self._end(self._open)

    def _end(self, sockets: set[socket.socket]) -> None:
        with self._lock:
            for one in sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(server: str) -> Iterator[Proxy]:
    """A proxy to the embedded server of this URL."""
    host = parse_qs(urlsplit(server).query)["host"][0]
    made = Proxy(f"{host}/.s.PGSQL.5432")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made.port = listener.getsockname()[1]
        thread = threading.Thread(target=made.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            made.close()


def _messages(client: socket.socket) -> Iterator[bytes]:
    """The client's messages: the first has a length only, every other a type before it."""
    waiting, typed = b"", 0
    while data := client.recv(READ_BYTES):
        waiting += data
        while len(waiting) >= typed + 4:
            size = typed + struct.unpack_from(">i", waiting, typed)[0]
            if len(waiting) < size:
                break
            yield waiting[:size]
            waiting, typed = waiting[size:], 1


def _described(message: bytes) -> str:
    if message[:1] == b"\0":
        return "startup"
    kind = message[:1].decode()
    text = message[5:] if kind == "Q" else message[5:].partition(b"\0")[2] if kind == "P" else b""
    told = re.sub(r"\s+", " ", text.partition(b"\0")[0].decode("utf-8", "replace")).strip()
    return f"{kind} {told[:SHOWN]}".strip()
