"""Faults a sandbox shows on demand, at every n-th request or with a seeded probability."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum

from connectors.errors import SettingsError

MOST_STATUS = 599


class FaultKind(StrEnum):
    """What the caller sees."""

    STATUS = "status"
    """Another status, without a ResponseStatus."""
    RESET = "reset"
    """The connection is reset instead of answered."""
    WRONG_ECHO = "wrong echo"
    """The answer shows another value than the one sent and stored."""
    TRUNCATED_BODY = "truncated body"
    """The connection ends in the middle of the answer's body."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One switched-on fault and when it comes."""

    kind: FaultKind
    every: int = 0
    """The fault comes at the n-th, 2n-th, ... request; 0: by probability."""
    probability: float = 0.0
    applied: bool = False
    """For STATUS and RESET: the request is carried out before the fault."""
    status: int = 503
    retry_after: int | None = None
    """Seconds in the Retry-After header of STATUS."""
    retry_date: bool = False
    """Give Retry-After as a date."""

    def __post_init__(self) -> None:
        if self.every < 0 or not 0 <= self.probability <= 1:
            raise SettingsError(
                f"fault {self.kind}: every={self.every} must not be negative and "
                f"probability={self.probability} must be within 0 and 1."
            )
        if not 200 <= self.status <= MOST_STATUS:
            raise SettingsError(
                f"fault {self.kind}: status={self.status} is none of an answer; 200 to "
                f"{MOST_STATUS} are."
            )


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults of a host; none by default."""

    latency_seconds: float = 0.0
    """Every operation takes this much longer."""
    faults: Sequence[Fault] = ()
    """The first that is due comes; every fault counts every request."""
    seed: int = 0


NO_FAULTS = Faults()


class FaultSchedule:
    """Decides request by request; the same seed gives the same decisions."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._lock = threading.Lock()
        self._requests = 0
        self._chances = [
            random.Random(f"{faults.seed} {index}")  # noqa: S311 -- a schedule, not a secret.
            for index in range(len(faults.faults))
        ]

    def due(self) -> Fault | None:
        if not self._faults.faults:
            return None
        with self._lock:
            self._requests += 1
            due = [
                fault
                for fault, chance in zip(self._faults.faults, self._chances, strict=True)
                if self._comes(fault, chance)
            ]
        return due[0] if due else None

    def _comes(self, fault: Fault, chance: random.Random) -> bool:
        if fault.every:
            return self._requests % fault.every == 0
        return chance.random() < fault.probability


def retry_after(fault: Fault, now: datetime) -> str | None:
    """The text of the Retry-After header, in the form the fault asks for."""
    if fault.retry_after is None:
        return None
    if fault.retry_date:
        return format_datetime(now + timedelta(seconds=fault.retry_after), usegmt=True)
    return str(fault.retry_after)


def wrong(value: object) -> object:
    """Another value of the same type, as a wrong echo shows it."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value + 0.01
        case str():
            return value + "?"
        case _:
            return value
