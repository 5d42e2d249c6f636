"""An outage costs at most the rows that were in flight; POSTs wait until the service is back."""

import pytest

from connectors.service import Verdict
from tests.service.faulty_server import (
    DROPPED,
    LOST,
    OK,
    RESET,
    FaultyServer,
    Reply,
    Seen,
    always,
    at,
    scripted,
    status,
)
from tests.service.outbox import by_number, client, codes, requests

PUT, POST = "EditPayment", "AddMessageTone"
A, U, D = Verdict.ACKNOWLEDGED, Verdict.UNSENT, Verdict.IN_DOUBT
PAGE = Reply(502, (("Content-Type", "text/html"),), "<html>bad gateway</html>", applied=False)
DOWN = {
    "502": status(502),
    "503 applied": status(503, applied=True),
    "500": status(500, applied=True),
    "504": status(504),
    "page": Reply(200, (("Content-Type", "text/html"),), "<html>", applied=False),
    "page of a gateway": PAGE,
    "reset": RESET,
    "lost": LOST,
    "dropped": DROPPED,
}


@pytest.mark.parametrize("name", DOWN)
@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (4, 1), (2, 8), (8, 3)])
def test_an_outage_that_lasts_costs_what_was_in_flight(
    name: str, concurrency: int, batch: int
) -> None:
    down = DOWN[name]
    plan = lambda seen: OK if seen.number <= 10 else down  # noqa: E731
    with (
        FaultyServer(plan, health=always(down)) as server,
        client(server.url, concurrency=concurrency, batch=batch, breaker=1000) as service,
    ):
        answers = by_number(service.send(requests(POST, 400)))
    doubtful = [answer for answer in answers if answer.verdict is D]
    assert 0 < len(doubtful) <= concurrency * batch
    assert {answer.verdict for answer in answers} == {A, D, U}
    assert "/auth" in str(service.stopped)
    assert service.held
    assert len(server.asked) == service.settings.health_attempts
    assert server.twice() == []


@pytest.mark.long
@pytest.mark.parametrize("name", DOWN)
def test_after_an_outage_posts_go_on(name: str) -> None:
    """Down for every request that is under way and for the first three that ask."""
    down = DOWN[name]

    def plan(seen: Seen) -> Reply:
        return OK if not 9 <= seen.number <= 12 else down

    with (
        FaultyServer(plan, health=scripted([down] * 3)) as server,
        client(server.url, concurrency=4) as service,
    ):
        answers = by_number(service.send(requests(POST, 200)))
    assert service.stopped is None
    assert not service.held
    verdicts = [answer.verdict for answer in answers]
    assert 1 <= verdicts.count(D) <= 4
    assert verdicts.count(A) == 200 - verdicts.count(D)
    assert len(server.asked) >= 4
    assert {seen.method for seen in server.asked} == {"GET"}
    assert server.twice() == []


@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (4, 1), (2, 8)])
def test_a_service_that_says_it_is_back_and_is_not(concurrency: int, batch: int) -> None:
    """One row is tried after the service says so, one at a time, and not for ever."""
    plan = lambda seen: OK if seen.number <= 10 else status(503, applied=True)  # noqa: E731
    with (
        FaultyServer(plan) as server,
        client(server.url, concurrency=concurrency, batch=batch, breaker=1000) as service,
    ):
        answers = list(service.send(requests(POST, 400)))
    # Those in flight, of which the last good answer may be one, and those it is tried with.
    assert [answer.verdict for answer in answers].count(D) <= 2 * concurrency * batch
    assert service.stopped is not None
    assert service.stopped.endswith(
        "; to the last one: The service answered 503 without saying why."
    )
    assert server.twice() == []


@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (8, 1), (2, 8), (4, 50)])
def test_a_service_that_says_it_is_back_and_loses_every_post_costs_one_row_a_run(
    concurrency: int, batch: int
) -> None:
    """The runs behind the first ask, try one row, and stop."""
    left, lost = requests(POST, 400), []
    with FaultyServer(always(status(502, applied=True))) as server:
        for run in range(4):
            with client(server.url, concurrency=concurrency, batch=batch) as service:
                answers = list(service.send(left, ask_first=run > 0))
            assert service.stopped is not None
            assert service.held
            doubtful = {answer.number for answer in answers if answer.verdict is D}
            left = [one for one in left if one.number not in doubtful]
            lost.append(len(doubtful))
    assert 0 < lost[0] <= concurrency * batch + concurrency
    assert lost[1:] == [1, 1, 1] or not left
    assert server.twice() == []


def test_a_run_that_is_told_to_asks_before_the_first_row() -> None:
    with (
        FaultyServer(health=always(status(503))) as server,
        client(server.url, batch=8) as service,
    ):
        answers = list(service.send(requests(POST, 50), ask_first=True))
    assert {answer.verdict for answer in answers} == {U}
    assert server.requests == []
    with FaultyServer() as server, client(server.url) as service:
        answers = list(service.send(requests(POST, 50), ask_first=True))
    assert {answer.verdict for answer in answers} == {A}
    assert len(server.asked) == 1


BACK = [
    # what the service says when it is asked, whether it is back
    (OK, True),
    (status(401, error_code="NotAuthenticated"), True),
    (status(401), True),
    (status(403), True),
    (status(404, body="404"), True),
    (status(500), False),
    (status(429), False),
    (status(408), False),
    (status(302, headers=(("Location", "/login"),)), False),
    (Reply(body="<p>", headers=(("Content-Type", "text/html; charset=utf-8"),)), False),
    (LOST, False),
    (status(503, retry_after=3600), False),
]


@pytest.mark.parametrize(("answer", "back"), BACK, ids=range(len(BACK)))
def test_what_counts_as_back(answer: Reply, back: bool) -> None:
    with (
        FaultyServer(health=always(answer)) as server,
        client(server.url, health_attempts=2) as service,
    ):
        (sent,) = service.send(requests(POST, 1), ask_first=True)
    assert (sent.verdict is A, service.stopped is None) == (back, back)


def test_where_to_ask_is_a_setting() -> None:
    plan = lambda seen: LOST if seen.number == 1 else OK  # noqa: E731
    with (
        FaultyServer(plan) as server,
        client(server.url + "/base", concurrency=1, health_path="/avatars?Id=0") as service,
    ):
        answers = by_number(service.send(requests(POST, 3)))
    assert [answer.verdict for answer in answers] == [D, A, A]
    assert [(seen.method, seen.path) for seen in server.requests[1:2]] == [
        ("GET", "/base/avatars?Id=0")
    ]


def test_puts_need_not_wait() -> None:
    plan = lambda seen: status(503) if seen.attempt == 1 else OK  # noqa: E731
    with FaultyServer(plan) as server, client(server.url) as service:
        answers = list(service.send(requests(PUT, 30)))
    assert {answer.verdict for answer in answers} == {A}
    assert server.asked == []


@pytest.mark.long
def test_a_host_that_honours_the_key_is_asked_again_and_not_in_between() -> None:
    """The setting makes a POST repeatable, under the same key and in a request of its own."""
    plan = lambda seen: LOST if seen.attempt == 1 else OK  # noqa: E731
    with FaultyServer(plan) as server, client(server.url, idempotent=True, batch=8) as service:
        answers = list(service.send(requests(POST, 30)))
    assert {answer.verdict for answer in answers} == {A}
    assert {answer.attempts for answer in answers} == {2}
    assert {seen.path for seen in server.requests} == {"/message_tones"}
    assert server.asked == []
    with FaultyServer(plan) as server, client(server.url, breaker=1000) as service:
        answers = list(service.send(requests(POST, 1)))
    assert [answer.verdict for answer in answers] == [D]


@pytest.mark.parametrize(
    "refusal",
    [
        status(400, error_code="AlreadyExists"),
        status(409, error_code="Conflict"),
        Reply(body={"ResponseStatus": {"ErrorCode": "AlreadyExists"}}),
    ],
    ids=["400", "409", "200"],
)
def test_what_is_refused_behind_a_lost_answer_may_be_in_its_own_way(refusal: Reply) -> None:
    """Whoever is told that it was refused would deliver it again."""
    plan = at({1: status(502, applied=True), 2: refusal})
    with FaultyServer(plan) as server, client(server.url, idempotent=True) as service:
        (answer,) = service.send(requests("ClientRegister", 1))
    assert (answer.verdict, answer.attempts) == (D, 2)
    assert codes(answer)[0] == ("InDoubt", "")


@pytest.mark.long
def test_a_row_carries_its_key_whatever_it_is_sent_with() -> None:
    keys: dict[int, list[str]] = {}
    for batch in (1, 2, 8, 200):
        with FaultyServer() as server, client(server.url, batch=batch) as service:
            assert {one.verdict for one in service.send(requests(POST, 450))} == {A}
        keys[batch] = sorted(effect.push_key for effect in server.effects)
        assert max(len(seen.push_key.split(", ")) for seen in server.requests) <= 200
    assert all(found == keys[1] for found in keys.values())
    assert len(set(keys[1])) == 450


@pytest.mark.parametrize("operation", [PUT, POST])
def test_where_nobody_listens_nothing_was_sent(operation: str) -> None:
    with FaultyServer() as server:
        url = server.url
    with client(url, attempts=2, concurrency=1) as service:
        answers = list(service.send(requests(operation, 3)))
    assert {answer.verdict for answer in answers} == {U}


def test_a_place_that_answered_once_is_not_asked_whether_it_speaks_otherwise() -> None:
    """A connection is opened for each request that finds none, and for nothing else."""
    with (
        FaultyServer(scripted([OK, DROPPED, OK])) as server,
        client(server.url, concurrency=1, attempts=2) as service,
    ):
        answers = list(service.send(requests(PUT, 2)))
    assert {answer.verdict for answer in answers} == {A}
    assert server.connections == 2
