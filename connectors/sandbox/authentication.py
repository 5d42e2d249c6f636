"""Who is calling: Basic, bearer token, API key or session cookie, in this order.

Sessions and tokens begin and end here too.
"""

import base64
import binascii
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from connectors.sandbox.accounts import Accounts, ServiceAccount
from connectors.sandbox.failures import Failure
from connectors.sandbox.messages import ServedRequest
from connectors.sandbox.options import SandboxOptions

MOST_SESSIONS = 10_000
VALID_FOR = timedelta(days=14)
"""How long a token is valid."""


class Sessions:
    """The accounts signed in, by session id; forgotten when the host ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, ServiceAccount] = {}

    def begin(self, account: ServiceAccount) -> str:
        """Begin a session and return its id; the oldest session ends if there are too many."""
        session = secrets.token_urlsafe(15)
        with self._lock:
            if len(self._accounts) >= MOST_SESSIONS:
                self._accounts.pop(next(iter(self._accounts)))
            self._accounts[session] = account
        return session

    def find(self, session: str) -> ServiceAccount | None:
        return self._accounts.get(session)

    def end(self, session: str) -> None:
        with self._lock:
            self._accounts.pop(session, None)

    def end_all(self) -> None:
        with self._lock:
            self._accounts.clear()


@dataclass(frozen=True, slots=True)
class Claims:
    """Who a token is for."""

    subject: str
    expired: bool


class MalformedToken(Exception):
    """The text is not a token that this host signed."""


class Tokens:
    """Signs and reads the tokens of one host, with the framework's claims.

    The signing key is forgotten when the host ends.
    """

    def __init__(self) -> None:
        self._key = OctKey.generate_key(256)

    def sign(self, account: ServiceAccount, now: datetime) -> str:
        claims = {
            "iss": "ssjwt",
            "sub": str(account.number),
            "iat": int(now.timestamp()),
            "exp": int((now + VALID_FOR).timestamp()),
            **({"email": account.mail} if account.mail else {}),
            "name": account.display_name,
            "preferred_username": account.name,
            "roles": list(account.roles),
            "perms": [],
        }
        return jwt.encode({"typ": "JWT", "alg": "HS256"}, claims, self._key)

    def read(self, token: str, now: datetime) -> Claims:
        """The claims of a token; raises MalformedToken."""
        try:
            claims = jwt.decode(token, self._key, ["HS256"]).claims
            return Claims(str(claims["sub"]), claims["exp"] <= now.timestamp())
        except (JoseError, ValueError, KeyError, TypeError):
            raise MalformedToken from None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Authentication:
    """Finds the account of a request."""

    _options: SandboxOptions
    _accounts: Accounts
    _sessions: Sessions
    _tokens: Tokens

    def caller(self, request: ServedRequest) -> ServiceAccount | Failure | None:
        """The calling account; None without credentials, a Failure if they are wrong."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "basic":
                return self._basic(given.strip())
            case "bearer":
                given = given.strip()
                return self._token(given) if "." in given else self._key(given)
        key = request.headers.get("x-api-key")
        if key is not None and self._options.traits.api_key_header:
            return self._key(key)
        if token := request.cookies.get("ss-tok"):
            return self._token(token)
        return self._sessions.find(request.cookies.get("ss-id", ""))

    def _basic(self, given: str) -> ServiceAccount | Failure:
        try:
            pair = base64.b64decode(given, validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            pair = ""
        name, _, password = pair.partition(":")
        account = self._accounts.by_password(name, password)
        if account is None and not password:
            account = self._accounts.by_key(name)
        if account is None:
            message = self._options.traits.refused_sign_in
            return Failure(401, "Unauthorized", message, message)
        return account

    def _key(self, key: str) -> ServiceAccount | Failure:
        account = self._accounts.by_key(key)
        if account is None:
            return Failure(404, "NotFound", "ApiKey does not exist", "NotFound")
        return account

    def _token(self, token: str) -> ServiceAccount | Failure:
        try:
            claims = self._tokens.read(token, self._options.clock())
        except MalformedToken:
            status = self._options.traits.malformed_token_status
            code = "Exception" if status == 500 else "TokenException"
            return Failure(status, code, "Token is malformed", code)
        account = None if claims.expired else self._accounts.by_number(claims.subject)
        if account is None:
            return Failure(401, "TokenException", "Token has expired", "TokenException")
        return account
