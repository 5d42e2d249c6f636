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
READY, IDLE = b"Z", b"I"
"""What ends the server's answer, and that no transaction is open then."""
ASKS = ("Q", "S", "s")
"""What READY answers: a query, a sync, the startup."""


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
    kept: set[int] = field(default_factory=set)
    """Numbers of those after which the server stood outside of a transaction: what it did stays."""
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
        sent: list[int] = []
        back = threading.Thread(
            target=self._answers, args=(server, client, muted, gone, sent), daemon=True
        )
        back.start()
        with suppress(OSError):
            for message in _messages(client):
                if not self._is_cut(message, sent):
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

    def _is_cut(self, message: bytes, sent: list[int]) -> bool:
        with self._lock:
            self.seen.append(_described(message))
            sent.append(len(self.seen))
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
        sent: list[int],
    ) -> None:
        """Hand on what the server says; `sent` are the numbers of what it was told so far."""
        answers = Messages(typed=True)
        with suppress(OSError):
            while data := server.recv(READ_BYTES):
                for answer in answers.of(data):
                    if answer[:1] == READY:
                        self._is_ready(answer, sent)
                if not muted.is_set():
                    client.sendall(data)
        gone.set()
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _is_ready(self, answer: bytes, sent: list[int]) -> None:
        with self._lock:
            if answer[5:6] == IDLE:
                self.kept |= set(sent)
                sent.clear()
                return
            first, *more = [at for at in sent if self.seen[at - 1][:1] in ASKS]
            # Of several that were sent at once it is the first one's answer.
            sent[:] = [at for at in sent if more and at > first]

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
    messages = Messages(typed=False)
    while data := client.recv(READ_BYTES):
        yield from messages.of(data)


class Messages:
    """What comes in pieces of any size, message by message."""

    def __init__(self, *, typed: bool) -> None:
        self._waiting, self._typed = b"", int(typed)

    def of(self, data: bytes) -> Iterator[bytes]:
        """Those that are whole with this piece."""
        self._waiting += data
        while len(self._waiting) >= self._typed + 4:
            size = self._typed + struct.unpack_from(">i", self._waiting, self._typed)[0]
            if len(self._waiting) < size:
                return
            yield self._waiting[:size]
            self._waiting, self._typed = self._waiting[size:], 1


def _described(message: bytes) -> str:
    if message[:1] == b"\0":
        return "startup"
    kind = message[:1].decode()
    text = message[5:] if kind == "Q" else message[5:].partition(b"\0")[2] if kind == "P" else b""
    told = re.sub(r"\s+", " ", text.partition(b"\0")[0].decode("utf-8", "replace")).strip()
    return f"{kind} {told[:SHOWN]}".strip()
