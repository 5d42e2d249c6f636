"""TOML written by people: read whole or refused, with the line of every key.

Profiles and rules are read here, and misspelt names are answered with a suggestion.
"""

import pathlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

Path = tuple[str | int, ...]

MOST_BYTES = 1024 * 1024
"""The largest file to read; a larger one is not TOML by hand but another file named by mistake."""
MOST_NESTED = 32
"""The deepest nesting of sections and lists; readers recurse once for each level."""
_NESTED = f"its lists or tables are nested too deeply: {MOST_NESTED} within each other are read"
_SIGNS = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")'
    r"|'''.*?'''(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
"""Texts and comments, in which brackets and line ends mean nothing; then brackets and line ends."""


def written_text(path: pathlib.Path) -> str:
    """The text of a file; raises OSError, and ValueError if it is too large or not UTF-8."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def read_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse a document; raises ValueError with the reason if it cannot be read."""
    try:
        document = tomllib.loads(text, parse_float=parse_float)
        # A hexadecimal number may parse and yet be too long to show in a message.
        str(document)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(_NESTED) from None
    except (ValueError, ArithmeticError):
        raise ValueError("a number in it is too large to be read") from None
    if _is_nested(document):
        raise ValueError(_NESTED)
    return document


def _is_nested(document: object) -> bool:
    """Whether anything in a document is nested deeper than `MOST_NESTED`."""
    level: list[Any] = [document]
    for _ in range(MOST_NESTED):
        within = (one.values() if isinstance(one, dict) else one for one in level)
        level = [inner for one in within for inner in one if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def key_lines(text: str) -> dict[Path, int]:
    """The line of every section and key of a text that `read_toml` accepts.

    Sections of a list are numbered.
    """
    lines: dict[Path, int] = {}
    seen: dict[str, int] = {}
    section: Path = ()
    for number, statement in _statements(text):
        if statement.startswith("["):
            name = _section(statement)
            section = (name,)
            if statement.startswith("[["):
                section = (name, seen.get(name, 0))
                seen[name] = seen.get(name, 0) + 1
            lines[section] = number
            lines.setdefault((name,), number)
        else:
            for path in _paths(tomllib.loads(statement)):
                lines[(*section, *path)] = number
    return lines


def suggestion(value: str, allowed: Collection[str], called: str = "Allowed") -> str:
    """What a value that is not allowed was probably meant to be, if anything, and all that is."""
    folded = {name.casefold(): name for name in allowed}
    close = get_close_matches(value.casefold(), folded, n=1)
    guess = f"Did you mean {folded[close[0]]}? " if close else ""
    return f"{guess}{called}: {', '.join(allowed)}."


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Headers and assignments, each with its first line; a value may span several lines."""
    number, begin, depth = 1, 0, 0
    for sign in _SIGNS.finditer(f"{text}\n"):
        depth += (sign[0] in ("[", "{")) - (sign[0] in ("]", "}"))
        if sign[0] == "\n" and depth == 0:
            statement = text[begin : sign.end()]
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield number, statement.strip()
            number += statement.count("\n")
            begin = sign.end()


def _section(header: str) -> str:
    """The name of a section, without quotes around its parts."""
    # The path of a section in a list ends like that of any other, since it is in a list.
    *_, path = _paths(tomllib.loads(header))
    return ".".join(map(str, path))


def _paths(document: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in document.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))
