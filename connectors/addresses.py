"""Reading the addresses in settings and options: what each may be, and why one is refused.

Errors name the setting; they show no part of an address that may hold a password.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from connectors.errors import SettingsError

DEFAULT_PORTS = {"http": 80, "https": 443}
SECRET_PARAMETERS = (
    *("password", "sslpassword", "oauth_client_secret"),
    *("scram_client_key", "scram_server_key"),
)
"""Parameters of a database address whose values must not be shown."""
WITNESS_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "file", "memory")


def read_path(name: str, text: str) -> Path:
    """The path a setting names, with `~` expanded; raises SettingsError."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SettingsError(
            f"{name}={text!r}: {text.partition('/')[0]} has no home folder. Write the whole "
            "path, or ./~NAME for a folder of that name."
        ) from None


def real_path(path: Path) -> Path:
    """Where a path leads; a link to itself fails only when the path is opened."""
    return Path(os.path.realpath(path))


def read_home(text: str) -> Path:
    """The folder RECON_HOME names, existing or not; raises SettingsError if none can be there."""
    folder = real_path(read_path("RECON_HOME", text))
    try:
        why = "" if stat.S_ISDIR(folder.stat().st_mode) else "it is no folder"
    except (FileNotFoundError, PermissionError):
        why = ""  # It is created when needed; a missing right is reported then.
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise SettingsError(
            f"RECON_HOME={text!r} cannot be used: {why}. Name a folder, or a place for one."
        )
    return folder


def check_database_address(name: str, url: str, otherwise: str) -> None:
    """Raise SettingsError, without a part of the address, unless it is a PostgreSQL address."""
    if not url.startswith(("postgresql://", "postgres://", "postgresql+")) or "://" not in url:
        raise SettingsError(
            f"{name} does not name a PostgreSQL database. "
            f"Use postgresql://USER:PASSWORD@HOST/DATABASE, or {otherwise}."
        )
    if problem := address_problem(url):
        raise SettingsError(f"{name} cannot be read: {problem}.")


def address_problem(url: str) -> str | None:
    """Why a database address cannot be read, without any part of a password; None if it can.

    Readers disagree about a password with unescaped signs, and may show a part of it as the host.
    """
    user, at, place = url.split("://", 1)[1].rpartition("@")
    before_query = url.partition("?")[0]
    if re.search("%(?![0-9A-Fa-f]{2})|%00", user + before_query):
        return "a % in it is not followed by the two digits of a sign; write % itself as %25"
    if not (user + before_query).isprintable() or " " in user + before_query:
        return "it holds a blank or a sign that cannot be printed; write a blank as %20"
    if at and any(sign in user for sign in "@/?#[]"):
        return "a sign in its user or password has a meaning; write @ as %40, / as %2F, ? as %3F"
    try:
        # One address may name a server and its standbys.
        for one in re.split("[/?#]", place, maxsplit=1)[0].split(","):
            urlsplit(f"//{one}").port  # noqa: B018 (reading it is the test)
    except ValueError:
        return "its host or port is none; write HOST:PORT, the port a number"
    return None


def parts_of_http(url: str) -> SplitResult | None:
    """The parts of an HTTP address; None if it is none."""
    try:
        parts = urlsplit(url)
        there = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if there else None


def check_service_address(url: str) -> None:
    """Raise SettingsError unless the URL is a service's base URL, without user or query."""
    parts = parts_of_http(url)
    if parts is None:
        raise SettingsError(
            "RECON_SERVICE_URL does not name a service. Use https://HOST or https://HOST/PATH."
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise SettingsError(
            "RECON_SERVICE_URL holds more than a place: user and password go into "
            "RECON_SERVICE_USER and RECON_SERVICE_PASSWORD, and a query cannot be given."
        )
    if not url.isascii() or any(ord(mark) <= 32 for mark in url):
        raise SettingsError("RECON_SERVICE_URL has blanks or marks that a URL cannot hold.")


def check_notice_address(url: str) -> None:
    """Raise SettingsError, without a part of the address, unless notices can be posted to it."""
    if parts_of_http(url) is None or " " in url or not url.isprintable():
        raise SettingsError(
            "RECON_NOTIFY_URL is no address of a webhook. Write https://HOST/PATH, as the chat "
            "service gives it."
        )


def service_address(url: str) -> str:
    """A base URL in one spelling: scheme and host in lower case, no default port.

    Equal spellings name one service; different spellings may do so too.
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    port = "" if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def witness_places(name: str, addresses: Iterable[str]) -> tuple[str, ...]:
    """The places of witnesses, each once, ready to be opened; raises SettingsError for others."""
    found = [_witness_place(name, one.strip()) for one in addresses if one.strip()]
    return tuple(dict.fromkeys(found))


def _witness_place(name: str, address: str) -> str:
    scheme, separator, _ = address.partition("://")
    if not separator:
        return str(read_path(name, address).absolute())
    try:
        parts = urlsplit(address)
        host, signed_in, _ = parts.hostname or "", parts.username is not None, parts.port
    except ValueError:
        host, signed_in, scheme = "", False, ""
    if signed_in:
        raise SettingsError(
            f"{name} holds an address with a user or password. Leave them out; a store reads its "
            "own settings, and a webhook may have a key in its path."
        )
    if scheme in WITNESS_STORES:
        return address
    if scheme in ("http", "https") and host and (scheme == "https" or is_loopback(host)):
        return address
    if scheme == "http" and host:
        raise SettingsError(f"{name}: http://{host} is read by everybody on the way; use https.")
    raise SettingsError(
        f"{name} names a place that is none. Use the path of a file, https://HOST/PATH, or "
        f"a folder of a store: {', '.join(f'{one}://' for one in WITNESS_STORES[:-1])}."
    )


def is_loopback(host: str) -> bool:
    """Whether the host is this machine, by an address that no other machine reaches."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
