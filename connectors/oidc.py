"""OpenID Connect: a provider proves to the desk who somebody is.

This is the authorization code flow with PKCE, a nonce and a state (OpenID Connect Core 3.1, RFC
7636). An identity token is accepted only with a signature by a key of the provider, for this
client, with the nonce that was sent and within its time.
"""

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from connectors.addresses import is_loopback, parts_of_http
from connectors.desk_links import parts_of_pages
from connectors.errors import LoginRefused, SettingsError
from connectors.printable import shown

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Signatures by a key that only the provider has: no shared secrets, and never none."""
ANSWER_SECONDS = 10
ANSWER_BYTES = 1024 * 1024
BEGUN_SECONDS = 600
"""How long somebody may take to log in at the provider."""
LONGEST_THERE = 500
"""Most bytes of the address somebody wanted to go to; a longer one is forgotten."""
DESCRIBED_SECONDS = 300
"""How long the provider's description of itself is kept."""
LEEWAY_SECONDS = 60
CLAIMS = ("sub", "email")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The provider that the desk asks, and how the provider knows the desk."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    claim: str = "sub"
    """The claim an account's subject names: `sub`, or `email` if the provider has verified it."""

    def __post_init__(self) -> None:
        if parts_of_pages(self.issuer) is None or not _is_private(self.issuer):
            raise SettingsError(
                "RECON_OIDC_ISSUER is no https:// address, or holds more, such as a user; without "
                "TLS, anybody on the way could forge an identity. Write https://HOST/PATH, as the "
                "provider calls itself."
            )
        if self.claim not in CLAIMS:
            raise SettingsError(f"RECON_OIDC_CLAIM must be one of: {', '.join(CLAIMS)}.")


@dataclass(frozen=True, slots=True)
class Identified:
    """Who somebody is, according to the provider."""

    known_as: str
    """Issuer and subject, as accounts record them."""
    there: str


class Provider:
    """An OpenID Connect provider.

    The state that travels with a begun login holds all that has to be known about it, sealed by
    this process: nothing is stored, however many logins are begun, and none displaces another.
    """

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._seal = secrets.token_bytes(32)
        self._described: tuple[float, dict[str, Any]] = (0.0, {})

    def begin(self, key: str, there: str, redirect: str) -> str:
        """The address at the provider where the user of this browser logs in."""
        address = str(self._description()["authorization_endpoint"])
        state = self._begun(key, there if len(there.encode()) <= LONGEST_THERE else "/")
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect,
            "scope": "openid email" if self._settings.claim == "email" else "openid",
            "state": state,
            "nonce": self._derived("nonce", state),
            "code_challenge": _encoded(hashlib.sha256(self._verifier(state).encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"

    def end(self, key: str, state: str, code: str, redirect: str) -> Identified:
        """Who came back to `redirect`; raises LoginRefused.

        The provider accepts each code once (RFC 6749, 4.1.2), and so the state that belongs to it.
        """
        there = self._there(key, state)
        if not code:
            raise LoginRefused("The provider did not say who you are. Log in again.")
        description = self._description()
        token = self._token(description, state, code, redirect)
        claims = self._claims(description, token, self._derived("nonce", state))
        known = claims.get(self._settings.claim)
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            known = None
        if not isinstance(known, str) or not known or not known.isprintable():
            raise LoginRefused(
                f"The provider does not tell your {self._settings.claim}, or has not verified it. "
                "Ask whoever runs it."
            )
        return Identified(f"{self._settings.issuer} {known}", there)

    def _begun(self, key: str, there: str) -> str:
        """A state, sealed by this process: its expiry, the hashed browser key and the target."""
        content = [time.monotonic() + BEGUN_SECONDS, secrets.token_hex(16), _hashed(key), there]
        text = _encoded(json.dumps(content, ensure_ascii=False).encode())
        return f"{text}.{self._derived('state', text)}"

    def _there(self, key: str, state: str) -> str:
        """Where somebody wanted to go; raises LoginRefused for a state that is not theirs."""
        text, _, seal = state.partition(".")
        if not hmac.compare_digest(seal.encode(), self._derived("state", text).encode()):
            raise LoginRefused(_NOT_BEGUN)
        until, _, whose, there = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if until < time.monotonic():
            raise LoginRefused(_NOT_BEGUN)
        if not hmac.compare_digest(whose, _hashed(key)):
            raise LoginRefused("This login was begun in another browser. Log in again.")
        return str(there)

    def _verifier(self, state: str) -> str:
        """Proves that the asker redeems the code; nobody else can compute it."""
        return self._derived("verifier", state)

    def _derived(self, what: str, of: str) -> str:
        return _encoded(hmac.digest(self._seal, f"{what} {of}".encode(), "sha256"))

    def _token(self, description: dict[str, Any], state: str, code: str, redirect: str) -> str:
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": self._verifier(state),
            "client_id": self._settings.client_id,
        }
        client, secret = self._settings.client_id, self._settings.client_secret
        # Encoded like a form, so that a colon does not end the name (RFC 6749, 2.3.1).
        basic = httpx.BasicAuth(quote_plus(client), quote_plus(secret)) if secret else None
        tokens = self._ask("POST", str(description["token_endpoint"]), data=sent, auth=basic)
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise LoginRefused("The provider refused the login. Log in again.")
        return token

    def _claims(self, description: dict[str, Any], token: str, nonce: str) -> dict[str, Any]:
        keys = _keys(self._ask("GET", str(description["jwks_uri"])))
        rules = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims = jwt.decode(token, keys, registry=_Signed()).claims
            rules.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise LoginRefused(
                f"The provider's answer could not be verified ({type(error).__name__}). Log in "
                "again; if that does not help, ask whoever runs the desk."
            ) from None
        # OpenID Connect Core 3.1.3.7: with several audiences, `azp` names the one it is for.
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if several and claims.get("azp") != self._settings.client_id:
            raise LoginRefused("The provider's answer is for another program. Log in again.")
        return dict(claims)

    def _description(self) -> dict[str, Any]:
        until, kept = self._described
        if until > time.monotonic():
            return kept
        issuer = self._settings.issuer.rstrip("/")
        description = self._ask("GET", f"{issuer}/.well-known/openid-configuration")
        wanted = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        if not all(isinstance(description.get(one), str) for one in ("issuer", *wanted)):
            raise LoginRefused(
                f"What answers at RECON_OIDC_ISSUER does not describe the provider {issuer}. Ask "
                "whoever runs the desk."
            )
        if description["issuer"] != self._settings.issuer:
            raise LoginRefused(
                f"The provider calls itself {shown(description['issuer'])}, and RECON_OIDC_ISSUER "
                f"is {self._settings.issuer}: the two have to be the same, to the last slash. Ask "
                "whoever runs the desk."
            )
        for one in wanted:
            if not _is_private(description[one]):
                raise LoginRefused(
                    f"The provider's {one} is no https:// address: without TLS, anybody on the "
                    "way could forge an identity. Ask whoever runs the provider."
                )
        self._described = time.monotonic() + DESCRIBED_SECONDS, description
        return description

    def _ask(self, method: str, address: str, **more: Any) -> dict[str, Any]:
        until, content = time.monotonic() + ANSWER_SECONDS, b""
        try:
            with (
                httpx.Client(timeout=ANSWER_SECONDS, trust_env=False) as client,
                client.stream(method, address, **more) as answer,
            ):
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > ANSWER_BYTES:
                        raise LoginRefused(_UNREADABLE)
                    if time.monotonic() > until:
                        raise httpx.ReadTimeout("It is still on its way.")
            document = json.loads(content)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            raise LoginRefused(
                f"The provider does not answer ({type(error).__name__}). Try again; if that does "
                "not help, ask whoever runs it."
            ) from None
        if not isinstance(document, dict):
            raise LoginRefused(_UNREADABLE)
        return document


class _Signed(JWSRegistry):
    """Which signatures count; what else a header says is ignored (RFC 7515, 4), if not critical."""

    max_header_length = max_payload_length = ANSWER_BYTES

    def __init__(self) -> None:
        super().__init__(algorithms=ALGORITHMS, strict_check_header=False)


_NOT_BEGUN = "This login was not begun here, or too long ago. Log in again."
_UNREADABLE = "The provider's answer cannot be read. Ask whoever runs it."


def _is_private(address: str) -> bool:
    """Whether nobody on the way to this address can read or forge what is said there."""
    parts = parts_of_http(address)
    return parts is not None and (parts.scheme == "https" or is_loopback(parts.hostname or ""))


def _keys(document: dict[str, Any]) -> KeySet:
    """The provider's readable keys, perhaps none; others are left out (RFC 7517, 5)."""
    keys = []
    listed = document.get("keys")
    for one in listed if isinstance(listed, list) else []:
        with suppress(JoseError, ValueError, TypeError, KeyError):
            keys.append(KeySet.registry_cls.import_key(one))
    return KeySet(keys)


def _hashed(key: str) -> str:
    """A browser's key, hashed: the browser side decides how long its key is."""
    return hashlib.sha256(key.encode()).hexdigest()


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
