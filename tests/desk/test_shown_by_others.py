"""Who somebody is, by the word of a real OpenID Connect provider or of a proxy before the desk."""

import hashlib
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from connectors import oidc
from connectors.desk_settings import DeskSettings, ProxySettings, read_desk_settings
from connectors.errors import LoginRefused, SettingsError
from connectors.oidc import Provider, ProviderSettings
from connectors.postgres.accounts import acting, keep_account, vouch
from flows.stages.workspace import Workspace
from schemas.accounts import How
from tests.accounts.people import ANNA, BO, PASSWORD, add, logged_in
from tests.desk.browser import NO_AUTHORITIES, Browser, desk_of
from tests.governance.runs import found, ids, reconcile
from tests.ports import own_port

SECRET = "a secret of the proxy alone"
BACK = "http://localhost/login/back"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A provider that runs on this machine, in a process of its own."""
    port = own_port()
    verified = '{"sub": "4711", "email": "anna@example.com", "email_verified": true}'
    claimed = '{"sub": "4712", "email": "anna@example.com", "email_verified": false}'
    command = ["-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    users = [word for one in (verified, claimed) for word in ("--user-claims", one)]
    with subprocess.Popen(
        [sys.executable, *command, *users], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr
        # It says so once it listens.
        assert any(b"Running" in line or b"running" in line for line in running.stderr)
        yield f"http://127.0.0.1:{port}"
        running.kill()


@contextmanager
def provided(workspace: Workspace, issuer: str, claim: str = "sub") -> Iterator[Browser]:
    settings = DeskSettings(provider=ProviderSettings(issuer, "desk", "secret", claim))
    with desk_of(workspace, settings) as url:
        browser = Browser(url)
        yield browser
        browser.client.close()


def show(browser: Browser, sub: str) -> None:
    """Go to the provider, and show to be whoever has this number there."""
    browser.open("/login/provider", next="/?x=1")
    assert browser.answer is not None
    browser.answer = browser.client.post(browser.answer.url, data={"sub": sub})


def known(workspace: Workspace, subject: str) -> None:
    add(workspace, BO)
    with workspace.database.connect() as connection:
        keep_account(connection, replace(ANNA, subject=subject))


@pytest.mark.long
def test_a_provider_shows_who_somebody_is(workspace: Workspace, issuer: str) -> None:
    known(workspace, f"oidc {issuer} 4711")
    with provided(workspace, issuer) as anna:
        assert "Log in with your organisation" in anna.open("/").text
        show(anna, "4711")
        assert "Anna Meyer" in anna.text
        assert str(anna.answer.url).endswith("/?x=1")
        anna.send("/logout")
        show(anna, "4712")
        assert anna.status == 401
        assert f'adds one with the subject "oidc {issuer} 4712"' in anna.text


@pytest.mark.long
def test_an_address_counts_where_the_provider_has_verified_it(
    workspace: Workspace, issuer: str
) -> None:
    known(workspace, f"oidc {issuer} anna@example.com")
    with provided(workspace, issuer, "email") as anna:
        show(anna, "4712")
        assert (anna.status, "has not verified it" in anna.text) == (401, True)
        show(anna, "4711")
        assert "Anna Meyer" in anna.text


def test_a_way_back_is_taken_once_and_by_who_began_it(workspace: Workspace, issuer: str) -> None:
    known(workspace, f"oidc {issuer} 4711")
    with provided(workspace, issuer) as anna:
        show(anna, "4711")
        back = next(one.url for one in anna.answer.history if one.url.path == "/login/back")
        anna.send("/logout")
        assert "The provider refused the login" in anna.open(str(back)).text
        state = str(back.params["state"])
        forged = (f"{state}x", f"x{state}", state.partition(".")[0], "x", ".", "")
        for asked in ({}, *({"state": one, "code": "y"} for one in forged)):
            assert "not begun here" in anna.open("/login/back", **asked).text
        other = Browser(str(anna.client.base_url))
        other.client.follow_redirects = False
        began = other.client.get("/login/provider")
        state = parse_qs(urlsplit(began.headers["location"]).query)["state"][0]
        assert "another browser" in anna.open("/login/back", state=state, code="x").text
        other.client.close()


def test_a_provider_that_does_not_answer_or_is_another(issuer: str) -> None:
    nobody = Provider(ProviderSettings("http://127.0.0.1:9", "desk"))
    with pytest.raises(LoginRefused, match="does not answer"):
        nobody.begin("key", "/", "http://desk/login/back")
    other = Provider(ProviderSettings(f"{issuer}/", "desk"))
    told = f"calls itself {issuer}, and RECON_OIDC_ISSUER is {issuer}/:"
    with pytest.raises(LoginRefused, match=told):
        other.begin("key", "/", "http://desk/login/back")


def test_a_token_for_another_client_or_nonce_is_not_taken(issuer: str) -> None:
    """The same code, exchanged by a client that is expected to be another."""
    here, back = Provider(ProviderSettings(issuer, "desk", "secret")), BACK

    def code(provider: Provider) -> tuple[str, str]:
        address = provider.begin("key", "/", back)
        answer = httpx.post(address, data={"sub": "4711"}, follow_redirects=False)
        told = parse_qs(urlsplit(answer.headers["location"]).query)
        return told["state"][0], told["code"][0]

    (_, one), (state, _) = code(here), code(here)
    with pytest.raises(LoginRefused, match="answer could not be verified"):
        here.end("key", state, one, back)
    state, one = code(here)
    here._settings = replace(here._settings, client_id="other")
    with pytest.raises(LoginRefused):
        here.end("key", state, one, back)


@pytest.mark.long
def test_however_many_begin_nobody_is_kept_out_and_nothing_is_kept(issuer: str) -> None:
    """Whoever asks need not be logged in, nor say the truth about where they go."""
    here = Provider(ProviderSettings(issuer, "desk", "secret"))
    address = here.begin("key", "/runs/1", BACK)
    for _ in range(10_001):
        other = here.begin("x" * 1_000, "/" * 1_000, BACK)
    assert len(other) < 1_000
    answer = httpx.post(address, data={"sub": "4711"}, follow_redirects=False)
    told = parse_qs(urlsplit(answer.headers["location"]).query)
    shown = here.end("key", told["state"][0], told["code"][0], BACK)
    assert (shown.known_as, shown.there) == (f"{issuer} 4711", "/runs/1")


def test_a_login_is_begun_for_a_while(issuer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Provider(ProviderSettings(issuer, "desk", "secret"))
    for seconds, told in ((oidc.BEGUN_SECONDS, "did not say who"), (-1, "or too long ago")):
        monkeypatch.setattr(oidc, "BEGUN_SECONDS", seconds)
        asked = parse_qs(urlsplit(here.begin("key", "/", BACK)).query)
        with pytest.raises(LoginRefused, match=told):
            here.end("key", asked["state"][0], "", BACK)


def test_what_is_sent_along_proves_who_comes_back(issuer: str) -> None:
    """A provider that asks for it sees that the code is redeemed by who asked for it (PKCE)."""
    here = Provider(ProviderSettings(issuer, "desk"))
    asked = parse_qs(urlsplit(here.begin("key", "/", BACK)).query)
    digest = hashlib.sha256(here._verifier(asked["state"][0]).encode()).digest()
    assert asked["code_challenge"] == [urlsafe_b64encode(digest).decode().rstrip("=")]
    assert asked["code_challenge_method"] == ["S256"]
    again = parse_qs(urlsplit(here.begin("key", "/", BACK)).query)
    for name in ("state", "nonce", "code_challenge"):
        assert asked[name] != again[name]


@contextmanager
def behind(workspace: Workspace) -> Iterator[str]:
    settings = DeskSettings(proxy=ProxySettings("X-Remote-User", SECRET))
    with desk_of(workspace, settings) as url:
        yield url


@pytest.mark.long
def test_a_proxy_says_who_somebody_is(workspace: Workspace) -> None:
    known(workspace, "proxy anna@corp")
    with behind(workspace) as url, Browser(url).client as client:
        proved = {"X-Recon-Proxy": SECRET}

        def page(**headers: str) -> str:
            return client.get("/", headers=headers).text

        assert "Password" in page()
        assert "Password" in client.get("/", headers={"X-Remote-User": "anna@corp"}).text
        wrong = {"X-Remote-User": "anna@corp", "X-Recon-Proxy": "a guess"}
        assert "Password" in client.get("/", headers=wrong).text
        anna = proved | {"X-Remote-User": "anna@corp"}
        assert "Anna Meyer" in client.get("/", headers=anna).text
        eve = proved | {"X-Remote-User": "eve@corp"}
        told = client.get("/", headers=eve)
        assert "No account is known as" in told.text, "another one than the cookie's"
        with workspace.database.connect() as connection:
            keep_account(connection, replace(ANNA, subject="proxy anna@corp", disabled=True))
        assert "or it is disabled" in client.get("/", headers=anna).text


WHY = 'Bank "charges"'


def send_too_late(workspace: Workspace, page: Browser) -> str:
    """Send a form whose login has ended; gives where it goes."""
    breaks = found("1")
    path = f"/runs/{reconcile(workspace, breaks).id}/decide"
    page.open(path, **{"break": ids(breaks), "what": "comment"})
    page.client.headers["Origin"] = str(page.client.base_url).rstrip("/")
    with workspace.database.connect() as connection:
        connection.execute("UPDATE login SET ended_at = clock_timestamp()")
    page.send(path, reason=WHY)
    return path


def send_now(page: Browser, path: str, rows: Any) -> None:
    assert (page.status, "Not sent yet" in page.text, WHY in page.text) == (200, True, True)
    assert rows("SELECT FROM decision") == [], "nothing is sent before they say so"
    page.send(path)
    assert rows('SELECT "by", reason FROM decision') == [("anna", WHY)]


def test_what_was_typed_is_kept_where_a_proxy_logs_in_anew(workspace: Workspace, rows: Any) -> None:
    known(workspace, "proxy anna@corp")
    with behind(workspace) as url:
        anna = Browser(url)
        anna.client.headers.update({"X-Remote-User": "anna@corp", "X-Recon-Proxy": SECRET})
        path = send_too_late(workspace, anna)
        opened = anna.client.cookies["recon_login"]
        send_now(anna, path, rows)
        assert anna.client.cookies["recon_login"] == opened
        anna.client.close()


@pytest.mark.long
def test_what_was_typed_is_kept_while_a_provider_is_asked(
    workspace: Workspace, issuer: str, rows: Any
) -> None:
    """The provider is asked beside the page that has it."""
    known(workspace, f"oidc {issuer} 4711")
    with provided(workspace, issuer) as anna:
        show(anna, "4711")
        path = send_too_late(workspace, anna)
        assert (anna.status, WHY in anna.text) == (401, True)
        assert anna.send(path).status == 401, "nobody is logged in yet"
        left, beside = anna.answer, Browser(str(anna.client.base_url))
        beside.client.cookies = anna.client.cookies
        show(beside, "4711")
        anna.client.cookies, anna.answer = beside.client.cookies, left
        send_now(anna.send(path), path, rows)
        beside.client.close()


def test_a_name_that_a_browser_adds_to_that_of_the_proxy_is_nobodys(workspace: Workspace) -> None:
    """Where a proxy adds its header and leaves that of the browser, there are two."""
    known(workspace, "proxy anna@corp")
    with behind(workspace) as url:
        for first, second in (("anna@corp", "eve@corp"), ("eve@corp", "anna@corp"), ("", "x")):
            sent = [("X-Remote-User", first), ("X-Remote-User", second), ("X-Recon-Proxy", SECRET)]
            told = httpx.get(url, headers=sent, verify=NO_AUTHORITIES)
            assert "more than once" in told.text
            assert "recon_login" not in told.cookies


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "secure"), [("desk.example.com", True), ("localhost", False)], ids=["public", "here"]
)
def test_cookies_are_kept_to_tls_where_the_desk_is_called_by_it(
    workspace: Workspace, host: str, secure: bool
) -> None:
    add(workspace, ANNA)
    with desk_of(workspace, DeskSettings(url="https://desk.example.com")) as url:
        told = httpx.get(f"{url}/login", headers={"Host": host}, verify=NO_AUTHORITIES)
    assert ("Secure" in told.headers["set-cookie"]) == secure


@pytest.mark.parametrize(
    ("public", "origin", "ours"),
    [
        ("https://desk.example.com", "https://desk.example.com", True),
        ("https://Desk.example.com:443", "https://desk.example.com", True),
        ("https://desk.example.com:8443", "https://desk.example.com", False),
        ("https://desk.example.com", "http://desk.example.com", False),
        ("https://desk.example.com", "https://desk.example.com.evil.example", False),
        ("https://desk.example.com", "https://desk.example.com:x", False),
        ("https://desk.example.com", "null", False),
        (None, "https://desk.example.com", False),
    ],
)
def test_a_proxy_may_ask_by_the_address_where_the_desk_listens(
    workspace: Workspace, public: str | None, origin: str, ours: bool
) -> None:
    """Many do so: the browser says by which one a page was opened."""
    add(workspace, ANNA)
    with desk_of(workspace, DeskSettings(url=public)) as url:
        page = Browser(url).open("/login")
        page.client.headers["Origin"] = origin
        page.client.follow_redirects = False
        page.send("/login", name="anna", password=PASSWORD)
        assert page.status == (303 if ours else 403)
        if ours:
            assert "Secure" in page.answer.headers["set-cookie"]
        page.client.close()


@pytest.mark.long
def test_whoever_is_known_by_another_name_from_now_on_is_logged_out(workspace: Workspace) -> None:
    """A login by the old name of a provider or proxy ends; one by password stays."""
    add(workspace, replace(ANNA, subject="proxy anna@corp"))
    with workspace.database.connect() as connection:
        by_proxy = vouch(connection, "anna@corp", How.PROXY)
    by_password = logged_in(workspace, ANNA)
    for subject, there in (("proxy anna@corp", True), ("proxy other@corp", False)):
        with workspace.database.connect() as owner:
            keep_account(owner, replace(ANNA, subject=subject))
        with workspace.as_login(by_proxy).database.connect() as connection:
            assert (acting(connection) is not None) == there
        with by_password.database.connect() as connection:
            assert acting(connection) is not None


SETTINGS = [
    ({"RECON_DESK_URL": "desk.example.com"}, "no address of a desk"),
    ({"RECON_DESK_URL": "https://desk.example.com/x"}, "no address of a desk"),
    ({"RECON_OIDC_ISSUER": "https://id.example.com"}, "RECON_OIDC_CLIENT_ID is not"),
    ({"RECON_OIDC_ISSUER": "http://id.example.com", "RECON_OIDC_CLIENT_ID": "x"}, "no https://"),
    ({"RECON_OIDC_ISSUER": "https://[::1", "RECON_OIDC_CLIENT_ID": "x"}, "no https://"),
    (
        {"RECON_OIDC_ISSUER": "https://id.example.com:99999", "RECON_OIDC_CLIENT_ID": "x"},
        "no https://",
    ),
    ({"RECON_OIDC_ISSUER": "https://", "RECON_OIDC_CLIENT_ID": "x"}, "no https://"),
    *(
        ({"RECON_OIDC_ISSUER": f"https://{more}", "RECON_OIDC_CLIENT_ID": "x"}, "or holds more")
        for more in ("desk:hush@id.example.com", "id.example.com?key=hush", "id.example.com/#hush")
    ),
    (
        {
            "RECON_OIDC_ISSUER": "https://id.example.com",
            "RECON_OIDC_CLIENT_ID": "x",
            "RECON_OIDC_CLAIM": "name",
        },
        "must be one of: sub, email",
    ),
    ({"RECON_PROXY_HEADER": "X-User"}, "RECON_PROXY_SECRET is not"),
    ({"RECON_PROXY_HEADER": "X-User", "RECON_PROXY_SECRET": "hush"}, "less than 16"),
    ({"RECON_PROXY_HEADER": "X User", "RECON_PROXY_SECRET": SECRET}, "no name of a header"),
    ({"RECON_PROXY_HEADER": "x-recon-proxy", "RECON_PROXY_SECRET": SECRET}, "has the secret"),
]


@pytest.mark.parametrize(("environment", "told"), SETTINGS)
def test_settings_that_cannot_be(environment: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        read_desk_settings(environment)
    assert "hush" not in str(refused.value)
