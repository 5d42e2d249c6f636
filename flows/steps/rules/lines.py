"""Where each key of a TOML text stands, so that what is wrong with it can be shown by line."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?")


def key_lines(text: str) -> dict[Path, int]:
    """The line of every section and key of a text that is TOML; sections of a list are numbered."""
    lines: dict[Path, int] = {}
    seen: dict[str, int] = {}
    section: Path = ()
    for number, statement in _statements(text):
        header = _HEADER.fullmatch(statement)
        if header:
            name = header[2]
            section = (name,)
            if header[1] == "[[":
                section = (name, seen.get(name, 0))
                seen[name] = seen.get(name, 0) + 1
            lines[section] = number
            lines.setdefault((name,), number)
        else:
            for path in _paths(tomllib.loads(statement)):
                lines[(*section, *path)] = number
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Headers and assignments with the line they begin on; a value may go over several lines."""
    pending, begin = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begin = begin if pending else number
        pending = f"{pending}\n{line}" if pending else line
        if _whole(pending):
            yield begin, pending
            pending = ""


def _whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _paths(document: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in document.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))
