"""The service as callers see it: records go out, one answer for each record comes back."""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from connectors.addresses import is_loopback
from connectors.service.asking import sign_in
from connectors.service.contract import Answer, Request
from connectors.service.credentials import Credentials, Scheme
from connectors.service.host import Host
from connectors.service.listing import Listing, fetch
from connectors.service.sending import Sending
from connectors.settings import ServiceSettings
from schemas.operations import Operation

log = logging.getLogger("recon.service")


class Service(Host):
    """The operations of one host; made by `open_service`, used by one thread at a time."""

    def __init__(
        self,
        settings: ServiceSettings,
        credentials: Credentials,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(settings, credentials, now)
        self._sending: Sending | None = None
        self.held = False
        """Whether the last `send` ended while POSTs were held."""
        self._undelivered: list[Answer] = []

    @property
    def window(self) -> int:
        """How many rows can be in flight at the moment; taking more at once gains nothing."""
        return self._sending.window if self._sending else self.settings.concurrency

    def undelivered(self) -> list[Answer]:
        """Answers that the caller of the last `send` may have missed because it ended early.

        The answer given last is among them: a stop can fall between giving and taking.

        Together with the answers given, every request taken has an answer. IN_DOUBT are only
        requests that may have reached the service and those that were in doubt before.
        """
        return self._undelivered

    def send(
        self,
        requests: Iterable[Request],
        *,
        ask_first: bool = False,
        quiet: Callable[[], None] = lambda: None,
    ) -> Generator[Answer, None, None]:
        """Yield one answer for every request, in any order.

        Requests are taken from `requests` as there is room, so the iterable may record each request
        before handing it over; at most twice the `window` are taken and unanswered. Once `stopped`
        gives a reason, the rest is answered UNSENT. If the iteration ends early, answers under way
        are awaited for a moment; `undelivered` has those the caller may have missed.

        After a POST whose answer is lost, further POSTs are held until the service says that it is
        back; with `ask_first` the service is asked before the first POST too. `quiet` is called
        between two answers whenever none came for a while.
        """
        if self._sending is not None:
            raise RuntimeError("a Service sends for one caller at a time")
        self._sending = sending = Sending(self, ask_first=ask_first)
        try:
            self._sign_in()
            yield from sending.answers(requests, quiet)
        finally:
            self.held = sending.outage.open
            self._undelivered = sending.undelivered()
            self._sending = None

    def listing(
        self, operation: Operation, filters: Mapping[str, Any] = MappingProxyType({})
    ) -> Listing:
        """Every row of a list operation; `filters` by field name are sent as the query.

        Raises ServiceUnusable unless the listing is complete.
        """
        self._sign_in()
        return self.loop.run_until_complete(fetch(self, operation, filters))

    def close(self) -> None:
        if self.loop.is_closed():
            return
        if self._sending is not None:
            self._sending.end()
        for line in (*self.lines, self.reader):
            line.close()
        # The loop closes sockets on its next turn.
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def _sign_in(self) -> None:
        if self.session.missing and not self.stopped:
            self.stopped = self.loop.run_until_complete(sign_in(self, self.reader))


def _warn_of_open_line(settings: ServiceSettings, credentials: Credentials | None) -> None:
    place = urlsplit(settings.url or "")
    named = credentials is not None and credentials.scheme is not Scheme.NONE
    if named and place.scheme == "http" and not is_loopback(place.hostname or ""):
        log.warning(
            "The credentials of the service and every row go to %s in clear: whoever is on the way "
            "can read them. Use https in RECON_SERVICE_URL.",
            place.hostname,
        )


@contextmanager
def open_service(
    settings: ServiceSettings, credentials: Credentials | None = None
) -> Iterator[Service]:
    """The service, open while the context lasts; raises SettingsError if none is set."""
    service = Service(settings, credentials or Credentials())
    _warn_of_open_line(settings, credentials)
    try:
        yield service
    finally:
        service.close()
