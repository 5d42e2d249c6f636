"""The keys of a feed profile about how values are written: numbers, times, absence, words."""

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import available_timezones

from connectors.errors import ProfileError
from connectors.files.profiles.profile_values import (
    Reader,
    as_section,
    one_of,
    text_of,
    texts_of,
    typed,
    whole,
)
from connectors.printable import shown
from connectors.settings import zone_of
from schemas.cells.counted_times import EPOCHS
from schemas.cells.dates import NoForm, date_form
from schemas.cells.numbers import BESIDE, BLANK, GROUPS, OVERPUNCHED
from schemas.toml_text import suggestion

_THOUSANDS = (
    ".",
    ",",
    " ",
    "'",
    "\N{RIGHT SINGLE QUOTATION MARK}",
    "\N{NO-BREAK SPACE}",
    "\N{NARROW NO-BREAK SPACE}",
    BLANK,
)

FOLDED = "folded"
"""Value of `width`: full-width signs in numbers and times are the usual ones."""
_YEAR_ZEROS = (-543, *range(1850, 2101))
"""Years 0 of eras and calendars with our months and days: Buddhist, Japanese and Taiwanese."""
MOST_FORMS = 8
"""Most forms of times in one column."""


def _date_format(key: str, value: object) -> str:
    text = text_of(key, value)
    if text in EPOCHS:
        return text
    moment = datetime(2031, 12, 30, 23, 58, 57, tzinfo=UTC)
    try:
        read = date_form(text, zones=(("UTC", UTC),)).wall(moment.strftime(text))
    except NoForm as error:
        raise ProfileError(f"{key} = {shown(text)!r} is no date format: {error}.") from error
    if isinstance(read, str) or read.date() != moment.date():
        otherwise = "If a sender leaves one out, add it by prefix or suffix of the field."
        if "%" not in text:
            counts = suggestion(text, EPOCHS, "Counts")
            otherwise = f"If times are numbers, name what they count. {counts}"
        raise ProfileError(
            f"{key} = {shown(text)!r} does not give day, month and year. Write each of them as a "
            f"directive: %d.%m.%Y. {otherwise}"
        )
    if "%I" in text and "%p" not in text:
        raise ProfileError(f"{key} = {shown(text)!r} does not tell morning from evening; add %p.")
    return text


def _date_formats(key: str, value: object) -> str | tuple[str, ...]:
    """The form of all times, or several of which each time has one; their order does not matter."""
    if not isinstance(value, list):
        return _date_format(key, value)
    forms = tuple(sorted({_date_format(key, one) for one in value}))
    if not 0 < len(forms) <= MOST_FORMS:
        raise ProfileError(
            f"{key} is a list of {len(forms)} forms. Write one to {MOST_FORMS}, such as "
            '["%d.%m.%Y", "%d.%m.%Y %H:%M"].'
        )
    return forms if len(forms) > 1 else forms[0]


def _offset(key: str, value: object) -> str:
    text = text_of(key, value)
    if not re.fullmatch(r"Z|[+-](0\d|1[0-3]):[0-5]\d|[+-]14:00", text):
        raise ProfileError(f"{key} = {shown(text)!r} is no offset. Write +01:00, -05:30 or Z.")
    return text


def _zone(key: str, value: object) -> str:
    text = text_of(key, value)
    try:
        zone_of(text)
    except (OSError, ValueError, KeyError) as error:
        close = get_close_matches(text, available_timezones(), n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise ProfileError(
            f"{key} = {shown(text)!r} is no IANA time zone such as Europe/Berlin.{guess}"
        ) from error
    return text


def _zones(key: str, value: object) -> dict[str, str]:
    zones = {}
    for name, meaning in as_section(key, value).items():
        if name != name.strip() or not any(map(str.isalpha, name)):
            raise ProfileError(
                f"{key} names {shown(name)!r}, which is no name of a zone such as CET or GMT+1."
            )
        at = f"{key}.{name}"
        by_rules = isinstance(meaning, str) and meaning[:1].isalpha() and meaning != "Z"
        zones[name] = _zone(at, meaning) if by_rules else _offset(at, meaning)
    if not zones:
        raise ProfileError(f'{key} is empty. Say what names mean: {{ CET = "+01:00" }}.')
    return zones


def _nulls(key: str, value: object) -> tuple[str, ...]:
    return tuple(sorted({*texts_of(key, value, '["", "NULL"]')}))


def _examples(such_as: str, *, may_be_none: bool = False) -> Reader:
    def read(key: str, value: object) -> tuple[str, ...]:
        if not (texts := texts_of(key, value, such_as)) and not may_be_none:
            raise ProfileError(f"{key} is an empty list. Take it out, or write {such_as}.")
        return tuple(sorted({*texts}))

    return read


def _zeros(key: str, value: object) -> tuple[str, ...]:
    for text in (texts := texts_of(key, value, '["-", "nil"]')):
        if text != text.strip() or not text or any(map(str.isdigit, text)):
            raise ProfileError(
                f"{key} names {shown(text)!r}, which is no text for zero, such as - or nil: it has "
                "no digits, and no blanks around it. An empty cell is what default says."
            )
    if not texts:
        raise ProfileError(f'{key} is an empty list. Take it out, or write ["-", "nil"].')
    return tuple(sorted({*texts}))


def _months(key: str, value: object) -> tuple[str, ...]:
    names = [one.strip() for one in texts_of(key, value, '["Januar", "Februar", ...]')]
    each = {name.casefold() for name in names}
    if len(names) != 12 or len(each) != 12 or not all(any(map(str.isalpha, one)) for one in each):
        raise ProfileError(f"{key} are not the twelve names of the months, from January on.")
    if any(map(str.isdigit, "".join(names))):
        raise ProfileError(f"{key} have digits in them. A month in numbers is %m, as in %m月.")
    return tuple(names)


def _year_zero(key: str, value: object) -> int:
    year = typed(key, value, int, "a whole number")
    if year not in _YEAR_ZEROS:
        raise ProfileError(
            f"{key} = {year} is the year 0 of no era with our months and days. Write the year of "
            "ours that the sender writes as 0: 2018 where 8 is 2026, -543 where 2569 is 2026."
        )
    return year


def _words(key: str, value: object) -> tuple[str, ...]:
    words = tuple(sorted({one.strip() for one in texts_of(key, value, '["ja", "j"]')}))
    if "" in words:
        raise ProfileError(f"{key} has an empty word. What stands for no value is null.")
    return words


WRITTEN: dict[str, Reader] = {
    "blanks": one_of("kept", "dropped"),
    "decimal": one_of(".", ","),
    "thousands": one_of(*_THOUSANDS),
    "groups": one_of(*GROUPS),
    "negative": _examples('["1-", "(1)"]', may_be_none=True),
    "positive": _examples('["1", "1+"]'),
    "currency": _examples('["€1", "1 EUR"]'),
    "percent": one_of("share", "points"),
    "implied_decimals": whole(0, 6),
    "decimals": whole(0, 18),
    "zero": _zeros,
    "sign": one_of(BESIDE, OVERPUNCHED),
    "width": one_of("kept", FOLDED),
    "date_format": _date_formats,
    "date_zeros": one_of("kept", "dropped"),
    "months": _months,
    "year_zero": _year_zero,
    "offset": _offset,
    "zone": _zone,
    "zones": _zones,
    "null": _nulls,
    "true": _words,
    "false": _words,
}
"""How values are written: keys of the whole feed, and of a field in `fields`."""
