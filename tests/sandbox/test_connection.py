"""The socket itself: what is no HTTP, connections that stay, callers that go away."""

import os
import resource
import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.sandbox.conftest import Host


def dial(host: Host) -> socket.socket:
    address = urlsplit(host.caller.base_url)
    assert address.hostname
    assert address.port
    return socket.create_connection((address.hostname, address.port), timeout=5)


def conversation(host: Host, sent: bytes) -> bytes:
    """Everything that comes back until the service ends the connection."""
    with dial(host) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65536), b""))


NO_HTTP = [
    b"nonsense\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000,
]


@pytest.mark.parametrize("sent", NO_HTTP, ids=lambda sent: sent[:20])
def test_what_is_no_http_is_refused(pascal: Host, sent: bytes) -> None:
    assert conversation(pascal, sent).startswith(b"HTTP/1.1 4")


def test_a_connection_stays_until_it_is_asked_to_end(pascal: Host) -> None:
    request = b"GET /nothing HTTP/1.1\r\nHost: x\r\n%s\r\n"
    answers = conversation(pascal, request % b"" * 2 + request % b"Connection: close\r\n")
    assert answers.count(b"HTTP/1.1 404 Not Found\r\n") == 3


def test_a_caller_that_goes_away_harms_nobody(pascal: Host) -> None:
    for sent in (b"", b"PUT /payments/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"):
        with dial(pascal) as connection:
            connection.sendall(sent)
    assert pascal.caller.as_client("GET", "/avatars").status == 200


@pytest.mark.long
def test_too_many_open_files_end_no_accepting(pascal: Host) -> None:
    with dial(pascal) as connection:
        waiting = socket.socket()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = max(int(one) for one in os.listdir("/dev/fd"))  # noqa: PTH208 -- numbers.
        filled = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1, limits[1]))
            with suppress(OSError):
                while True:
                    filled.append(os.dup(connection.fileno()))
            waiting.settimeout(5)
            waiting.connect(connection.getpeername())
            time.sleep(0.3)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for one in filled:
                os.close(one)
        with waiting:
            waiting.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert waiting.recv(65536).startswith(b"HTTP/1.1 404")


def test_a_body_is_asked_for_where_the_caller_waits(pascal: Host) -> None:
    with dial(pascal) as connection:
        connection.sendall(
            b"PUT /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")


def test_a_whole_address_as_the_target(pascal: Host) -> None:
    target = f"{pascal.caller.base_url}/avatars?format=csv"
    assert pascal.caller.as_client("GET", target).headers["content-type"] == "text/csv"
