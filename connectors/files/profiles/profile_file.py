"""Feed profiles as files: one small TOML file per feed, read and checked for sense.

CSV files beside it, its lookups, say what texts stand for; they become a part of the profile.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.disk.system_errors import unread
from connectors.files.layout.carried_columns import record_columns
from connectors.files.layout.header_names import HeaderNames
from connectors.files.layout.unpivot import unpivot_of
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_checks import check_tenant, check_together
from connectors.files.profiles.profile_keys import KEYS, SECTIONS
from connectors.files.profiles.profile_values import as_section, known
from connectors.files.text.positions import in_order
from connectors.printable import shown
from schemas.cells.numbers import plain_number
from schemas.counting import quantity
from schemas.tables import EXTRACTS
from schemas.toml_text import key_lines, read_toml, written_text

_BEHIND_KEY = (" ", ":", ".", "")
"""What may follow the key that a message begins with."""


def load_profile(path: Path) -> Profile:
    """The profile in `path`; ProfileError names the file, the key and what is allowed."""
    try:
        text = written_text(path)
        document = read_toml(text)
    except OSError as error:
        raise ProfileError(f"{path}: {unread(error)}") from error
    except ValueError as error:
        raise ProfileError(f"{path}: is not TOML: {error}.") from error
    try:
        return read_profile(_with_lookups(document, path.parent))
    except ProfileError as error:
        message = _message_of_lookup(str(error), document, path.parent)
        raise ProfileError(f"{path}{_line_of(message, text)}: {message}") from error


def _line_of(error: str, text: str) -> str:
    """The line of the key that an error begins with, or of the section it is in.

    The longest match wins: a column name has blanks, and may begin like another one.
    """
    lines = {".".join(map(str, path)): line for path, line in key_lines(text).items()}
    begun = [
        (len(spelled), line)
        for key, line in lines.items()
        for spelled in {key, shown(key)}
        if error.startswith(spelled) and error[len(spelled) : len(spelled) + 1] in _BEHIND_KEY
    ]
    return f", line {max(begun)[1]}" if begun else ""


def read_profile(document: Mapping[str, Any]) -> Profile:
    """The profile a TOML document states; ProfileError names the key and what is allowed."""
    if "feed" not in document:
        of = [key for key, value in document.items() if isinstance(value, dict) and "feed" in value]
        above = f", above all sections: what stands below [{of[0]}] is of {of[0]}" if of else ""
        raise ProfileError(f'feed is missing. Name the feed: feed = "bank-x"{above}.')
    values: dict[str, Any] = {}
    _refuse_nul(document)
    for key, value in document.items():
        if key not in SECTIONS:
            values[key] = known(key, key, KEYS, SECTIONS)(key, value)
            continue
        for inner, inner_value in as_section(key, value).items():
            name, reader = known(f"{key}.{inner}", inner, SECTIONS[key])
            values[name] = reader(f"{key}.{inner}", inner_value)
    profile = Profile(**values)
    check_together(profile)
    if profile.positions or profile.names:
        _check_columns(profile)
    return profile


def _refuse_nul(value: object, key: str = "") -> None:
    """Refuse texts with NUL, which cannot be stored; raises ProfileError."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            _refuse_nul(name, f"{key}.{name}".lstrip("."))
            _refuse_nul(one, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for one in value:
            _refuse_nul(one, key)
    elif isinstance(value, str) and "\0" in value:
        raise ProfileError(f"{key} has a NUL in it. No delivered text has one: take it out.")


def _check_columns(profile: Profile) -> None:
    """Refuse stated columns that do not fit the record: no header will ever correct them."""
    key = "names" if profile.names else "positions"
    stated = profile.names or tuple(in_order(profile.positions))
    unpivot = unpivot_of(stated, profile)
    if profile.unpivots and unpivot is None:
        raise ProfileError(f"{key}: unpivot names a column that is none of them, or all of them.")
    stated = record_columns(stated, unpivot, profile)
    names = HeaderNames(key, None, stated, profile)
    try:
        names.fields_of(EXTRACTS[profile.record or ""])
    except ExtractRefused as refusal:
        raise ProfileError(str(refusal)) from None


def with_terms(profile: Profile, terms: Mapping[str, Any]) -> Profile:
    """The profile with terms stated for one delivery (None: not stated). Raises ProfileError."""
    given = {name: value for name, value in terms.items() if value is not None}
    readers = KEYS | dict(chain(*(section.values() for section in SECTIONS.values())))
    stated = {name: readers[name](name, value) for name, value in given.items()}
    profile = replace(profile, **stated)
    check_tenant(profile)
    return profile


LOOKUP, MAP = "lookup", "map"
_MOST_LINES = 10_000


def _with_lookups(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The profile's document, with the content of its lookups in place of their file names.

    Raises ProfileError for a file that is unreadable, lacks its two columns, or contradicts itself.
    """
    maps = {name: _with_map(name, written, folder) for name, written in _with_lookup(document)}
    return {**document, "fields": {**document["fields"], **maps}} if maps else document


def _message_of_lookup(message: str, document: Mapping[str, Any], folder: Path) -> str:
    """The message about a map entry; if it comes from a lookup, with the file and line of it."""
    for name, written in _with_lookup(document):
        at, key = f"fields.{name}.{MAP}.", f"fields.{name}.{LOOKUP}"
        if message.startswith(at):
            path = folder / written[LOOKUP]
            # The longest match: a text may begin like another one.
            meant = [
                (len(theirs), -number)
                for number, (theirs, _) in _pairs(key, path)
                if message.startswith(f"{at}{shown(theirs)} ")
            ]
            if meant:
                _, number = max(meant)
                return f"{key}: {path}, line {-number}: {message.removeprefix(at)}"
    return message


def _with_lookup(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields with a lookup, and their keys."""
    fields = document.get("fields")
    for name, written in fields.items() if isinstance(fields, Mapping) else ():
        if isinstance(written, Mapping) and LOOKUP in written:
            yield name, written


def _with_map(name: str, written: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    key = f"fields.{name}.{LOOKUP}"
    if MAP in written:
        raise ProfileError(
            f"{key} and fields.{name}.{MAP} both say what texts stand for. Keep one."
        )
    if not isinstance(written[LOOKUP], str):
        raise ProfileError(f"{key} = {shown(str(written[LOOKUP]))!r} is no name of a file.")
    rest = {one: value for one, value in written.items() if one != LOOKUP}
    return {**rest, MAP: _read(key, folder / written[LOOKUP])}


def _read(key: str, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, (theirs, ours) in _pairs(key, path):
        if found.setdefault(theirs, ours) != ours:
            raise ProfileError(
                f"{key}: {path}, line {number} says that {shown(theirs)!r} stands for "
                f"{shown(ours)!r}, and a line above says {shown(found[theirs])!r}."
            )
    if not found:
        raise ProfileError(
            f"{key}: {path} says of no text what it stands for. Write two cells a line, the text "
            "that is delivered and what it stands for, below a header."
        )
    return found


def _pairs(key: str, path: Path) -> list[tuple[int, tuple[str, str]]]:
    """The non-empty lines below the header, with their numbers."""
    try:
        reader = csv.reader(io.StringIO(written_text(path), newline=""), strict=True)
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        raise ProfileError(f"{key}: {path} {unread(error)}") from error
    except (ValueError, csv.Error) as error:
        raise ProfileError(f"{key}: {path} is not CSV in UTF-8: {error}.") from error
    if len(lines) - 1 > _MOST_LINES:
        raise ProfileError(
            f"{key}: {path} has {quantity(len(lines) - 1, 'line')}; the limit is {_MOST_LINES}."
        )
    if lines and plain_number(lines[0][1][-1]) is not None:
        raise ProfileError(
            f"{key}: {path} has no header: line 1 ends with {shown(lines[0][1][-1])!r}, a number. "
            "Write the names of its two columns above it."
        )
    for number, cells in lines[1:]:
        if len(cells) != 2:
            raise ProfileError(
                f"{key}: {path}, line {number} has {quantity(len(cells), 'cell')}, not two: the "
                "text that is delivered, and what it stands for, below a header."
            )
    return [(number, (theirs, ours)) for number, (theirs, ours) in lines[1:]]
