"""A line to the service: opens a connection when one is needed and keeps it while it is good."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from connectors.errors import SettingsError
from connectors.service.connection import (
    SPEAKS_TLS,
    TLS_ALERT,
    Connection,
    Failed,
    Reply,
    refused_certificate,
)
from connectors.settings import ServiceSettings

ALERT_SECONDS = 5.0
"""How long a server has to send its alert on a connection on which nothing is asked."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""TLS errors of a greeting answered by a server that speaks something else."""


class LinePlace:
    def __init__(self, settings: ServiceSettings) -> None:
        assert settings.url is not None
        parts = urlsplit(settings.url)
        assert parts.hostname is not None
        self.host: str = parts.hostname
        self.encrypted = parts.scheme == "https"
        self.port: int = parts.port or (443 if self.encrypted else 80)
        self.prefix = parts.path.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{host}:{parts.port}" if parts.port else host
        """For the Host header."""
        self.tls = _tls(settings) if self.encrypted else None
        self.answered = False
        """Whether anything was ever answered here, which proves that the place speaks HTTP."""


class Line:
    """Carries one request at a time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, place: LinePlace, settings: ServiceSettings
    ) -> None:
        self._loop = loop
        self._place = place
        self._settings = settings
        self._connection: Connection | None = None

    async def call(
        self, data: bytes, most_bytes: int, may_not: Callable[[], str | None] | None = None
    ) -> Reply | Failed:
        """The answer to one request, within the deadline of one attempt.

        `may_not` is asked right before the first byte leaves: a run may be frozen while a
        connection is opened, and the row may belong to another run when it goes on.
        """
        deadline = self._loop.time() + self._settings.answer_seconds
        connection = self._kept()
        if connection is None:
            opened = await self._open()
            if isinstance(opened, Failed):
                return opened
            connection = self._connection = opened
        if may_not is not None and (why := may_not()):
            return Failed(sent=False, cause=why)
        outcome = await connection.call(data, deadline, most_bytes)
        if isinstance(outcome, Reply):
            self._place.answered = True
        elif outcome.sent and not connection.has_received and not self._place.answered:
            return await self._never_read() or outcome
        return outcome

    async def _never_read(self) -> Failed | None:
        """Prove that no request is read here at all; called if none was ever answered.

        It opens another connection and sends nothing: what ends that one must also have ended the
        first before its request was read. If the first was in clear text, TLS on the second proves
        this only at a port that takes nothing in clear text.
        """
        place = self._place
        cause = None
        try:
            async with asyncio.timeout(min(ALERT_SECONDS, self._settings.connect_seconds)):
                reader, writer = await asyncio.open_connection(
                    place.host,
                    place.port,
                    ssl=place.tls or ssl.create_default_context(),
                    server_hostname=place.host,
                )
                try:
                    if place.encrypted:
                        await reader.read(1)
                    else:
                        cause = f"the service {SPEAKS_TLS}"
                finally:
                    writer.transport.abort()
                    with suppress(OSError):
                        await writer.wait_closed()
        except ssl.SSLCertVerificationError:
            cause = f"the service {SPEAKS_TLS}"
        except ssl.SSLError as problem:
            cause = refused_certificate(problem)
            if not place.encrypted and "ALERT" in (problem.reason or ""):
                cause = f"the service {SPEAKS_TLS}"
        except (OSError, EOFError, UnicodeError):
            return None
        if cause and not place.encrypted and await self._takes_clear():
            return None
        return Failed(sent=False, cause=cause, hopeless=True) if cause else None

    async def _takes_clear(self) -> bool:
        """Whether a clear-text request may be read here: a question is answered or kept waiting."""
        place, settings = self._place, self._settings
        path = f"{place.prefix}{settings.health_path}"
        asked = f"GET {path} HTTP/1.1\r\nHost: {place.authority}\r\n\r\n"
        try:
            async with asyncio.timeout(min(ALERT_SECONDS, settings.connect_seconds)):
                reader, writer = await asyncio.open_connection(place.host, place.port)
                try:
                    writer.write(asked.encode())
                    first = await reader.read(1)
                finally:
                    writer.transport.abort()
                    with suppress(OSError):
                        await writer.wait_closed()
        except TimeoutError:
            return True
        except (OSError, EOFError, UnicodeError):
            return False
        return first not in (b"", TLS_ALERT[:1])

    def drop(self) -> None:
        """Keep anything still arriving on this connection from answering another request.

        An answer may come twice, and nothing in it tells whose it is; only one that shows its
        record identifies itself.
        """
        if self._connection is not None:
            self._connection.drop()
            self._connection = None

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
        except ssl.SSLError as problem:
            cause = f"no connection to {place.authority}: {problem.reason or 'TLS failed'}"
            refused = refused_certificate(problem)
            if any(word in (problem.reason or "") for word in _NO_TLS):
                refused = "it does not speak TLS at this port"
            if refused:
                cause = f"no connection to {place.authority}: {refused}"
            return Failed(sent=False, cause=cause, hopeless=refused is not None)
        except TimeoutError:
            return Failed(sent=False, cause=f"no connection to {place.authority} in time")
        except (OSError, UnicodeError) as problem:
            why = getattr(problem, "strerror", None) or type(problem).__name__
            return Failed(sent=False, cause=f"no connection to {place.authority}: {why}")
        return connection


def _tls(settings: ServiceSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=str(settings.ca_file) if settings.ca_file else None
        )
    except (OSError, ssl.SSLError) as problem:
        raise SettingsError(
            f"RECON_SERVICE_CA_FILE={settings.ca_file} cannot be read as certificates: {problem}. "
            "Name a file of certificates in PEM, or unset it: those of the system count then."
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
