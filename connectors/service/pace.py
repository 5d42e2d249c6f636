"""When to send next: the rate limit, pauses the service asks for, waits between attempts."""

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
"""Seconds by which a request that began late lets the next one begin earlier."""
FIRST_OBJECTIONS, MOST_OBJECTIONS = 2, 5
"""So many in a row are about the caller: before an operation has taken a row, and after."""


def asked_pause(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that an answer asks for; None where it asks for none.

    A date counts from the time of the service where it says that: our clock may be another.
    """
    return retry_after(headers.get("retry-after"), _moment(headers.get("date", "")) or now)


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, given as seconds or as a date; None where there are none.

    Of several, one a line, the longest.
    """
    asked = (_seconds(line.strip(), now) for line in (text or "").split("\n"))
    return max((one for one in asked if one is not None), default=None)


def _seconds(text: str, now: datetime) -> float | None:
    if text.isascii() and text.isdigit():
        # What has more digits is longer than anybody waits.
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
        """Seconds to wait after so many attempts."""
        longest = min(self._most, self._first * 2.0 ** min(attempts - 1, 60))
        return self._chance.uniform(0.0, longest)


@cache
def pace_of(_url: str, rate: float) -> "Pace":
    """The pace of all that this process asks of a service, one batch after another."""
    return Pace(rate)


class Pace:
    """One gate for all requests; times are those of the loops, which have one clock."""

    def __init__(self, rate: float) -> None:
        # Longer by what is caught up and a bit, so that no second has more.
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
        """Wait until a request may begin, and take its place."""
        while (wait := self.wait(clock())) > 0:
            await asyncio.sleep(wait)
        self.take(clock())

    def pause(self, now: float, seconds: float) -> None:
        """Begin nothing for so long."""
        self._not_before = max(self._not_before, now + seconds)


class Breaker:
    """Counts rows that failed one after another; opens when there are too many.

    Failures of attempts that were under way at the same time are one: a restart of the service
    costs every open connection at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self._counted = float("-inf")

    def failed(self, began: float, now: float) -> bool:
        """A row was given up whose last attempt began then; whether that was one too many."""
        if began >= self._counted:
            self._failures += 1
            self._counted = now
        return self._failures >= self._most

    def answered(self) -> None:
        """The service is there."""
        self._failures = 0


class Objections:
    """Answers that speak against the caller and may be about one row alone: whom they are about.

    Where the operation takes the row behind them, the caller is none of their matter.
    """

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        self._taken: set[str] = set()
        """Operations that took a row."""
        self._open: dict[str, dict[str, float]] = {}
        """By operation the push keys that met one since it took a row, and when."""

    def taken(self, operation: str, began: float) -> None:
        """The operation took a row of this caller, whose request began then."""
        self._taken.add(operation)
        del self._in_a_row[operation]
        if met := self._open.get(operation):
            self._open[operation] = {key: at for key, at in met.items() if at >= began}

    def met(self, operation: str, key: str, now: float) -> bool:
        """One more, to the row of this push key; whether it is about the caller."""
        self._in_a_row[operation] += 1
        self._open.setdefault(operation, {})[key] = now
        most = MOST_OBJECTIONS if operation in self._taken else FIRST_OBJECTIONS
        return self._in_a_row[operation] >= most

    def of_row(self, operation: str, key: str) -> bool:
        """Whether one that a row met before, and meets again, can only be about the row.

        The operation took another row in between, so the caller is none of its matter.
        """
        return operation in self._taken and key not in self._open.get(operation, {})
