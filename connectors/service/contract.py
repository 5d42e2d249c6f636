"""The request and answer of the service client: one answer for every request."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from schemas.operations import Operation


class Verdict(StrEnum):
    """What is known about one request."""

    ACKNOWLEDGED = "acknowledged"
    """Carried out: 2xx, no ErrorCode, and the echo is what was sent.

    With a non-2xx status: the batch failed at a later row, and the service counts this row as done.
    """
    DIFFERS = "differs"
    """Carried out, but the answer does not show what was sent."""
    REFUSED = "refused"
    """Not carried out; the service said why."""
    UNSENT = "unsent"
    """Proved not to have been carried out; it may be sent again."""
    IN_DOUBT = "in_doubt"
    """It may have been carried out; nothing proves that it was or was not."""


CARRIED_OUT = (Verdict.ACKNOWLEDGED, Verdict.DIFFERS)


@dataclass(frozen=True, slots=True)
class Request:
    """One record to send."""

    number: int
    """Chosen by the caller; the answer carries the same number."""
    operation: Operation
    jsondata: str
    """Canonical JSON of the record, as `schemas.derived.json_text.canonical_json` writes it."""
    push_key: str
    """Sent as Idempotency-Key."""
    in_doubt: bool = False
    """An attempt of an earlier run may have been carried out."""
    last_status: int | None = None
    """HTTP status of the last answer, if the request is still unsent after it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request."""

    number: int
    verdict: Verdict
    attempts: int
    """How often the request was sent, or sending was tried."""
    status: int | None = None
    """HTTP status of the last attempt; None if it had no answer."""
    errors: tuple[Mapping[str, Any], ...] = ()
    """Field errors in the shape of ErrorData, secrets left out."""
    echo: str | None = None
    """Canonical JSON of the answered record if it differs from the sent one; secrets left out."""
    service_id: str | None = None
    """Key given by the service, if its answer has one."""
    in_doubt: bool = False
    """An attempt may have been carried out, whatever the last attempt came to."""
