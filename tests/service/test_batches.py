"""Several rows in one request: every row gets the outcome the answer proves, and no other."""

import json
import threading
from collections import Counter
from typing import Any

import pytest

from connectors.service import Verdict
from tests.examples import seeds
from tests.sandbox.conftest import Host
from tests.service.faulty_server import (
    DROPPED,
    EVERY_LOSS,
    LOST,
    OK,
    FaultyServer,
    Reply,
    Seen,
    at,
    seeded,
    status,
)
from tests.service.outbox import (
    BY_NAME,
    PARTNER,
    by_number,
    client,
    codes,
    record,
    request,
    requests,
)
from tests.service.test_against_sandbox import ZONE

A, R, U, D = (
    Verdict.ACKNOWLEDGED,
    Verdict.REFUSED,
    Verdict.UNSENT,
    Verdict.IN_DOUBT,
)
TONE = "AddMessageTone"
AS_JSON = (("Content-Type", "application/json"),)
NOT_NULL = {"ErrorCode": "NotNull", "FieldName": "Name", "Message": "no"}


def names(server: FaultyServer) -> list[str]:
    """The rows that took effect."""
    return sorted(json.loads(effect.body)["Name"] for effect in server.effects)


def indexed(index: int, **told_more: Any) -> Reply:
    told = {"ErrorCode": "NotNull", "Message": "no", "Errors": [NOT_NULL]}
    meta = {"AutoBatchIndex": str(index)}
    body = {"ResponseStatus": {**told, "Meta": meta}}
    return status(400, errors=[NOT_NULL], body=body, **told_more)


def listed(wrong: int) -> str:
    """Every row as it was sent, with an error in one of them."""
    rows = [record(BY_NAME[TONE], number) for number in range(1, 5)]
    rows[wrong - 1]["ResponseStatus"] = {"ErrorCode": "X"}
    rows[wrong % 4]["responseStatus"] = {}
    return json.dumps(rows)


OUTCOMES: list[tuple[str, Reply, list[Verdict], int, int]] = [
    # what the first batch of four gets, the verdicts, requests in all, rows in effect
    ("all done", OK, [A, A, A, A], 1, 4),
    ("no answer, applied", LOST, [D, D, D, D], 1, 4),
    ("no answer, not applied", DROPPED, [D, D, D, D], 1, 0),
    ("500 before any", status(500), [D, D, D, D], 1, 0),
    ("503", status(503), [D, D, D, D], 1, 0),
    ("invalid, unnamed", status(400, errors=[NOT_NULL]), [D, D, D, D], 1, 0),
    ("invalid, the second", indexed(1), [D, R, D, D], 1, 0),
    ("invalid, the third, and two were done", indexed(2, completed=2, counted=False),
     [D, D, R, D], 1, 2),
    ("invalid, one that is not there", indexed(9), [D, D, D, D], 1, 0),
    ("invalid, and none was done", indexed(2, completed=0), [A, A, R, A], 2, 3),
    ("invalid, the one behind those done", indexed(2, completed=2), [A, A, R, A], 2, 3),
    ("invalid, one further than those done", indexed(2, completed=1), [A, D, R, D], 1, 1),
    ("invalid, one that is done", indexed(0, completed=3), [D, A, A, D], 1, 3),
    ("invalid, one of those that are all done", indexed(1, completed=4), [A, D, A, A], 1, 4),
    *((f"{code}, an error beside the record at the {place}",
       status(code, completed=done, body=listed(place), headers=AS_JSON), [D, D, D, D], 1, done)
      for code in (400, 409, 500) for done in (2, 4) for place in (1, 2)),
    *((f"{code}, nothing said", status(code), [D, D, D, D], 1, 0) for code in
      (301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 422, 429, 431)),
    *((f"{code} that says why, nothing said", status(code, error_code="C"), [D, D, D, D], 1, 0)
      for code in (400, 401, 403, 404, 409, 429)),
    ("invalid by a rule of its own", status(400, errors=[{**NOT_NULL, "ErrorCode": "Odd"}]),
     [D, D, D, D], 1, 0),
    ("conflict at once", status(409, error_code="C", completed=0), [R, A, A, A], 2, 3),
    ("conflict at the third", status(409, error_code="C", completed=2), [A, A, R, A], 2, 3),
    ("500 at the third", status(500, error_code="E", completed=2), [A, A, D, A], 2, 3),
    ("conflict at the last", status(409, error_code="C", completed=3), [A, A, A, R], 1, 3),
    ("more than there are", status(409, error_code="C", completed=9), [D, D, D, D], 1, 4),
    ("401 at the third", status(401, completed=2), [A, A, U, U], 1, 2),
    *((f"{code} at the third", status(code, completed=2), [A, A, U, A], 2, 3)
      for code in (307, 308, 403)),
    *((f"{code} at the third", status(code, completed=2), [A, A, D, U], 1, 2)
      for code in (301, 302, 303)),
    *((f"{code} at the third, for the row", status(code, error_code="C", completed=2),
       [A, A, R, A], 2, 3) for code in (400, 403, 404, 405, 409, 413, 415, 422)),
    *((f"{code} at the third, which the number speaks of", status(code, completed=2),
       [A, A, R, A], 2, 3) for code in (400, 404, 409, 413)),
    *((f"{code} behind all", status(code, completed=4), [A, A, A, A], 1, 4)
      for code in (302, 400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504)),
    *((f"{code}, a count that is none", status(code, completed=2, counted=False,
       headers=(("X-AutoBatch-Completed", "two"),)), [D, D, D, D], 1, 2)
      for code in (302, 400, 401, 403, 404, 409, 413, 429, 503)),
    *((f"{code} at the third", status(code, completed=2), [A, A, D, A], 2, 3)
      for code in (408, 502, 503, 504)),
    # What is put off comes due row by row: how many of them share a request is no promise.
    ("429 at the third", status(429, completed=2), [A, A, A, A], range(2, 4), 4),
    ("429 at once", status(429, completed=0), [A, A, A, A], range(2, 6), 4),
    ("200, fewer records", Reply(body="[]"), [D, D, D, D], 1, 4),
    ("200, one record", Reply(body={"Name": "tone 1"}), [D, D, D, D], 1, 4),
    ("200, HTML", Reply(headers=(("Content-Type", "text/html"),), body="<p>"), [D, D, D, D], 1, 4),
    ("200, ErrorCode", Reply(body={"ResponseStatus": {"ErrorCode": "X"}}), [D, D, D, D], 1, 4),
    *((f"200, an error at the {place}", Reply(body=listed(place)), [D, D, D, D], 1, 4)
      for place in (1, 2, 4)),
    ("200, said to be fewer", Reply(completed=3), [D, D, D, D], 1, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "verdicts", "sent", "effects"),
    [row[1:] for row in OUTCOMES],
    ids=[row[0] for row in OUTCOMES],
)
def test_what_a_batch_says_about_its_rows(
    reply: Reply, verdicts: list[Verdict], sent: int | range, effects: int
) -> None:
    with FaultyServer(at({1: reply})) as server, client(server.url, batch=4) as service:
        answers = by_number(service.send(requests(TONE, 4)))
    assert [answer.verdict for answer in answers] == verdicts
    assert len(server.requests) in (sent if isinstance(sent, range) else [sent])
    assert len(server.effects) == effects
    assert max(Counter(names(server)).values(), default=0) <= 1


SILENT = (302, 303, 307, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 431, 500, 503)


@pytest.mark.parametrize("says_why", [False, True])
@pytest.mark.parametrize("done", [4, 8])
@pytest.mark.parametrize("code", SILENT)
def test_a_host_that_counts_and_is_silent_once_proves_nothing_by_it(
    code: int, done: int, says_why: bool
) -> None:
    """One answer of many comes without the number: what it is about may have been carried out."""
    why = "C" if says_why else None
    plan = at({2: status(code, error_code=why, completed=done, counted=False, retry_after=0)})
    with FaultyServer(plan) as server:
        for run in range(3):
            done_so_far = names(server)
            left = [one for one in requests(TONE, 40) if f"tone {one.number}" not in done_so_far]
            with client(server.url, counts=None, batch=8, concurrency=1) as service:
                answers = by_number(service.send(left))
            if run == 0:
                doubtful = [one.number for one in answers if one.verdict is D]
                assert doubtful == list(range(2, 10))
                assert all(codes(one)[0] == ("InDoubt", "") for one in answers[1:9])
                assert all("," not in seen.push_key for seen in server.requests[2:])
    assert max(Counter(names(server)).values()) == 1


@pytest.mark.parametrize("code", [302, 400, 401, 403, 404, 405, 409, 413, 415, 429, 500, 503])
def test_a_host_that_does_not_count_proves_nothing_by_its_silence(code: int) -> None:
    """The count is lost on its way: what fails without it may have been carried out."""
    lost = status(code, completed=2, counted=False)

    def plan(seen: Seen) -> Reply:
        return Reply(counted=False) if "tone 1" in seen.body else lost

    with FaultyServer(plan) as server, client(server.url, batch=4, concurrency=1) as service:
        first = [answer.verdict for answer in service.send(requests(TONE, 4))]
        assert first == [A] * 4
        sent = [request(TONE, number) for number in range(20, 24)]
        answers = by_number(service.send(sent))
    applied = Counter(names(server))
    assert max(applied.values()) == 1
    # One by one from then on, so that an answer is about the row that was sent.
    assert len(server.requests[1].body.split("tone ")) == 2
    for answer in answers:
        assert answer.verdict in (D, U, R)


@pytest.mark.long
@pytest.mark.parametrize("code", [302, 400, 401, 403, 404, 405, 409, 413, 415, 429, 431, 500, 503])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_host_shows_that_it_counts_before_two_rows_share_a_request(
    code: int, concurrency: int
) -> None:
    """One that never says a number, and fails from the first request on behind a part of it."""

    def plan(seen: Seen) -> Reply:
        if not seen.path.endswith("%5B%5D"):
            return OK
        return status(code, completed=seen.push_key.count(","), counted=False)

    with FaultyServer(plan) as server:
        for _ in range(3):
            with client(
                server.url,
                counts=None,
                batch=8,
                concurrency=concurrency,
                health_attempts=1,
                attempts=3,
            ) as service:
                done = names(server)
                left = [one for one in requests(TONE, 40) if f"tone {one.number}" not in done]
                list(service.send(left))
    assert max(Counter(names(server)).values(), default=0) <= 1
    assert all("," not in seen.push_key for seen in server.requests)


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        *((code, A) for code in (400, 404, 405, 413, 414, 415, 431)),
        *((code, U) for code in (403, 409, 422)),
    ],
)
def test_a_row_whose_batch_is_not_taken_is_sent_by_itself(code: int, verdict: Verdict) -> None:
    """The answer may be about the form: of a batch with one row, the row decides without it."""

    def plan(seen: Seen) -> Reply:
        return status(code, counted=False) if seen.path.endswith("%5B%5D") else OK

    with FaultyServer(plan) as server, client(server.url, batch=8) as service:
        (answer,) = service.send(requests(TONE, 1))
    assert answer.verdict is verdict
    assert len(server.requests) == (2 if verdict is A else 1)


def test_a_host_that_counts_is_sent_batches_from_its_first_answer_on() -> None:
    with (
        FaultyServer() as server,
        client(server.url, counts=None, batch=8, concurrency=1) as service,
    ):
        answers = list(service.send(requests(TONE, 17)))
    assert {answer.verdict for answer in answers} == {A}
    assert [seen.push_key.count(",") + 1 for seen in server.requests][:2] == [1, 8]


def test_a_batch_under_way_when_the_host_turns_out_not_to_count() -> None:
    """Two batches at once: the second fails behind a first that was not counted."""
    done = threading.Event()

    def plan(seen: Seen) -> Reply:
        if seen.number == 1:
            return Reply(counted=False)
        return status(429, completed=2, counted=False, hold=lambda: done.wait(30))

    with (
        FaultyServer(plan) as server,
        client(server.url, batch=4, concurrency=2, attempts=2) as service,
    ):
        answers = []
        for answer in service.send(requests(TONE, 8)):
            answers.append(answer)
            done.set()
    assert [answer.verdict for answer in by_number(iter(answers))].count(D) == 4
    assert max(Counter(names(server)).values()) == 1


@pytest.mark.parametrize("form", ["csv", "json"])
def test_batches_are_filled(form: str) -> None:
    with (
        FaultyServer() as server,
        client(server.url, batch=10, concurrency=2, format=form) as service,
    ):
        answers = list(service.send(requests(TONE, 100)))
    assert {answer.verdict for answer in answers} == {A}
    assert {seen.path for seen in server.requests} == {f"/{form}/reply/AddMessageTone%5B%5D"}
    assert len(server.requests) == 10


def test_only_posts_of_one_operation_share_a_batch() -> None:
    mixed = [
        request(name, number)
        for number in range(6)
        for name in (TONE, "EditPayment", "AddActionDocument")
    ]
    with FaultyServer() as server, client(server.url, batch=10, concurrency=1) as service:
        answers = list(service.send(mixed))
    assert {answer.verdict for answer in answers} == {A}
    assert len(answers) == 18
    for seen in server.requests:
        assert seen.method == "PUT" or seen.path.endswith("%5B%5D")


def test_one_record_is_not_twice_in_a_batch() -> None:
    twice = [request(TONE, 1), request(TONE, 1), request(TONE, 2)]
    with FaultyServer() as server, client(server.url, batch=10) as service:
        list(service.send(twice))
    assert [seen.body.count("tone 1") for seen in server.requests] == [1, 1]


def test_records_without_their_key_share_a_batch() -> None:
    """Each is a record of its own: none waits for the answer to another."""
    lacking = {"CommsGuid": "g", "CampaignActionsRequestsId": None}
    rows = [request("SaveCampaignActionClientForm", number, lacking) for number in range(1, 22)]
    with FaultyServer() as server, client(server.url, batch=10, concurrency=1) as service:
        assert {answer.verdict for answer in service.send(rows)} == {A}
    assert len(server.requests) == 3


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_many_batches_with_losses(seed: int) -> None:
    faults = (*EVERY_LOSS, status(409, error_code="C", completed=1), status(500, applied=True))
    with (
        FaultyServer(seeded(seed, faults, share=0.4)) as server,
        client(server.url, batch=5, breaker=1000, concurrency=3) as service,
    ):
        answers = list(service.send(requests(TONE, 200)))
    times = Counter(names(server))
    assert sorted(answer.number for answer in answers) == list(range(1, 201))
    for answer in answers:
        applied = times[f"tone {answer.number}"]
        assert applied <= 1, f"seed {seed}: {answer}"
        assert answer.verdict is not A or applied == 1, f"seed {seed}: {answer}"
        assert answer.verdict not in (R, U) or applied == 0, f"seed {seed}: {answer}"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_against_the_sandbox(host: Host, form: str) -> None:
    """Of eight registrations one is invalid and one takes an address that is taken.

    A newer host names the invalid one; of the others nobody says what became of them.
    """
    host.sandbox.clear()
    changed: dict[int, dict[str, Any]] = {3: {"FirstName": " "}, 6: {"EMail": "A5@b.co"}}
    sent = [request("ClientRegister", number, changed.get(number, {})) for number in range(1, 9)]
    url = host.caller.base_url
    with client(url, PARTNER, batch=4, format=form, zone=ZONE, concurrency=1) as service:
        answers = by_number(service.send(sent))
    named = codes(answers[2]) == [("NotEmpty", "FirstName")]
    assert [answer.verdict for answer in answers] == [D, D, R if named else D, D, A, R, A, A]
    assert named == (host.sandbox.options.style == "camel-core")
    assert codes(answers[5]) == [("Conflict", "")]
