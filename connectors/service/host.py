"""The one service that all calls go to: what they share."""

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
    """What all calls to one service share; raises SettingsError where none is set."""

    def __init__(
        self, settings: ServiceSettings, credentials: Credentials, now: Callable[[], datetime]
    ) -> None:
        if settings.url is None:
            raise SettingsError("No service is set. Set RECON_SERVICE_URL to its base URL.")
        self.settings = settings
        self.credentials = credentials
        self.now = now
        """The time of day, for a Retry-After that is a date."""
        self.stopped: str | None = None
        """Why nothing more is sent; None while everything is."""
        self.may_not_send: Callable[[], str | None] = lambda: None
        """Asked before each request: why the caller may send nothing any more."""
        self.session = ServiceSession(credentials.scheme)
        self.signing = asyncio.Lock()
        """One at a time begins a session."""
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
        """For requests, as many as may be in flight."""
        self.reader = Line(self.loop, place, settings)
        """For listings, also while requests are on their way."""
