"""Resets, ends, silence and drips: a PUT is sent again, a POST is in doubt and never sent twice."""

import pytest

from connectors.service import Answer, Verdict
from tests.examples import seeds
from tests.service.faulty_server import (
    CLOSE_AFTER,
    CUT,
    DROPPED,
    EVERY_LOSS,
    HALF_CLOSE,
    LOST,
    OK,
    RESET,
    RESET_BEFORE,
    SILENT,
    Accept,
    Ending,
    FaultyServer,
    Reply,
    always,
    at,
    attempts,
    seeded,
)
from tests.service.outbox import by_number, client, codes, requests

PUT, POST = "EditPayment", "AddMessageTone"
A, U, D = Verdict.ACKNOWLEDGED, Verdict.UNSENT, Verdict.IN_DOUBT
PATIENCE = 1.0
"""The deadline of one attempt where the server keeps silent; long enough for a busy machine."""

LOSSES = {
    "closed before applying": DROPPED,
    "closed after applying": LOST,
    "reset before applying": RESET_BEFORE,
    "reset after applying": RESET,
    "body cut": CUT,
    "head cut": Reply(ending=Ending.CUT_HEAD),
    "half closed": HALF_CLOSE,
    "no HTTP": Reply(body=b"SSH-2.0-dropbear\r\n", ending=Ending.RAW),
    "interim only": Reply(body=b"HTTP/1.1 100 Continue\r\n\r\n", ending=Ending.RAW),
    "endless head": Reply(body=b"HTTP/1.1 200 OK\r\nX: " + b"x" * 400_000, ending=Ending.RAW),
    "broken chunk": Reply(
        body=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnone", ending=Ending.RAW
    ),
}


SILENCES = {
    "silent": SILENT,
    "drips": Reply(ending=Ending.DRIP, drip_seconds=PATIENCE / 20),
    "late": Reply(delay=2 * PATIENCE),
}


@pytest.mark.parametrize("place", [1, 5, 9], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("operation", [PUT, POST])
def test_one_lost_answer(operation: str, name: str, place: int) -> None:
    _lose(operation, LOSSES[name], place, patience=30.0)


@pytest.mark.long
@pytest.mark.parametrize("name", SILENCES)
@pytest.mark.parametrize("operation", [PUT, POST])
def test_one_answer_that_does_not_come_in_time(operation: str, name: str) -> None:
    _lose(operation, SILENCES[name], 5, patience=PATIENCE)


def _lose(operation: str, reply: Reply, place: int, patience: float) -> None:
    with FaultyServer(at({place: reply})) as server:
        with client(server.url, concurrency=1, answer_seconds=patience) as service:
            answers = by_number(service.send(requests(operation, 9)))
        assert service.stopped is None
    expected = [A] * 9
    expected[place - 1] = A if operation == PUT else D
    assert [answer.verdict for answer in answers] == expected
    assert answers[place - 1].attempts == (2 if operation == PUT else 1)
    if operation == POST:
        assert server.twice() == []
        assert len(server.requests) == 9
        assert codes(answers[place - 1]) == [("InDoubt", "")]


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 5))
@pytest.mark.parametrize("operation", [PUT, POST])
def test_many_lost_answers(operation: str, seed: int) -> None:
    """The ledger of effects agrees with every verdict, whatever is lost."""
    # A run stops after nine lost POSTs in a row, which a share of 0.3 reaches on a busy machine.
    share = 0.3 if operation == PUT else 0.15
    with (
        FaultyServer(seeded(seed, EVERY_LOSS, share)) as server,
        client(server.url, concurrency=8, breaker=1000, attempts=15, seed=seed) as service,
    ):
        answers = list(service.send(requests(operation, 200)))
    assert sorted(answer.number for answer in answers) == list(range(1, 201))
    for answer in answers:
        times = server.applied(f"key-{answer.number}")
        assert answer.verdict is not A or times >= 1, f"seed {seed}: {answer}"
        assert answer.verdict is not U or times == 0, f"seed {seed}: {answer}"
        assert operation == PUT or times <= 1, f"seed {seed}: {answer}"
    verdicts = {answer.verdict for answer in answers}
    assert verdicts == ({A} if operation == PUT else {A, D})


@pytest.mark.parametrize("operation", [PUT, POST])
def test_no_connection_means_not_sent(operation: str) -> None:
    with FaultyServer() as server:
        url = server.url
    with client(url, attempts=3, breaker=2, concurrency=1) as service:
        answers = by_number(service.send(requests(operation, 5)))
    assert [answer.verdict for answer in answers] == [U] * 5
    # Another row may have been on its way when the circuit opened.
    assert sorted(answer.attempts for answer in answers)[-2:] == [3, 3]
    assert sum(answer.attempts for answer in answers) <= 2 * 3 + 2
    assert codes(answers[0]) == [("Unsent", "")]
    assert service.stopped is not None
    assert "; to the last one: No connection to 127.0.0.1:" in service.stopped


@pytest.mark.long(
    but=(
        "EditPayment-close",
        "EditPayment-reset",
    )
)
@pytest.mark.parametrize("accept", [Accept.CLOSE, Accept.RESET, Accept.NEVER_READ])
@pytest.mark.parametrize("operation", [PUT, POST])
def test_a_connection_that_leads_nowhere(operation: str, accept: Accept) -> None:
    def first(number: int) -> Accept:
        return accept if number == 1 else Accept.SERVE

    with (
        FaultyServer(always(OK), first) as server,
        client(server.url, concurrency=1, answer_seconds=PATIENCE) as service,
    ):
        answers = by_number(service.send(requests(operation, 3)))
    verdicts = [answer.verdict for answer in answers]
    if accept is Accept.RESET and operation == POST:
        # On a busy machine the reset is there before a byte was handed over.
        assert verdicts in ([D, A, A], [A, A, A])
    else:
        # Bytes were handed over, and nobody knows who read them.
        assert verdicts == [A if operation == PUT else D, A, A]
    assert [len(server.effects), server.twice()] == [3 - verdicts.count(D), []]


@pytest.mark.parametrize("operation", [PUT, POST])
def test_a_connection_that_was_closed_while_idle_is_not_used_again(operation: str) -> None:
    """Every answer is followed by the end of the connection, and does not say so."""

    with (
        FaultyServer(always(CLOSE_AFTER)) as server,
        client(server.url, concurrency=1) as service,
    ):
        answers: list[Answer] = []
        for request in requests(operation, 6):
            answers += service.send([request])
            server.wait_closed()
    assert [(answer.verdict, answer.attempts) for answer in answers] == [(A, 1)] * 6
    assert server.connections == 6


def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    with FaultyServer() as server, client(server.url, concurrency=1, idle_seconds=1e-9) as service:
        assert len(list(service.send(requests(PUT, 4)))) == 4
    assert server.connections == 4


@pytest.mark.long
def test_a_put_that_is_never_answered_is_in_doubt() -> None:
    with (
        FaultyServer(always(SILENT)) as server,
        client(server.url, attempts=2, answer_seconds=PATIENCE / 3) as service,
    ):
        (answer,) = service.send(requests(PUT, 1))
    assert (answer.verdict, answer.attempts, answer.status) == (D, 2, None)


@pytest.mark.long
def test_all_attempts_at_a_row_have_one_deadline() -> None:
    with (
        FaultyServer(always(SILENT)) as server,
        client(
            server.url, attempts=100, answer_seconds=0.1, row_seconds=1.0, backoff_seconds=0.01
        ) as service,
    ):
        (answer,) = service.send(requests(PUT, 1))
    assert answer.verdict is D
    assert 1 < answer.attempts < 20


def test_the_same_row_is_tried_again_with_the_same_body_and_key() -> None:
    with (
        FaultyServer(attempts([LOST, Reply(503), RESET])) as server,
        client(server.url) as service,
    ):
        answers = list(service.send(requests(PUT, 1)))
    assert [answer.attempts for answer in answers] == [4]
    assert len({(seen.push_key, seen.path, seen.body) for seen in server.requests}) == 1
