"""The listening socket: one thread per connection."""

import socket
import threading

from connectors.sandbox.connection import Answer, ServerConnection

ADDRESS = "127.0.0.1"
BACKLOG = 1024
STOP_SECONDS = 5.0


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

    def wait(self) -> None:
        """Until it is stopped."""
        self._thread.join()

    def stop(self) -> None:
        """Accept no more and end every connection."""
        self._stopping.set()
        # A connection of our own is what every system's accept wakes up for.
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
            peer, _ = self._socket.accept()
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
