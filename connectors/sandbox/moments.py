"""Times as the service keeps, reads and writes them: .NET's DateTime and DateTimeOffset."""

import re
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- subtracted from wall clocks.
MAX_OFFSET_MINUTES = 14 * 60


class TimeKind(IntEnum):
    """What is known of a time's zone; the first three are DateTime, the last DateTimeOffset."""

    UNSPECIFIED = 0
    UTC = 1
    LOCAL = 2
    OFFSET = 3


class Time(NamedTuple):
    """A wall clock, its minutes east of UTC, and the kind that decides how it is written."""

    wall: datetime
    offset: int
    kind: TimeKind
    tick: int = 0
    """Seventh digit of the second's fraction."""

    @property
    def instant(self) -> datetime:
        """The moment as a wall clock in UTC, clamped to the range of .NET."""
        try:
            return self.wall - timedelta(minutes=self.offset)
        except OverflowError:
            return datetime.max if self.offset < 0 else datetime.min  # noqa: DTZ901 -- wall clocks.


_ISO = re.compile(
    r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)? ?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII,
)
_CONDENSED = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})", re.ASCII)
_MONTH_FIRST = re.compile(
    r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})"
    r"(?: ([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?",
    re.ASCII,
)
_TIMESTAMP = re.compile(r"\\?/Date\((-?[0-9]{1,15})([+-][0-9]{4})?\)\\?/", re.ASCII)
# Texts of exactly these lengths take the framework's own parser, which leaves the zone open.
_ZONE_LEFT_OPEN = (19, 23)


def read_datetime(text: str, zone: ZoneInfo, *, as_written: bool = False) -> Time | None:
    """A DateTime; None if the text is none.

    The framework converts every offset, `Z` too, to the server's zone. `as_written` keeps `Z`, as
    System.Text.Json does and as a host's own values have it.
    """
    try:
        if stamp := _TIMESTAMP.fullmatch(text):
            wall = EPOCH + timedelta(milliseconds=int(stamp[1]))
            if stamp[2] is None:
                return Time(wall, 0, TimeKind.UTC)
            if as_written and stamp[2] == "-0000":
                if wall == datetime.min:  # noqa: DTZ901 -- the default, the same in every zone.
                    return Time(wall, _offset_of(wall, zone), TimeKind.UNSPECIFIED)
                return _local(wall, zone)._replace(kind=TimeKind.UNSPECIFIED)
            return _local(wall, zone)
        parsed = _parse(text)
        if parsed is None:
            return None
        wall, tick, offset = parsed
        if offset is None:
            written = as_written or len(text) in _ZONE_LEFT_OPEN or _CONDENSED.fullmatch(text)
            kind = TimeKind.UNSPECIFIED if written else TimeKind.LOCAL
            return Time(wall, _offset_of(wall, zone), kind, tick)
        if as_written and text.endswith("Z"):
            return Time(wall, 0, TimeKind.UTC, tick)
        return _local(wall - timedelta(minutes=offset), zone)._replace(tick=tick)
    except (ValueError, OverflowError):
        return None


def read_datetime_offset(text: str) -> Time | None:
    """A DateTimeOffset, +00:00 if no offset is given; None if the text is none."""
    try:
        if stamp := _TIMESTAMP.fullmatch(text):
            # The framework counts the milliseconds of the wall clock, not of the instant.
            wall = EPOCH + timedelta(milliseconds=int(stamp[1]))
            time = Time(wall, _minutes(stamp[2] or "Z"), TimeKind.OFFSET)
        else:
            parsed = _parse(text)
            if parsed is None:
                return None
            wall, tick, offset = parsed
            time = Time(wall, offset or 0, TimeKind.OFFSET, tick)
        time.wall - timedelta(minutes=time.offset)  # Raises if it is no representable moment.
        return time
    except (ValueError, OverflowError):
        return None


def utc_time(moment: datetime) -> Time:
    """An aware moment as a host's UtcNow gives it."""
    return Time(moment.astimezone(UTC).replace(tzinfo=None), 0, TimeKind.UTC)


def csv_time(time: Time) -> str:
    """The text in CSV and JSV; a DateTime's is the shortest, a bare date at midnight."""
    if time.kind is TimeKind.OFFSET:
        return _seconds(time) + _fraction(time) + _offset_text(time.offset)
    wall = time.wall
    broken = wall.microsecond or time.tick
    if not (wall.hour or wall.minute or wall.second or broken):
        return _seconds(time)[:10]
    if time.kind is TimeKind.UTC:
        return _seconds(time) + _short_fraction(time) + "Z"
    return _seconds(time) + (_fraction(time) if broken else "") + _offset_text(time.offset)


def classic_time(time: Time) -> str:
    """The text in the classic serializer's JSON, slashes escaped, without quotes."""
    # The first possible moment, the framework's default, is the same in every zone.
    first = time.wall == datetime.min  # noqa: DTZ901 -- compared to a wall clock.
    wall = time.wall if first or time.kind is TimeKind.OFFSET else time.instant
    stamp = (wall - EPOCH) // timedelta(milliseconds=1)
    match time.kind:
        case TimeKind.UNSPECIFIED:
            offset = "-0000"
        case TimeKind.LOCAL:
            offset = _offset_text(time.offset).replace(":", "")
        case TimeKind.OFFSET if time.offset:
            offset = _offset_text(time.offset).replace(":", "")
        case _:
            offset = ""
    return f"\\/Date({stamp}{offset})\\/"


def round_trip_time(time: Time) -> str:
    """ISO 8601 with all seven digits, .NET's format "o"."""
    return _seconds(time) + _fraction(time) + _suffix(time)


def iso_time(time: Time) -> str:
    """ISO 8601 with the shortest fraction, as System.Text.Json writes it."""
    return _seconds(time) + _short_fraction(time) + _suffix(time)


def _parse(text: str) -> tuple[datetime, int, int | None] | None:
    """Wall clock, seventh digit, offset in minutes."""
    match = _ISO.fullmatch(text)
    if match:
        year, month, day, hour, minute, second, fraction, zone = match.groups()
    elif match := _MONTH_FIRST.fullmatch(text):
        month, day, year, hour, minute, second, fraction = match.groups()
        zone = None
    elif match := _CONDENSED.fullmatch(text):
        year, month, day = match.groups()
        hour = minute = second = fraction = zone = None
    else:
        return None
    digits = (fraction or "")[:7].ljust(7, "0")
    wall = datetime(  # noqa: DTZ001 -- the wall clock as written, the offset is kept beside it.
        int(year),
        int(month),
        int(day),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int(digits[:6]),
    )
    return wall, int(digits[6]), None if zone is None else _minutes(zone)


def _minutes(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    total = int(digits[:2]) * 60 + int(digits[2:])
    if total > MAX_OFFSET_MINUTES or int(digits[2:]) > 59:
        raise ValueError(f"{zone} is no offset")
    return -total if zone[0] == "-" else total


def _local(instant: datetime, zone: ZoneInfo) -> Time:
    local = instant.replace(tzinfo=UTC).astimezone(zone)
    wall = local.replace(tzinfo=None)
    return Time(wall, round((wall - instant).total_seconds() / 60), TimeKind.LOCAL)


def _offset_of(wall: datetime, zone: ZoneInfo) -> int:
    distance = zone.utcoffset(wall.replace(tzinfo=zone)) or timedelta()
    return round(distance.total_seconds() / 60)


def _seconds(time: Time) -> str:
    return time.wall.isoformat()[:19]


def _fraction(time: Time) -> str:
    return f".{time.wall.microsecond:06}{time.tick}"


def _short_fraction(time: Time) -> str:
    digits = f"{time.wall.microsecond:06}{time.tick}".rstrip("0")
    return f".{digits}" if digits else ""


def _offset_text(offset: int) -> str:
    hours, minutes = divmod(abs(offset), 60)
    return f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


def _suffix(time: Time) -> str:
    match time.kind:
        case TimeKind.UNSPECIFIED:
            return ""
        case TimeKind.UTC:
            return "Z"
        case _:
            return _offset_text(time.offset)
