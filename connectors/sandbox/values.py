"""Typed values read from a caller's text, with the framework's leniency."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, cast
from zoneinfo import ZoneInfo

from connectors.sandbox.moments import Time, read_datetime, read_datetime_offset
from connectors.sandbox.numerals import read_double
from connectors.sandbox.options import SandboxOptions
from schemas.derived import jsv
from schemas.derived.jsv import Plain
from schemas.field import Field, Kind, Table
from schemas.tables import TABLES

Nested: TypeAlias = str | list["Nested | None"] | dict[str, "Nested | None"]
Value: TypeAlias = int | float | str | bool | Time | list[Nested | None] | dict[str, Nested | None]
Record: TypeAlias = Mapping[str, Value | None]
"""One record's values by field name; an absent field is null."""

Tree: TypeAlias = str | bool | list["Tree"] | dict[str, "Tree"] | None
"""A JSON or JSV value as written; JSON numbers are `Plain`."""

INTEGER_BITS = {Kind.INTEGER: 32, Kind.INTEGER64: 64}
_INTEGER = re.compile(r"[ \t]*([+-]?[0-9]{1,20})[ \t]*", re.ASCII)
_TRUE, _FALSE = frozenset({"true", "1", "on"}), frozenset({"false", "0", "off"})
# Half a surrogate pair cannot be UTF-8; .NET writes the replacement character.
_SURROGATE = re.compile("[\ud800-\udfff]")


class Entries(dict[str, "Nested | None"]):
    """A map of texts, whose keys are data and not field names."""


class UnreadValue(Enum):
    """The marker for a text that does not fit its field's kind."""

    UNREAD = "unread"


UNREAD = UnreadValue.UNREAD


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads values as one host does."""

    options: SandboxOptions
    as_written: bool = False
    """Times keep the zone they were written in, as a host's own values do."""

    def text(self, field: Field, text: str) -> Value | UnreadValue | None:
        """The value of a CSV cell, query value, path part or form value."""
        if field.kind is Kind.STRING:
            return _sound(text)
        if text == "":
            return None
        match field.kind:
            case Kind.LIST | Kind.MAP | Kind.RECORD:
                return self._nested_text(field, text)
            case _:
                return self._scalar(field, text)

    def tree(self, field: Field, tree: Tree) -> Value | UnreadValue | None:
        """The value of a JSON or JSV member."""
        if tree is None:
            return None
        match field.kind:
            case Kind.STRING:
                return _text_of(tree)
            case Kind.LIST | Kind.MAP | Kind.RECORD:
                return self._nested(field, tree)
        if isinstance(tree, bool):
            return tree if field.kind is Kind.BOOLEAN else UNREAD
        return self._scalar(field, tree) if isinstance(tree, str) and tree else UNREAD

    def _scalar(self, field: Field, text: str) -> Value | UnreadValue:
        match field.kind:
            case Kind.INTEGER | Kind.INTEGER64:
                value: Value | None = _integer(text, INTEGER_BITS[field.kind])
            case Kind.DOUBLE:
                value = read_double(text, overflows=self.options.traits.shortest_doubles)
            case Kind.BOOLEAN:
                value = _boolean(text)
            case Kind.DATETIME:
                zone = ZoneInfo(self.options.zone)
                value = read_datetime(text, zone, as_written=self.as_written)
            case _:
                value = read_datetime_offset(text)
        return UNREAD if value is None else value

    def _nested_text(self, field: Field, text: str) -> Value | UnreadValue:
        if field.kind is Kind.LIST and not text.startswith("["):
            text = f"[{text}]"
        try:
            return self._nested(field, jsv_tree(text))
        except ValueError:
            return UNREAD

    def _nested(self, field: Field, tree: Tree) -> Value | UnreadValue:
        match field.kind, tree:
            case Kind.LIST, list():
                return [_element(field, element) for element in tree]
            case Kind.MAP, dict():
                return _entries(tree)
            case Kind.RECORD, dict() if field.of:
                return _members(TABLES[field.of], tree)
            case _:
                return UNREAD


def jsv_tree(text: str) -> Tree:
    """A JSV value as a tree, which has texts only; raises ValueError if the text is no JSV."""
    return cast("Tree", jsv.read(text))


def _element(field: Field, tree: Tree) -> Nested | None:
    if tree is None:
        return None
    if field.of is None or field.of == "string":
        return _text_of(tree)
    return _members(TABLES[field.of], tree) if isinstance(tree, dict) else None


def _members(table: Table, tree: Mapping[str, Tree]) -> dict[str, Nested | None]:
    given = {name.lower(): member for name, member in tree.items()}
    found: dict[str, Nested | None] = {}
    for field in table.fields:
        member = given.get(field.name.lower())
        if member is None:
            continue
        match field.kind, member:
            case Kind.LIST, list():
                found[field.name] = [_element(field, element) for element in member]
            case Kind.MAP, dict():
                found[field.name] = _entries(member)
            case Kind.STRING, _:
                found[field.name] = _text_of(member)
    return found


def _entries(tree: Mapping[str, Tree]) -> Entries:
    return Entries(
        (_sound(name), None if member is None else _text_of(member))
        for name, member in tree.items()
    )


def _integer(text: str, bits: int) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    value = int(match[1])
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _boolean(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _text_of(tree: Tree) -> str:
    """The value of a text field, which takes any tree as text."""
    match tree:
        case bool():
            return "true" if tree else "false"
        case str():
            return _sound(str(tree))
        case _:
            return _sound(_json(tree))


def _json(tree: Tree) -> str:
    match tree:
        case Plain():
            return str(tree)
        case list():
            return "[" + ",".join(map(_json, tree)) + "]"
        case dict():
            members = (f"{json.dumps(name)}:{_json(member)}" for name, member in tree.items())
            return "{" + ",".join(members) + "}"
        case _:
            return json.dumps(tree, ensure_ascii=False)


def _sound(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
