"""Retry-After, the wait between attempts, the rate limit, the circuit: times without a clock."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest

from connectors.service import open_service
from connectors.service.pace import Backoff, Breaker, Pace, retry_after
from connectors.settings import ServiceSettings

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Friday, 02-Jan-26 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 05:05:05 +0200", 60.0),
        ("Fri, 02 Jan 2026 03:05:05", 60.0),
        ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        ("1234567890", 1e9),
        ("9" * 30, 1e9),
        ("5\n5", 5.0),
        ("5\nFri, 02 Jan 2026 03:05:05 GMT\nsoon", 60.0),
        ("Fri, 99 Jan 2026 03:05:05 GMT", None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds


def test_waits_grow_and_are_drawn_from_the_whole_range() -> None:
    settings = ServiceSettings(backoff_seconds=1.0, backoff_most_seconds=10.0)
    waits = {
        attempts: [Backoff(replace(settings, seed=seed)).wait(attempts) for seed in range(200)]
        for attempts in (1, 2, 3, 4, 5, 90)
    }
    longest = {attempts: max(drawn) for attempts, drawn in waits.items()}
    for attempts, most in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (90, 10.0)):
        assert 0.9 * most < longest[attempts] <= most
        assert min(waits[attempts]) < 0.1 * most


def test_waits_are_the_same_for_the_same_seed() -> None:
    def drawn(seed: int) -> list[float]:
        backoff = Backoff(ServiceSettings(seed=seed))
        return [backoff.wait(attempts) for attempts in range(1, 9)]

    assert drawn(1) == drawn(1) != drawn(2)


def begun(rate: float, count: int, late: float = 0.0) -> list[float]:
    """When requests begin that are all waiting at 100, each up to so many seconds late."""
    pace, now, times = Pace(rate), 100.0, []
    chance = Random(rate)
    for _ in range(count):
        if (wait := pace.wait(now)) > 0:
            now += wait + chance.uniform(0, late)
        pace.take(now)
        times.append(now - 100)
    return times


@pytest.mark.parametrize("late", [0.0, 0.004, 0.3])
@pytest.mark.parametrize("rate", [0.5, 1, 3, 10, 400])
def test_no_second_has_more_requests_than_the_rate(rate: float, late: float) -> None:
    times = begun(rate, 1000, late)
    for first, one in enumerate(times):
        assert sum(other < one + 1 for other in times[first : first + 402]) <= max(1, rate)
    if late < 0.01:
        assert times[-1] < 1.02 * 1000 / rate


def test_without_a_rate_nothing_waits() -> None:
    assert begun(0, 3) == [0, 0, 0]


def test_the_rate_of_a_service_is_kept_from_one_batch_to_the_next() -> None:
    """Each batch opens the service anew."""
    settings = ServiceSettings(url="http://127.0.0.1:9", rate=2.0)
    with open_service(settings) as before:
        before.pace.take(100.0)
    with open_service(settings) as behind:
        assert 0.4 < behind.pace.wait(100.0) < 0.6
        behind.pace.pause(100.0, 7.0)
    with open_service(settings) as last:
        assert last.pace.wait(100.0) == 7.0


def test_a_pause_is_for_everybody_and_the_longest_counts() -> None:
    pace = Pace(0)
    pace.pause(10, 5)
    pace.pause(10, 2)
    assert [pace.wait(10), pace.wait(14), pace.wait(15), pace.wait(16)] == [5, 1, 0, 0]


def test_the_circuit_counts_failures_one_after_another() -> None:
    breaker = Breaker(3)
    assert [breaker.failed(began=t, now=t + 0.5) for t in (0, 1)] == [False, False]
    breaker.answered()
    assert [breaker.failed(began=t, now=t + 0.5) for t in (2, 3, 4)] == [False, False, True]


def test_failures_at_the_same_time_are_one() -> None:
    breaker = Breaker(2)
    assert [breaker.failed(began=1.0, now=now) for now in (2.0, 2.1, 2.2)] == [False] * 3
    assert breaker.failed(began=3.0, now=4.0)
