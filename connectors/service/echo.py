"""Whether an answer shows the record that was sent, in the service's own way of writing it.

Null and the empty text are equal, a double comes back with 15 digits or all of them, times compare
as in `connectors.service.times`. If the answer is another kind of record than the one sent, the
fields that both have are compared.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from connectors.service.decoding import Unreadable, lowered
from connectors.service.encoding import Member, Record
from connectors.service.error_entries import Redaction
from connectors.service.times import is_time, moment_of, same_datetime, same_datetime_offset
from schemas.cells.reading import Number, Unread, read_boolean, read_integer, read_number
from schemas.derived import jsv
from schemas.derived.json_text import datetime_text, number_text
from schemas.derived.nested import json_object, json_text
from schemas.field import NESTED, Field, Kind, Table
from schemas.operations import Operation
from schemas.tables import FORM_RESPONSE, TABLES

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_WRAPPED = "campaignactionsformresponses"
_RESULTS = "formmetaresponses"
_BESIDE = {"comments": "formmetacomments", "campaignactionfiles": "formmetafilesresponses"}
"""Second place of a form response's parts."""


def shown_record(operation: Operation, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record in an answer, unwrapped if it has a wrapper; raises Unreadable."""
    if operation.response_name is None or _WRAPPED not in record:
        return record
    return lowered(_tree(record[_WRAPPED]))


class EchoDifference(NamedTuple):
    """A field that did not come back as it was sent."""

    field: Field
    answered: Any
    """The value that came back; if there are several places, the first that differs."""


def differing(
    operation: Operation, sent: Record, echoed: Mapping[str, Any], zone: ZoneInfo
) -> list[EchoDifference]:
    """Fields that did not come back as sent; `echoed` is a `shown_record`. Raises Unreadable."""
    compared = _compared(operation.request, operation.response)
    if operation.request == operation.response:
        return [
            EchoDifference(field, came)
            for field, name in compared
            if not _same(field, sent.get(field.name), came := echoed.get(name), zone)
        ]
    found = []
    for field, name in compared:
        given = sent.get(field.name)
        # Another kind of record may have values of its own where nothing was sent.
        places = _places(operation, name, echoed) if given is not None else ()
        others = (place for place in places if not _same(field, given, place, zone))
        found += [EchoDifference(field, place) for place in islice(others, 1)]
    return found


def check_record(
    operation: Operation,
    sent: Record,
    echoed: Mapping[str, Any],
    differences: Sequence[EchoDifference],
) -> None:
    """Raise Unreadable unless the answer has to be the record that it should hold.

    An answer equal to the record sent passes. A gateway may answer with a name or an Id of its own,
    so in any other answer every value must fit its field's kind and no required field may be
    missing.
    """
    same_record = operation.request == operation.response
    if same_record and echoed and not differences:
        return
    table = TABLES[operation.response]
    for field in table.delivered:
        if not _is_of_kind(field, echoed.get(field.name.lower())):
            raise Unreadable(f"a value of {field.name} that is no {field.kind}")
    required = [field.name for field in table if field.required]
    if same_record:
        # The service's JSON leaves out nulls.
        sure = [name for name in required if sent.get(name) not in (None, "")]
        _check_names(table, [name for name in sure if name.lower() not in echoed])
    else:
        sure = required or [*table.key]
        _check_names(table, [name for name in sure if echoed.get(name.lower()) in (None, "")])
        _check_made(operation, sent, echoed, differences)


def _check_names(table: Table, missing: Sequence[str]) -> None:
    if missing:
        raise Unreadable(f"no {', '.join(missing)} of a {table.name} record")


def _check_made(
    operation: Operation,
    sent: Record,
    echoed: Mapping[str, Any],
    differences: Sequence[EchoDifference],
) -> None:
    """Check that a created record has a key and, if nothing else is required, a value sent."""
    table = TABLES[operation.response]
    for name in table.key:
        if int(echoed[name.lower()]) <= 0:
            raise Unreadable(f"no positive {name} of a {table.name} record")
    unlike = {difference.field.name for difference in differences}
    names = [field.name for field, _ in _compared(operation.request, operation.response)]
    required = any(field.required for field in table)
    if not required and not any(sent.get(name) and name not in unlike for name in names):
        raise Unreadable("no value of the record that was sent")


def service_id(operation: Operation, echoed: Mapping[str, Any]) -> str | None:
    """The key the service gave to a new record; None for records that are sent with a key."""
    table = TABLES[operation.response]
    if operation.request == operation.response or "Id" not in table.by_name:
        return None
    value = echoed.get("id")
    return None if value in (None, "") else str(value)


def echo_text(
    operation: Operation, echoed: Mapping[str, Any], hide: Redaction, zone: ZoneInfo
) -> str:
    """Canonical JSON of an answered record; secrets are left out, unreadable values are texts."""
    table = TABLES[operation.response]
    return json_object(
        (field.name, _canonical(field, hide.value(field, echoed[field.name.lower()]), zone))
        for field in table.delivered
        if not field.secret and echoed.get(field.name.lower()) not in (None, "")
    )


@cache
def _compared(request: str, response: str) -> tuple[tuple[Field, str], ...]:
    answered = {field.name.lower() for field in TABLES[response]}
    if response == FORM_RESPONSE.name:
        answered |= _BESIDE.keys()
    return tuple(
        (field, field.name.lower())
        for field in TABLES[request].delivered
        if field.name.lower() in answered
    )


def _places(operation: Operation, name: str, echoed: Mapping[str, Any]) -> list[Any]:
    """A field's values in another kind of record; a form response may use either of two places."""
    if operation.response != FORM_RESPONSE.name:
        return [echoed.get(name)]
    results = lowered(_tree(echoed.get(_RESULTS)))
    both = [results.get(name), echoed.get(_BESIDE[name])]
    return [place for place in both if place not in (None, "")] or [None]


def _same(field: Field, sent: Member, echoed: Any, zone: ZoneInfo) -> bool:
    # Most values come back unchanged; a datetime may be the same text and yet another instant.
    if sent == echoed and type(sent) is type(echoed) and field.kind is not Kind.DATETIME:
        return True
    if sent is None or sent == "":
        return echoed is None or echoed == ""
    if echoed is None:
        return isinstance(sent, list) and not sent
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            return not isinstance(echoed, bool) and str(sent) == str(echoed)
        case Kind.DOUBLE:
            return same_double(str(sent), echoed)
        case Kind.STRING:
            return bool(sent == echoed)
        case Kind.DATETIME_OFFSET:
            return same_datetime_offset(str(sent), echoed)
        case Kind.DATETIME:
            return same_datetime(str(sent), echoed, zone)
        case Kind.BOOLEAN:
            return sent is (read_boolean(echoed) if isinstance(echoed, str) else echoed is True)
    return bool(_normal(field, sent) == _normal(field, echoed))


def same_double(sent: str, echoed: Any) -> bool:
    """Whether an answered number is the one sent, in all its digits or the first 15."""
    if isinstance(echoed, bool) or not isinstance(echoed, str | int):
        return False
    text = str(echoed)
    if text == sent:
        return True
    if _NUMERAL.fullmatch(text) is None:
        return False
    value = float(sent)
    return float(text) in (value, float(f"{value:.15g}"))


def _normal(field: Field, value: Any) -> Any:
    """A nested value, reduced to what both ways of writing it have in common."""
    match field.kind:
        case Kind.LIST:
            elements = [] if value in (None, "") else _nested(value)
            if not isinstance(elements, list):
                return value
            return [_members(field, element) for element in elements]
        case Kind.MAP:
            return {name: text for name, text in _tree(value).items() if text is not None}
    return _members(field, _tree(value))


def _members(field: Field, value: Any) -> Any:
    if field.of in (None, "string") or not isinstance(value, Mapping):
        return "" if value is None else value
    table = TABLES[str(field.of)]
    given = lowered(value)
    return {
        inner.name: _normal(inner, given[inner.name.lower()])
        if inner.kind in NESTED
        else given[inner.name.lower()]
        for inner in table
        if given.get(inner.name.lower()) not in (None, "")
    }


def _tree(value: Any) -> Mapping[str, Any]:
    tree = _nested(value)
    return tree if isinstance(tree, Mapping) else {}


def _canonical(field: Field, value: Any, zone: ZoneInfo) -> str:
    match field.kind:
        case Kind.DOUBLE:
            number = read_number(str(value)) if not isinstance(value, bool) else None
            if isinstance(number, Number):
                return number_text(number.exact)
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            moment = moment_of(field.kind, value, zone)
            if moment is not None:
                return json_text(datetime_text(moment.wall, moment.offset))
        case Kind.INTEGER | Kind.INTEGER64:
            if _INTEGER.fullmatch(str(value)):
                return str(value)
        case Kind.MAP | Kind.LIST | Kind.RECORD:
            return json_text(_texts(_nested(value)))
    return json_text(_texts(value))


def _texts(value: Any) -> Any:
    """A value in an answer as a JSON tree."""
    match value:
        case bool() | str() | None:
            return value
        case Mapping():
            return {str(name): _texts(member) for name, member in value.items()}
        case list():
            return [_texts(element) for element in value]
    return jsv.Plain(value)


_NUMERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE)
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def _is_of_kind(field: Field, value: Any) -> bool:
    """Whether a value is empty or fits its field's kind; raises Unreadable for a repeated name.

    A time may have tenths of microseconds and a double any digits: the service may compute these.
    """
    if value is None or value == "":
        return True
    match field.kind:
        case Kind.STRING:
            return isinstance(value, str)
        case Kind.BOOLEAN:
            return isinstance(value, bool) or read_boolean(str(value)) in (True, False)
        case Kind.INTEGER | Kind.INTEGER64:
            return not isinstance(value, bool) and not isinstance(
                read_integer(field.kind, str(value)), Unread
            )
        case Kind.DOUBLE:
            # A float is a bare NaN or Infinity: all other numbers are read as texts.
            number = isinstance(value, str | int) and not isinstance(value, bool)
            text = str(value)
            return isinstance(value, float) or (
                number and (text in _NOT_FINITE or _NUMERAL.fullmatch(text) is not None)
            )
        case Kind.MAP | Kind.LIST | Kind.RECORD:
            return _is_nested(field, _nested(value))
    return is_time(value)


def _nested(value: Any) -> Any:
    """A JSON list, map or record, or one in the JSV of a cell; a text that is no JSV stays."""
    if not isinstance(value, str):
        return value
    try:
        return jsv.read(value) if value else None
    except ValueError:
        return value


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
    return all(_is_of_kind(inner, given.get(inner.name.lower())) for inner in TABLES[str(field.of)])
