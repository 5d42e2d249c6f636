"""How times are written in the cells of a column: the formats that fit most, and the exceptions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from schemas.cells.counted_times import EPOCHS, counted_time
from schemas.cells.dates import NoForm, date_form
from schemas.cells.reading import Moment, read_moment

DAYS = (
    *(
        sign.join(order)
        for year in ("%Y", "%y")
        for sign in "-./"
        for order in ((year, "%m", "%d"), ("%d", "%m", year), ("%m", "%d", year))
    ),
    *("%d %b %Y", "%d %b %y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%d%b%Y", "%Y%m%d"),
    *("%Y年%m月%d日", "%Y년 %m월 %d일"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
)
"""Formats of days; numbers in every order in use, because separators do not reveal the order."""
DIGITS = (
    *("%Y%m%d", "%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y", "%m%d%y"),
    *("%Y%m%d%H%M%S", "%Y%m%d%H%M"),
)
"""Formats of digits without separators."""
_YEARS = range(1980, 2100)
"""Years of plausible times; digits that give another year are a number."""
CLOCKS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S", "T%H:%M:%S.%f"),
    *(" %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z", " %H:%M:%S%z", "T%H:%M:%S%z"),
)
NOTHING = re.compile(r"n/?a|#n/a|null|none|nil|nan|-+|[?.]|\\N", re.IGNORECASE)
"""Texts in place of a missing number or time."""
_ZONED = re.compile(r"(.*[0-9](?: ?[AaPp][Mm])?)( ?)([A-Z][A-Za-z]{1,4})", re.DOTALL)
"""A time with the name of its zone."""
_MOST_ZONES = 8
_PROBED = 50
"""Cells on which a format is tried first."""


_TIMES = 1 / 2
"""The share of cells that must be times for a column of times: few other texts look like one."""


_DIGITS, _NAME = re.compile(r"\d+"), re.compile(r"[^\W\d_]{3}")
_COUNTED = 5
"""Fewest consecutive digits that may be a day or a time by themselves."""


def may_be_time(cell: str) -> bool:
    """Whether a profile could state a format by which a cell is a time; not for `2/3`.

    A part that the sender leaves out can be added, such as the year of `03.11.`.
    """
    sizes = [len(digits) for digits in _DIGITS.findall(cell)]
    if len(sizes) > 2 or max(sizes, default=0) >= _COUNTED:
        return True
    has_year, has_name = 4 in sizes, _NAME.search(cell) is not None
    if len(sizes) == 2:
        return has_year or has_name or sizes == [2, 2]
    return has_year and has_name


class TimesFound(NamedTuple):
    forms: tuple[tuple[str, ...], ...]
    """Alternatives that fit equally many cells, each one format or several with the same day.

    Empty for ISO 8601, which needs no format.
    """
    others: int
    """Number of cells in another format."""
    example: str
    """The first of those cells."""
    zones: tuple[str, ...] = ()
    """Names of zones for %Z."""
    offsets: bool = False
    """Whether every cell has an offset or zone."""


def times_of(cells: Sequence[str]) -> TimesFound | None:
    """How most cells of a column are times; None if they are not, or are digits only."""
    counts = Counter(cells)
    if all(map(str.isdigit, counts)):
        return None
    plain = _iso_times(counts)
    if plain and not plain.others:
        return plain
    found = time_forms(counts)
    least = min((left for left, _ in found.values()), default=None)
    if least != 0 and (several := _several_forms(counts)):
        return TimesFound(several, 0, "", offsets=_have_offsets(several))
    if least is None:
        return plain or _zoned_times(counts)
    if plain and plain.others <= least:
        return plain
    forms = tuple((form,) for form, (left, _) in found.items() if left == least)
    return TimesFound(forms, *found[forms[0][0]], offsets=_have_offsets(forms))


def latest(forms: Iterable[str], cells: Iterable[str]) -> tuple[str, str, date] | None:
    """The cell with the latest day by one of these formats, with that format and day."""
    found, distinct = [], {*cells}
    for form in forms:
        if "%Z" not in form:
            read = ((cell, date_form(form).wall(cell)) for cell in distinct)
            found += [(cell, form, of.date()) for cell, of in read if not isinstance(of, str)]
    return max(found, key=lambda one: (one[2], one[0]), default=None)


def _have_offsets(forms: Iterable[Sequence[str]]) -> bool:
    return all("%z" in form for form in chain.from_iterable(forms))


def _several_forms(cells: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """For each format of days by which all cells are times, the formats that are needed for it."""
    probed = [*islice(cells, _PROBED)]
    days = [day for day in DAYS if _forms_of(day, probed)]
    return tuple(forms for day in days if (forms := _forms_of(day, cells)))


def _forms_of(day: str, cells: Iterable[str]) -> tuple[str, ...]:
    """The formats with this day by which the cells are times; empty if any cell is not."""
    found, left = [], {*cells}
    for form, wall in _walls([day]):
        read = {cell for cell in left if not isinstance(wall(cell), str)}
        found += [form] if read else []
        left -= read
    return () if left else tuple(found)


def _walls(days: Iterable[str]) -> Iterator[tuple[str, Callable[[str], datetime | str]]]:
    """Yield the formats with these days, and a reader for each."""
    for form in (f"{day}{clock}" for day in days for clock in CLOCKS):
        with suppress(NoForm):
            yield form, date_form(form).wall


def _iso_times(counts: Counter[str]) -> TimesFound | None:
    """How most cells are times in ISO 8601; None if most are not."""
    read = {cell: read_moment(cell, offset_required=False) for cell in counts}
    moments = {cell: one for cell, one in read.items() if isinstance(one, Moment)}
    left = counts.total() - sum(counts[cell] for cell in moments)
    if not moments or left > (1 - _TIMES) * counts.total():
        return None
    example = next((cell for cell in counts if cell not in moments), "")
    has_offsets = all(moment.offset is not None for moment in moments.values())
    return TimesFound((), left, example, offsets=has_offsets)


def _zoned_times(counts: Mapping[str, int]) -> TimesFound | None:
    """How all cells are times followed by the name of a zone; None if they are not."""
    read = [match for match in map(_ZONED.fullmatch, counts) if match]
    zones, blanks = {match[3] for match in read}, {match[2] for match in read}
    if len(read) != len(counts) or len(zones) > _MOST_ZONES or len(blanks) != 1:
        return None
    bare = times_of([match[1] for match in read for _ in range(counts[match[0]])])
    if bare is None or bare.others or not all("%M" in form for form in chain(*bare.forms)):
        return None
    forms = tuple(tuple(f"{form}{min(blanks)}%Z" for form in one) for one in bare.forms)
    return TimesFound(forms, 0, "", tuple(sorted(zones)), offsets=True)


def digit_times(cells: Collection[str]) -> list[str]:
    """The formats of digits and the kinds of counts by which all cells are times."""
    forms = [form for form in DIGITS if _all_read(cells, date_form(form).wall)]
    return forms + [name for name in EPOCHS if _all_read(cells, partial(counted_time, form=name))]


def _all_read(cells: Collection[str], wall: Callable[[str], datetime | str]) -> bool:
    read = map(wall, cells)
    return all(isinstance(one, datetime) and one.year in _YEARS for one in read)


def time_forms(counts: Mapping[str, int]) -> dict[str, tuple[int, str]]:
    """The formats by which most cells are times, with the number of other cells and the first.

    `counts` has the number of times each cell occurs.
    """
    found, of, probed = {}, sum(counts.values()), [*islice(counts, _PROBED)]
    for form, wall in _walls(DAYS):
        if sum(not isinstance(wall(cell), str) for cell in probed) * 3 < len(probed):
            continue
        others = [cell for cell in counts if isinstance(wall(cell), str)]
        left = sum(counts[cell] for cell in others)
        if left <= (1 - _TIMES) * of:
            found[form] = left, next(iter(others), "")
    return found
