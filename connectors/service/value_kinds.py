"""Whether a value of an answer is of its field's kind, as the service writes that kind."""

import re
from collections.abc import Mapping
from typing import Any

from connectors.service.decoding import lowered
from connectors.service.times import is_time
from schemas.cells.reading import Unread, read_boolean, read_integer
from schemas.derived import jsv
from schemas.field import Field, Kind
from schemas.tables import TABLES

NUMERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE)
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def is_of_kind(field: Field, told: Any) -> bool:
    """Whether it is, or nothing; raises Unreadable for what names a member twice.

    A time may have a tenth of a microsecond, and a double any digits: these the service computes.
    """
    if told is None or told == "":
        return True
    match field.kind:
        case Kind.STRING:
            return isinstance(told, str)
        case Kind.BOOLEAN:
            return isinstance(told, bool) or read_boolean(str(told)) in (True, False)
        case Kind.INTEGER | Kind.INTEGER64:
            return not isinstance(told, bool) and not isinstance(
                read_integer(field.kind, str(told)), Unread
            )
        case Kind.DOUBLE:
            # A float is a bare NaN or Infinity: all other numbers are kept as texts.
            number = isinstance(told, str | int) and not isinstance(told, bool)
            text = str(told)
            return isinstance(told, float) or (
                number and (text in _NOT_FINITE or NUMERAL.fullmatch(text) is not None)
            )
        case Kind.MAP | Kind.LIST | Kind.RECORD:
            return _is_nested(field, nested(told))
    return is_time(told)


def nested(told: Any) -> Any:
    """A list, map or record of JSON, or of the JSV in a cell; a text that is none is itself."""
    if not isinstance(told, str):
        return told
    try:
        return jsv.read(told) if told else None
    except ValueError:
        return told


def _is_nested(field: Field, tree: Any) -> bool:
    match field.kind:
        case Kind.MAP:
            return isinstance(tree, Mapping) and all(
                isinstance(text, str | None) for text in tree.values()
            )
        case Kind.LIST:
            return isinstance(tree, list) and all(_is_element(field, one) for one in tree)
    return _is_element(field, tree)


def _is_element(field: Field, tree: Any) -> bool:
    if field.of in (None, "string"):
        return isinstance(tree, str | None)
    if not isinstance(tree, Mapping):
        return False
    given = lowered(tree)
    return all(is_of_kind(inner, given.get(inner.name.lower())) for inner in TABLES[str(field.of)])
