"""Who we are: every scheme against the sandbox, and that no secret is shown."""

import re
import threading
from time import time
from typing import Any

import pytest

from connectors.errors import ServiceUnusable, SettingsError
from connectors.service import Credentials, Scheme, Verdict, open_service, read_credentials
from connectors.service.sending import MOST_ENDED
from connectors.settings import ServiceSettings
from tests.sandbox.conftest import Host
from tests.service.faulty_server import (
    DROPPED,
    LOST,
    OK,
    FaultyServer,
    Plan,
    Reply,
    Seen,
    always,
    at,
    retry_date,
    scripted,
    status,
)
from tests.service.outbox import BY_NAME, QUICK, by_number, client, requests

A, U = Verdict.ACKNOWLEDGED, Verdict.UNSENT
BASIC, SESSION = Scheme.BASIC, Scheme.CREDENTIALS
BEARER, KEY = Scheme.BEARER, Scheme.API_KEY


def token(host: Host) -> str:
    told = {"UserName": "client", "Password": "p@ss"}
    answer = host.caller.as_client("POST", "/auth/credentials", told).json()
    return str(answer.get("BearerToken") or answer["bearerToken"])


def test_every_scheme(host: Host) -> None:
    host.sandbox.clear()
    url = host.caller.base_url
    for credentials in (
        Credentials(BASIC, "client", "p@ss"),
        Credentials(SESSION, "client", "p@ss"),
        Credentials(BEARER, secret=token(host)),
        Credentials(KEY, secret="key-of-client"),
    ):
        with client(url, credentials, zone="America/New_York") as service:
            answers = [*service.send(requests("EditPayment", 3))]
            assert {answer.verdict for answer in answers} == {A}, credentials
            assert service.stopped is None


WRONG = [
    # credentials, part of why nothing is sent, most requests before that
    (Credentials(), "401", 1),
    (Credentials(BASIC, "client", "wrong"), "401", 1),
    (Credentials(BASIC, "nobody", "p@ss"), "403", 2),
    (Credentials(SESSION, "client", "wrong"), "sign us in (401)", 0),
    (Credentials(KEY, secret="wrong"), "API key", 2),
]


@pytest.mark.parametrize(("credentials", "reason", "sent"), WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("form", ["csv", "json"])
def test_wrong_credentials_stop_before_anything(
    host: Host, credentials: Credentials, reason: str, sent: int, form: str
) -> None:
    host.sandbox.clear()
    url = host.caller.base_url
    with client(url, credentials, concurrency=1, format=form) as service:
        answers = [*service.send(requests("EditPayment", 100))]
        assert service.stopped is not None
        assert reason in service.stopped
    assert {answer.verdict for answer in answers} == {U}
    assert sum(answer.attempts for answer in answers) == sent
    assert "wrong" not in repr(answers)


SESSION_COOKIES = Reply(
    headers=(("Set-Cookie", "ss-id=abc; path=/; HttpOnly"), ("Set-Cookie", "ss-pid=def; path=/"))
)


@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_a_malformed_token_stops_before_anything(host: Host, operation: str) -> None:
    """Older hosts answer it with 500, and say so."""
    malformed = Credentials(BEARER, secret="a.b.c")
    with client(host.caller.base_url, malformed, concurrency=1) as service:
        answers = [*service.send(requests(operation, 9))]
        assert "token" in str(service.stopped) or "credentials (401)" in str(service.stopped)
    with (
        client(host.caller.base_url, malformed) as service,
        pytest.raises(ServiceUnusable, match=r"answered (500|401) \(.*Token is malformed\)"),
    ):
        service.listing(BY_NAME["ListAvatars"])
    assert {answer.verdict for answer in answers} == {U}
    assert sum(answer.attempts for answer in answers) == 1


def says(message: str) -> Reply:
    told = {"ErrorCode": "Exception", "Message": message}
    return status(500, error_code="Exception", body={"ResponseStatus": told})


OF_A_TOKEN = [
    # scheme, what the second POST gets, how many were taken before, whether it is the token
    (BEARER, says("Token is malformed"), 0, True),
    (BEARER, says("invalid JWT"), 0, True),
    (BEARER, says("Token is malformed"), 1, False),
    (BEARER, says("no token is left in the bucket"), 0, False),
    (BEARER, says("tokens are invalid"), 0, False),
    (BEARER, status(500), 0, False),
    (KEY, says("Token is malformed"), 0, False),
    (Scheme.NONE, says("Token is malformed"), 0, False),
]


@pytest.mark.parametrize(("scheme", "reply", "taken", "of_token"), OF_A_TOKEN)
def test_what_a_500_says_of_a_token(
    scheme: Scheme, reply: Reply, taken: int, of_token: bool
) -> None:
    """Whoever took a row can read the token, and a 500 is about what was being done."""
    credentials = Credentials(scheme, secret=None if scheme is Scheme.NONE else "a.b.c")
    plan = at({taken + 1: reply})
    with FaultyServer(plan) as server, client(server.url, credentials, concurrency=1) as service:
        answers = by_number(service.send(requests("AddMessageTone", 4)))
    met = U if of_token else Verdict.IN_DOUBT
    assert [answer.verdict for answer in answers][: taken + 1] == [A] * taken + [met]
    assert ("RECON_SERVICE_TOKEN" in str(service.stopped)) == of_token


def test_neither_a_session_nor_a_password_is_repeated() -> None:
    """Whoever has the cookie of a session is us, as long as it lasts."""
    cookies = ("ss-id=a%2Bb-long; path=/", 'ss-tok="ey.J"; path=/', "ss-opt=temp")
    begun = Reply(headers=tuple(("Set-Cookie", one) for one in cookies))
    said = "Session 'a+b-long' (a%2Bb-long, ey.J) of pass-word has no right: temp"
    conflict = {"ResponseStatus": {"ErrorCode": "Conflict", "Message": said}}
    shown = "Session '***' (***, ***) of *** has no right: temp"
    credentials = Credentials(SESSION, "u", "pass-word")
    plan = at({1: begun}, status(409, error_code="Conflict", body=conflict))
    with FaultyServer(plan) as server, client(server.url, credentials) as service:
        (answer,) = service.send(requests("EditPayment", 1))
        with pytest.raises(ServiceUnusable, match=re.escape(shown)):
            service.listing(BY_NAME["ListAvatars"])
    assert answer.errors[0]["Message"] == shown
    elsewhere = status(302, headers=(("Location", "https://h/in/pass-word"),))
    for plan, health in ((always(elsewhere), OK), (scripted([begun, LOST]), elsewhere)):
        with (
            FaultyServer(plan, health=always(health)) as server,
            client(server.url, credentials, concurrency=1, health_attempts=1) as service,
        ):
            [*service.send(requests("AddMessageTone", 2))]
            assert "redirects to https://h/in/*** (302)" in str(service.stopped)


def test_a_session_is_begun_once_and_kept() -> None:
    with (
        FaultyServer(at({1: SESSION_COOKIES})) as server,
        client(server.url, Credentials(SESSION, "u", "pass-word")) as service,
    ):
        for _ in range(2):
            assert {answer.verdict for answer in service.send(requests("EditPayment", 5))} == {A}
    signed, *others = server.requests
    assert (signed.path, signed.body) == (
        "/auth/credentials",
        '{"UserName": "u", "Password": "pass-word"}',
    )
    assert {seen.headers["cookie"] for seen in others} == {"ss-id=abc; ss-pid=def"}
    assert all("authorization" not in seen.headers for seen in others)


SIGNING: list[tuple[list[Reply], str | None]] = [
    ([LOST, SESSION_COOKIES], None),
    ([status(503), SESSION_COOKIES], None),
    ([status(429, retry_after=0)] * 4 + [SESSION_COOKIES], None),
    ([LOST] * QUICK.health_attempts, "Signing in failed"),
    ([status(500)] * QUICK.health_attempts, "answered 500"),
    ([status(429, retry_after=3600)], "answered 429 and asks for a pause of 3600 s."),
    ([status(400, error_code="ValidationException")], "refuses to sign us in (400)"),
    ([OK], "without giving a session"),
    ([status(302)], "refuses to sign us in (302)"),
]


@pytest.mark.parametrize(("replies", "reason"), SIGNING, ids=range(len(SIGNING)))
def test_signing_in(replies: list[Reply], reason: str | None) -> None:
    with (
        FaultyServer(scripted(replies)) as server,
        client(server.url, Credentials(SESSION, "u", "pass-word")) as service,
    ):
        answers = list(service.send(requests("AddMessageTone", 4)))
        assert (reason is None) == (service.stopped is None)
        assert reason is None or reason in str(service.stopped)
    assert {answer.verdict for answer in answers} == {A if reason is None else U}
    assert [effect.path for effect in server.effects if "tones" in effect.path] == (
        ["/message_tones"] * (4 if reason is None else 0)
    )


def sessions(ends: int, *, refuse: bool = False, batch: bool = False) -> Plan:
    """A host whose first session ends at that request."""

    def plan(seen: Seen) -> Reply:
        if seen.path.startswith("/auth"):
            name = f"ss-id=s{sum('/auth' in one.path for one in asked())}"
            return Reply(headers=(("Set-Cookie", name),))
        ended = seen.number >= ends and (refuse or seen.headers["cookie"] == "ss-id=s1")
        return status(401, completed=2 if batch else None) if ended else OK

    held: list[FaultyServer] = []
    plan.held = held  # type: ignore[attr-defined]

    def asked() -> list[Seen]:
        return held[0].requests

    return plan


@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
@pytest.mark.parametrize(("batch", "concurrency"), [(1, 1), (1, 4), (4, 1), (4, 3)])
def test_a_session_that_ends_in_the_middle_is_begun_again_once(
    operation: str, batch: int, concurrency: int
) -> None:
    shared = batch > 1 and operation == "AddMessageTone"
    # By then an answer has come: of a session that was never good, the credentials are refused.
    plan = sessions(2 + 2 * concurrency, batch=shared)
    with FaultyServer(plan) as server:
        plan.held.append(server)  # type: ignore[attr-defined]
        with client(
            server.url, Credentials(SESSION, "u", "p"), batch=batch, concurrency=concurrency
        ) as service:
            answers = list(service.send(requests(operation, 60)))
    assert {answer.verdict for answer in answers} == {A}
    assert service.stopped is None
    signed = [seen for seen in server.requests if seen.path == "/auth/credentials"]
    assert len(signed) == 2
    assert [key for key in server.twice() if key] == []


@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_a_service_that_refuses_the_new_session_too(operation: str) -> None:
    plan = sessions(6, refuse=True)
    with FaultyServer(plan) as server:
        plan.held.append(server)  # type: ignore[attr-defined]
        with client(server.url, Credentials(SESSION, "u", "p"), concurrency=1) as service:
            answers = by_number(service.send(requests(operation, 60)))
    assert [answer.verdict for answer in answers] == [A] * 4 + [U] * 56
    assert "credentials" in str(service.stopped)
    assert sum("/auth" in seen.path for seen in server.requests) == 2


HICCUPS: list[tuple[Reply, str]] = [
    # the answer to who signs in again, part of why nothing more is sent where it never changes
    (status(503), "Signing in failed: the service answered 503."),
    (status(429, retry_after=0), "Signing in failed: the service answered 429."),
    (status(429, retry_after="Fri, 02 Jan 2026 03:05:05 GMT"), "the service answered 429."),
    (DROPPED, "Signing in failed: the connection was closed"),
]


@pytest.mark.parametrize("recovers", [True, False])
@pytest.mark.parametrize(("hiccup", "reason"), HICCUPS, ids=range(len(HICCUPS)))
@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_a_hiccup_while_a_session_is_begun_again(
    operation: str, hiccup: Reply, reason: str, recovers: bool
) -> None:
    """It is waited for as an outage is, and is no refusal of the credentials."""
    tries = QUICK.health_attempts

    def plan(seen: Seen) -> Reply:
        if seen.path.startswith("/auth"):
            signed = sum("/auth" in one.path for one in server.requests)
            if 1 < signed <= 1 + (tries - 1 if recovers else tries):
                return hiccup
            return Reply(headers=(("Set-Cookie", f"ss-id=s{signed}"),))
        ended = seen.headers["cookie"] == "ss-id=s1" and seen.number > 4
        return status(401) if ended else OK

    with (
        FaultyServer(plan) as server,
        client(server.url, Credentials(SESSION, "u", "p"), concurrency=2) as service,
    ):
        answers = by_number(service.send(requests(operation, 20)))
    assert sum("/auth" in seen.path for seen in server.requests) == 1 + tries
    assert {answer.verdict for answer in answers} == ({A} if recovers else {A, U})
    assert (service.stopped is None) == recovers
    assert recovers or reason in str(service.stopped)


@pytest.mark.parametrize("later", ["seconds", "date"])
def test_a_pause_that_is_too_long_to_sign_in_again_is_the_reason(later: str) -> None:
    told = {"seconds": "39999", "date": retry_date(39_999, time())}

    def plan(seen: Seen) -> Reply:
        if seen.path.startswith("/auth") and seen.number > 1:
            return status(429, retry_after=told[later])
        return SESSION_COOKIES if seen.number == 1 else OK if seen.number < 4 else status(401)

    with (
        FaultyServer(plan) as server,
        client(server.url, Credentials(SESSION, "u", "p"), concurrency=1) as service,
    ):
        answers = by_number(service.send(requests("EditPayment", 6)))
    assert [answer.verdict for answer in answers] == [A, A, U, U, U, U]
    assert "answered 429 and asks for a pause of 3" in str(service.stopped)


@pytest.mark.parametrize("always", [False, True])
def test_a_row_may_meet_one_session_that_has_ended_after_another(always: bool) -> None:
    """Where another row has shown the session between to be good; but not for ever."""
    went_on = threading.Event()
    between: set[str] = set()

    def plan(seen: Seen) -> Reply:
        if seen.path.startswith("/auth"):
            signed = sum("/auth" in one.path for one in server.requests)
            return Reply(headers=(("Set-Cookie", f"ss-id=s{signed}"),))
        if seen.push_key != "key-3" and seen.headers["cookie"] == "ss-id=s2":
            between.add(seen.push_key)
            # The one other connection has read the answer to the first of the two.
            if len(between) == 2:
                went_on.set()
        if seen.push_key != "key-3" or (seen.attempt > 2 and not always):
            return OK
        held = seen.attempt == 2
        return status(401, hold=(lambda: went_on.wait(30)) if held else None)

    with (
        FaultyServer(plan) as server,
        client(server.url, Credentials(SESSION, "u", "p"), concurrency=2) as service,
    ):
        answers = by_number(service.send(requests("EditPayment", 100)))
    signed = sum("/auth" in seen.path for seen in server.requests)
    assert went_on.is_set()
    if always:
        assert answers[2].verdict is U
        assert "credentials" in str(service.stopped)
        assert signed <= 1 + MOST_ENDED
    else:
        assert {answer.verdict for answer in answers} == {A}
        assert signed == 3


def test_a_listing_whose_session_has_ended() -> None:
    plan = sessions(3)

    def both(seen: Seen) -> Reply:
        reply = plan(seen)
        return Reply(body="[]") if reply is OK and seen.method == "GET" else reply

    with FaultyServer(both) as server:
        plan.held.append(server)  # type: ignore[attr-defined]
        with client(server.url, Credentials(SESSION, "u", "p")) as service:
            for _ in range(3):
                assert service.listing(BY_NAME["ListAvatars"]).rows == []
    assert sum("/auth" in seen.path for seen in server.requests) == 2


def test_secrets_are_not_shown() -> None:
    for credentials in (
        Credentials(BASIC, "user", "pass-word"),
        Credentials(BEARER, secret="pass-word"),
        Credentials(KEY, secret="pass-word"),
    ):
        assert "pass-word" not in f"{credentials!r} {credentials}"


USER = {"RECON_SERVICE_USER": "u", "RECON_SERVICE_PASSWORD": "p"}
ENVIRONMENTS: list[tuple[dict[str, str], Credentials]] = [
    ({}, Credentials()),
    (USER, Credentials(BASIC, "u", "p")),
    ({**USER, "RECON_SERVICE_SCHEME": "credentials"}, Credentials(SESSION, "u", "p")),
    ({"RECON_SERVICE_TOKEN": "t"}, Credentials(BEARER, secret="t")),
    ({"RECON_SERVICE_API_KEY": "k"}, Credentials(KEY, secret="k")),
    ({**USER, "RECON_SERVICE_API_KEY": "k", "RECON_SERVICE_SCHEME": "APIKEY"},
     Credentials(KEY, secret="k")),
    ({**USER, "RECON_SERVICE_SCHEME": "none"}, Credentials()),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "expected"), ENVIRONMENTS, ids=range(len(ENVIRONMENTS)))
def test_credentials_of_the_environment(environment: dict[str, str], expected: Credentials) -> None:
    assert read_credentials(environment) == expected


UNUSABLE: list[tuple[dict[str, str], str]] = [
    ({"RECON_SERVICE_USER": "u"}, "RECON_SERVICE_PASSWORD"),
    ({"RECON_SERVICE_PASSWORD": "p"}, "RECON_SERVICE_USER"),
    ({**USER, "RECON_SERVICE_TOKEN": "t"}, "RECON_SERVICE_SCHEME"),
    ({"RECON_SERVICE_SCHEME": "digest"}, "'digest' is not one of"),
    ({"RECON_SERVICE_SCHEME": "bearer"}, "RECON_SERVICE_TOKEN"),
    ({"RECON_SERVICE_TOKEN": "t\r\nX-Evil: 1"}, "RECON_SERVICE_TOKEN has a line break"),
    ({"RECON_SERVICE_API_KEY": "Evil\t"}, "RECON_SERVICE_API_KEY has a line break"),
    ({"RECON_SERVICE_USER": "Evil\n", "RECON_SERVICE_PASSWORD": "p"}, "RECON_SERVICE_USER has"),
    ({"RECON_SERVICE_USER": "u", "RECON_SERVICE_PASSWORD": "Evil\n"}, "RECON_SERVICE_PASSWORD has"),
    ({"RECON_SERVICE_TOKEN": "tökén"}, "RECON_SERVICE_TOKEN has a letter beyond ASCII"),
    ({"RECON_SERVICE_API_KEY": "ké"}, "RECON_SERVICE_API_KEY has a letter beyond ASCII"),
    (
        {"RECON_SERVICE_USER": "a:b", "RECON_SERVICE_PASSWORD": "p"},
        "RECON_SERVICE_USER has a colon",
    ),
]


@pytest.mark.parametrize(("environment", "message"), UNUSABLE, ids=range(len(UNUSABLE)))
def test_credentials_that_cannot_be_used(environment: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as problem:
        read_credentials(environment)
    assert "Evil" not in str(problem.value)


@pytest.mark.parametrize(
    ("url", "credentials", "warned"),
    [
        ("http://service.example.com", Credentials(BASIC, "client", "canary"), True),
        ("http://10.0.0.1:8080/api", Credentials(KEY, secret="canary"), True),
        ("http://127.0.0.1:8080", Credentials(BASIC, "client", "canary"), False),
        ("http://[::1]:8080", Credentials(BASIC, "client", "canary"), False),
        ("https://service.example.com", Credentials(BASIC, "client", "canary"), False),
        ("http://service.example.com", Credentials(), False),
    ],
)
def test_credentials_in_clear_are_warned_of(
    url: str, credentials: Credentials, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with open_service(ServiceSettings(url=url), credentials):
        pass
    assert ("in clear" in caplog.text) is warned
    assert "canary" not in caplog.text
