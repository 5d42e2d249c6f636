"""When to send next: the rate limit, pauses the service asks for, and waits between attempts."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache

from connectors.settings import ServiceSettings

MOST_DIGITS = 9
CATCH_UP = 0.01
"""How many seconds a late request may bring the next one forward."""
FIRST_OBJECTIONS, MOST_OBJECTIONS = 2, 5
"""How many objections in a row are about the caller: before an operation took a row, and after."""


def asked_pause(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds of pause that an answer asks for; None if it asks for none.

    A date counts from the answer's own Date header if it has one: our clock may differ.
    """
    return retry_after(headers.get("retry-after"), _moment(headers.get("date", "")) or now)


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, given as seconds or as a date; None if it has none.

    The longest wins if the header is repeated (one value a line).
    """
    asked = (_seconds(line.strip(), now) for line in (text or "").split("\n"))
    return max((one for one in asked if one is not None), default=None)


def _seconds(text: str, now: datetime) -> float | None:
    if text.isascii() and text.isdigit():
        # A number with more digits is longer than anybody waits.
        return float(text if len(text) <= MOST_DIGITS else 10**MOST_DIGITS)
    moment = _moment(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Backoff:
    """Waits before another attempt: exponential, with full jitter, the same for the same seed."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._first = settings.backoff_seconds
        self._most = settings.backoff_most_seconds
        self._chance = random.Random(settings.seed)  # noqa: S311 -- jitter, not a secret.

    def wait(self, attempts: int) -> float:
        """Seconds to wait after this many attempts."""
        longest = min(self._most, self._first * 2.0 ** min(attempts - 1, 60))
        return self._chance.uniform(0.0, longest)


@cache
def pace_of(_url: str, rate: float) -> "Pace":
    """The pace shared by all requests of this process to a service, across batches."""
    return Pace(rate)


class Pace:
    """One gate for all requests; times come from the event loops, which share one clock."""

    def __init__(self, rate: float) -> None:
        # Longer by the catch-up and a little more, so that no second exceeds the rate.
        self._interval = (1.001 + CATCH_UP) / rate if rate else 0.0
        self._next = 0.0
        self._not_before = 0.0

    def wait(self, now: float) -> float:
        """Seconds until a request may begin."""
        return max(0.0, self._not_before - now, self._next - now if self._interval else 0.0)

    def take(self, now: float) -> None:
        if self._interval:
            self._next = max(self._next, now - CATCH_UP) + self._interval

    async def turn(self, clock: Callable[[], float]) -> None:
        """Wait until a request may begin, and take its slot."""
        while (wait := self.wait(clock())) > 0:
            await asyncio.sleep(wait)
        self.take(clock())

    def pause(self, now: float, seconds: float) -> None:
        """Begin nothing for this many seconds."""
        self._not_before = max(self._not_before, now + seconds)


class Breaker:
    """Counts consecutive failed rows; opens when there are too many.

    Failures of attempts that were under way at the same time count as one: a restart of the
    service breaks every open connection at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self._counted = float("-inf")

    def failed(self, began: float, now: float) -> bool:
        """Count a row given up, whose last attempt began at `began`; whether that is too many."""
        if began >= self._counted:
            self._failures += 1
            self._counted = now
        return self._failures >= self._most

    def answered(self) -> None:
        """Start counting again: the service is there."""
        self._failures = 0


class Objections:
    """Decides whether answers that object to the caller are about the caller or one row.

    Once the operation takes a later row, the earlier objections were not about the caller.
    """

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        self._taken: set[str] = set()
        """Operations that took a row."""
        self._open: dict[str, dict[str, float]] = {}
        """By operation: push keys of rows objected to since it took a row, and when."""

    def taken(self, operation: str, began: float) -> None:
        """Record that the operation took a row of this caller whose request began at `began`."""
        self._taken.add(operation)
        del self._in_a_row[operation]
        if met := self._open.get(operation):
            self._open[operation] = {key: at for key, at in met.items() if at >= began}

    def met(self, operation: str, key: str, now: float) -> bool:
        """Record an objection to the row of this push key; whether it is about the caller."""
        self._in_a_row[operation] += 1
        self._open.setdefault(operation, {})[key] = now
        most = MOST_OBJECTIONS if operation in self._taken else FIRST_OBJECTIONS
        return self._in_a_row[operation] >= most

    def of_row(self, operation: str, key: str) -> bool:
        """Whether an objection that a row meets again can only be about the row.

        It can if the operation took another row in between: then the caller is not the reason.
        """
        return operation in self._taken and key not in self._open.get(operation, {})
