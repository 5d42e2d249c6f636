"""Which Prefect server answers at an address, asked before anything is given to it."""

import base64
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import psutil  # type: ignore[import-untyped]

from connectors.environment import setting
from connectors.errors import ReconError, SettingsError

ASK_SECONDS = 5
SHOWN = 80


@dataclass(frozen=True, slots=True)
class Answering:
    prefect: bool
    version: str | None = None
    home: str | None = None
    """The folder of the server's own files, if it says so."""

    def __str__(self) -> str:
        if not self.prefect:
            return "something that is no Prefect server"
        version = f" {self.version}" if self.version else ""
        return f"a Prefect server{version}" + (
            f" with its home in {self.home[:SHOWN]}" if self.home else ""
        )


def login_header(login: str | None) -> dict[str, str]:
    """The header of a login NAME:PASSWORD; empty without one."""
    if not login:
        return {}
    given = base64.b64encode(login.encode(errors="surrogateescape")).decode()
    return {"Authorization": f"Basic {given}"}


def who_answers(address: str, login: str | None = None) -> Answering | None:
    """What answers at a server's address, without `/api`; None if nothing does."""
    with httpx.Client(
        base_url=address, trust_env=False, timeout=ASK_SECONDS, headers=login_header(login)
    ) as client:
        try:
            health = _json(client.get("/api/health"))
            version = _json(client.get("/api/admin/version"))
            # A server with a login tells its health to everybody, and its version to nobody.
            if health is not True and not isinstance(version, str):
                return Answering(prefect=False)
            settings = _json(client.get("/api/admin/settings"))
        except httpx.RequestError as problem:
            # It may accept the connection and never answer in HTTP, or not a second time.
            return None if isinstance(problem, httpx.ConnectError) else Answering(prefect=False)
    home = settings.get("home") if isinstance(settings, dict) else None
    return Answering(
        prefect=True,
        version=str(version)[:SHOWN] if isinstance(version, str) else None,
        home=str(home) if home else None,
    )


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.is_success else None
    except ValueError:
        return None


def holder_of(port: int) -> str:
    """The process that listens on a port of this machine, if that can be known."""
    try:
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr.port == port and one.pid:
                return f", process {one.pid} ({psutil.Process(one.pid).name()})"
    except psutil.Error:
        pass
    return ""


def refuse_unreachable(url: str) -> None:
    """Raise ReconError if no suitable Prefect server can be used at PREFECT_API_URL."""
    try:
        where = _without_login(url)
    except ValueError:
        # The address is not shown, because it may contain a login.
        raise SettingsError(
            "PREFECT_API_URL is no address. Write it as http://127.0.0.1:4200/api."
        ) from None
    key = setting("PREFECT_API_KEY")
    if key and not key.isascii():
        raise SettingsError(
            "PREFECT_API_KEY has a character that no key has. Copy it again from the server's "
            "pages."
        )
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= login_header(setting("PREFECT_API_AUTH_STRING"))
    try:
        answer = httpx.get(f"{url.rstrip('/')}/admin/version", headers=headers, timeout=ASK_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise ReconError(
            f"No Prefect server answers at {where} ({type(problem).__name__}); nothing was "
            "registered. Start one with `recon up`, or name another in PREFECT_API_URL."
        ) from None
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise ReconError(
            f"The server at {where} refuses the login ({answer.status_code}); nothing was "
            "registered. Give PREFECT_API_AUTH_STRING=NAME:PASSWORD, or PREFECT_API_KEY."
        )
    if not isinstance(_json(answer), str):
        raise ReconError(
            f"What answers at {where} is no Prefect server ({answer.status_code}); nothing was "
            "registered. PREFECT_API_URL ends in /api, as in http://127.0.0.1:4200/api."
        )


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
