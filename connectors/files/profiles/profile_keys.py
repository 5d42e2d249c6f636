"""The keys of a feed profile: which attribute each one fills, and how its value is read.

Values that make no sense are refused with a ProfileError that names the key and what is allowed.
"""

import re
from typing import Any

import polars as pl

from connectors.errors import ProfileError
from connectors.files.layout.titles import KEPT, SPREAD
from connectors.files.profiles.profile_values import (
    Reader,
    as_section,
    as_written,
    choice,
    flag,
    one_of,
    read_keys,
    text_of,
    texts_of,
    typed,
    whole,
)
from connectors.files.profiles.profile_writing import WRITTEN
from connectors.files.text.content import COMPUTED, RECODED, SAVED, canonical_encoding
from connectors.files.text.dialect import NO_QUOTE, may_separate
from connectors.files.text.encodings import can_be_divided
from connectors.files.text.linear_patterns import check_pattern, fitting
from connectors.files.text.positions import BYTES, CHARACTERS, range_of
from connectors.printable import shown
from schemas.cells.numbers import plain_number
from schemas.counting import quantity
from schemas.ledger import FEED_NAME
from schemas.tables import EXTRACTS

FOUND = "found"
"""Value of `header_line`: the header is on the first line that is one of the record's."""
MOST_LINES, MOST_UNNAMED, MOST_TITLED = 1000, 100, 100
MOST_SIGNS = 10
"""Most characters of a delimiter, and of the text that comments begin with."""
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")


def _name(key: str, value: object) -> str:
    text = text_of(key, value)
    if not FEED_NAME.fullmatch(text):
        raise ProfileError(
            f"{key} = {shown(text)!r} is not a name. Use up to 64 letters, digits, dots, dashes "
            "and underscores, a letter or digit first."
        )
    return text


def _record(key: str, value: object) -> str:
    return choice(key, text_of(key, value), tuple(EXTRACTS), "a record kind")


def _sign(key: str, value: object) -> str:
    text = text_of(key, value)
    if not may_separate(text):
        raise ProfileError(
            f"{key} = {shown(text)!r} is not one ASCII sign. Allowed: a single character that is "
            'no letter, digit, line end, point, plus or minus; "\\t" is the tab.'
        )
    return text


def _quote(key: str, value: object) -> str:
    if value == NO_QUOTE:
        raise ProfileError(
            f'{key} = {NO_QUOTE!r} is U+0001, which recon has for its own use. Allowed: "none", or '
            "another sign."
        )
    return NO_QUOTE if value == "none" else _sign(key, value)


def _delimiter(key: str, value: object) -> str:
    text = text_of(key, value)
    if 1 < len(text) <= MOST_SIGNS:
        for sign in text:
            try:
                _sign(key, sign)
            except ProfileError:
                raise ProfileError(
                    f"{key} = {shown(text)!r} has {shown(sign)!r} in it. A delimiter of several "
                    "signs, such as || or ~|~, has no letter, digit, line end, point, plus or "
                    "minus."
                ) from None
        return text
    return _sign(key, text)


def _comment(key: str, value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else texts_of(key, value, '["#", "--"]')
    for text in texts:
        if not text.isascii() or not text.isprintable() or not 0 < len(text) <= MOST_SIGNS:
            raise ProfileError(
                f'{key} = {shown(text)!r} is not one to {MOST_SIGNS} ASCII signs, such as "#".'
            )
    if not texts or len({*texts}) != len(texts):
        raise ProfileError(f"{key} = {texts} are not one or more texts, each of them once.")
    return tuple(sorted(texts))


def _encoding(key: str, value: object) -> str:
    text = text_of(key, value)
    try:
        name = canonical_encoding(text)
        usable = name in (*UTF16, *RECODED) or can_be_divided(name)
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise ProfileError(
            f"{key} = {shown(text)!r} cannot be read. Allowed: utf-8, utf-16, encodings whose "
            "ASCII bytes are always ASCII, such as cp1252, iso8859-15, cp850, koi8-r or euc-kr, "
            "and shift_jis, cp932, gbk, gb18030, big5, cp950, cp949."
        )
    return name


def _fields(key: str, value: object) -> dict[str, dict[str, Any]]:
    return {
        name: read_keys(f"{key}.{name}", one, OF_FIELD, _OF_FIELD_IN_FILE)
        for name, one in as_section(key, value).items()
    }


def _header_line(key: str, value: object) -> int | str:
    if type(value) is int and 1 <= value <= MOST_LINES:
        return value
    if value == FOUND:
        return FOUND
    raise ProfileError(
        f'{key} = {as_written(value)} is no line. Write its number, 1 to {MOST_LINES}, or "found".'
    )


def _header_titles(key: str, value: object) -> int | str:
    if type(value) is int and 1 <= value <= MOST_TITLED:
        return value
    if value in (KEPT, SPREAD):
        return str(value)
    raise ProfileError(
        f"{key} = {as_written(value)} does not say which columns have which title. Write {KEPT}, "
        f"{SPREAD}, or above how many columns a title stands, 1 to {MOST_TITLED}."
    )


def _sheet(key: str, value: object) -> str | int:
    if type(value) is int:
        if value < 1:
            raise ProfileError(f"{key} = {value} is no sheet: sheets are counted from 1 on.")
        return value
    text = text_of(key, value).strip()
    if not text:
        raise ProfileError(f"{key} is empty. Write the name of the sheet, or its number.")
    return text


def _lines(such_as: str) -> Reader:
    return lambda key, value: _patterns(key, texts_of(key, value, such_as))


def _patterns(key: str, lines: list[str]) -> tuple[str, ...]:
    for line in lines:
        check_pattern(key, line)
        if fitting(pl.Series([""]), [line]).any():
            raise ProfileError(
                f"{key}: '{shown(line)}' fits an empty line. Say what it begins with."
            )
    if len(set(lines)) != len(lines):
        raise ProfileError(f"{key} names a line twice.")
    return tuple(lines)


def _column_names(key: str, value: object) -> tuple[str, ...]:
    names = [name.strip() for name in texts_of(key, value, '["Date", "Time"]')]
    if not names or "" in names or len({name.casefold() for name in names}) != len(names):
        raise ProfileError(f"{key} = {names} are not one or more columns, each of them once.")
    return tuple(names)


def _column_name(key: str, value: object) -> str:
    (name,) = _column_names(key, [value])
    return name


def _filled(key: str, value: object) -> dict[str, str]:
    section = as_section(key, value)
    filled = [text_of(f"{key}.{name}", one).strip() for name, one in section.items()]
    theirs = {name.strip().casefold() for name in section}
    for name, one in zip(section, filled, strict=True):
        if one.casefold() in theirs:
            raise ProfileError(
                f"{key}.{shown(name)} = {shown(one)!r} is the name of a column of the file, "
                "and the filled column stands beside it. Find it a name of its own."
            )
    _column_names(key, [*section, *filled])
    return dict(zip((name.strip() for name in section), filled, strict=True))


def _field_names(key: str, value: object) -> tuple[str, ...]:
    names = texts_of(key, value, '["EffectiveDate", "ToCurrenciesId"]')
    if not names or len({*names}) != len(names):
        raise ProfileError(f"{key} = {names} are not one or more fields, each of them once.")
    return tuple(names)


def _scale(key: str, value: object) -> str:
    text = text_of(key, value)
    number = plain_number(text)
    if not number:
        raise ProfileError(
            f'{key} = {shown(text)!r} is not a number to multiply by. Write it plainly: "0.01".'
        )
    return f"{number:f}"


def _units(key: str, value: object) -> str:
    text = _constant(key, value)
    if not re.fullmatch("-?10*", text):
        raise ProfileError(
            f"{key} = {shown(text)!r} is no number of units by which all amounts can be divided "
            'exactly. Write "1", "10", "100" ..., or "-1" where the amount has the other sign.'
        )
    return text


def _map_of_units(key: str, value: object) -> dict[str, str]:
    return {theirs: _units(f"{key}.{theirs}", ours) for theirs, ours in _map(key, value).items()}


def _part(key: str, value: object) -> str:
    text = text_of(key, value)
    groups = check_pattern(key, text)
    if groups != 1:
        raise ProfileError(
            f"{key} = '{shown(text)}' has {quantity(groups, 'group')}. Put the part that is "
            "meant, and nothing else, into round brackets; (?:...) groups without being a part."
        )
    return text


def _affix(key: str, value: object) -> str:
    text = text_of(key, value)
    if not text:
        raise ProfileError(f"{key} is empty. Write the text that the sender leaves out.")
    return text


def _map(key: str, value: object) -> dict[str, str]:
    pairs = {
        theirs: _constant(f"{key}.{theirs}", ours)
        for theirs, ours in as_section(key, value).items()
    }
    if not pairs:
        raise ProfileError(f"{key} is empty. Say what stands for what, or take it out.")
    return pairs


def _rate(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ProfileError(f"{key} = {as_written(value)} is not a share. Use 0 to 1.")
    return float(value)


def _columns(key: str, value: object) -> dict[str, str]:
    pairs = {
        theirs: text_of(f"{key}.{theirs}", ours) for theirs, ours in as_section(key, value).items()
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
        name: tuple(sorted({one.strip(" \t") for one in texts_of(f"{key}.{name}", cells, _STATES)}))
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
    # As a float, 1.50 would lose its last digit.
    return typed(key, value, str, "a text in quotes, a whole number, true or false")


OF_UNITS: dict[str, Reader] = {
    "column": _column_name,
    "part": _part,
    "map": _map_of_units,
    "others": _units,
}
"""Keys that say for how many units a number is."""
OF_FIELD: dict[str, Reader] = {
    **WRITTEN,
    "from": _column_names,
    "join": text_of,
    "sum": _column_names,
    "minus": _column_names,
    "scale": _scale,
    "filled": one_of("any", "one"),
    "per": lambda key, value: read_keys(key, value, OF_UNITS),
    "part": _part,
    "prefix": _affix,
    "suffix": _affix,
    "map": _map,
    "default": _constant,
    "key": _field_names,
    "namespace": _name,
}
"""Keys of a field in `fields`: how it is written, and what it is made of."""
_OF_FIELD_IN_FILE = ("lookup",)
"""A key of fields in the file only: it becomes a `map` when the file is loaded."""
KEYS: dict[str, Reader] = {
    "feed": _name,
    "record": _record,
    "delimiter": _delimiter,
    "quote": _quote,
    "escape": one_of("\\"),
    "comment": _comment,
    "skip_lines": _lines(r"['Page \d+']"),
    "header_line": _header_line,
    "header_lines": whole(1, 5),
    "header_titles": _header_titles,
    "unnamed_columns": whole(1, MOST_UNNAMED),
    "footer": _lines("['Total,,,(?P<PaidAmount>[^,]*),.*']"),
    "totals": one_of("all", "kept"),
    "sheet": _sheet,
    "formulas": one_of(COMPUTED, SAVED),
    "names": _column_names,
    "first_line": whole(1, MOST_LINES),
    "position_unit": one_of(CHARACTERS, BYTES),
    "short_lines": one_of("refused", "filled"),
    "encoding": _encoding,
    **WRITTEN,
    "unknown_columns": one_of("refuse", "ignore"),
    "tenant": whole(-(2**31), 2**31 - 1),
    "inner_record": _record,
    "push": flag,
    "compare_only": flag,
    "keep": one_of("text", "reference"),
    "positions": _positions,
    "columns": _columns,
    "fields": _fields,
    "constants": _constants,
    "leave_out": _cells,
    "keep_only": _cells,
}
"""Each top-level key, named like an attribute of Profile, with its reader."""

SECTIONS: dict[str, dict[str, tuple[str, Reader]]] = {
    "unpivot": {
        "keep": ("unpivot_keep", _column_names),
        "columns": ("unpivot_columns", _column_names),
        "name": ("unpivot_name", _column_name),
        "value": ("unpivot_value", _column_name),
    },
    "fill_down": {
        "group": ("fill_group", _column_name),
        "end": ("fill_end", _lines("['Total.*']")),
        "columns": ("fill_columns", _filled),
    },
    "policy": {
        "duplicate": ("duplicate", one_of("conflict", "last_wins")),
        "repeats": ("repeats", one_of("superseded", "conflict")),
        "reference": ("reference", one_of("flag", "reject")),
        "complete": ("complete", flag),
    },
    "budget": {
        "errors": ("budget_errors", whole(0, 2**31 - 1)),
        "rate": ("budget_rate", _rate),
        "read": ("budget_read", _rate),
    },
}
"""Sections with keys of their own, each with the attribute of Profile that it fills."""
