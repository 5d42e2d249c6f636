"""Dates as a feed writes them: a form of `strptime` directives, applied letter by letter.

`datetime.strptime` accepts a digit less where the rest still fits, any blanks for a blank, letters
in any case, and a weekday that is not the day's. So `1022026` is a day in `%d%m%Y`, though it may
be the 1st or the 10th of a month. Here, an accepted text has one reading, and no part contradicts
it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, tzinfo
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

Token = tuple[str | None, str]
"""A directive, or else text that stands for itself."""
Zones = tuple[tuple[str, tzinfo], ...]
"""Names of zones in a feed, with their meanings."""
_WIDTHS = {
    **dict.fromkeys("dmyHIMSVUW", 2),
    **dict.fromkeys("YG", 4),
    **dict.fromkeys("uw", 1),
    "j": 3,
    "f": 6,
}
"""Digits of each numeric directive."""
_WHOLE = ("Y", "G", "y", "u", "w")
"""Directives never written shorter, except an era's year that stands alone: `R8/10/31`."""
_FIRST_YEAR = 1850
"""An earlier year from another calendar is really one of ours: 2026 is not 1483."""
_OF_ERA = 3
"""Digits of `%Y` if years are counted from a year zero: `115`."""
_NAMES = {
    "b": "[A-Za-z]{3}",
    "B": "[A-Za-z]{3,9}",
    "a": "[A-Za-z]{3}",
    "A": "[A-Za-z]{6,9}",
    "p": "[AaPp][Mm]",
}
_CLOCK = frozenset("YmdHMSf")
"""Numeric directives that most forms consist of, each of which is read by itself."""
_MONTHS = ("b", "B")
_ZONE = "Z"
"""The directive for names whose meaning a feed states."""
_OFFSET = r"Z|[+-][0-9]{2}(?::?[0-9]{2}|(?![0-9:]))"
"""An offset; minutes may be missing if nothing after it could be taken for them."""
NO_SUCH = ": no such day or time exists"
_TOKEN = re.compile(r"%(.)|([^%]+)", re.DOTALL)

_Names = Mapping[str, Sequence[str]]
"""By directive, the names that a feed states: of months in any case, and of zones."""


class NoForm(ValueError):
    """A text that is no form of dates, and why."""


@dataclass(frozen=True, slots=True)
class DateForm:
    text: str
    pattern: re.Pattern[str]
    directives: tuple[str, ...]
    runs: tuple[tuple[re.Pattern[str], int], ...] = ()
    """If zeros may be missing: the parts of the form, with the width of each numeric part."""
    months: tuple[str, ...] = ()
    """The names of the twelve months; empty: English names."""
    zones: Zones = ()
    year_zero: int = 0
    """Which year is the feed's year 0."""

    def wall(self, text: str) -> datetime | str:
        """The time in a text, with its offset or zone if it has one; or why there is none."""
        match = self.pattern.fullmatch(self._filled(text))
        if match is None:
            return f"not written as {self.text}{self._names_expected}"
        nothing = f"not written as {self.text}{NO_SUCH}"
        found = match.groupdict()
        for name in {"y", "Y"} & {*found} if self.year_zero else ():
            year = int(found.pop(name)) + self.year_zero
            if not _FIRST_YEAR <= year <= MAXYEAR:
                return nothing
            found["Y"] = f"{year:04}"
        for name in {*_MONTHS} & {*found} if self.months else ():
            found["m"] = self._month(found.pop(name))
        zone = dict(self.zones)[found.pop(_ZONE)] if _ZONE in found else None
        wall = _time_of_parts(found)
        if wall is None:
            return nothing
        return wall if zone is None else wall.replace(tzinfo=zone)

    @property
    def _names_expected(self) -> str:
        """Which names a text may contain, for the person who corrects it."""
        stated = _stated(self.months, self.zones)
        names = ["English names"] if {*self.directives} & {*"aAbB"} - {*stated} else []
        names += [
            f"{' or '.join(stated[name])} for %{name}" for name in self.directives if name in stated
        ]
        if self.year_zero:
            names.append(f"year 0 being {self.year_zero}")
        return f", with {' and '.join(names)}" if names else ""

    def _month(self, name: str) -> str:
        # Matched like the pattern matches: `casefold` keeps the two Turkish letters i apart.
        return next(
            f"{number:02}"
            for number, one in enumerate(self.months, 1)
            if re.fullmatch(re.escape(one), name, re.IGNORECASE)
        )

    def _filled(self, text: str) -> str:
        """The text with the zeros that a feed drops."""
        parts, at = [], 0
        for pattern, width in self.runs:
            match = pattern.match(text, at)
            if match is None:
                return text
            parts.append(match[0].zfill(width))
            at = match.end()
        return "".join(parts) + text[at:]


def _time_of_parts(found: Mapping[str, str]) -> datetime | None:
    """The time from its parts as written, without a zone; None if there is none."""
    try:
        if _CLOCK.issuperset(found):
            numbers = {name: int(_padded(name, text)) for name, text in found.items()}
            return datetime(*(numbers.get(name, 0) for name in "YmdHMSf"))  # type: ignore[arg-type] # noqa: DTZ001
        padded = "".join(_padded(name, text) + "\n" for name, text in found.items())
        wall = datetime.strptime(padded, "".join(f"%{name}\n" for name in found))  # noqa: DTZ007
    except ValueError:
        return None
    return wall if all(_agrees(name, text, wall) for name, text in found.items()) else None


def _padded(name: str, text: str) -> str:
    if name == "f":
        return text.ljust(6, "0")
    if name == "z":
        return text if text == "Z" else text.ljust(5, "0")
    return text.replace(" ", "0").zfill(_WIDTHS.get(name, 0))


def _agrees(name: str, text: str, wall: datetime) -> bool:
    if name == "z":
        return True
    read = wall.strftime(f"%{name}")
    if name in _NAMES:
        return read.casefold() == text.casefold()
    return int(read) == int(_padded(name, text))


class DatePart(NamedTuple):
    directive: str | None
    """None for text that stands for itself."""
    text: str
    may_be_short: bool
    """Whether it may have fewer digits than usual."""


def date_parts(text: str) -> Iterator[DatePart]:
    """The parts of a form that `date_form` accepts."""
    tokens = _tokens(text)
    for at, (name, literal) in enumerate(tokens):
        number = name in _WIDTHS and name not in _WHOLE
        yield DatePart(name, literal, number and _stands_alone(tokens, at, {}))


def outline(text: str) -> str:
    """A pattern that all texts of a form match, and perhaps others; usable in polars."""
    parts = []
    for name, literal in _tokens(text):
        if name is None:
            parts.append(re.escape(literal))
        elif (width := _WIDTHS.get(name)) is None:
            parts.append("(?s:.+)")
        else:
            parts.append(f"[0-9]{{{width}}}" if name in _WHOLE else f"[0-9 ]{{1,{width}}}")
    return "".join(parts)


@cache
def date_form(
    text: str,
    *,
    zeros_dropped: bool = False,
    months: tuple[str, ...] = (),
    zones: Zones = (),
    year_zero: int = 0,
) -> DateForm:
    """The form that a text of directives states; raises NoForm.

    `%b` and `%B` are one of `months`, if any are stated, and `%Z` is one of `zones`. A number needs
    its full width unless it has non-digits, or the ends of the text, on both sides. With
    `zeros_dropped`, a run of digits may lack zeros on its left, as a number does. `%y` and `%Y`
    count from `year_zero`, if that is not our year 0.
    """
    tokens = _tokens(text)
    names = tuple(name for name, _ in tokens if name)
    directives = {*_WIDTHS, *_NAMES, "z", _ZONE}
    for name in names:
        if name not in directives:
            known = " ".join(f"%{one}" for one in sorted(directives, key=str.lower))
            raise NoForm(f"%{name} is none of its directives, which are {known}")
    stated = _stated(months, zones)
    resolved = ["m" if name in _MONTHS and months else name for name in names]
    if len(set(resolved)) != len(resolved):
        raise NoForm("a directive stands in it twice")
    if _ZONE in names and not zones:
        raise NoForm("what the names of %Z mean is not said")
    if {"z", _ZONE} <= {*names}:
        raise NoForm("%z and %Z both say what its time means")
    if any(one in stated and other in stated for (one, _), (other, _) in pairwise(tokens)):
        raise NoForm("two names stand side by side in it, and nobody knows where the first ends")
    if year_zero and "G" in names:
        raise NoForm("%G is a year of weeks, which no other calendar has")
    if year_zero < 0 and "y" in names:
        raise NoForm(f"%y would be a year before the first: {year_zero} is for years in full")
    if year_zero and zeros_dropped and "Y" in names:
        raise NoForm("nobody knows where a year of another calendar without its zeros ends")
    parts = [_part(tokens, at, stated, year_zero) for at in range(len(tokens))]
    runs = tuple(_runs(tokens, stated)) if zeros_dropped else ()
    return DateForm(text, re.compile("".join(parts)), names, runs, months, zones, year_zero)


def _stated(months: tuple[str, ...], zones: Zones) -> _Names:
    named = dict.fromkeys(_MONTHS, months) if months else {}
    return {**named, _ZONE: tuple(name for name, _ in zones)} if zones else named


def _tokens(text: str) -> list[Token]:
    found = [(match[1], match[2] or "") for match in _TOKEN.finditer(text)]
    if "".join(f"%{name}" if name else literal for name, literal in found) != text:
        raise NoForm("it ends within a directive")
    return [(None, "%") if name == "%" else (name, part) for name, part in found]


def _part(tokens: Sequence[Token], at: int, stated: _Names, year_zero: int = 0) -> str:
    name, literal = tokens[at]
    if name is None:
        return re.escape(literal)
    if name in stated:
        longest = sorted(stated[name], key=len, reverse=True)
        case = "" if name == _ZONE else "i"
        return f"(?P<{name}>(?{case}:{'|'.join(map(re.escape, longest))}))"
    if name not in _WIDTHS:
        return f"(?P<{name}>{_NAMES.get(name, _OFFSET)})"
    alone = _stands_alone(tokens, at, stated)
    if year_zero > 0 and name == "Y":
        return f"(?P<Y>[0-9]{{{_OF_ERA}}})"
    if year_zero and name == "y" and alone:
        return "(?P<y>[0-9]{1,2})"
    return f"(?P<{name}>{_digits(name, alone=alone)})"


def _stands_alone(tokens: Sequence[Token], at: int, stated: _Names) -> bool:
    """Whether a number has non-digits, or the ends of the text, on both sides."""
    before = tokens[at - 1] if at else (None, " ")
    after = tokens[at + 1] if at + 1 < len(tokens) else (None, " ")
    return _separates(before, -1, stated) and _separates(after, 0, stated)


def _runs(tokens: Sequence[Token], stated: _Names) -> Iterator[tuple[re.Pattern[str], int]]:
    """Each part of a form, with the width its zeros fill; 0 for a part without such zeros."""
    for numbers, group in groupby(tokens, key=lambda token: token[0] in _WIDTHS):
        run = list(group)
        if not numbers:
            yield re.compile("".join(_part(run, at, stated) for at in range(len(run)))), 0
        else:
            width = sum(_WIDTHS[name] for name, _ in run if name)
            filled = run[0][0] not in ("Y", "G") and all(name != "f" for name, _ in run)
            least = 1 if filled or run[0][0] == "f" else width
            yield re.compile(f"[0-9]{{{least},{width}}}"), width if filled else 0


def _separates(token: Token, sign: int, stated: _Names) -> bool:
    name, literal = token
    if name is None:
        return not literal[sign].isdigit()
    # Stated names of months contain no digits; names of zones may.
    return name in _MONTHS and name in stated


def _digits(name: str, *, alone: bool) -> str:
    width = _WIDTHS[name]
    if not alone or name in _WHOLE:
        return f"[0-9]{{{width}}}"
    # A blank may stand for the zero, as in `Feb  1 2026`.
    return f"[0-9]{{1,{width}}}" + ("| [0-9]" if width == 2 else "")
