"""The same PUTs for every client: path, key and body, and how many; needs no package."""

import json
import os
import sys

ROWS = 5_000
"""Distinct payments; a longer run begins again."""


def asked() -> tuple[str, int, int, list[str]]:
    """URL, connections, requests and whatever else the command line says; pins to a core."""
    url, connections, requests, core, *rest = sys.argv[1:]
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    return url, int(connections), int(requests), rest


def payment(number: int) -> str:
    """Canonical JSON of one payment."""
    return (
        f'{{"Id":{number},"TenantsId":1,"ActionsId":{number % 97},"DebtsId":{number % 991},'
        f'"PaymentDate":"2026-01-{number % 28 + 1:02}T03:04:05+02:00",'
        f'"PaidAmount":{number % 1000}.{number % 90 + 10},"DiscountAmount":0,'
        f'"CurrenciesId":{number % 5},"CurrencyRatesId":{number % 6300}}}'
    )


def key(number: int) -> str:
    """An Idempotency-Key."""
    return f"2c5ea4c0-4067-51e9-8bad-{number:012x}"


def puts(requests: int) -> list[tuple[str, str, bytes]]:
    """Path, key and body."""
    return [
        (f"/payments/{number % ROWS}", key(number), payment(number % ROWS).encode())
        for number in range(requests)
    ]


def check(status: int, sent: bytes, answer: bytes) -> None:
    """What a careful caller does with every client: the answer is the record."""
    if status != 200 or json.loads(answer) != json.loads(sent):
        raise SystemExit(f"a PUT was answered with {status}: {answer[:200]!r}")
