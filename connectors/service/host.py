"""The one service that all calls go to: what they share."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from connectors.service.classify import Classifier
from connectors.service.credentials import Credentials, ServiceSession
from connectors.service.line import Line
from connectors.service.outgoing import Outgoing
from connectors.service.pace import Backoff, Breaker, Objections, Pace
from connectors.settings import ServiceSettings


class Host(Protocol):
    """What all calls to one service share."""

    settings: ServiceSettings
    loop: asyncio.AbstractEventLoop
    lines: list[Line]
    """For requests, as many as may be in flight."""
    reader: Line
    """For listings, also while requests are on their way."""
    outgoing: Outgoing
    classifier: Classifier
    pace: Pace
    breaker: Breaker
    objections: Objections
    backoff: Backoff
    stopped: str | None
    credentials: Credentials
    session: ServiceSession
    signing: asyncio.Lock
    """One at a time begins a session."""
    may_not_send: Callable[[], str | None]
    """Asked before each request: why the caller may send nothing any more."""

    def now(self) -> datetime:
        """The time of day, for a Retry-After that is a date."""
