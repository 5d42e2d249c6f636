"""Bearer tokens: JSON web tokens signed with HS256, the framework's claims."""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from connectors.sandbox.accounts import ServiceAccount

VALID_FOR = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Claims:
    """Whom a token is for."""

    subject: str
    expired: bool


class MalformedToken(Exception):
    """The text is no token that this host signed."""


class Tokens:
    """Signs and reads the tokens of one host; its key is forgotten when it ends."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sign(self, account: ServiceAccount, now: datetime) -> str:
        """A token for an account."""
        claims = {
            "iss": "ssjwt",
            "sub": str(account.number),
            "iat": int(now.timestamp()),
            "exp": int((now + VALID_FOR).timestamp()),
            **({"email": account.mail} if account.mail else {}),
            "name": account.shown_name,
            "preferred_username": account.name,
            "roles": list(account.roles),
            "perms": [],
        }
        signed = ".".join(_encode(part) for part in ({"typ": "JWT", "alg": "HS256"}, claims))
        return f"{signed}.{self._signature(signed)}"

    def read(self, token: str, now: datetime) -> Claims:
        """What the token says; raises MalformedToken."""
        signed, _, signature = token.rpartition(".")
        try:
            if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
                raise MalformedToken
            claims = json.loads(_decode(signed.rpartition(".")[2]))
            return Claims(str(claims["sub"]), claims["exp"] <= now.timestamp())
        except (ValueError, KeyError, TypeError):
            raise MalformedToken from None

    def _signature(self, signed: str) -> str:
        digest = hmac.new(self._key, signed.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _encode(part: object) -> str:
    text = json.dumps(part, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
