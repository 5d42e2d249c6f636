"""What a status means, at the first, a middle and the last row; only what may be is sent again."""

from dataclasses import replace

import pytest

from connectors.service import Credentials, Scheme, Verdict
from connectors.service.pace import FIRST_OBJECTIONS, MOST_OBJECTIONS
from tests.service.faulty_server import OK, FaultyServer, Reply, always, at, status
from tests.service.outbox import by_number, client, codes, request, requests

ROWS = 9
PLACES = pytest.mark.parametrize("place", [1, 5, ROWS], ids=["first", "middle", "last"])
PUT, POST = "EditPayment", "AddMessageTone"
A, R, U, D = Verdict.ACKNOWLEDGED, Verdict.REFUSED, Verdict.UNSENT, Verdict.IN_DOUBT

NOT_NULL = {"ErrorCode": "NotNull", "FieldName": "Name", "Message": "'Name' must not be empty."}
ONCE: list[tuple[str, Reply, Verdict, int]] = [
    # operation, the one answer, verdict of the row, requests for it
    (PUT, status(400, errors=[NOT_NULL]), R, 1),
    (PUT, status(404), U, 1),
    (PUT, status(404, error_code="Said"), R, 1),
    (PUT, status(405), U, 1),
    (PUT, status(405, error_code="Said"), R, 1),
    (PUT, status(409), U, 1),
    (PUT, status(409, error_code="Conflict"), R, 1),
    (PUT, status(407, error_code="Said"), R, 1),
    (PUT, status(499), A, 2),
    (PUT, status(413), U, 1),
    (PUT, status(413, error_code="Said"), R, 1),
    (PUT, status(429), A, 2),
    (PUT, status(429, retry_after=0), A, 2),
    (PUT, status(429, retry_after="Fri, 02 Jan 2026 03:05:05 GMT"), A, 2),
    (PUT, status(429, retry_after="soon"), A, 2),
    (PUT, status(408), A, 2),
    (PUT, status(500), A, 2),
    (PUT, status(500, applied=True), A, 2),
    (PUT, status(502), A, 2),
    (PUT, status(503, retry_after=0), A, 2),
    (PUT, status(504), A, 2),
    (PUT, status(403, error_code="Forbidden"), R, 1),
    (PUT, status(304, applied=True), A, 2),
    (POST, status(400, errors=[NOT_NULL]), R, 1),
    (POST, status(404), U, 1),
    (POST, status(404, error_code="Said"), R, 1),
    (POST, status(405), U, 1),
    (POST, status(405, error_code="Said"), R, 1),
    (POST, status(409, error_code="Conflict"), R, 1),
    (POST, status(413), U, 1),
    (POST, status(413, error_code="Said"), R, 1),
    (POST, status(429, retry_after=0), A, 2),
    (POST, status(408), D, 1),
    (POST, status(499), D, 1),
    (POST, status(500), D, 1),
    (POST, status(500, applied=True, error_code="Exception"), D, 1),
    (POST, status(502), D, 1),
    (POST, status(503), D, 1),
    (POST, status(503, retry_after=0), D, 1),
    (POST, status(504), D, 1),
    (POST, status(403, error_code="Forbidden"), R, 1),
    # Neither done nor sent elsewhere: nobody knows.
    (POST, status(300, applied=True), D, 1),
    (POST, status(304, applied=True), D, 1),
    (POST, status(399), D, 1),
]


@PLACES
@pytest.mark.parametrize(
    ("operation", "reply", "verdict", "sent"),
    ONCE,
    ids=[f"{row[0]}-{row[1].status}-{number}" for number, row in enumerate(ONCE)],
)
def test_one_bad_answer_costs_one_row(
    operation: str, reply: Reply, verdict: Verdict, sent: int, place: int
) -> None:
    with FaultyServer(at({place: reply})) as server:
        with client(server.url, concurrency=1) as service:
            answers = by_number(service.send(requests(operation, ROWS)))
        assert service.stopped is None
    expected = [A] * ROWS
    expected[place - 1] = verdict
    assert [answer.verdict for answer in answers] == expected
    assert [answer.attempts for answer in answers] == [
        sent if number == place else 1 for number in range(1, ROWS + 1)
    ]
    assert len(server.requests) == ROWS - 1 + sent
    if operation == POST:
        assert server.twice() == []


def in_a_row(place: int) -> int:
    """How many answers that may be about one row have to be about the caller."""
    return FIRST_OBJECTIONS if place == 1 else MOST_OBJECTIONS


@pytest.mark.long(but=("401-AddMessageTone-first",))
@PLACES
@pytest.mark.parametrize("operation", [PUT, POST])
@pytest.mark.parametrize("code", [401, 403])
def test_refused_credentials_stop_everything(operation: str, code: int, place: int) -> None:
    def plan(seen: object) -> Reply:
        return status(code) if server.requests[-1].number >= place else OK

    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        answers = by_number(service.send(requests(operation, 2000)))
    assert [answer.verdict for answer in answers] == [A] * (place - 1) + [U] * (2001 - place)
    assert len(server.requests) == place - 1 + (1 if code == 401 else in_a_row(place))
    assert service.stopped is not None
    assert str(code) in service.stopped
    assert len(server.effects) == place - 1


PAGE = (("Content-Type", "text/html"),)
CLEAR = Reply(400, PAGE, "The plain HTTP request was sent to HTTPS port", applied=False)
NO_KEY = Reply(404, (), {"ResponseStatus": {"ErrorCode": "NotFound", "Message": "No ApiKey"}})
OF_ONE_ROW: list[tuple[Reply, Scheme, Verdict]] = [
    # what one row always gets, how the others are taken, verdict of the row
    (Reply(403, PAGE, "<html>blocked</html>", applied=False), Scheme.BASIC, U),
    (status(403), Scheme.BASIC, U),
    (status(307), Scheme.BASIC, U),
    (status(308), Scheme.BASIC, U),
    (CLEAR, Scheme.BASIC, U),
    (NO_KEY, Scheme.API_KEY, U),
    (NO_KEY, Scheme.BASIC, R),
]


@pytest.mark.long(but=("0-PUT-first-1", "6-PUT-middle-8"))
@pytest.mark.parametrize("concurrency", [1, 8])
@PLACES
@pytest.mark.parametrize("operation", [PUT, POST], ids=["PUT", "POST"])
@pytest.mark.parametrize("case", range(len(OF_ONE_ROW)))
def test_what_speaks_against_the_caller_and_is_said_of_one_row_costs_that_row(
    case: int, operation: str, place: int, concurrency: int
) -> None:
    reply, scheme, verdict = OF_ONE_ROW[case]
    user = "client" if scheme is Scheme.BASIC else None
    with (
        FaultyServer(lambda seen: reply if seen.push_key == f"key-{place}" else OK) as server,
        client(server.url, Credentials(scheme, user, "p@ss"), concurrency=concurrency) as service,
    ):
        for run in range(2):
            answers = by_number(service.send(requests(operation, ROWS)))
            expected = [A] * ROWS
            expected[place - 1] = verdict
            assert [answer.verdict for answer in answers] == expected, run
        assert service.stopped is None
    assert len(server.requests) == 2 * ROWS


PLAIN = (("Content-Type", "text/plain"),)
OF_NO_ROW = [
    # what every row gets, what is said of it
    (Reply(404, PLAIN, "404", applied=False), "RECON_SERVICE_URL"),
    (Reply(404, PAGE, "<html>no such page</html>", applied=False), "RECON_SERVICE_URL"),
    (status(405), "RECON_SERVICE_URL"),
    (Reply(407, PAGE, "<html>sign in</html>", applied=False), "A proxy"),
    (status(421), "RECON_SERVICE_URL"),
    (status(400), "without saying why (400)"),
    (status(409), "without saying why (409)"),
    (status(413), "without saying why (413)"),
    (status(422, body='{"title":"no"}'), "without saying why (422)"),
]


@pytest.mark.parametrize(("reply", "said"), OF_NO_ROW, ids=range(len(OF_NO_ROW)))
@pytest.mark.parametrize("operation", [PUT, POST], ids=["PUT", "POST"])
def test_a_refusal_that_says_nothing_of_a_row_refuses_none(
    operation: str, reply: Reply, said: str
) -> None:
    """A wrong path, or a proxy that wants something: no row was ever looked at."""
    with FaultyServer(lambda seen: reply) as server, client(server.url, concurrency=1) as service:
        answers = by_number(service.send(requests(operation, 50)))
    assert [answer.verdict for answer in answers] == [U] * 50
    assert len(server.requests) == FIRST_OBJECTIONS
    assert said in str(service.stopped)
    assert {code for code, _ in codes(answers[0])} == {"Unsent"}


AGAIN = [
    # status, place of the row, rows in all, verdict of the row when it is asked for once more
    (404, 1, ROWS, R),
    (404, 5, ROWS, R),
    (413, 5, ROWS, R),
    # Nothing was taken behind it, or at all: it may be the path that is gone.
    (404, ROWS, ROWS, U),
    (404, 1, 1, U),
    # These speak of the caller alone.
    (403, 5, ROWS, U),
    (407, 5, ROWS, U),
]


@pytest.mark.parametrize(("code", "place", "rows", "verdict"), AGAIN)
@pytest.mark.parametrize("operation", [PUT, POST], ids=["PUT", "POST"])
def test_a_row_that_is_refused_twice_without_a_reason_and_others_taken_in_between(
    operation: str, code: int, place: int, rows: int, verdict: Verdict
) -> None:
    bare = status(code)
    sent = requests(operation, rows)
    with (
        FaultyServer(lambda seen: bare if seen.push_key == f"key-{place}" else OK) as server,
        client(server.url, concurrency=1) as service,
    ):
        first = by_number(service.send(sent))[place - 1]
        (again,) = service.send([replace(sent[place - 1], last_status=first.status)])
        assert service.stopped is None or rows == 1
    assert (first.verdict, first.status) == (U, code)
    assert again.verdict is verdict


def test_a_refusal_behind_another_answer_is_the_first() -> None:
    """What was put off in an earlier pass was not refused in it."""
    row = replace(request(PUT, 1), last_status=429)
    with FaultyServer(at({2: status(404)})) as server, client(server.url) as service:
        list(service.send(requests(PUT, 1)))
        (answer,) = service.send([row])
    assert answer.verdict is U


def test_an_only_attempt_is_not_told_as_an_earlier_one() -> None:
    failed = status(500, error_code="Broken")
    with FaultyServer(always(failed)) as server, client(server.url, health_attempts=1) as service:
        (answer,) = service.send(requests(POST, 1))
    told = [error["Message"] for error in answer.errors]
    assert (answer.verdict, answer.attempts) == (D, 1)
    assert told == ["An attempt may have been carried out.", "Broken"]


TARGETS = [
    # Location, what is named
    ("https://new.example/base", "https://new.example/base"),
    ("https://u:secret-1@new.example/a?token=secret-1#secret-1", "https://new.example/a ("),
    ("/login", "/login"),
    ("", "without naming a target"),
    ("https://[", "to a target that is not shown"),
]


@pytest.mark.parametrize(("location", "named"), TARGETS)
@pytest.mark.parametrize("operation", [PUT, POST])
def test_a_redirect_stops_and_names_its_target(operation: str, location: str, named: str) -> None:
    for place, code in enumerate((301, 302, 303, 307, 308), 1):
        moved = status(code, headers=(("Location", location),))
        with (
            FaultyServer(lambda seen, n=place, r=moved: r if seen.number >= n else OK) as server,
            client(server.url, concurrency=1) as service,
        ):
            answers = by_number(service.send(requests(operation, 9)))
        # These are said of what was done, too, so nobody knows of the row that they answer.
        met = D if code in (301, 302, 303) else U
        tried = 1 if met is D and operation == POST else in_a_row(place)
        expected = [A] * (place - 1) + [met] * tried + [U] * (10 - place - tried)
        assert [answer.verdict for answer in answers] == expected
        assert len(server.requests) == place - 1 + tried
        assert named in str(service.stopped)
        assert "secret-1" not in str(service.stopped) + str(answers)


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://h.example/a", "redirects to https://h.example ("),
        ("/secret-word-1", "redirects to a target that is not shown ("),
        ("", "redirects without naming a target ("),
    ],
)
def test_a_redirect_of_a_record_with_secrets_names_a_host_alone(location: str, named: str) -> None:
    moved = status(307, headers=(("Location", location),))
    with FaultyServer(always(moved)) as server, client(server.url, concurrency=1) as service:
        list(service.send(requests("ClientRegister", 2)))
    assert named in str(service.stopped)


@pytest.mark.parametrize(
    ("operation", "code", "verdict"),
    [(PUT, 500, D), (PUT, 503, D), (PUT, 429, U), (POST, 429, U)],
)
def test_attempts_are_bounded(operation: str, code: int, verdict: Verdict) -> None:
    with (
        FaultyServer(lambda seen: status(code)) as server,
        client(server.url, attempts=4) as service,
    ):
        (answer,) = service.send(requests(operation, 1))
    assert (answer.verdict, answer.attempts, answer.status) == (verdict, 4, code)
    assert len(server.requests) == 4


@pytest.mark.parametrize("operation", [PUT, POST])
def test_a_pause_that_is_too_long_is_not_waited_for(operation: str) -> None:
    plan = at({3: status(429, retry_after=3600)})
    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        answers = by_number(service.send(requests(operation, 6)))
    assert [answer.verdict for answer in answers] == [A, A, U, U, U, U]
    assert service.stopped is not None
    assert "3600 s" in service.stopped


def test_a_conflict_behind_a_lost_answer_is_in_doubt() -> None:
    plan = at({1: status(500, applied=True), 2: status(409, error_code="Conflict")})
    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        (answer,) = service.send(requests(PUT, 1))
    assert (answer.verdict, codes(answer)) == (D, [("InDoubt", ""), ("Conflict", "")])


def test_the_circuit_opens_after_rows_without_answer() -> None:
    with (
        FaultyServer(lambda seen: status(503)) as server,
        client(server.url, concurrency=1, attempts=2, breaker=5) as service,
    ):
        answers = by_number(service.send(requests(PUT, 50)))
    # One more row may have been tried once by then.
    tried = [answer for answer in answers if answer.attempts]
    assert len(tried) in (5, 6)
    assert {answer.verdict for answer in tried} == {D}
    assert {answer.verdict for answer in answers if not answer.attempts} == {U}
    assert len(server.requests) == sum(answer.attempts for answer in answers) <= 11
    assert service.stopped is not None
    assert service.stopped.endswith(
        "; to the last one: The service answered 503 without saying why."
    )


def test_a_service_that_only_says_later_is_left_alone() -> None:
    with (
        FaultyServer(lambda seen: status(429)) as server,
        client(server.url, concurrency=1, attempts=2, breaker=5) as service,
    ):
        answers = by_number(service.send(requests(POST, 50)))
    assert {answer.verdict for answer in answers} == {U}
    assert len(server.requests) <= 11
    assert service.stopped is not None
    assert service.stopped.endswith(
        "; to the last one: The service answered 429 without saying why."
    )


def test_credentials_refused_behind_a_lost_answer() -> None:
    """The row is in doubt, although nothing more is sent."""
    with (
        FaultyServer(at({1: status(500, applied=True), 2: status(401)})) as server,
        client(server.url, concurrency=1) as service,
    ):
        answers = by_number(service.send(requests(PUT, 1)))
    assert [(answer.verdict, codes(answer)[0]) for answer in answers] == [(D, ("InDoubt", ""))]
    assert server.applied("key-1") == 1


@pytest.mark.long
def test_a_restart_of_the_service_counts_as_one_failure() -> None:
    """All requests under way are lost at once; that does not open the circuit."""

    def plan(seen: object) -> Reply:
        number = server.requests[-1].number
        return status(503, delay=0.2) if number <= 8 else OK

    with FaultyServer(plan) as server, client(server.url, concurrency=8, breaker=2) as service:
        answers = by_number(service.send(requests(POST, 40)))
    assert service.stopped is None
    assert [answer.verdict for answer in answers].count(D) == 8
    assert server.twice() == []
