"""CSV files beside a feed profile that say what a text stands for; they become a part of it."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.errors import ProfileError
from connectors.files.content import shown
from connectors.files.rule_files import written_text
from schemas.cells.numbers import plain_number
from schemas.counting import quantity

LOOKUP, MAP = "lookup", "map"
MOST_LINES = 10_000


def with_lookups(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The document of a profile with the lines of its lookups in place of their names.

    Raises ProfileError for a file that cannot be read, is none of two columns, or says two things.
    """
    maps = {name: _with_map(name, told, folder) for name, told in _with_lookup(document)}
    return {**document, "fields": {**document["fields"], **maps}} if maps else document


def told_of_lookup(message: str, document: Mapping[str, Any], folder: Path) -> str:
    """What is wrong with a map, of the file and line that it comes from, where it is a lookup's."""
    for name, told in _with_lookup(document):
        at, key = f"fields.{name}.{MAP}.", f"fields.{name}.{LOOKUP}"
        if message.startswith(at):
            path = folder / told[LOOKUP]
            # The longest: a text may begin with another one.
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
    """The fields that have one, with their keys."""
    fields = document.get("fields")
    for name, told in fields.items() if isinstance(fields, Mapping) else ():
        if isinstance(told, Mapping) and LOOKUP in told:
            yield name, told


def _with_map(name: str, told: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    key = f"fields.{name}.{LOOKUP}"
    if MAP in told:
        raise ProfileError(
            f"{key} and fields.{name}.{MAP} both say what texts stand for. Keep one."
        )
    if not isinstance(told[LOOKUP], str):
        raise ProfileError(f"{key} = {shown(str(told[LOOKUP]))!r} is no name of a file.")
    rest = {one: value for one, value in told.items() if one != LOOKUP}
    return {**rest, MAP: _read(key, folder / told[LOOKUP])}


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
    """The lines below the header with something in them, each with its number."""
    try:
        reader = csv.reader(io.StringIO(written_text(path), newline=""), strict=True)
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        raise ProfileError(f"{key}: {path} cannot be read: {error.strerror}.") from error
    except (ValueError, csv.Error) as error:
        raise ProfileError(f"{key}: {path} is not CSV in UTF-8: {error}.") from error
    if len(lines) - 1 > MOST_LINES:
        raise ProfileError(
            f"{key}: {path} has {quantity(len(lines) - 1, 'line')}; the limit is {MOST_LINES}."
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
