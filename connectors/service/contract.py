"""What is asked of the service and what comes back: one answer for every request."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from schemas.operations import Operation


class Verdict(StrEnum):
    """What is known of one request."""

    ACKNOWLEDGED = "acknowledged"
    """Carried out: 2xx, no ErrorCode, and the echo is what was sent.

    With a status that is no 2xx: its batch failed behind it, and the service counts it as done.
    """
    DIFFERS = "differs"
    """Carried out, but the answer does not show what was sent."""
    REFUSED = "refused"
    """Not carried out; the service said why."""
    UNSENT = "unsent"
    """Proved not to have been carried out; it may be sent again."""
    IN_DOUBT = "in_doubt"
    """It may have been carried out: nothing proves either."""


CARRIED_OUT = (Verdict.ACKNOWLEDGED, Verdict.DIFFERS)


@dataclass(frozen=True, slots=True)
class Request:
    """One record to send."""

    number: int
    """The caller's own; it comes back with the answer."""
    operation: Operation
    jsondata: str
    """Canonical JSON of the record, as `schemas.derived.json_text.canonical_json` writes it."""
    push_key: str
    """Sent as Idempotency-Key."""
    in_doubt: bool = False
    """An attempt of an earlier run may have been carried out."""
    last_status: int | None = None
    """HTTP status of the last answer to it, where it is unsent all the same."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request."""

    number: int
    verdict: Verdict
    attempts: int
    """How often it was sent, or tried to be."""
    status: int | None = None
    """HTTP status of the last attempt; None where it had no answer."""
    errors: tuple[Mapping[str, Any], ...] = ()
    """Field errors in the shape of ErrorData, secrets left out."""
    echo: str | None = None
    """Canonical JSON of the record of the answer where it differs; secrets left out."""
    service_id: str | None = None
    """Key the service gave, where its answer has one."""
    in_doubt: bool = False
    """An attempt may have been carried out, whatever came of the last one."""
