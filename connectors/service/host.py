"""The service as a host: what all calls to it share."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from connectors.errors import SettingsError
from connectors.service.classify import Classifier
from connectors.service.credentials import Credentials, Scheme, ServiceSession
from connectors.service.line import Line, LinePlace
from connectors.service.outgoing import Outgoing
from connectors.service.pace import Backoff, Breaker, Objections, pace_of
from connectors.settings import ServiceSettings


class Host:
    """What all calls to one service share; raises SettingsError if no service is set."""

    def __init__(
        self, settings: ServiceSettings, credentials: Credentials, now: Callable[[], datetime]
    ) -> None:
        if settings.url is None:
            raise SettingsError("No service is set. Set RECON_SERVICE_URL to its base URL.")
        self.settings = settings
        self.credentials = credentials
        self.now = now
        """The current time, for a Retry-After that is a date."""
        self.stopped: str | None = None
        """Why nothing more is sent; None as long as sending goes on."""
        self.may_not_send: Callable[[], str | None] = lambda: None
        """Asked before each request: the reason why the caller may not send any more, or None."""
        self.session = ServiceSession(credentials.scheme)
        self.signing = asyncio.Lock()
        """Held while a session is begun, so that only one line at a time does it."""
        place = LinePlace(settings)
        self.outgoing = Outgoing(settings, place, credentials.header, self.session)
        self.classifier = Classifier(
            self.outgoing.zone,
            credentials.secrets,
            shows_key=credentials.scheme is Scheme.API_KEY,
            shows_token=credentials.scheme is Scheme.BEARER,
        )
        self.pace = pace_of(settings.url, settings.rate)
        self.breaker = Breaker(settings.breaker)
        self.objections = Objections()
        self.backoff = Backoff(settings)
        self.loop = asyncio.new_event_loop()
        self.lines = [Line(self.loop, place, settings) for _ in range(settings.concurrency)]
        """Lines for requests, as many as may be in flight."""
        self.reader = Line(self.loop, place, settings)
        """Line for listings, usable while requests are on their way."""
