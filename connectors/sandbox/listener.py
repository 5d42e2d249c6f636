"""The listening socket; h11 reads and writes HTTP/1.1, one thread for each connection.

The reason phrase carries the service's error code, and no ASGI server lets an application set it,
so the sandbox speaks HTTP itself.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus

import h11

from connectors.sandbox.messages import Reset, Response, ServedRequest

ADDRESS = "127.0.0.1"
BACKLOG = 1024
STOP_SECONDS = 5.0
PAUSE_SECONDS = 0.1
RECEIVE_BYTES = 64 * 1024
IDLE_SECONDS = 120
LINGER_SECONDS = 2
MOST_BODY_BYTES = 256 * 1024 * 1024

Answer = Callable[[ServedRequest], Response | Reset]


class ServerConnection:
    """Serves one request after another until either side ends the connection."""

    def __init__(self, peer: socket.socket, answer: Answer) -> None:
        self._socket = peer
        self._answer = answer
        self._http = h11.Connection(h11.SERVER)

    def serve(self) -> None:
        """Serve until the connection ends; a network error is an end like any other."""
        try:
            with self._socket:
                self._socket.settimeout(IDLE_SECONDS)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while self._serve_one():
                    self._http.start_next_cycle()
        except OSError:
            return

    def end(self) -> None:
        """Wake a thread that waits for the client."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _serve_one(self) -> bool:
        """Answer one request; whether another can follow."""
        try:
            request = self._read()
        except h11.RemoteProtocolError as problem:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self._refuse(HTTPStatus(problem.error_status_hint or 400))
            return False
        if request is None:
            return False
        response = self._answer(request)
        if isinstance(response, Reset):
            self._reset()
            return False
        self._send(response, head_only=request.method == "HEAD")
        return not response.cut_short and self._http.our_state is h11.DONE

    def _read(self) -> ServedRequest | None:
        """The next request with its body; None if the client is gone."""
        head = self._next_event()
        if not isinstance(head, h11.Request):
            return None
        parts: list[bytes] = []
        size = 0
        while isinstance(event := self._next_event(), h11.Data):
            size += len(event.data)
            if size > MOST_BODY_BYTES:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
            parts.append(bytes(event.data))
        if not isinstance(event, h11.EndOfMessage):
            return None
        return ServedRequest(
            head.method.decode("ascii"),
            head.target.decode("ascii"),
            _joined(head.headers),
            b"".join(parts),
        )

    def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._socket.sendall(
                    self._http.send(
                        h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                    )
                )
            self._http.receive_data(self._socket.recv(RECEIVE_BYTES))
        return event

    def _send(self, response: Response, *, head_only: bool = False) -> None:
        headers = [
            ("Vary", "Accept"),
            *response.headers,
            ("Content-Length", str(len(response.body))),
        ]
        head = self._http.send(
            h11.Response(
                status_code=response.status,
                headers=headers,
                reason=response.reason.encode("latin-1", errors="replace"),
            )
        )
        body = b"" if head_only else response.body
        if response.cut_short:
            self._socket.sendall(head + body[: len(body) // 2])
            return
        # h11 knows that the answer to HEAD has a length but no body.
        data = self._http.send(h11.Data(data=body)) if body else b""
        self._socket.sendall(head + data + self._http.send(h11.EndOfMessage()))

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(Response(status, status.phrase))
        # Closing with unread bytes would reset the connection, and the answer would be lost.
        self._socket.shutdown(socket.SHUT_WR)
        self._socket.settimeout(LINGER_SECONDS)
        unread = MOST_BODY_BYTES
        while unread > 0 and (received := self._socket.recv(RECEIVE_BYTES)):
            unread -= len(received)

    def _reset(self) -> None:
        # A linger of zero seconds turns closing into a reset.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Listener:
    """Accepts connections until it is stopped."""

    def __init__(self, port: int, answer: Answer) -> None:
        self._socket = socket.create_server((ADDRESS, port), backlog=BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self._answer = answer
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, ServerConnection] = {}
        self._thread = threading.Thread(target=self._accept, name="sandbox", daemon=True)

    def start(self) -> None:
        """Accept in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more and end every connection."""
        self._stopping.set()
        # A connection to ourselves wakes up accept on every system.
        with socket.socket() as waker:
            waker.settimeout(STOP_SECONDS)
            waker.connect_ex((ADDRESS, self.port))
        self._thread.join(STOP_SECONDS)
        self._socket.close()
        with self._lock:
            threads = dict(self._open)
        for connection in threads.values():
            connection.end()
        for thread in threads:
            thread.join(STOP_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                # For example too many open files: connections that end free some.
                if self._stopping.wait(PAUSE_SECONDS):
                    return
                continue
            if self._stopping.is_set():
                peer.close()
                return
            connection = ServerConnection(peer, self._answer)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                self._open[thread] = connection
            thread.start()

    def _serve(self, connection: ServerConnection) -> None:
        try:
            connection.serve()
        finally:
            with self._lock:
                self._open.pop(threading.current_thread(), None)


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        text = value.decode("latin-1")
        key = name.decode("ascii")
        joiner = "; " if key == "cookie" else ", "
        found[key] = f"{found[key]}{joiner}{text}" if key in found else text
    return found
