"""Who the caller is to the service; the objects here never show their secrets."""

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from connectors.environment import setting
from connectors.errors import SettingsError


class Scheme(StrEnum):
    """How the service is told who calls; its configuration decides which schemes it takes."""

    NONE = "none"
    BASIC = "basic"
    CREDENTIALS = "credentials"
    """A session, begun at /auth/credentials and continued by its cookie."""
    BEARER = "bearer"
    API_KEY = "apikey"


_VARIABLES = {
    Scheme.NONE: (),
    Scheme.BASIC: ("RECON_SERVICE_USER", "RECON_SERVICE_PASSWORD"),
    Scheme.CREDENTIALS: ("RECON_SERVICE_USER", "RECON_SERVICE_PASSWORD"),
    Scheme.BEARER: ("RECON_SERVICE_TOKEN",),
    Scheme.API_KEY: ("RECON_SERVICE_API_KEY",),
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """A scheme with what it needs; raises SettingsError if that is missing."""

    scheme: Scheme = Scheme.NONE
    user: str | None = None
    secret: str | None = field(default=None, repr=False)
    """Password, token or API key."""

    def __post_init__(self) -> None:
        named = self.scheme in (Scheme.BASIC, Scheme.CREDENTIALS)
        if (self.scheme is not Scheme.NONE and not self.secret) or (named and not self.user):
            needed = " and ".join(_VARIABLES[self.scheme])
            raise SettingsError(f"Credentials of scheme {self.scheme} need {needed}.")
        given = (self.user, self.secret) if named else (self.secret,)
        for name, text in zip(_VARIABLES[self.scheme], given, strict=False):
            if any(ord(mark) < 32 for mark in text or ""):
                raise SettingsError(
                    f"{name} has a line break, a tab or another sign that no login has. Take it "
                    "out, as at the end of what was read from a file."
                )
            if not named and not (text or "").isascii():
                raise SettingsError(
                    f"{name} has a letter beyond ASCII, which no header can carry. Copy it again "
                    "from where the service shows it."
                )
        if self.scheme is Scheme.BASIC and ":" in (self.user or ""):
            raise SettingsError(
                "RECON_SERVICE_USER has a colon, which Basic cannot carry. Use another account, or "
                "RECON_SERVICE_SCHEME=credentials."
            )

    @property
    def header(self) -> str | None:
        """The Authorization header of every request; None if the scheme has none."""
        match self.scheme:
            case Scheme.BASIC:
                pair = f"{self.user}:{self.secret}".encode()
                return "Basic " + base64.b64encode(pair).decode("ascii")
            case Scheme.BEARER | Scheme.API_KEY:
                return f"Bearer {self.secret}"
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every text that must never be shown."""
        spelled = (self.header or "").partition(" ")[2]
        return tuple(text for text in (self.secret, spelled) if text)


class ServiceSession:
    """A caller's session, if the scheme has one: its cookie, and whether it was ever accepted."""

    def __init__(self, scheme: Scheme) -> None:
        self.cookie: str | None = None
        self._begun = scheme is Scheme.CREDENTIALS
        self._good: str | None = None
        """The last cookie that the service knew."""

    @property
    def missing(self) -> bool:
        """Whether a session has to be begun before anything is sent."""
        return self._begun and self.cookie is None

    def was_known(self, cookie: str | None) -> None:
        """Record that a request with this cookie was answered by another status than 401."""
        if cookie == self.cookie:
            self._good = cookie

    def was_unknown(self, cookie: str | None) -> bool:
        """Record a 401 to a request with this cookie; whether a new session may help.

        A session that was never good has not ended: the credentials themselves are refused.
        """
        if cookie == self.cookie:
            if not self._begun or cookie != self._good:
                return False
            self.cookie = None
        return True


def read_credentials(environment: Mapping[str, str] = os.environ) -> Credentials:
    """Read the credentials of this process; raises SettingsError.

    `RECON_SERVICE_SCHEME` names the scheme. Without it the variables that are set decide: a token,
    an API key, or user and password, which are sent as Basic.
    """
    given = {
        "user": setting("RECON_SERVICE_USER", environment),
        "password": setting("RECON_SERVICE_PASSWORD", environment),
        "token": setting("RECON_SERVICE_TOKEN", environment),
        "key": setting("RECON_SERVICE_API_KEY", environment),
    }
    scheme = _scheme(setting("RECON_SERVICE_SCHEME", environment), given)
    match scheme:
        case Scheme.BASIC | Scheme.CREDENTIALS:
            return Credentials(scheme, given["user"], given["password"])
        case Scheme.BEARER:
            return Credentials(scheme, secret=given["token"])
        case Scheme.API_KEY:
            return Credentials(scheme, secret=given["key"])
    return Credentials()


def _scheme(named: str | None, given: Mapping[str, str | None]) -> Scheme:
    if named is not None:
        try:
            return Scheme(named.lower())
        except ValueError:
            known = ", ".join(Scheme)
            raise SettingsError(f"RECON_SERVICE_SCHEME={named!r} is not one of {known}.") from None
    meant = [
        scheme
        for scheme, text in (
            (Scheme.BEARER, given["token"]),
            (Scheme.API_KEY, given["key"]),
            (Scheme.BASIC, given["user"] or given["password"]),
        )
        if text
    ]
    if len(meant) > 1:
        schemes = ", ".join(meant)
        raise SettingsError(
            f"Credentials of the service are set for {schemes}. "
            "Set one kind only, or say which by RECON_SERVICE_SCHEME."
        )
    return meant[0] if meant else Scheme.NONE
