"""The exact meaning of one cell's text: the slow, strict readers that decide.

The vectorised readers of `schemas.cells.columns` accept a subset of what is accepted here, with
the same values. A cell they leave unread is decided by `read`, or by `columns.why_unread` if many
cells of a column are left. A reader returns the value or `Unread`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from schemas.field import Field, Kind

SHOWN_CHARACTERS = 120
"""The most characters of a delivered value that an error shows."""
MORE = "…"
"""Stands at the end of a shortened value."""

UNFIT = "\0"
"""Stands between a text that does not fit its feed's form and the explanation; no delivered text
contains it."""
INTEGER_BITS = {Kind.INTEGER: 32, Kind.INTEGER64: 64}
MAX_OFFSET_MINUTES = 14 * 60
"""The largest offset in use anywhere, and the service's own limit."""
MINUTE = 60_000_000
"""Microseconds of a minute."""

NO_SUCH_TIME = "There is no such day, time or offset."
NOT_ISO = "It is not written as ISO 8601."

MOST_DIGITS = 1_000
"""A number with more digits, written without a power of ten, is near no double."""

_INTEGER = re.compile(r"[ \t]*([+-]?[0-9]+)[ \t]*", re.ASCII)
_NUMBER = re.compile(
    r"[ \t]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?)[ \t]*", re.ASCII
)
_NOT_FINITE = re.compile(r"[ \t]*[+-]?(?:nan|inf|infinity)[ \t]*", re.ASCII | re.IGNORECASE)
_TIME = re.compile(
    r"[ \t]*([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?[ \t]*",
    re.ASCII,
)
_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a cell's text is not a value of its kind."""

    code: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Number:
    """A double together with the one decimal it stands for."""

    value: float
    exact: Decimal


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as written: the wall clock, and the offset in minutes if one was given."""

    wall: datetime
    offset: int | None

    @property
    def instant(self) -> datetime:
        """The same moment in UTC; a missing offset must have been refused before."""
        assert self.offset is not None
        return (self.wall - timedelta(minutes=self.offset)).replace(tzinfo=UTC)


Value = int | Number | str | bool | Moment


def limit_of(kind: Kind) -> str:
    return f"{INTEGER_BITS[kind]} bits"


def read_integer(kind: Kind, text: str) -> int | Unread:
    """An integer of the kind's width; blanks around it are not part of it."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return Unread("Integer")
    digits = match[1].lstrip("+-").lstrip("0")
    bits = INTEGER_BITS[kind]
    # With more digits than 2^63, any number is out of range, and int() would be slow.
    value = int(match[1]) if len(digits) <= 19 else None
    if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return Unread("IntegerRange", {"limit": limit_of(kind)})
    return value


def read_number(text: str) -> Number | Unread:
    """A finite double whose shortest text is the number that was delivered."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Unread("NotFinite" if _NOT_FINITE.fullmatch(text) else "Number")
    value = float(match[1])
    if value in (float("inf"), float("-inf")):
        return Unread("NotFinite")
    delivered, kept = Decimal(match[1]), Decimal(repr(value))
    if delivered == kept:
        return Number(value, kept)
    _, digits, exponent = delivered.as_tuple()
    if len(digits) + abs(int(exponent)) > MOST_DIGITS:
        return Unread("NotFinite")
    return Unread("Precision", {"kept": repr(value), "exact": format(delivered, "f")})


def read_moment(text: str, *, offset_required: bool) -> Moment | Unread:
    """An ISO 8601 extended time; nothing in it is guessed, least of all its offset."""
    match = _TIME.fullmatch(text)
    if match is None:
        return Unread("DateTime", {"detail": NOT_ISO})
    *parts, fraction, zone = match.groups(default="")
    offset = offset_minutes(zone)
    if isinstance(offset, Unread):
        return offset
    numbers = [int(part or 0) for part in (*parts, fraction[:6].ljust(6, "0"))]
    try:
        # The wall clock as written; the offset is kept beside it.
        wall = datetime(*numbers)  # type: ignore[arg-type] # noqa: DTZ001
    except ValueError:
        return Unread("DateTime", {"detail": NO_SUCH_TIME})
    if fraction[6:].strip("0"):
        return Unread("Precision", {"kept": "microseconds"})
    if offset is None and offset_required:
        return Unread("OffsetMissing")
    if offset is not None and not instant_exists(wall, offset):
        return Unread("DateTime", {"detail": NO_SUCH_TIME})
    return Moment(wall, offset)


def offset_minutes(zone: str | None) -> int | Unread | None:
    """Minutes east of UTC of `Z`, `+02:00`, `+0200` or `+02`; None if no zone is given."""
    if not zone:
        return None
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    total = hours * 60 + minutes
    if minutes > 59 or total > MAX_OFFSET_MINUTES:
        return Unread("DateTime", {"detail": NO_SUCH_TIME})
    return -total if zone[0] == "-" else total


def zone_minutes(wall: datetime, zone: ZoneInfo, fold: int = 0) -> int:
    """Whole minutes east of UTC at a wall clock of a zone, as the service counts them."""
    distance = zone.utcoffset(wall.replace(tzinfo=zone, fold=fold)) or timedelta()
    return round(distance.total_seconds() / 60)


def instant_exists(wall: datetime, offset: int) -> bool:
    """Whether the moment exists in UTC; on the calendar's first and last day some do not."""
    try:
        wall - timedelta(minutes=offset)
    except OverflowError:
        return False
    return True


def read_boolean(text: str) -> bool | Unread:
    """True and False in any case, 1 and 0, as the service reads them."""
    word = text.strip(" \t").lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    return Unread("Boolean")


def read(of: Field, text: str, read_nested: Callable[[Field, str], str | Unread]) -> Value | Unread:
    """The value of a cell's text, or why it has none."""
    match of.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            return read_integer(of.kind, text)
        case Kind.DOUBLE:
            return read_number(text)
        case Kind.DATETIME | Kind.DATETIME_OFFSET | Kind.INSTANT:
            return read_moment(text, offset_required=of.kind is not Kind.DATETIME)
        case Kind.BOOLEAN:
            return read_boolean(text)
        case Kind.STRING:
            return text
        case _:
            return read_nested(of, text)
