"""Faults on demand: the caller sees them, and the records tell whether the request counted."""

import http.client
import time
from typing import Any

import psycopg
import pytest

from connectors.errors import SettingsError
from connectors.sandbox import Fault, FaultKind, Faults, SandboxOptions
from connectors.sandbox.faults import FaultSchedule
from tests.sandbox.conftest import running
from tests.sandbox.records import PAYMENT


def stored(database_url: str) -> list[float]:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute('SELECT "PaidAmount" FROM sandbox.payment').fetchall()
    return [float(amount) for (amount,) in rows]


ANSWERS: list[tuple[dict[str, Any], int, str, str | None, list[float]]] = [
    # fault, status, reason, Retry-After, what is stored
    (
        {"kind": FaultKind.STATUS, "status": 429, "retry_after": 2},
        429, "Too Many Requests", "2", [],
    ),
    (
        {"kind": FaultKind.STATUS, "status": 429, "retry_after": 60, "retry_date": True},
        429, "Too Many Requests", "Fri, 02 Jan 2026 03:05:05 GMT", [],
    ),
    ({"kind": FaultKind.STATUS, "status": 503}, 503, "Service Unavailable", None, []),
    (
        {"kind": FaultKind.STATUS, "status": 500, "applied": True},
        500, "Internal Server Error", None, [10.5],
    ),
    ({"kind": FaultKind.STATUS, "status": 499, "applied": True}, 499, "", None, [10.5]),
    ({"kind": FaultKind.WRONG_ECHO}, 200, "OK", None, [10.5]),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "status", "reason", "retry", "expected"), ANSWERS)
def test_another_answer(
    database_url: str,
    fault: dict[str, Any],
    status: int,
    reason: str,
    retry: str | None,
    expected: list[float],
) -> None:
    with running(database_url, faults=Faults(faults=[Fault(every=1, **fault)])) as host:
        answer = host.caller.as_client("PUT", "/payments/12", PAYMENT)
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.headers.get("retry-after") == retry
    assert stored(database_url) == expected
    if status == 200:
        assert answer.json()["CurrencyRatesId"] == PAYMENT["CurrencyRatesId"] + 1


BROKEN: list[tuple[dict[str, Any], type[Exception], list[float]]] = [
    ({"kind": FaultKind.RESET}, ConnectionResetError, []),
    ({"kind": FaultKind.RESET, "applied": True}, ConnectionResetError, [10.5]),
    ({"kind": FaultKind.TRUNCATED_BODY}, http.client.IncompleteRead, [10.5]),
]


@pytest.mark.parametrize(("fault", "error", "expected"), BROKEN)
def test_a_broken_connection(
    database_url: str, fault: dict[str, Any], error: type[Exception], expected: list[float]
) -> None:
    faults = Faults(faults=[Fault(every=1, **fault)])
    with running(database_url, faults=faults) as host, pytest.raises(error):
        host.caller.as_client("PUT", "/payments/12", PAYMENT)
    assert stored(database_url) == expected


def test_every_third_request() -> None:
    schedule = FaultSchedule(Faults(faults=[Fault(FaultKind.RESET, every=3)]))
    assert [schedule.due() is not None for _ in range(7)] == [False, False, True] * 2 + [False]


def test_the_same_seed_shows_the_same_faults() -> None:
    def shown(seed: int) -> list[bool]:
        fault = Fault(FaultKind.STATUS, probability=0.3)
        schedule = FaultSchedule(Faults(faults=[fault], seed=seed))
        return [schedule.due() is not None for _ in range(200)]

    assert shown(1) == shown(1) != shown(2)
    assert 30 < sum(shown(1)) < 90


def test_latency_is_added_to_every_operation(database_url: str) -> None:
    with running(database_url, faults=Faults(latency_seconds=0.05)) as host:
        started = time.monotonic()
        assert host.caller.as_client("GET", "/avatars").status == 200
        assert time.monotonic() - started >= 0.05


WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"style": "snake"}, "style='snake'"),
    ({"zone": "Nowhere"}, "zone='Nowhere'"),
    ({"operation_names": {"Edit": "E"}}, "are no operations"),
    ({"unvalidated": frozenset({"Edit"})}, "are no operations"),
]


@pytest.mark.parametrize(("chosen", "message"), WRONG_OPTIONS)
def test_options_that_cannot_be_used(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        SandboxOptions(**chosen)
    with pytest.raises(SettingsError, match="probability=2"):
        Fault(FaultKind.RESET, probability=2)
    with pytest.raises(SettingsError, match="status=99 "):
        Fault(FaultKind.STATUS, every=1, status=99)


def test_a_port_in_use_is_said_so(database_url: str) -> None:
    with running(database_url) as host:
        port = int(host.caller.base_url.rpartition(":")[2])
        with pytest.raises(SettingsError, match=f":{port}: "), running(database_url, port=port):
            pytest.fail("two hosts share a port")
