"""What a provider answers, as another one than the desk was tried with might."""

import json
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from threading import Thread
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

from connectors import oidc
from connectors.errors import LoginRefused
from connectors.oidc import Provider, ProviderSettings

BACK = "http://localhost/login/back"
DESCRIBED, TOKEN, KEYS = "/.well-known/openid-configuration", "/token", "/keys"


NOTHING: Mapping[str, object] = {}


class AnyHeader(JWSRegistry):
    """Signs whatever a provider may put into a header."""

    def check_header(self, header: Header) -> None:
        """It may be anything."""


class Answers(BaseHTTPRequestHandler):
    """Says at each path what it was told to, and keeps what was asked."""

    server: "Answering"

    def do_GET(self) -> None:
        # A connection that is closed over something unread is reset, with the answer on its way.
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(self.path)
        self.server.shown.append(self.headers.get("Authorization", ""))
        self.send_response(200)
        self.end_headers()
        for part in self.server.told[self.path]:
            self.wfile.write(part)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it is told."""


class Answering(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.shown: list[str] = []
        """By what whoever asked showed to be who they are."""
        self.told: dict[str, Iterable[bytes]] = {}
        self.say(DESCRIBED, issuer=self.url, authorization_endpoint=f"{self.url}/a",
                 token_endpoint=self.url + TOKEN, jwks_uri=self.url + KEYS)  # fmt: skip

    def say(self, path: str, **told: object) -> None:
        self.told[path] = [json.dumps(told).encode()]

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever hangs up has heard enough."""


@contextmanager
def provider() -> Iterator[tuple[Answering, Provider]]:
    with Answering() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server, Provider(ProviderSettings(server.url, "desk"))
        server.shutdown()


def logged_in(
    server: Answering,
    here: Provider,
    key: RSAKey,
    more: Mapping[str, object] = NOTHING,
    **claimed: object,
) -> str:
    """Begin and end a login with a token that this key has signed; `more` is in its header."""
    asked = parse_qs(urlsplit(here.begin("key", "/", BACK)).query)
    now = int(time.time())
    claims = {"iss": server.url, "aud": "desk", "sub": "4711", "iat": now, "exp": now + 60}
    claims |= {"nonce": asked["nonce"][0]} | claimed
    header = {"alg": "RS256", "kid": key.kid, **more}
    server.say(TOKEN, id_token=jwt.encode(header, claims, key, registry=AnyHeader()))
    return here.end("key", asked["state"][0], "code", BACK).known_as


def test_it_is_not_asked_anew_by_each_who_begins() -> None:
    with provider() as (server, here):
        for _ in range(5):
            here.begin("key", "/", BACK)
        assert server.asked == [DESCRIBED]


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "1"})


def test_keys_that_cannot_be_read_are_left_out(key: RSAKey) -> None:
    of_others: list[object] = [
        {"kty": "AKP", "kid": "2", "alg": "ML-DSA-44", "pub": "x"},
        {"kty": "EC", "kid": "3", "crv": "brainpoolP256r1", "x": "AA", "y": "AA"},
        {"kty": "RSA", "kid": "4", "e": "AQAB"},
        {"kid": "5"},
        "no key",
        None,
    ]
    with provider() as (server, here):
        server.say(KEYS, keys=[*of_others, key.as_dict(private=False)])
        assert logged_in(server, here, key) == f"{server.url} 4711"
        for none in (of_others, [], "keys", None):
            server.say(KEYS, keys=none)
            with pytest.raises(LoginRefused, match="answer could not be verified"):
                logged_in(server, here, key)


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize("address", ["http://id.example.com/x", "javascript:x", ""])
def test_an_address_that_anybody_could_answer_at_is_not_asked(name: str, address: str) -> None:
    """Behind a proxy, some providers tell the addresses by which the proxy reaches them."""
    with provider() as (server, here):
        told = json.loads(b"".join(server.told[DESCRIBED]))
        server.say(DESCRIBED, **told | {name: address})
        with pytest.raises(LoginRefused, match=f"{name} is no https:// address"):
            here.begin("key", "/", BACK)
        assert server.asked == [DESCRIBED]


def test_the_desk_shows_who_it_is_in_a_form_that_any_sign_fits(key: RSAKey) -> None:
    """A colon would end the name, and a provider reads %2B as a plus (RFC 6749, 2.3.1)."""
    client, secret = "https://desk.example.com", "a+b:c%2B é"
    with provider() as (server, _):
        here = Provider(ProviderSettings(server.url, client, secret))
        server.say(KEYS, keys=[key.as_dict(private=False)])
        assert logged_in(server, here, key, aud=client) == f"{server.url} 4711"
        (shown,) = filter(None, server.shown)
    name, _, word = b64decode(shown.removeprefix("Basic ")).decode().partition(":")
    assert (unquote_plus(name), unquote_plus(word)) == (client, secret)


def test_what_else_a_provider_says_in_a_token_changes_nothing(key: RSAKey) -> None:
    """A header that is not known is ignored, and some people are in hundreds of groups."""
    groups = [f"{number:08d}-0000-0000-0000-000000000000" for number in range(2_000)]
    with provider() as (server, here):
        server.say(KEYS, keys=[key.as_dict(private=False)])
        more = {"ver": "1.0", "x5c": ["MIIC" * 400]}
        assert logged_in(server, here, key, more, groups=groups) == f"{server.url} 4711"
        for critical in ({"crit": ["ver"]}, {"crit": ["b64"], "b64": False}):
            with pytest.raises(LoginRefused, match="answer could not be verified"):
                logged_in(server, here, key, more | critical)


@pytest.mark.parametrize("sub", ["", "4711\0", "4711\u200b", "47\n11"])
def test_who_is_no_name_is_nobody(key: RSAKey, sub: str) -> None:
    with provider() as (server, here):
        server.say(KEYS, keys=[key.as_dict(private=False)])
        with pytest.raises(LoginRefused, match="does not tell your sub"):
            logged_in(server, here, key, sub=sub)


def dripping() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(0.01)


def test_an_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "ANSWER_SECONDS", 0.2)
    with provider() as (server, here):
        server.told[DESCRIBED] = dripping()
        with pytest.raises(LoginRefused, match="does not answer"):
            here.begin("key", "/", BACK)
    monkeypatch.undo()
    with provider() as (server, here):
        server.told[DESCRIBED] = repeat(b" " * 65536)
        with pytest.raises(LoginRefused, match="cannot be read"):
            here.begin("key", "/", BACK)
