"""Times as the service writes them, and whether such a time is the time that was sent."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from connectors.service.encoding import sent_moment
from schemas.cells.reading import (
    Moment,
    Unread,
    instant_exists,
    offset_minutes,
    read_moment,
    zone_minutes,
)
from schemas.field import Kind

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- subtracted from wall clocks.
MILLISECOND = 1000
"""Microseconds."""
MINUTE = 60_000_000
NO_ZONE = "-0000"
"""The offset in a `/Date()/` of a wall clock that the server keeps without a zone."""

_FIRST, _LAST = (
    (moment - EPOCH) // timedelta(milliseconds=1)
    for moment in (datetime.min, datetime.max)  # noqa: DTZ901 -- wall clocks.
)
_STAMP = re.compile(r"/Date\((-?[0-9]{1,15})([+-][0-9]{4})?\)/", re.ASCII)
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,7}))?(Z|[+-][0-9]{2}:[0-9]{2})?)?",
    re.ASCII,
)
_TENTH = re.compile(r"(\.[0-9]{6})[0-9](?![0-9])", re.ASCII)


class WrittenTime(NamedTuple):
    """A time in an answer."""

    clock: int
    """Microseconds since 1970-01-01 as written; a `/Date()/` of a DateTime counts in UTC."""
    offset: int | None
    """Minutes east of UTC; None if not given."""
    stamp: bool = False
    """Written as `/Date()/`, which has no microseconds."""


def read_written(text: object) -> WrittenTime | None:
    """The time a text of an answer gives; None if it is no time or has tenths of microseconds."""
    if not isinstance(text, str):
        return None
    if iso := _ISO.fullmatch(text):
        day, time, fraction, zone = iso.groups()
        digits = (fraction or "").ljust(7, "0")
        offset = offset_minutes(zone)
        if digits[6] != "0" or isinstance(offset, Unread):
            return None
        try:
            wall = datetime.fromisoformat(f"{day}T{time or '00:00:00'}")
        except ValueError:
            return None
        if offset is not None and not instant_exists(wall, offset):
            return None
        return WrittenTime(_clock(wall) + int(digits[:6]), offset)
    stamp = _STAMP.fullmatch(text)
    offset = None if stamp is None or stamp[2] == NO_ZONE else offset_minutes(stamp[2] or "Z")
    if stamp is None or isinstance(offset, Unread) or not _FIRST <= int(stamp[1]) <= _LAST:
        return None
    return WrittenTime(int(stamp[1]) * MILLISECOND, offset, stamp=True)


def is_time(value: object) -> bool:
    """Whether a value is a time as the service writes it, tenths of microseconds included."""
    return read_written(_TENTH.sub(r"\1", value) if isinstance(value, str) else value) is not None


def same_datetime_offset(sent: str, echoed: object) -> bool:
    """Whether wall clock and offset of a DateTimeOffset came back; `/Date()/` to milliseconds."""
    written = read_written(echoed)
    moment = read_moment(sent, offset_required=False)
    if written is None or written.offset is None or isinstance(moment, Unread):
        return False
    # The service counts the milliseconds of the wall clock, not of the instant.
    clock = _clock(moment.wall)
    clocks = _in_milliseconds({clock}) if written.stamp else {clock}
    return written.clock in clocks and written.offset == (moment.offset or 0)


def same_datetime(sent: str, echoed: object, zone: ZoneInfo) -> bool:
    """Whether the instant of a DateTime came back, in whatever zone it is shown.

    A time without offset is in the server's zone; a date alone is midnight there.
    """
    written = read_written(echoed)
    if written is None:
        return False
    moment = sent_moment(sent, zone)[0]
    instants = _instants(moment, zone)
    if written.stamp:
        # The framework's first moment is the same in every zone.
        first = moment.offset is None and moment.wall == datetime.min  # noqa: DTZ901
        if first:
            instants.add(_clock(moment.wall))
        return written.clock in _in_milliseconds(instants)
    if written.offset is not None:
        return written.clock - written.offset * MINUTE in instants
    wall = EPOCH + timedelta(microseconds=written.clock)
    return any(
        written.clock - zone_minutes(wall, zone, fold) * MINUTE in instants for fold in (0, 1)
    )


def moment_of(kind: Kind, text: object, zone: ZoneInfo) -> Moment | None:
    """The time of an answer's field as a Moment; None if the text is no time.

    The Moment has no offset for a date alone and for times the server keeps without one.
    """
    written = read_written(text)
    if written is None:
        return None
    clock, offset = EPOCH + timedelta(microseconds=written.clock), written.offset
    if kind is not Kind.DATETIME or not written.stamp:
        exists = offset is None or instant_exists(clock, offset)
        return Moment(clock, offset) if exists else None
    if clock == datetime.min:  # noqa: DTZ901 -- the framework's first, the same in every zone.
        return Moment(clock, None)
    # The stamp of a DateTime counts in UTC; the offset after it only says how to show it.
    try:
        if offset is None:
            return Moment(clock.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None), None)
        return Moment(clock + timedelta(minutes=offset), offset)
    except OverflowError:
        return None


def _instants(moment: Moment, zone: ZoneInfo) -> set[int]:
    """Microseconds since 1970 in UTC that the service may understand by the moment."""
    clock = _clock(moment.wall)
    if moment.offset is None:
        return {clock - zone_minutes(moment.wall, zone, fold) * MINUTE for fold in (0, 1)}
    instant = clock - moment.offset * MINUTE
    return {instant, instant + _odd_seconds(moment, zone)}


def _odd_seconds(moment: Moment, zone: ZoneInfo) -> int:
    """Microseconds by which the server's zone was off whole minutes then, as local times were."""
    try:
        offset = moment.instant.astimezone(zone).utcoffset() or timedelta()
    except OverflowError:
        return 0
    return round(offset.total_seconds() * 1_000_000) - round(offset.total_seconds() / 60) * MINUTE


def _in_milliseconds(clocks: set[int]) -> set[int]:
    """Microseconds cut to milliseconds, towards the past or, as .NET divides, towards 1970."""
    cut = {clock // MILLISECOND * MILLISECOND for clock in clocks}
    return cut | {-(-clock // MILLISECOND) * MILLISECOND for clock in clocks if clock < 0}


def _clock(wall: datetime) -> int:
    return (wall - EPOCH) // timedelta(microseconds=1)
