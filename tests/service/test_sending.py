"""How requests go out: taken as there is room, one at a time for a record, never more at once."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from connectors.errors import SettingsError
from connectors.service import Credentials, Request, ServiceSettings, Verdict, open_service
from connectors.service.service import Service
from tests.service.faulty_server import (
    LOST,
    OK,
    FaultyServer,
    Reply,
    Seen,
    always,
    at,
    attempts,
    retry_date,
    status,
)
from tests.service.outbox import BY_NAME, CLIENT, QUICK, client, request, requests

SLOW = Reply(delay=0.02)


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_no_more_in_flight_than_said(concurrency: int) -> None:
    together = Reply(hold=threading.Barrier(concurrency, timeout=30).wait)
    with (
        FaultyServer(at(dict.fromkeys(range(1, concurrency + 1), together))) as server,
        client(server.url, concurrency=concurrency, answer_seconds=60.0) as service,
    ):
        answers = list(service.send(requests("EditPayment", 40)))
    assert len(answers) == 40
    assert server.most_in_flight == concurrency
    assert server.connections == concurrency


@pytest.mark.long
def test_one_in_flight_for_a_record_in_the_order_given() -> None:
    """Three versions of each of five payments; also when an answer is lost in between."""
    sent = [_version(number, version) for version in range(3) for number in range(5)]
    with (
        FaultyServer(at({2: LOST, 7: status(503)}, then=SLOW)) as server,
        client(server.url, concurrency=16) as service,
    ):
        answers = list(service.send(sent))
    assert {answer.verdict for answer in answers} == {Verdict.ACKNOWLEDGED}
    assert server.most_in_flight_of_a_path == 1
    for number in range(5):
        bodies = [effect.body for effect in server.effects if effect.path == f"/payments/{number}"]
        assert bodies == sorted(bodies)
        assert len(set(bodies)) == 3


def _version(number: int, version: int) -> Request:
    made = request("EditPayment", number, {"PaidAmount": version})
    return replace(made, number=10 * version + number, push_key=f"{number}-{version}")


def test_requests_are_taken_as_there_is_room() -> None:
    """What is written ahead is at most twice what may be in flight."""
    taken: list[int] = []

    def source() -> Iterator[Request]:
        for made in requests("EditPayment", 100):
            taken.append(made.number)
            yield made

    with FaultyServer() as server, client(server.url, concurrency=4) as service:
        answered = 0
        for _ in service.send(source()):
            answered += 1
            assert len(taken) - answered < 2 * 4
    assert (answered, len(taken)) == (100, 100)


@pytest.mark.long
def test_an_iteration_that_ends_early_drops_what_is_under_way() -> None:
    with FaultyServer(always(SLOW)) as server, client(server.url, concurrency=4) as service:
        answers = service.send(requests("EditPayment", 100))
        first = next(answers)
        answers.close()
        assert first.verdict is Verdict.ACKNOWLEDGED
        again = list(service.send(requests("EditPayment", 10)))
    assert [answer.verdict for answer in again] == [Verdict.ACKNOWLEDGED] * 10


def test_a_service_that_is_closed_while_answers_are_waited_for() -> None:
    with FaultyServer(always(SLOW)) as server:
        with client(server.url, concurrency=4) as service:
            answers = service.send(requests("EditPayment", 100))
            next(answers)
        answers.close()
    assert len(server.requests) < 100


@pytest.mark.long
def test_a_listing_in_between() -> None:
    """Reading does not disturb the requests that are on their way."""

    def plan(seen: Seen) -> Reply:
        return Reply(body="[]") if seen.method == "GET" else SLOW

    with FaultyServer(plan) as server, client(server.url, concurrency=4) as service:
        verdicts = []
        for number, answer in enumerate(service.send(requests("EditPayment", 40))):
            verdicts.append(answer.verdict)
            if number % 7 == 0:
                assert service.listing(BY_NAME["ListAvatars"]).rows == []
    assert verdicts == [Verdict.ACKNOWLEDGED] * 40
    assert server.twice() == []


def test_an_error_of_the_caller_is_the_callers() -> None:
    def source() -> Iterator[Request]:
        yield request("EditPayment", 1)
        raise LookupError("the caller's own")

    with FaultyServer() as server, client(server.url) as service:
        with pytest.raises(LookupError, match="the caller's own"):
            list(service.send(source()))
        assert len(list(service.send(requests("EditPayment", 3)))) == 3


def test_no_requests_no_answers() -> None:
    with FaultyServer() as server, client(server.url) as service:
        assert list(service.send([])) == []
    assert server.connections == 0


def test_two_senders_at_once_are_refused() -> None:
    with FaultyServer() as server, client(server.url) as service:
        first = service.send(requests("EditPayment", 30))
        next(first)
        with pytest.raises(RuntimeError, match="one caller"):
            next(service.send(requests("EditPayment", 1)))
        first.close()


def test_what_is_sent_is_what_the_service_reads() -> None:
    with FaultyServer() as server:
        with client(server.url, CLIENT, format="csv") as service:
            list(service.send([request("EditPayment", 12)]))
        with client(server.url + "/base/", CLIENT, format="json") as service:
            list(service.send([request("EditPayment", 12)]))
    csv, json = server.requests
    assert csv.path == "/payments/12"
    assert json.path == "/base/payments/12"
    assert csv.body == (
        "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,"
        "CurrenciesId,CurrencyRatesId\r\n12,1,2,3,2026-01-02T03:04:05+02:00,10.5,0,1,4\r\n"
    )
    assert json.body == request("EditPayment", 12).jsondata
    assert {name: csv.headers[name] for name in sorted(csv.headers)} == {
        "accept-encoding": "identity",
        "accept": "text/csv",
        "authorization": "Basic Y2xpZW50OnBAc3M=",
        "content-length": str(len(csv.body)),
        "content-type": "text/csv",
        "host": server.url.removeprefix("http://"),
        "idempotency-key": "key-12",
        "user-agent": "recon",
    }


@pytest.mark.parametrize("hours", [0, -1, 1])
def test_a_pause_given_as_a_date_is_kept(hours: int) -> None:
    """Whatever our clock says, where the service says what its own does."""
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    ours = now + timedelta(hours=hours)
    headers = (("Date", retry_date(0, now.timestamp())),) if hours else ()
    reply = status(429, retry_after=retry_date(1, now.timestamp()), headers=headers)
    settings = ServiceSettings(format="json", concurrency=1, retry_after_most_seconds=0.5)
    with FaultyServer(attempts([reply])) as server:
        service = Service(replace(settings, url=server.url), Credentials(), now=lambda: ours)
        (answer,) = service.send(requests("AddMessageTone", 1))
        service.close()
    assert answer.verdict is Verdict.UNSENT
    assert service.stopped == "The service asks for a pause of 1 s; the limit is 0 s."


def test_a_rate_of_requests() -> None:
    with FaultyServer() as server, client(server.url, concurrency=2, rate=200.0) as service:
        assert len(list(service.send(requests("EditPayment", 30)))) == 30
    assert len(server.requests) == 30


def test_a_request_that_cannot_be_written_is_the_callers_error() -> None:
    """Also when others are answered at the same time: nothing waits for it for ever."""
    made = requests("EditPayment", 60)
    made[30] = replace(made[30], push_key="two words")
    with (
        FaultyServer() as server,
        client(server.url, concurrency=16) as service,
        pytest.raises(ValueError, match="push key 'two words' of request 31"),
    ):
        list(service.send(made))
    assert server.twice() == []


def test_a_push_key_that_is_no_header_value() -> None:
    made = request("EditPayment", 1)
    bad = Request(1, made.operation, made.jsondata, "a\r\nX-Evil: 1")
    with (
        FaultyServer(always(OK)) as server,
        client(server.url) as service,
        pytest.raises(ValueError, match="push key"),
    ):
        list(service.send([bad]))
    assert server.requests == []


def test_no_service_is_set() -> None:
    with pytest.raises(SettingsError, match="RECON_SERVICE_URL"), open_service(QUICK, CLIENT):
        pytest.fail("a service that is not set was opened")
