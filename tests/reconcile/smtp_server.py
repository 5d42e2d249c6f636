"""A mail server on a socket: takes messages, or refuses and dies where it is told to."""

import base64
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any


class MailServer(socketserver.ThreadingTCPServer):
    """Keeps what it took; what it does wrong is set before somebody connects."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.tls = tls
        """What it offers STARTTLS with, and a login behind it."""
        self.implicit = False
        """Whether TLS begins with the connection."""
        self.auth = "PLAIN"
        """Ways of a login that it offers."""
        self.welcome = "235 come in"
        self.plain: list[str] = []
        """The commands that came before TLS."""
        self.logins: list[str] = []
        self.raw: list[bytes] = []
        self.to: list[str] = []
        self.refused: set[str] = set()
        self.refusal = "550 no\x1b such person"
        self.answer = "250 taken"
        """To a message."""
        self.most_bytes: int | None = None
        """Of a message, as it says before one begins."""
        self.dies_in_data = False
        self.says_more = 0
        """Lines of what it can do, beside those that mean something."""
        self.farewell = "221 bye"
        self.meeting: threading.Barrier | None = None
        """Where connections wait for each other."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection, encrypted where TLS begins with it."""
        one, address = super().get_request()
        return (
            self.tls.wrap_socket(one, server_side=True) if self.implicit and self.tls else one
        ), address

    @property
    def messages(self) -> list[EmailMessage]:
        """What was taken, as a reader of mail shows it."""
        return [message_from_bytes(one, policy=SMTP) for one in self.raw]  # type: ignore[arg-type,misc]


class _Connection(socketserver.StreamRequestHandler):
    server: MailServer

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def offered(self) -> str:
        if self.server.tls is None:
            return f"SIZE {self.server.most_bytes or 0}"
        inside = isinstance(self.request, ssl.SSLSocket)
        return f"AUTH {self.server.auth}" if inside else "STARTTLS"

    def too_large(self, line: str) -> bool:
        most, (*_, size) = self.server.most_bytes, line.upper().split("SIZE=")
        return most is not None and size.isdigit() and int(size) > most

    def finish(self) -> None:
        super().finish()
        self.request.close()  # The server closes the one that it gave, which may be inside.

    def encrypt(self, context: ssl.SSLContext) -> bool:
        try:
            self.request = context.wrap_socket(self.request, server_side=True)
        except OSError:
            return False  # The other side has not trusted it.
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
        return True

    def handle(self) -> None:
        if self.server.meeting is not None:
            self.server.meeting.wait(10)
        self.say("220 here")
        to = ""
        while line := self.rfile.readline().decode().strip():
            verb = line.split(":")[0].split()[0].upper()
            if not isinstance(self.request, ssl.SSLSocket):
                self.server.plain.append(verb)
            if verb == "EHLO":
                self.say("250-here\r\n" * (1 + self.server.says_more) + f"250 {self.offered()}")
            elif verb == "STARTTLS" and self.server.tls:
                self.say("220 go on")
                if not self.encrypt(self.server.tls):
                    return
            elif verb == "AUTH":
                self.server.logins.append(base64.b64decode(line.split()[-1]).decode())
                self.say(self.server.welcome)
            elif verb == "RCPT":
                to = line.partition("<")[2].partition(">")[0]
                self.say(self.server.refusal if to in self.server.refused else "250 ok")
            elif verb == "DATA":
                self.say("354 go on")
                if self.server.dies_in_data:
                    self.rfile.readline()
                    return
                self.server.raw.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                self.server.to.append(to)
                self.say(self.server.answer)
            elif verb == "QUIT":
                self.say(self.server.farewell)
                return
            else:
                large = "552 5.3.4 Message size exceeds fixed limit"
                self.say(large if self.too_large(line) else "250 ok")


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None) -> Iterator[MailServer]:
    """A server that listens until the block ends."""
    with MailServer(tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
