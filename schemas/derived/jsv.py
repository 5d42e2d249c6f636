"""Read and write JSV, the text in which the service puts lists, maps and records into one cell.

`[Client,"x,y"]`, `{k:"v,w"}`, `[{Name:a,FileSize:1}]`. JSV has no types: reading gives texts, lists
and maps of texts. A text is quoted if it is empty or contains one of `" : , { } [ ]` CR LF; quotes
inside it are doubled. A member without a value is left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

from schemas.counting import quantity

MOST_CHARACTERS = 4 * 1024 * 1024
DEEPEST = 32

Value: TypeAlias = "str | list[Value] | dict[str, Value]"
"""Values that reading gives."""
Writable: TypeAlias = "str | bool | int | Sequence[Writable] | Mapping[str, Writable] | None"
"""Values that can be written; None only as a member's value, which leaves the member out."""

_NEEDS_QUOTES = re.compile(r'[":,{}\[\]\r\n]')
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
_BARE_NAME = re.compile(r'[^":,{}\[\]\r\n]+')
# Times contain colons but are written without quotes, so a bare value may contain colons.
_BARE_VALUE = re.compile(r'[^",{}\[\]\r\n]+')


class Plain(str):
    """A text written as it stands, without quotes: a number or a time."""

    __slots__ = ()


def read(text: str) -> Value:
    """The value of a JSV text.

    Raises ValueError, naming the character position from 1, for anything the service would not
    write: unbalanced brackets, text after a closing quote or after the value, a missing value, a
    member named twice, more than `DEEPEST` levels or `MOST_CHARACTERS` characters.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"JSV of {quantity(len(text), 'character')}; the limit is {MOST_CHARACTERS}"
        )
    reader = _Reader(text)
    value = reader.value(0)
    if reader.position < len(text):
        reader.fail("text after the value")
    return value


def write(value: Writable) -> str:
    """The JSV text of a value, byte for byte as the service writes it.

    Raises ValueError for None outside a member and for more than `DEEPEST` levels.
    """
    return _write(value, 0)


class _Reader:
    """A position in the text that moves forward as the text is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def fail(self, problem: str) -> NoReturn:
        raise ValueError(f"JSV is ill-formed at character {self.position + 1}: {problem}")

    def at(self, mark: str) -> bool:
        """Step over the mark if it stands here; says whether it did."""
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def value(self, depth: int) -> Value:
        if depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST} levels")
        if self.at("["):
            return self.elements(depth)
        if self.at("{"):
            return self.members(depth)
        return self.scalar(
            _BARE_VALUE, "a value is missing; an empty text is written as two quotes"
        )

    def elements(self, depth: int) -> list[Value]:
        found: list[Value] = []
        if self.at("]"):
            return found
        while True:
            found.append(self.value(depth + 1))
            if self.at("]"):
                return found
            if not self.at(","):
                self.fail("the list goes on without a comma or is never closed")

    def members(self, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        if self.at("}"):
            return found
        while True:
            start = self.position
            name = self.scalar(_BARE_NAME, "a member has no name")
            if name in found:
                self.position = start
                self.fail("a member is named twice")
            if not self.at(":"):
                self.fail("a member's name is not followed by a colon")
            found[name] = self.value(depth + 1)
            if self.at("}"):
                return found
            if not self.at(","):
                self.fail("the map goes on without a comma or is never closed")

    def scalar(self, bare: re.Pattern[str], missing: str) -> str:
        if self.text.startswith('"', self.position):
            quoted = _QUOTED.match(self.text, self.position)
            if quoted is None:
                self.fail("a quote is never closed")
            self.position = quoted.end()
            return quoted[1].replace('""', '"')
        found = bare.match(self.text, self.position)
        if found is None:
            self.fail(missing)
        self.position = found.end()
        return found[0]


def _write(value: Writable, depth: int) -> str:
    if depth > DEEPEST:
        raise ValueError(f"value is nested deeper than {DEEPEST} levels; JSV is not written")
    match value:
        case Plain():
            return str(value)
        case str():
            return _text(value)
        case bool() | int():
            return str(value)
        case Mapping():
            members = (
                f"{_text(name)}:{_write(member, depth + 1)}"
                for name, member in value.items()
                if member is not None
            )
            return "{" + ",".join(members) + "}"
        case Sequence():
            return "[" + ",".join(_write(element, depth + 1) for element in value) + "]"
    raise ValueError(f"JSV has no form for {type(value).__name__} here")


def _text(text: str) -> str:
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
