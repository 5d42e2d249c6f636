r"""Read lists, maps and records from one cell, given as JSON or as JSV, into canonical JSON text.

Canonical: members in the field table's order and spelling, maps by key, nulls and blanks left out;
equal values are equal texts. A JSON number or boolean is never taken for a text, because that text
might not be the one that was meant. Text that is not JSON is JSV, which has texts only.

JSV has no escapes, so `["C:\new"]` is one value in JSON and another in JSV. Such a text is refused.
A blank after the first bracket makes it JSON, and is how it is written here. `[ ]` is refused too:
it is an empty list in JSON and a list of one blank in JSV.
"""

import json
import re
from collections.abc import Iterable
from typing import NoReturn, TypeAlias, cast

from schemas.cells.reading import Unread
from schemas.counting import quantity
from schemas.derived import jsv
from schemas.derived.jsv import Plain
from schemas.field import Field, Kind, Table
from schemas.tables import TABLES

Tree: TypeAlias = "str | bool | list[Tree] | dict[str, Tree] | None"
"""A value as written; numbers are `Plain`, so that no digit is lost."""

SHOWN_NAME = 60
"""The most characters of a member's name that a problem shows."""

_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|([\[{])|[\]}]', re.DOTALL)
_BLANK_LIST = re.compile(r"\[[ \t]+\]")
_UNSOUND = re.compile("[\x00\ud800-\udfff]")
_JSON_NAMES = {str: "a text", Plain: "a number", bool: "a boolean", type(None): "null"} | {
    list: "a list",
    dict: "an object",
}


def read_nested(field: Field, text: str) -> str | Unread:
    """The canonical JSON of a MAP, LIST or RECORD cell, or why it has none.

    The `detail` of `Unread` says what is wrong and where; it shows names but never a value.
    """
    try:
        tree = read_tree(text)
        return cell_text(_typed(field, tree, field.name))
    except ValueError as problem:
        return Unread(field.kind.name.capitalize(), {"detail": str(problem)})


def read_tree(text: str) -> Tree:
    """The value of a JSON text, or of a JSV text if it is not JSON; blanks around it are ignored.

    Raises ValueError for a text that is neither, for a member named twice, for NUL characters and
    lone surrogates, beyond the limits of JSV, and if the service would write the same text as JSV
    for a value other than its JSON value.
    """
    if len(text) > jsv.MOST_CHARACTERS:
        raise ValueError(f"{quantity(len(text), 'character')}; the limit is {jsv.MOST_CHARACTERS}")
    if _UNSOUND.search(text):
        raise ValueError("a NUL character or half of a surrogate pair")
    text = text.strip(" \t\r\n")
    try:
        tree = _read_json(text)
    except json.JSONDecodeError as no_json:
        return _read_jsv(text, no_json)
    # Without an escape or a list of blanks, both forms read the text alike.
    if "\\" in text and _means_another(text, tree):
        raise ValueError("JSON and JSV differ here; a blank after the first bracket makes it JSON")
    if _BLANK_LIST.search(text) and _means_another(text, tree):
        raise ValueError(
            'JSON and JSV differ here: write [] for a list of nothing, [" "] for one blank'
        )
    return tree


def sound_text(text: str) -> str:
    """A text as UTF-8 and PostgreSQL can hold it: no NUL character, no lone surrogate."""
    return _UNSOUND.sub("\N{REPLACEMENT CHARACTER}", text)


def cell_text(text: str) -> str:
    """A JSON list or object as a cell holds it, written so that it is read as JSON again."""
    if "\\" in text and _means_another(text, _read_json(text)):
        return f"{text[0]} {text[1:]}"
    return text


def json_text(tree: Tree) -> str:
    """JSON without blanks, in the given order; strings are escaped like PostgreSQL's `to_json`."""
    match tree:
        case Plain():
            return str(tree)
        case list():
            return "[" + ",".join(map(json_text, tree)) + "]"
        case dict():
            return json_object((name, json_text(member)) for name, member in tree.items())
        case _:
            return json.dumps(tree, ensure_ascii=False)


def json_object(members: Iterable[tuple[str, str]]) -> str:
    """A JSON object of names and the JSON texts of their values."""
    return "{" + ",".join(f"{json_text(name)}:{value}" for name, value in members) + "}"


def spelled_members(
    table: Table, members: dict[str, Tree], fields: Iterable[Field]
) -> dict[str, Tree]:
    """Members under the document's spelling of these fields, in their order; case is ignored.

    Raises ValueError for a member that is not one of these fields, and for one named twice.
    """
    names = {field.name.lower(): field.name for field in fields}
    found: dict[str, Tree] = {}
    for given, value in members.items():
        name = names.get(given.lower())
        if name is None:
            raise ValueError(f"member {display_name(given)} is not a field of {table.name}")
        if name in found:
            raise ValueError(f"member {name} is given twice")
        found[name] = value
    return {name: found[name] for name in names.values() if name in found}


def display_name(name: str) -> str:
    """A member's name as a problem shows it: quoted, escaped and cut to `SHOWN_NAME`."""
    return json.dumps(name if len(name) <= SHOWN_NAME else name[: SHOWN_NAME - 1] + "…")


def json_name(tree: Tree) -> str:
    """The JSON type of a value, in words."""
    return _JSON_NAMES[type(tree)]


def _typed(field: Field, tree: Tree, place: str) -> str:
    match field.kind:
        case Kind.STRING:
            return _text(tree, place)
        case Kind.MAP:
            return _map(field, tree, place)
        case Kind.LIST:
            if not isinstance(tree, list):
                _refuse(place, "a list", tree)
            elements = (
                _element(field, element, f"{place}[{index}]") for index, element in enumerate(tree)
            )
            return "[" + ",".join(elements) + "]"
        case Kind.RECORD:
            return _element(field, tree, place)
        case _:
            raise TypeError(f"{place}: a nested record cannot hold a field of kind {field.kind}")


def _element(field: Field, tree: Tree, place: str) -> str:
    if field.of is None or field.of == "string":
        return _text(tree, place)
    table = TABLES[field.of]
    if not isinstance(tree, dict):
        _refuse(place, f"a {table.name} record", tree)
    members = spelled_members(table, tree, table.fields)
    return json_object(
        (name, _typed(table.by_name[name], member, f"{place}.{name}"))
        for name, member in members.items()
        if member is not None
    )


def _map(field: Field, tree: Tree, place: str) -> str:
    if not isinstance(tree, dict):
        _refuse(place, "a map of texts", tree)
    return json_object(
        (
            name,
            "null"
            if tree[name] is None and field.nullable_values
            else _text(tree[name], f"{place}[{display_name(name)}]"),
        )
        for name in sorted(tree)
    )


def _text(tree: Tree, place: str) -> str:
    if not isinstance(tree, str) or isinstance(tree, Plain):
        _refuse(place, "a text", tree)
    return json_text(tree)


def _refuse(place: str, expected: str, tree: Tree) -> NoReturn:
    raise ValueError(f"{place} is {json_name(tree)} where {expected} is expected")


def _read_json(text: str) -> Tree:
    _check_depth(text)
    tree: Tree = json.loads(
        text,
        parse_int=Plain,
        parse_float=Plain,
        parse_constant=Plain,
        object_pairs_hook=_unique_members,
    )
    # Escapes can stand for characters that the text itself does not contain.
    if "\\u" in text:
        _check_sound(tree)
    return tree


def _read_jsv(text: str, no_json: json.JSONDecodeError) -> Tree:
    try:
        # JSV values are trees that contain only texts.
        return cast("Tree", jsv.read(text))
    except ValueError as no_jsv:
        # Quoted names point to JSON, so the JSON problem is the helpful one.
        if re.match(r'\s*[\[{]\s*"', text):
            problem = f"JSON is ill-formed at character {no_json.pos + 1}: {no_json.msg}"
            raise ValueError(problem) from no_jsv
        raise


def _means_another(text: str, tree: Tree) -> bool:
    """Whether the service would write exactly this text for a value other than the tree."""
    try:
        value = jsv.read(text)
        return value != tree and jsv.write(value) == text
    except ValueError:
        return False


def _check_depth(text: str) -> None:
    # The parser's own limit is the stack, whose size varies.
    if text.count("[") + text.count("{") <= jsv.DEEPEST:
        return
    depth = 0
    for token in _BRACKETS.finditer(text):
        if token[1]:
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth > jsv.DEEPEST:
            raise json.JSONDecodeError("nested too deep", text, token.start())


def _check_sound(tree: Tree) -> None:
    match tree:
        case str():
            if _UNSOUND.search(tree):
                raise ValueError("an escape for a NUL character or half of a surrogate pair")
        case list():
            for element in tree:
                _check_sound(element)
        case dict():
            for name, member in tree.items():
                _check_sound(name)
                _check_sound(member)


def _unique_members(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is named twice")
    return members
