"""A line to the service: opens a connection when one is needed and keeps it while it is good."""

import asyncio
import ssl
from urllib.parse import urlsplit

from connectors.errors import SettingsError
from connectors.service.connection import Connection, Failed, Reply
from connectors.settings import ServiceSettings


class Place:
    """Where the service is."""

    def __init__(self, settings: ServiceSettings) -> None:
        assert settings.url is not None
        parts = urlsplit(settings.url)
        assert parts.hostname is not None
        self.host: str = parts.hostname
        self.encrypted = parts.scheme == "https"
        self.port: int = parts.port or (443 if self.encrypted else 80)
        self.prefix = parts.path.rstrip("/")
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{shown}:{parts.port}" if parts.port else shown
        """For the Host header."""
        self.tls = _tls(settings) if self.encrypted else None


class Line:
    """Carries one request at a time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, place: Place, settings: ServiceSettings
    ) -> None:
        self._loop = loop
        self._place = place
        self._settings = settings
        self._connection: Connection | None = None

    async def call(self, data: bytes, most_bytes: int) -> Reply | Failed:
        """The answer to a whole request, within the deadline of one attempt."""
        deadline = self._loop.time() + self._settings.answer_seconds
        connection = self._kept()
        if connection is None:
            opened = await self._open()
            if isinstance(opened, Failed):
                return opened
            connection = self._connection = opened
        return await connection.call(data, deadline, most_bytes)

    def close(self) -> None:
        """Close at once, whatever is under way."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _kept(self) -> Connection | None:
        connection = self._connection
        if connection is None:
            return None
        idle = self._loop.time() - connection.idle_since
        if idle < self._settings.idle_seconds and connection.usable:
            return connection
        self.close()
        return None

    async def _open(self) -> Connection | Failed:
        place, settings = self._place, self._settings
        try:
            async with asyncio.timeout(min(settings.connect_seconds, settings.answer_seconds)):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop),
                    place.host,
                    place.port,
                    ssl=place.tls,
                    server_hostname=place.host if place.tls else None,
                )
        except ssl.SSLCertVerificationError as problem:
            cause = f"the certificate of {place.host} is not trusted: {problem.verify_message}"
            return Failed(sent=False, cause=cause, hopeless=True)
        except TimeoutError:
            return Failed(sent=False, cause=f"no connection to {place.authority} in time")
        except (OSError, UnicodeError) as problem:
            said = getattr(problem, "strerror", None) or type(problem).__name__
            return Failed(sent=False, cause=f"no connection to {place.authority}: {said}")
        return connection


def _tls(settings: ServiceSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=str(settings.ca_file) if settings.ca_file else None
        )
    except (OSError, ssl.SSLError) as problem:
        raise SettingsError(
            f"RECON_SERVICE_CA_FILE={settings.ca_file} cannot be read as certificates: {problem}"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
