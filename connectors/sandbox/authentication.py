"""Who is calling: Basic, bearer token, API key or session cookie, in this order."""

import base64
import binascii

from connectors.sandbox.accounts import Accounts, ServiceAccount
from connectors.sandbox.failures import Failure
from connectors.sandbox.messages import ServedRequest
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.sessions import Sessions
from connectors.sandbox.tokens import MalformedToken, Tokens


class Authentication:
    """Finds the account of a request."""

    def __init__(
        self, options: SandboxOptions, accounts: Accounts, sessions: Sessions, tokens: Tokens
    ) -> None:
        self._options = options
        self._accounts = accounts
        self._sessions = sessions
        self._tokens = tokens

    def caller(self, request: ServedRequest) -> ServiceAccount | Failure | None:
        """The account; None without credentials, a failure where they are wrong."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "basic":
                return self._basic(given.strip())
            case "bearer":
                return self._bearer(given.strip())
        key = request.headers.get("x-api-key")
        if key is not None and self._options.traits.api_key_header:
            return self._key(key)
        token = request.cookies.get("ss-tok")
        if token:
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

    def _bearer(self, given: str) -> ServiceAccount | Failure:
        return self._token(given) if "." in given else self._key(given)

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
