"""CSV files beside a feed profile that say what a text stands for; they become a part of it."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connectors.errors import ProfileError
from connectors.files.content import shown
from connectors.files.rule_files import written_text
from schemas.counting import quantity

LOOKUP, MAP = "lookup", "map"
MOST_LINES = 10_000


def with_lookups(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The document of a profile with the lines of its lookups in place of their names.

    Raises ProfileError for a file that cannot be read, is none of two columns, or says two things.
    """
    fields = document.get("fields")
    if not isinstance(fields, Mapping):
        return document
    return {
        **document,
        "fields": {name: _with_map(name, one, folder) for name, one in fields.items()},
    }


def _with_map(name: str, told: object, folder: Path) -> object:
    if not isinstance(told, Mapping) or LOOKUP not in told:
        return told
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
    try:
        lines = [*csv.reader(io.StringIO(written_text(path), newline=""), strict=True)]
    except OSError as error:
        raise ProfileError(f"{key}: {path} cannot be read: {error.strerror}.") from error
    except (ValueError, csv.Error) as error:
        raise ProfileError(f"{key}: {path} is not CSV in UTF-8: {error}.") from error
    if len(lines) - 1 > MOST_LINES:
        raise ProfileError(
            f"{key}: {path} has {quantity(len(lines) - 1, 'line')}; the limit is {MOST_LINES}."
        )
    found: dict[str, str] = {}
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != 2:
            raise ProfileError(
                f"{key}: {path}, line {number} has {quantity(len(cells), 'cell')}, not two: the "
                "text that is delivered, and what it stands for, below a header."
            )
        theirs, ours = cells
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
