"""A record as the bytes of a request, in the service's CSV or JSON."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from urllib.parse import quote
from zoneinfo import ZoneInfo

from schemas.cells.reading import Moment, Unread, read_moment, zone_minutes
from schemas.derived import jsv
from schemas.derived.json_text import datetime_text
from schemas.derived.nested import json_object, json_text
from schemas.endpoints import PLACEHOLDER
from schemas.field import NESTED, Field, Kind, Table
from schemas.operations import Operation
from schemas.tables import TABLES

Member = str | int | bool | list["Member"] | dict[str, "Member"] | None
"""A value of canonical JSON; a number with a fraction is kept as its text."""
Record = Mapping[str, Member]

CSV, JSON = "text/csv", "application/json"

_decoder = json.JSONDecoder(parse_float=str)


def read_record(jsondata: str) -> Record:
    """The members of a canonical JSON text; every digit of a number is kept."""
    tree = _decoder.decode(jsondata)
    if not isinstance(tree, dict):
        raise TypeError("the JSON of a record is an object")
    return tree


def target(operation: Operation, record: Record) -> str:
    """The path of a request for one record, its key filled in."""
    if "{" not in operation.path:
        return operation.path
    return PLACEHOLDER.sub(lambda part: _path_part(operation, record, part[1]), operation.path)


def body(
    form: str, table: Table, records: Sequence[tuple[Record, str]], zone: ZoneInfo, *, many: bool
) -> bytes:
    """The body for records, each given with its canonical JSON; `many`: as a batch."""
    if form == CSV:
        rows = [_row(table, record, zone) for record, _ in records]
        return "".join([_header(table.name), *rows]).encode()
    texts = [_json(table, record, jsondata, zone) for record, jsondata in records]
    return (f"[{','.join(texts)}]" if many else texts[0]).encode()


def sent_moment(text: str, zone: ZoneInfo) -> tuple[Moment, str]:
    """A datetime as it is sent: without offset, midnight as a bare date, else with the server's.

    The service keeps the wall clock of its own zone, whatever the caller's; with the offset stated,
    nothing is left for the host to interpret. Returns the moment and its text.
    """
    moment = read_moment(text, offset_required=False)
    assert not isinstance(moment, Unread), "canonical JSON holds canonical times"
    if moment.offset is not None:
        return moment, text
    wall = moment.wall
    if not (wall.hour or wall.minute or wall.second or wall.microsecond):
        return moment, text[:10]
    offset = zone_minutes(wall, zone)
    return Moment(wall, offset), datetime_text(wall, offset)


def _path_part(operation: Operation, record: Record, name: str) -> str:
    value = record.get(name)
    if value is None:
        raise ValueError(f"{operation.name} needs {name}, which the record does not have")
    return quote(str(value), safe="")


@cache
def _header(name: str) -> str:
    return ",".join(TABLES[name].columns) + "\r\n"


def _row(table: Table, record: Record, zone: ZoneInfo) -> str:
    cells = [_cell(field, record.get(field.name), zone) for field in table.delivered]
    return ",".join(cells) + "\r\n"


def _cell(field: Field, value: Member, zone: ZoneInfo) -> str:
    if value is None:
        return ""
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64 | Kind.DOUBLE:
            return str(value)
        case Kind.DATETIME:
            return sent_moment(str(value), zone)[1]
        case Kind.DATETIME_OFFSET:
            return str(value)
        case Kind.BOOLEAN:
            return "True" if value else "False"
    # Always quoted: the service also cuts a bare cell at braces, and an empty text must differ from
    # no value.
    text = jsv.write(value) if field.kind in NESTED else str(value)
    return '"' + text.replace('"', '""') + '"'


def _json(table: Table, record: Record, jsondata: str, zone: ZoneInfo) -> str:
    moments = _datetimes(table.name)
    if moments.isdisjoint(record):
        return jsondata
    members = json.loads(jsondata, parse_float=_Digits, parse_int=_Digits)
    return json_object(
        (name, _json_member(name in moments, value, zone)) for name, value in members.items()
    )


def _json_member(moment: bool, value: object, zone: ZoneInfo) -> str:
    if moment and isinstance(value, str):
        return json_text(sent_moment(value, zone)[1])
    return str(value) if isinstance(value, _Digits) else json.dumps(value, ensure_ascii=False)


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


@cache
def _datetimes(name: str) -> frozenset[str]:
    return frozenset(field.name for field in TABLES[name].delivered if field.kind is Kind.DATETIME)
