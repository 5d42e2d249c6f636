"""Values that an exclusion names, as texts that records of the field can be told by."""

import re
from datetime import UTC, datetime
from decimal import Decimal

from schemas.derived.json_text import datetime_text, number_text
from schemas.field import Field, Kind

EXAMPLES = {
    Kind.INTEGER: "12",
    Kind.INTEGER64: "12",
    Kind.DOUBLE: "12.5",
    Kind.BOOLEAN: "true",
    Kind.DATETIME: "2026-01-31T12:00:00",
    Kind.DATETIME_OFFSET: "2026-01-31T12:00:00+01:00",
}
_BITS = {Kind.INTEGER: 31, Kind.INTEGER64: 63}
_DIGITS = 400
"""No double has more of them before or behind its point."""


def value_text(field: Field, text: str) -> str | None:
    """The one text of a value, however it is written; None where the field cannot have it.

    A time with an offset is an instant, told in UTC; one without is what clocks show.
    """
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            return _integer(text, _BITS[field.kind])
        case Kind.DOUBLE:
            return _number(text)
        case Kind.BOOLEAN:
            return text if text in ("true", "false") else None
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            return _time(text, bare=field.kind is Kind.DATETIME)
        case _:
            return text


def _integer(text: str, bits: int) -> str | None:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    number = int(text)
    return str(number) if -(2**bits) <= number < 2**bits else None


def _number(text: str) -> str | None:
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    if not number.is_finite() or (number and abs(number.adjusted()) > _DIGITS):
        return None
    return number_text(number)


def _time(text: str, *, bare: bool) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return datetime_text(moment.astimezone(UTC), 0)
    except (ValueError, OverflowError):
        return None
    return datetime_text(moment, None) if bare else None
