"""Fields of forms and addresses of the desk, read and refused in the same way on every page."""

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from connectors.errors import (
    AccountRefused,
    BatchStateError,
    BatchUnknown,
    BreakUnknown,
    DatabaseUnusable,
    DecisionRefused,
    DecisionsMoved,
    JobUnknown,
    ReconciliationUnknown,
    ReconError,
    SignatureRefused,
)
from flows.desk.formats import day, typed
from flows.desk.visit import Page, Visit
from schemas.amounts import EXACT
from schemas.show_as import ShowAs

LARGEST = 2**31 - 1
"""The largest number that a batch, an extract, a run or a job can have."""
LARGEST_ROW = 2**63 - 1
"""The largest number that a row, a tenant or an event of the trail can have."""


class FormIncomplete(ReconError):
    """A required field is empty, or contains something that cannot be read."""


class FormTooLarge(ReconError):
    """More was sent than any delivery can have."""


class FormBroken(ReconError):
    """The data sent is not a form with files, or it is incomplete."""


STATUS: Mapping[type[ReconError], HTTPStatus] = {
    AccountRefused: HTTPStatus.FORBIDDEN,
    BatchUnknown: HTTPStatus.NOT_FOUND,
    BreakUnknown: HTTPStatus.NOT_FOUND,
    JobUnknown: HTTPStatus.NOT_FOUND,
    ReconciliationUnknown: HTTPStatus.NOT_FOUND,
    BatchStateError: HTTPStatus.CONFLICT,
    DecisionsMoved: HTTPStatus.CONFLICT,
    SignatureRefused: HTTPStatus.CONFLICT,
    FormTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    DatabaseUnusable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The HTTP status of each refusal; others are bad requests."""
LABELS: Mapping[str, str] = {
    "give_reason": "fill in Why",
    "by": "Your name",
    "until": "Last day",
    "give_until": "fill in Last day",
    "up_to": "Up to",
    "side": "Where",
    "give_owner": "fill in Owner",
    "due": "Due",
    "one_currency": "Choose breaks of one of them",
    "a_filter": "all that fit a filter",
    "run": "run",
    "the_list": "The list of breaks",
}
"""The pages' names for the terms of a decision (`schemas.life.OPTIONS`)."""


def status_of(error: ReconError) -> HTTPStatus:
    return next(
        (of for kind, of in STATUS.items() if isinstance(error, kind)), HTTPStatus.BAD_REQUEST
    )


def refused(visit: Visit, error: ReconError) -> Visit:
    """A visit with its refusal in the pages' words, amounts and days as its forms take them."""
    spell = partial(_spelled, visit.show)
    message = error.worded(LABELS, spell) if isinstance(error, DecisionRefused) else str(error)
    return visit.refusing(message, status_of(error))


def _spelled(show: ShowAs, value: Any) -> Any:
    match value:
        case Decimal():
            return typed(show, EXACT.normalize(value))
        case date():
            return day(show, value)
        case _:
            return value


def taken(visit: Visit, act: Callable[[], str], page: Page) -> Response:
    """Do what a form asks and go to the resulting address; show the page again if it is refused."""
    try:
        address = act()
    except ReconError as error:
        return page(refused(visit, error))
    return visit.go(address)


def saved_as(name: str, shown: str = "attachment") -> Mapping[str, str]:
    """Headers with which a browser saves the answer as a file of this name, or shows it inline."""
    return {"Content-Disposition": f'{shown}; filename="{name}"'}


def read_whole(text: str, largest: int = LARGEST) -> int | None:
    """A non-negative whole number in plain digits; None if it is not one, or too large."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None


def read_tenant(text: str) -> int | None:
    """The number of a tenant, which may be negative; None if it is no number."""
    size = read_whole(text.removeprefix("-"), LARGEST_ROW)
    return -size if size and text.startswith("-") else size


def read_day(text: str) -> date | None:
    """A day, such as 2026-12-31; None if it is no day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_row(text: str) -> tuple[int, int] | None:
    """A row of a batch as `EXTRACT:RECORD NUMBER`; None if it is no such text."""
    extract, _, number = text.partition(":")
    of, at = read_whole(extract), read_whole(number, LARGEST_ROW)
    return None if of is None or at is None else (of, at)


def refuse_nameless(visit: Visit) -> None:
    """Require a name, from a login or from the form; raises FormIncomplete."""
    if not visit.person and not visit.by:
        raise FormIncomplete("Fill in Your name: nobody is logged in here. Nothing was changed.")


def reason_of(visit: Visit) -> str:
    """The reason in the form; raises FormIncomplete if it is empty."""
    if reason := visit.typed("reason"):
        return reason
    raise FormIncomplete("Fill in Reason: it is kept in the audit trail. Nothing was changed.")
