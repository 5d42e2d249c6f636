"""Basic, credentials with a session cookie, bearer tokens and API keys."""

import base64
import json
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from connectors.sandbox.accounts import ServiceAccount
from connectors.sandbox.authentication import VALID_FOR, MalformedToken, Tokens
from tests.sandbox.caller import Answer, basic
from tests.sandbox.conftest import NOW, Host
from tests.sandbox.records import REGISTRATION

JSON = {"Accept": "application/json"}


def sign_in(host: Host, **given: str) -> Answer:
    headers = {**JSON, "Content-Type": "application/json"}
    return host.caller.send("POST", "/auth/credentials", json.dumps(given), headers)


def listing(host: Host, headers: Mapping[str, str]) -> Answer:
    return host.caller.send("GET", "/avatars", None, {**JSON, **headers})


HEADERS = [
    # headers, status, reason, ErrorCode (None: the body is empty)
    ({"Authorization": basic("client")}, 200, "OK", ""),
    ({"Authorization": basic("CLIENT")}, 200, "OK", ""),
    ({"Authorization": basic("nobody")}, 403, "Invalid Role", None),
    ({}, 401, "Unauthorized", None),
    ({"Authorization": "Digest x"}, 401, "Unauthorized", None),
    ({"Cookie": "ss-id=unknown"}, 401, "Unauthorized", None),
    ({"Authorization": basic("client", "no")}, 401, "Invalid UserName or Password", "Unauthorized"),
    ({"Authorization": basic("no one")}, 401, "Invalid UserName or Password", "Unauthorized"),
    ({"Authorization": "Basic ***"}, 401, "Invalid UserName or Password", "Unauthorized"),
    ({"Authorization": "Bearer key-of-client"}, 200, "OK", ""),
    ({"Authorization": basic("key-of-client", "")}, 200, "OK", ""),
    ({"Authorization": "Bearer unknown-key"}, 404, "NotFound", "NotFound"),
    ({"Authorization": "Bearer a.b.c"}, 500, "Exception", "Exception"),
    ({"X-Api-Key": "key-of-client"}, 401, "Unauthorized", None),
]


@pytest.mark.parametrize(("headers", "status", "reason", "code"), HEADERS)
def test_headers(
    pascal: Host, headers: dict[str, str], status: int, reason: str, code: str | None
) -> None:
    answer = listing(pascal, headers)
    assert (answer.status, answer.reason) == (status, reason)
    challenged = 'credentials realm="/auth/credentials"'
    expected = challenged if reason == "Unauthorized" else None
    assert answer.headers.get("www-authenticate") == expected
    if code is None:
        assert answer.body == ""
    elif code:
        assert answer.json()["ResponseStatus"]["ErrorCode"] == code
        assert answer.json()["ResponseStatus"]["Errors"] == []


def test_a_newer_host_takes_the_key_header(camel: Host) -> None:
    assert listing(camel, {"X-Api-Key": "key-of-client"}).status == 200
    assert listing(camel, {"Authorization": "Bearer a.b.c"}).status == 401
    refused = listing(camel, {"Authorization": basic("client", "no")})
    assert refused.reason == "Invalid Username or Password"


def test_a_session_lasts_from_sign_in_to_sign_out(pascal: Host) -> None:
    signed = sign_in(pascal, UserName="client", Password="p@ss")
    answer = signed.json()
    assert (signed.status, answer["UserName"], answer["ResponseStatus"]) == (200, "client", {})
    session = {"Cookie": f"other=1; ss-id={answer['SessionId']}"}

    assert listing(pascal, session).status == 200
    who = pascal.caller.send("GET", "/auth", None, {**JSON, **session})
    assert (who.status, who.json()["UserId"]) == (200, answer["UserId"])

    assert pascal.caller.send("POST", "/auth/logout", None, {**JSON, **session}).status == 200
    assert listing(pascal, session).status == 401


def test_a_sign_in_gives_a_bearer_token(pascal: Host) -> None:
    token = sign_in(pascal, UserName="client", Password="p@ss").json()["BearerToken"]
    assert listing(pascal, {"Authorization": f"Bearer {token}"}).status == 200
    assert listing(pascal, {"Cookie": f"ss-tok={token}"}).status == 200
    head, claims, signature = token.split(".")
    forged = f"{head}.{claims}.{signature[::-1]}"
    assert listing(pascal, {"Authorization": f"Bearer {forged}"}).status == 500


def test_a_token_ends() -> None:
    tokens = Tokens()
    token = tokens.sign(ServiceAccount(1, "client", "Client", ()), NOW)
    ends = NOW + VALID_FOR
    assert [tokens.read(token, moment).expired for moment in (NOW, ends)] == [False, True]
    with pytest.raises(MalformedToken):
        Tokens().read(token, NOW)


def test_sign_in_by_form_and_without_a_provider_in_the_path(pascal: Host) -> None:
    form = urlencode({"UserName": "client", "Password": "p@ss", "provider": "credentials"})
    headers = {**JSON, "Content-Type": "application/x-www-form-urlencoded"}
    assert pascal.caller.send("POST", "/auth", form, headers).status == 200


@pytest.mark.parametrize("style", ["pascal", "camel"])
def test_a_key_in_the_address_is_not_looked_at(style: str, request: pytest.FixtureRequest) -> None:
    host: Host = request.getfixturevalue(style)
    answer = host.caller.send("GET", "/avatars?apikey=key-of-client", None, JSON)
    assert (answer.status, answer.body) == (401, "")


SIGN_INS = [
    # method, target, Content-Type, body, status
    (
        "POST",
        "/auth/credentials",
        "application/json",
        '{"UserName":"client","Password":"p@ss"}',
        200,
    ),
    ("POST", "/auth/Login", "application/json", '{"userName":"client","password":"p@ss"}', 200),
    ("POST", "/auth/credentials", "application/jsv", "{UserName:client,Password:p@ss}", 200),
    ("POST", "/auth/credentials", "text/csv", "UserName,Password\r\nclient,p@ss\r\n", 200),
    ("POST", "/auth?UserName=client&Password=p%40ss", "application/json", "{}", 200),
    ("GET", "/auth/credentials?UserName=client&Password=p%40ss", "", None, 200),
    ("GET", "/auth?provider=credentials&username=CLIENT&password=p%40ss", "", None, 200),
    (
        "POST",
        "/api/Authenticate",
        "application/json",
        '{"userName":"client","password":"p@ss"}',
        200,
    ),
    ("POST", "/json/reply/Authenticate", "", '{"UserName":"client","Password":"p@ss"}', 200),
    ("GET", "/api/Authenticate?userName=client&password=p%40ss", "", None, 200),
    ("GET", "/api/Authenticate", "", None, 401),
    ("POST", "/api/Authenticate", "application/json", '{"provider":"logout"}', 200),
    ("POST", "/api/Authenticate", "application/json", '{"provider":"unheard-of"}', 404),
    ("PUT", "/api/Authenticate", "application/json", "{}", 404),
    ("PUT", "/auth/credentials", "application/json", "{}", 404),
    ("GET", "/auth/logout", "", None, 200),
]


@pytest.mark.parametrize(("method", "target", "content_type", "body", "status"), SIGN_INS)
def test_ways_to_sign_in(
    pascal: Host, method: str, target: str, content_type: str, body: str | None, status: int
) -> None:
    headers = {**JSON, "Content-Type": content_type} if content_type else JSON
    answer = pascal.caller.send(method, target, body, headers)
    assert answer.status == status
    signed_in = status == 200 and "logout" not in f"{target}{body}"
    assert ("BearerToken" in answer.body) == signed_in


def test_a_newer_host_wants_no_password_in_an_address(camel: Host) -> None:
    target = "/auth/credentials?UserName=client&Password=p%40ss"
    answer = camel.caller.send("GET", target, None, JSON)
    assert (answer.status, answer.reason) == (405, "NotSupportedException")


def test_an_address_signs_in_as_well_as_a_name(host: Host) -> None:
    host.caller.as_client("POST", "/clientregister", REGISTRATION, user="partner")
    signed = sign_in(host, UserName=REGISTRATION["EMail"], Password=REGISTRATION["Password"])
    assert (signed.status, signed.json()["DisplayName"]) == (200, "A B")


def test_a_token_says_who_it_is_for(host: Host) -> None:
    host.caller.as_client("POST", "/clientregister", REGISTRATION, user="partner")
    signed = sign_in(host, UserName=REGISTRATION["EMail"], Password=REGISTRATION["Password"])
    _, claims, _ = signed.json()["BearerToken"].split(".")
    told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    now = int(NOW.timestamp())
    assert told == {
        "iss": "ssjwt",
        "sub": signed.json()["UserId"],
        "iat": now,
        "exp": now + 14 * 24 * 3600,
        "email": REGISTRATION["EMail"],
        "name": "A B",
        "preferred_username": REGISTRATION["EMail"],
        "roles": REGISTRATION["Roles"],
        "perms": [],
    }


REFUSED = [
    # given, status, reason, ErrorCode
    ({"UserName": "client", "Password": "no"}, 401, "Unauthorized", "Unauthorized"),
    ({"UserName": "client"}, 400, "ValidationException", "ValidationException"),
]


@pytest.mark.parametrize(("given", "status", "reason", "code"), REFUSED)
def test_refused_sign_in(
    pascal: Host, given: dict[str, str], status: int, reason: str, code: str
) -> None:
    answer = sign_in(pascal, **given)
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.json()["ResponseStatus"]["ErrorCode"] == code
    assert "set-cookie" not in answer.headers


def test_who_am_i_without_a_session(pascal: Host) -> None:
    answer = pascal.caller.send("GET", "/auth", None, JSON)
    assert (answer.status, answer.reason) == (401, "Not Authenticated")
    assert pascal.caller.send("GET", "/auth/unheard-of", None, JSON).status == 404


def test_wrong_credentials_do_not_matter_where_none_are_asked_for(host: Host) -> None:
    headers = {
        **JSON,
        "Authorization": basic("client", "no"),
        "Content-Type": "application/json",
    }
    assert host.caller.send("POST", "/campaign/inbox/form", "{}", headers).status == 200
