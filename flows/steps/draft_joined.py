"""Times spread over several columns: a day, a time of day, and the name of a zone."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

CLOCKS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p")
_ZONE_COLUMN = re.compile(r"zone|\btz\b|^tz", re.IGNORECASE)
_ZONE = re.compile(r"[A-Z][A-Za-z]{1,4}")
_MOST_ZONES = 8


class JoinedTime(NamedTuple):
    places: tuple[int, ...]
    forms: tuple[str, ...]
    """Formats of the cells joined by blanks; any of them fits."""
    zones: tuple[str, ...]
    """Names of zones for %Z."""


def joined_time(
    names: Sequence[str], columns: Mapping[int, Collection[str]], days: Mapping[int, Sequence[str]]
) -> JoinedTime | None:
    """The first time that is spread over several columns; None if there is none.

    `columns` are the cells of each column that is not empty, by its place; `days` the formats of
    columns of times without an offset.
    """
    zoned = next((at for at, cells in columns.items() if _are_zones(names[at], cells)), None)
    clocks = {at: form for at, cells in columns.items() if (form := _clock(cells))}
    for day, forms in days.items():
        has_clock = any("%H" in one or "%I" in one for one in forms)
        clock = None if has_clock else next(iter(clocks), None)
        places = [at for at in (day, clock, zoned) if at is not None]
        if len(places) > 1 and forms:
            behind = [clocks[clock]] if clock is not None else []
            behind += ["%Z"] if zoned is not None else []
            zones = () if zoned is None else tuple(sorted({*columns[zoned]}))
            joined = tuple(" ".join([form, *behind]) for form in forms)
            return JoinedTime(tuple(places), joined, zones)
    return None


def _are_zones(name: str, cells: Iterable[str]) -> bool:
    distinct = {*cells}
    return (
        _ZONE_COLUMN.search(name) is not None
        and len(distinct) <= _MOST_ZONES
        and all(map(_ZONE.fullmatch, distinct))
    )


def _clock(cells: Collection[str]) -> str | None:
    """The format by which all cells are times of day; None if there is none."""
    return next((form for form in CLOCKS if all(_reads(cell, form) for cell in cells)), None)


def _reads(cell: str, form: str) -> bool:
    try:
        datetime.strptime(cell, form)  # noqa: DTZ007 -- a time of a day has no zone.
    except ValueError:
        return False
    return True
