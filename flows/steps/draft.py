"""How the cells of a column are written: the readings that fit most of them, and what they miss."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from schemas.cells.counted_times import EPOCHS, counted_time
from schemas.cells.dates import NoForm, date_form
from schemas.cells.numbers import BLANK, BLANKS, GROUPS, LAST_GROUP
from schemas.cells.reading import Moment, read_moment
from schemas.currency_codes import CODES

DAYS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    "%Y.%m.%d",
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
    *("%d-%m-%y", "%y-%m-%d", "%y/%m/%d", "%y.%m.%d", "%Y%m%d"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
)
DIGITS = ("%Y%m%d", "%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y", "%Y%m%d%H%M%S", "%Y%m%d%H%M")
"""Forms of digits in a row."""
_YEARS = range(1980, 2100)
"""Of most times; what is none in them is a number."""
CLOCKS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S", "T%H:%M:%S.%f"),
    *(" %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z", " %H:%M:%S%z", "T%H:%M:%S%z"),
)
NOTHING = re.compile(r"n/?a|#n/a|null|none|nil|nan|-+|[?.]|\\N", re.IGNORECASE)
"""What is written where there is no number and no time."""
_CORE = re.compile(rf"[0-9](?:[0-9.,'{BLANKS}]*[0-9])?")
MINUS = "-(\N{MINUS SIGN}"
SIGNS = f"+){MINUS}"
_NO_SIGN, _SIGN = r"[^-+()\N{MINUS SIGN}]*", r"[-+\N{MINUS SIGN}]?"
_SIGNED = re.compile(rf"{_NO_SIGN}(?:{_SIGN}|\({_NO_SIGN}\)){_NO_SIGN}")
"""One sign, or brackets: of two signs nobody knows what they say together."""
FLAGS = ("DR", "CR", "D", "C", "S", "H", "%")
"""Words for debit and credit, and what else is no currency."""
_CODE = re.compile("|".join(sorted(CODES)))
_ZONED = re.compile(r"(.*[0-9](?: ?[AaPp][Mm])?)( ?)([A-Z][A-Za-z]{1,4})", re.DOTALL)
"""A time with the name of its zone."""
_MOST_ZONES = 8
_PROBED = 50
"""Cells that a form of times is tried on first."""


_TIMES, _NUMBERS = 1 / 2, 2 / 3
"""The share of cells that tells what the others are meant to be: few texts look like a time."""


class TimesFound(NamedTuple):
    """How the cells of a column are times."""

    forms: tuple[tuple[str, ...], ...]
    """What fits equally many, a form or several of one day; none: ISO 8601, which needs no form."""
    others: int
    """How many cells are written in another way."""
    example: str
    """The first of those."""
    zones: tuple[str, ...] = ()
    """The names of zones that stand for %Z."""
    offsets: bool = False
    """Whether each says itself what moment it is."""


def times_of(cells: Sequence[str]) -> TimesFound | None:
    """How most cells of a column are times; None: they are none, or numbers in a row."""
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


def _have_offsets(forms: Iterable[Sequence[str]]) -> bool:
    return all("%z" in form for form in chain.from_iterable(forms))


def _several_forms(cells: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The forms of one day by which each cell is a time; of each day by which all are."""
    probed = [*islice(cells, _PROBED)]
    days = [day for day in DAYS if _forms_of(day, probed)]
    return tuple(forms for day in days if (forms := _forms_of(day, cells)))


def _forms_of(day: str, cells: Iterable[str]) -> tuple[str, ...]:
    """The forms with this day by which the cells are times; none, if one of them is not."""
    found, left = [], {*cells}
    for clock in CLOCKS:
        try:
            wall = date_form(f"{day}{clock}").wall
        except NoForm:
            continue
        read = {cell for cell in left if not isinstance(wall(cell), str)}
        found += [f"{day}{clock}"] if read else []
        left -= read
    return () if left else tuple(found)


def _iso_times(counts: Counter[str]) -> TimesFound | None:
    """How most cells are times that need no form; None: most are not."""
    read = {cell: read_moment(cell, offset_required=False) for cell in counts}
    moments = {cell: one for cell, one in read.items() if isinstance(one, Moment)}
    left = counts.total() - sum(counts[cell] for cell in moments)
    if not moments or left > (1 - _TIMES) * counts.total():
        return None
    example = next((cell for cell in counts if cell not in moments), "")
    has_offsets = all(moment.offset is not None for moment in moments.values())
    return TimesFound((), left, example, offsets=has_offsets)


def _zoned_times(counts: Mapping[str, int]) -> TimesFound | None:
    """How cells are times with the name of a zone behind each; None: they are not."""
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
    """The forms by which all cells, which are digits, are times."""
    forms = [form for form in DIGITS if _all_read(cells, date_form(form).wall)]
    return forms + [name for name in EPOCHS if _all_read(cells, partial(counted_time, form=name))]


def _all_read(cells: Collection[str], wall: Callable[[str], datetime | str]) -> bool:
    read = map(wall, cells)
    return all(isinstance(one, datetime) and one.year in _YEARS for one in read)


def time_forms(counts: Mapping[str, int]) -> dict[str, tuple[int, str]]:
    """The forms by which most cells are times, with how many cells are not, and the first of those.

    `counts` says how often each cell is there.
    """
    found, of, probed = {}, sum(counts.values()), [*islice(counts, _PROBED)]
    for form in (f"{day}{clock}" for day in DAYS for clock in CLOCKS):
        try:
            wall = date_form(form).wall
        except NoForm:
            continue
        if sum(not isinstance(wall(cell), str) for cell in probed) * 3 < len(probed):
            continue
        others = [cell for cell in counts if isinstance(wall(cell), str)]
        left = sum(counts[cell] for cell in others)
        if left <= (1 - _TIMES) * of:
            found[form] = left, next(iter(others), "")
    return found


class Between(NamedTuple):
    """What stands between the digits of a number."""

    decimal: str = ""
    thousands: str = ""
    either: str = ""
    """The sign that may be one or the other: `1.234`."""
    groups: str = ""
    """Which of `GROUPS` its digits are in, if they cannot be in others."""


class Found(NamedTuple):
    """Cells that are alike."""

    cells: int
    example: str
    """The first of them."""


NONE = Found(0, "")


@dataclass(slots=True)
class NumberSigns:
    """What the numbers of some columns are written with."""

    cells: int = 0
    between: dict[Between, Found] = field(default_factory=dict)
    around: dict[str, Found] = field(default_factory=dict)
    """By what stands around the digits, with 1 for them."""
    others: Found = NONE
    """Cells that are no numbers."""

    @classmethod
    def of(cls, columns: Iterable["NumberSigns"]) -> "NumberSigns":
        """What was found of several columns."""
        all_of = cls()
        for one in columns:
            all_of.cells += one.cells
            for between, found in one.between.items():
                _add(all_of.between, between, *found)
            for around, found in one.around.items():
                _add(all_of.around, around, *found)
        return all_of

    def add(self, cells: Iterable[str]) -> bool:
        """Look at the cells of a column; False: most of them are no numbers."""
        counts = Counter(cells)
        read = {cell: _CORE.search(cell) for cell in counts}
        numbers = {cell: core for cell, core in read.items() if core and _is_number(cell, core[0])}
        count = sum(counts[cell] for cell in numbers)
        if not counts or count < _NUMBERS * counts.total():
            return False
        self.cells += count
        for cell in counts:
            if core := numbers.get(cell):
                around = cell[: core.start()] + "1" + cell[core.end() :]
                _add(self.between, _between(core[0]), counts[cell], cell)
                _add(self.around, around, counts[cell], cell)
            else:
                before, example = self.others
                self.others = Found(before + counts[cell], example or cell)
        return True

    @property
    def decimal(self) -> set[str]:
        """Signs before decimals."""
        return {one.decimal for one in self.between} - {""}

    @property
    def thousands(self) -> set[str]:
        """Signs between groups of three digits."""
        return {one.thousands for one in self.between} - {""}

    @property
    def either(self) -> set[str]:
        """Signs that may be one or the other: `1.234`."""
        return {one.either for one in self.between} - {""}

    @property
    def groups(self) -> set[str]:
        """Which of `GROUPS` some of the digits have to be in."""
        return {one.groups for one in self.between} - {""}

    @property
    def negative(self) -> dict[str, Found]:
        """Examples of minus one."""
        return self._examples(_is_negative, _without_currency)

    @property
    def currency(self) -> dict[str, Found]:
        """Examples of one with a sign or a code of a currency."""
        return self._examples(_has_currency, _unsigned)

    @property
    def words(self) -> dict[str, Found]:
        """What stands around numbers and is neither a sign nor a currency."""
        return self._examples(
            lambda around: _unsigned(_without_currency(around)).strip(BLANKS) not in ("1", "+1"),
            lambda around: _unsigned(_without_currency(around)),
        )

    def _examples(
        self, holds: Callable[[str], bool], bare: Callable[[str], str]
    ) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for around, (count, example) in self.around.items():
            if holds(around):
                _add(found, bare(around), count, example)
        return dict(sorted(found.items()))


_Sort = TypeVar("_Sort")


def _add(found: dict[_Sort, Found], sort: _Sort, count: int, example: str) -> None:
    before, first = found.get(sort, (0, example))
    found[sort] = Found(before + count, first)


def _between(core: str) -> Between:
    signs = [sign for sign in core if not sign.isdigit()]
    if not signs:
        return Between()
    (groups, *others), last = _groups(core), signs[-1]
    only = "" if others else groups
    behind = len(core) - core.rindex(last) - 1
    if signs[0] != last and _thousands(signs[0]) != _thousands(last):
        return Between(last, _thousands(signs[0]), groups=only)
    if len(signs) > 1 or last not in ".,":
        return Between(thousands=_thousands(last), groups=only)
    if behind == 3 and not core.startswith("0"):
        return Between(either=last)
    return Between(last)


def _is_number(cell: str, core: str) -> bool:
    if not _groups(core) or not _SIGNED.fullmatch(cell):
        return False
    rest = cell.replace(core, "", 1).strip(f"{SIGNS}{BLANKS}")
    sign = len(rest) == 1 and _is_currency(rest)
    # Three letters before digits alone are a name, such as that of an account.
    code = _CODE.fullmatch(rest) is not None and not (f"{rest}{core}" == cell and core.isdigit())
    return not rest or sign or rest.upper() in FLAGS or code


def _groups(core: str) -> list[str]:
    """Which of `GROUPS` its signs may be between, the last one maybe before decimals."""
    first, *groups = re.split("[^0-9]", core)
    signs = [sign for sign in core if not sign.isdigit()]
    if signs and signs[-1] in ".," and signs.count(signs[-1]) == 1:
        groups.pop()
        signs.pop()
    if not groups:
        return [*GROUPS]
    alike = len({_thousands(sign) for sign in signs}) == 1
    # Other signs between other groups are those of telephone numbers.
    return [
        name
        for name, size in GROUPS.items()
        if alike and (size == LAST_GROUP or signs[0] == ",")
        if len(first) <= size and len(groups[-1]) == LAST_GROUP
        if all(len(group) == size for group in groups[:-1])
    ]


def _thousands(sign: str) -> str:
    return BLANK if sign in BLANKS else sign


def _is_negative(around: str) -> bool:
    return any(sign in around for sign in MINUS)


def _is_currency(sign: str) -> bool:
    return unicodedata.category(sign) == "Sc"


def _has_currency(around: str) -> bool:
    return any(map(_is_currency, around)) or _CODE.search(around) is not None


def _without_currency(around: str) -> str:
    bare = "".join(sign for sign in _CODE.sub("", around) if not _is_currency(sign))
    return bare.strip(BLANKS) if _has_currency(around) else around


def _unsigned(around: str) -> str:
    return "".join(sign for sign in around if sign not in SIGNS).strip(BLANKS)
