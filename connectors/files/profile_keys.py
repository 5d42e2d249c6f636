"""The keys of a feed profile: which field each one fills, and how its value is read.

Whatever cannot be meant is refused with a ProfileError that names the key and what is allowed.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any
from zoneinfo import available_timezones

import polars as pl

from connectors.errors import ProfileError
from connectors.files.content import canonical_encoding, shown
from connectors.files.encodings import can_be_divided
from connectors.files.positions import range_of
from connectors.settings import zone_of
from schemas.cells.counted_times import EPOCHS
from schemas.cells.dates import NoForm, date_form
from schemas.cells.numbers import BLANK
from schemas.counting import quantity
from schemas.tables import EXTRACTS
from schemas.toml_text import suggestion

THOUSANDS = (".", ",", " ", "'", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", BLANK)
FOUND = "found"
"""The header is on the first line that is one of the record."""
MOST_LINES = 1000
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")

Reader = Callable[[str, Any], Any]


def known(
    shown_key: str,
    key: str,
    readers: Mapping[str, tuple[str, Reader]],
    also: Mapping[str, Any] | None = None,
) -> tuple[str, Reader]:
    """The Profile field a key fills and its reader; a key nobody knows is refused."""
    allowed = (*readers, *(also or {}))
    if key not in readers:
        raise ProfileError(f"{shown(shown_key)} is not a key. {suggestion(key, allowed)}")
    return readers[key]


def choice(key: str, value: str, allowed: tuple[str, ...], what: str) -> str:
    """The value, when it is one of those allowed."""
    if value not in allowed:
        raise ProfileError(
            f"{key} names {shown(value)!r}, not {what}. {suggestion(value, allowed)}"
        )
    return value


def _typed(key: str, value: object, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ProfileError(f"{key} = {shown(str(value))!r} is not {what}.")
    return value


def _text(key: str, value: object) -> str:
    text: str = _typed(key, value, str, "a text in quotes")
    return text


def as_section(key: str, value: object) -> dict[str, Any]:
    """What a section of the file holds."""
    held: dict[str, Any] = _typed(key, value, dict, f"a section; write [{key}]")
    return held


def _one_of(*allowed: str) -> Reader:
    return lambda key, value: choice(key, _text(key, value), allowed, "an allowed value")


def _feed(key: str, value: object) -> str:
    text = _text(key, value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise ProfileError(
            f"{key} = {shown(text)!r} is not a name. Use up to 64 letters, digits, dots, dashes "
            "and underscores, a letter or digit first."
        )
    return text


def _record(key: str, value: object) -> str:
    return choice(key, _text(key, value), tuple(EXTRACTS), "a record kind")


def _sign(key: str, value: object) -> str:
    text = _text(key, value)
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in "\r\n\0+-.":
        raise ProfileError(
            f"{key} = {shown(text)!r} is not one ASCII sign. Allowed: a single character that is "
            'no letter, digit, line end, point, plus or minus; "\\t" is the tab.'
        )
    return text


def _encoding(key: str, value: object) -> str:
    text = _text(key, value)
    try:
        name = canonical_encoding(text)
        usable = name in UTF16 or can_be_divided(name)
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise ProfileError(
            f"{key} = {shown(text)!r} cannot be read. Allowed: utf-8, utf-16, and encodings whose "
            "ASCII bytes are always ASCII, such as cp1252, iso8859-15, cp850, koi8-r or euc-kr."
        )
    return name


def _date_format(key: str, value: object) -> str:
    text = _text(key, value)
    if text in EPOCHS:
        return text
    moment = datetime(2031, 12, 30, 23, 58, 57, tzinfo=UTC)
    try:
        read = date_form(text).wall(moment.strftime(text))
    except NoForm as error:
        raise ProfileError(f"{key} = {shown(text)!r} is no date format: {error}.") from error
    if isinstance(read, str) or read.date() != moment.date():
        raise ProfileError(f"{key} = {shown(text)!r} does not give day, month and year.")
    if "%I" in text and "%p" not in text:
        raise ProfileError(f"{key} = {shown(text)!r} does not tell morning from evening; add %p.")
    return text


def _offset(key: str, value: object) -> str:
    text = _text(key, value)
    if not re.fullmatch(r"Z|[+-](0\d|1[0-3]):[0-5]\d|[+-]14:00", text):
        raise ProfileError(f"{key} = {shown(text)!r} is no offset. Write +01:00, -05:30 or Z.")
    return text


def _zone(key: str, value: object) -> str:
    text = _text(key, value)
    try:
        zone_of(text)
    except (OSError, ValueError, KeyError) as error:
        close = get_close_matches(text, available_timezones(), n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise ProfileError(
            f"{key} = {shown(text)!r} is no IANA time zone such as Europe/Berlin.{guess}"
        ) from error
    return text


def _nulls(key: str, value: object) -> tuple[str, ...]:
    return tuple(sorted({*_texts(key, value, '["", "NULL"]')}))


def _texts(key: str, value: object, such_as: str) -> list[str]:
    return [
        _text(key, one) for one in _typed(key, value, list, f"a list of texts such as {such_as}")
    ]


def _examples(such_as: str) -> Reader:
    def read(key: str, value: object) -> tuple[str, ...]:
        if not (texts := _texts(key, value, such_as)):
            raise ProfileError(f"{key} is an empty list. Take it out, or write {such_as}.")
        return tuple(sorted({*texts}))

    return read


def _months(key: str, value: object) -> tuple[str, ...]:
    names = [one.strip() for one in _texts(key, value, '["Januar", "Februar", ...]')]
    each = {name.casefold() for name in names}
    if len(names) != 12 or len(each) != 12 or not all(any(map(str.isalpha, one)) for one in each):
        raise ProfileError(f"{key} are not the twelve names of the months, from January on.")
    if any(map(str.isdigit, "".join(names))):
        raise ProfileError(f"{key} have digits in them. A month in numbers is %m, as in %m月.")
    return tuple(names)


def _words(key: str, value: object) -> tuple[str, ...]:
    words = tuple(sorted({one.strip() for one in _texts(key, value, '["ja", "j"]')}))
    if "" in words:
        raise ProfileError(f"{key} has an empty word. What stands for no value is null.")
    return words


def _fields(key: str, value: object) -> dict[str, dict[str, Any]]:
    return {name: _written(f"{key}.{name}", one) for name, one in as_section(key, value).items()}


def _written(section: str, value: object) -> dict[str, Any]:
    told = {}
    for key, one in as_section(section, value).items():
        name, reader = known(f"{section}.{key}", key, OF_FIELD, also=_BESIDE_FIELD)
        told[name] = reader(f"{section}.{key}", one)
    return told


def _header_line(key: str, value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_LINES:
        return value
    if value == FOUND:
        return FOUND
    raise ProfileError(
        f"{key} = {shown(str(value))!r} is no line. Write its number, 1 to {MOST_LINES}, or "
        '"found".'
    )


def _sheet(key: str, value: object) -> str | int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    text = _text(key, value).strip()
    if not text:
        raise ProfileError(f"{key} is empty. Write the name of the sheet, or its number.")
    return text


def _footer(key: str, value: object) -> tuple[str, ...]:
    lines = _texts(key, value, "['Total,,,(?P<PaidAmount>[^,]*),.*']")
    for line in lines:
        try:
            pattern = re.compile(line)
        except re.error as error:
            raise ProfileError(f"{key}: {shown(line)!r} is no pattern: {error}.") from None
        if pattern.fullmatch(""):
            raise ProfileError(
                f"{key}: {shown(line)!r} fits an empty line. Say what it begins with."
            )
    if len(set(lines)) != len(lines):
        raise ProfileError(f"{key} names a line twice.")
    return tuple(lines)


def _column_names(key: str, value: object) -> tuple[str, ...]:
    names = [name.strip() for name in _texts(key, value, '["Date", "Time"]')]
    if not names or "" in names or len({name.casefold() for name in names}) != len(names):
        raise ProfileError(f"{key} = {names} are not one or more columns, each of them once.")
    return tuple(names)


def _column_name(key: str, value: object) -> str:
    (name,) = _column_names(key, [value])
    return name


def _field_names(key: str, value: object) -> tuple[str, ...]:
    names = _texts(key, value, '["EffectiveDate", "ToCurrenciesId"]')
    if not names or len({*names}) != len(names):
        raise ProfileError(f"{key} = {names} are not one or more fields, each of them once.")
    return tuple(names)


def _part(key: str, value: object) -> str:
    text = _text(key, value)
    try:
        groups = pl.select(pl.lit("").str.extract_groups(text)).item()
    except pl.exceptions.PolarsError as error:
        why = str(error).splitlines()[-1]
        raise ProfileError(f"{key} = {shown(text)!r} is no pattern: {shown(why)}.") from None
    if len(groups) != 1:
        raise ProfileError(
            f"{key} = {shown(text)!r} has {quantity(len(groups), 'group')}. Put the part that is "
            "meant, and nothing else, into round brackets; (?:...) groups without being a part."
        )
    return text


def _map(key: str, value: object) -> dict[str, str]:
    pairs = {
        theirs: _constant(f"{key}.{theirs}", ours)
        for theirs, ours in as_section(key, value).items()
    }
    if not pairs:
        raise ProfileError(f"{key} is empty. Say what stands for what, or take it out.")
    return pairs


def _whole(least: int, most: int) -> Reader:
    def read(key: str, value: object) -> int:
        number: int = _typed(key, value, int, "a whole number")
        if not least <= number <= most:
            raise ProfileError(f"{key} = {number} is out of range. Use {least} to {most}.")
        return number

    return read


def _flag(key: str, value: object) -> bool:
    flag: bool = _typed(key, value, bool, "true or false")
    return flag


def _rate(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ProfileError(f"{key} = {shown(str(value))!r} is not a share. Use 0 to 1.")
    return float(value)


def _columns(key: str, value: object) -> dict[str, str]:
    pairs = {
        theirs: _text(f"{key}.{theirs}", ours) for theirs, ours in as_section(key, value).items()
    }
    if any(not theirs.strip() for theirs in pairs):
        raise ProfileError(f"{key} maps a column without a name.")
    return pairs


_STATES = '["pending", "void"]'


def _cells(key: str, value: object) -> dict[str, tuple[str, ...]]:
    stated = as_section(key, value)
    if any(not name.strip() for name in stated):
        raise ProfileError(f"{key} names a column without a name.")
    if len({name.strip().casefold() for name in stated}) != len(stated):
        raise ProfileError(f"{key} names a column twice (case and blanks around do not count).")
    return {
        name: tuple(sorted({one.strip(" \t") for one in _texts(f"{key}.{name}", cells, _STATES)}))
        for name, cells in stated.items()
    }


def _positions(key: str, value: object) -> dict[str, str]:
    stated = _columns(key, value)
    for name, text in stated.items():
        try:
            range_of(text)
        except ValueError as error:
            raise ProfileError(
                f"{key}.{name}: {error}. Write the first and the last sign, counted from 1: "
                f'{name} = "1-10".'
            ) from None
    if len({name.strip().casefold() for name in stated}) != len(stated):
        raise ProfileError(f"{key} names a column twice (case and blanks around do not count).")
    return stated


def _constants(key: str, value: object) -> dict[str, str]:
    return {name: _constant(f"{key}.{name}", text) for name, text in as_section(key, value).items()}


def _constant(key: str, value: object) -> str:
    if isinstance(value, bool | int):
        return str(value)
    # 1.50 would lose its last digit on the way through a float.
    text: str = _typed(key, value, str, "a text in quotes, a whole number, true or false")
    return text


WRITTEN: dict[str, tuple[str, Reader]] = {
    "blanks": ("blanks", _one_of("kept", "dropped")),
    "decimal": ("decimal", _one_of(".", ",")),
    "thousands": ("thousands", _one_of(*THOUSANDS)),
    "negative": ("negative", _examples('["1-", "(1)"]')),
    "positive": ("positive", _examples('["1", "1+"]')),
    "currency": ("currency", _examples('["€1", "1 EUR"]')),
    "percent": ("percent", _one_of("share", "points")),
    "implied_decimals": ("implied_decimals", _whole(0, 6)),
    "date_format": ("date_format", _date_format),
    "date_zeros": ("date_zeros", _one_of("kept", "dropped")),
    "months": ("months", _months),
    "offset": ("offset", _offset),
    "zone": ("zone", _zone),
    "null": ("null", _nulls),
    "true": ("true", _words),
    "false": ("false", _words),
}
"""How values are written: keys of the whole feed, and of a field in `fields`."""
OF_FIELD: dict[str, tuple[str, Reader]] = {
    **WRITTEN,
    "from": ("from", _column_names),
    "join": ("join", _text),
    "part": ("part", _part),
    "map": ("map", _map),
    "default": ("default", _constant),
    "key": ("key", _field_names),
}
"""Keys of a field in `fields`: how it is written, and what it is made of."""
_BESIDE_FIELD = {"lookup": "a map from a file"}
"""A key of a field in a file, which is a `map` when it was loaded."""
KEYS: dict[str, tuple[str, Reader]] = {
    "feed": ("feed", _feed),
    "record": ("record", _record),
    "delimiter": ("delimiter", _sign),
    "quote": ("quote", _sign),
    "header_line": ("header_line", _header_line),
    "header_lines": ("header_lines", _whole(1, 5)),
    "footer": ("footer", _footer),
    "totals": ("totals", _one_of("all", "kept")),
    "sheet": ("sheet", _sheet),
    "first_line": ("first_line", _whole(1, MOST_LINES)),
    "short_lines": ("short_lines", _one_of("refused", "filled")),
    "encoding": ("encoding", _encoding),
    **WRITTEN,
    "unknown_columns": ("unknown_columns", _one_of("refuse", "ignore")),
    "tenant": ("tenant", _whole(-(2**31), 2**31 - 1)),
    "inner_record": ("inner_record", _record),
    "push": ("push", _flag),
    "compare_only": ("compare_only", _flag),
    "keep": ("keep", _one_of("text", "reference")),
    "positions": ("positions", _positions),
    "columns": ("columns", _columns),
    "fields": ("fields", _fields),
    "constants": ("constants", _constants),
    "leave_out": ("leave_out", _cells),
    "keep_only": ("keep_only", _cells),
}
"""Each top-level key with the Profile field it fills and how it is read."""

SECTIONS: dict[str, dict[str, tuple[str, Reader]]] = {
    "unpivot": {
        "keep": ("unpivot_keep", _column_names),
        "columns": ("unpivot_columns", _column_names),
        "name": ("unpivot_name", _column_name),
        "value": ("unpivot_value", _column_name),
    },
    "policy": {
        "duplicate": ("duplicate", _one_of("conflict", "last_wins")),
        "reference": ("reference", _one_of("flag", "reject")),
        "complete": ("complete", _flag),
    },
    "budget": {
        "errors": ("budget_errors", _whole(0, 2**31 - 1)),
        "rate": ("budget_rate", _rate),
        "read": ("budget_read", _rate),
    },
}
"""Sections with keys of their own."""
