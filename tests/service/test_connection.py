"""What one connection knows: whether a byte was handed over, and whether it may be used again."""

import asyncio
import select
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from connectors.service.connection import Connection, Failed, Reply

REQUEST = b"PUT /payments/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PATIENCE = 5.0


class Pair(NamedTuple):
    loop: asyncio.AbstractEventLoop
    connection: Connection
    peer: socket.socket
    own: socket.socket

    def call(self, patience: float = PATIENCE, most_bytes: int = 1000) -> Reply | Failed:
        deadline = self.loop.time() + patience
        return self.loop.run_until_complete(self.connection.call(REQUEST, deadline, most_bytes))

    def reset_by_peer(self) -> None:
        """Reset, and wait until the news is here; the loop has not heard of it."""
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()
        self.await_news()

    def await_news(self) -> None:
        assert select.select([self.own], [], [], PATIENCE)[0]


@pytest.fixture
def pair() -> Iterator[Pair]:
    loop = asyncio.new_event_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        own = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    own.setblocking(False)
    _, connection = loop.run_until_complete(
        loop.create_connection(lambda: Connection(loop), sock=own)
    )
    yield Pair(loop, connection, peer, own)
    connection.abort()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    peer.close()


def test_nothing_was_handed_over_to_a_connection_that_was_reset(pair: Pair) -> None:
    pair.reset_by_peer()
    assert not pair.connection.usable
    outcome = pair.call()
    assert isinstance(outcome, Failed)
    assert not outcome.sent


def test_bytes_written_to_a_connection_that_was_closed_may_have_been_read(pair: Pair) -> None:
    """The other side closed its half only; that it reads no more, nothing proves."""
    pair.peer.shutdown(socket.SHUT_WR)
    pair.await_news()
    assert not pair.connection.usable
    outcome = pair.call()
    assert isinstance(outcome, Failed)
    assert outcome.sent


def test_one_answer_after_another(pair: Pair) -> None:
    for _ in range(3):
        pair.peer.sendall(ANSWER)
        outcome = pair.call()
        assert isinstance(outcome, Reply)
        assert (outcome.status, outcome.body, outcome.proof) == (
            200,
            b"ok",
            "Content-Length 2 read",
        )
        assert pair.connection.usable


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ANSWER + ANSWER,
    ],
    ids=["close", "old", "two answers to one request"],
)
def test_a_connection_that_is_not_used_again(pair: Pair, answer: bytes) -> None:
    pair.peer.sendall(answer)
    outcome = pair.call()
    assert isinstance(outcome, Reply)
    assert outcome.body == b"ok"
    assert not pair.connection.usable


@pytest.mark.parametrize(
    "second",
    [
        b"HTTP/1.1 429 Later\r\nRetry-After: 99\r\nContent-Length: 4\r\n\r\nmore",
        b"HTTP/1.1 429 Later\r\nRetry-After: 99\r\nConte",
        b"HTTP/1.1 401 No\r\nLocation: /x\r\n\r\n",
        b"H",
        b"rubbish",
        b"\r\n\r\nHTTP/1.0 200 OK\r\n\r\n",
    ],
)
def test_a_second_answer_in_the_same_segment_changes_nothing_of_the_first(
    pair: Pair, second: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    pair.peer.sendall(ANSWER + second)
    outcome = pair.call()
    assert outcome == Reply(200, {"content-length": "2"}, b"ok", "Content-Length 2 read")
    assert not pair.connection.usable
    assert second == b"rubbish" or "another answer behind one" in caplog.text


def test_an_answer_before_the_request_makes_the_connection_unusable(pair: Pair) -> None:
    pair.peer.sendall(ANSWER)
    pair.await_news()
    assert not pair.connection.usable
    pair.loop.run_until_complete(asyncio.sleep(0.01))
    outcome = pair.call()
    assert isinstance(outcome, Failed)
    assert not outcome.sent


BROKEN = [
    # bytes, part of the cause
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "no HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", "no HTTP"),
    (b"ICY 200 OK\r\n\r\n", "no HTTP"),
    (
        b"HTTP/1.1 101 On\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        "no HTTP: the service goes on in another protocol (101)",
    ),
    (b"\0\0\0\0", "no HTTP"),
]


@pytest.mark.parametrize(("data", "cause"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_http(pair: Pair, data: bytes, cause: str) -> None:
    pair.peer.sendall(data)
    outcome = pair.call()
    assert isinstance(outcome, Failed)
    assert outcome.sent
    assert cause in outcome.cause
    assert not pair.connection.usable


def test_an_answer_that_never_ends(pair: Pair) -> None:
    pair.peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n")
    pair.peer.settimeout(0.2)
    pair.peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    sent = pair.peer.send(b"x" * 900_000)
    assert sent > 400_000
    outcome = pair.call(most_bytes=1000)
    assert isinstance(outcome, Failed)
    assert outcome.cause == "the answer has more than 1000 bytes"


@pytest.mark.parametrize("size", [1000, 1001])
@pytest.mark.parametrize(
    "how", ["Content-Length: {}", "Connection: close", "Transfer-Encoding: chunked"]
)
def test_a_limit_is_that_of_the_body(pair: Pair, how: str, size: int) -> None:
    """However long the head is, and although all of it came at once."""
    body = b"x" * size
    if "chunked" in how:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)
    head = f"HTTP/1.1 200 OK\r\nX: {'x' * 2000}\r\n{how.format(size)}\r\n\r\n"
    pair.peer.sendall(head.encode() + body)
    pair.peer.shutdown(socket.SHUT_WR)
    outcome = pair.call(most_bytes=1000)
    if size > 1000:
        cause = "the answer has more than 1000 bytes"
        assert outcome == Failed(True, cause, too_large=True)
        assert not pair.connection.usable
    else:
        assert isinstance(outcome, Reply)


def test_the_deadline_is_for_the_whole_answer(pair: Pair) -> None:
    pair.peer.sendall(ANSWER[:-1])
    outcome = pair.call(patience=0.05)
    assert isinstance(outcome, Failed)
    assert (outcome.sent, outcome.cause) == (True, "no complete answer within the deadline")
