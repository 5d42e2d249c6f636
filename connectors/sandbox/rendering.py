"""A result or a failure as the bytes of JSON, JSV, CSV or a page."""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from connectors.sandbox.cells import cell, write_rows
from connectors.sandbox.moments import Time, classic_time, csv_time, iso_time, round_trip_time
from connectors.sandbox.numerals import double_text
from connectors.sandbox.options import Style
from connectors.sandbox.values import Entries
from schemas.derived import jsv
from schemas.derived.jsv import Plain, Writable

RESPONSE_STATUS = "ResponseStatus"


class Format(StrEnum):
    """A response format; the value is its Content-Type."""

    JSON = "application/json; charset=utf-8"
    JSV = "application/jsv"
    CSV = "text/csv"
    HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Result:
    """What an operation returns."""

    columns: tuple[str, ...]
    """Header of its CSV, ResponseStatus included if the response has one."""
    rows: Sequence[Mapping[str, object]]
    many: bool = False
    """The result is a list, of any number of records."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes as one host does, for one request."""

    style: Style
    camel_case: bool
    json_time: Callable[[Time], str]

    def result(self, form: Format, result: Result) -> bytes:
        match form:
            case Format.CSV:
                names = result.columns
                rows = ([self._cell(one.get(name)) for name in names] for one in result.rows)
                return write_rows([names, *rows]).encode()
            case Format.JSV:
                return self.jsv(list(result.rows) if result.many else result.rows[0]).encode()
        text = self.json(list(result.rows) if result.many else result.rows[0])
        return (text if form is Format.JSON else _page(text)).encode()

    def failure(self, form: Format, columns: Sequence[str], status: Mapping[str, object]) -> bytes:
        """The body of a failure; in CSV the last column, after the empty ones."""
        match form:
            case Format.CSV:
                row = [*("" for _ in columns[1:]), cell(self.jsv(status))]
                return write_rows([columns, row]).encode()
            case Format.JSV:
                return self.jsv({RESPONSE_STATUS: status}).encode()
        text = self.json({RESPONSE_STATUS: status})
        return (text if form is Format.JSON else _page(text)).encode()

    def json(self, value: object) -> str:
        """Compact JSON; members with a null are left out."""
        match value:
            case str():
                return _json_text(value)
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case float():
                return double_text(value, shortest=self.style.shortest_doubles)
            case Time():
                return f'"{self.json_time(value)}"'
            case Mapping():
                return "{" + ",".join(self._members(value)) + "}"
            case list() | tuple():
                return "[" + ",".join(self.json(element) for element in value) + "]"
            case None:
                return "null"
        raise TypeError(f"{type(value).__name__} has no JSON form here")

    def jsv(self, value: object) -> str:
        """JSV, with times as in CSV."""
        return jsv.write(self._writable(value))

    def _members(self, record: Mapping[str, object]) -> list[str]:
        # The names of fields change case; the keys of a map are data.
        name_text = _json_text if isinstance(record, Entries) else _FIELD_NAMES[self.camel_case]
        return [
            f"{name_text(name)}:{self.json(member)}"
            for name, member in record.items()
            if member is not None
        ]

    def _cell(self, value: object) -> str:
        match value:
            case None:
                return ""
            case str():
                return cell(value)
            case bool() | int():
                return str(value)
            case Time():
                return csv_time(value)
            case float():
                return double_text(value, shortest=self.style.shortest_doubles)
            case _:
                return cell(self.jsv(value))

    def _writable(self, value: object) -> Writable:
        match value:
            case None | str() | bool() | int():
                return value
            case float():
                return Plain(double_text(value, shortest=self.style.shortest_doubles))
            case Time():
                return Plain(csv_time(value))
            case Mapping():
                return {name: self._writable(member) for name, member in value.items()}
            case list() | tuple():
                # A null inside a list is nothing between two commas.
                return [
                    Plain("") if element is None else self._writable(element) for element in value
                ]
        raise TypeError(f"{type(value).__name__} has no JSV form here")


def writer(style: Style, jsconfig: str = "") -> Writer:
    """The host's writer, changed by what a request's `jsconfig` asks for."""
    camel_case = style.camel_case
    json_time = iso_time if style.system_json else classic_time
    for wish in jsconfig.lower().split(","):
        match wish.strip():
            case "emitcamelcasenames" | "eccn":
                camel_case = True
            case "datehandler:iso8601" | "dh:iso8601":
                json_time = round_trip_time
    return Writer(style, camel_case, json_time)


def camel(name: str) -> str:
    """A field's name with its leading capitals lowered: EMail -> eMail, IDNumber -> idNumber."""
    capitals = re.match(r"[A-Z]*", name)
    assert capitals is not None
    run = capitals.end()
    small = run if run in (1, len(name)) else run - 1
    return name[: max(small, 0)].lower() + name[max(small, 0) :]


_json_text = json.JSONEncoder(ensure_ascii=False).encode
_FIELD_NAMES = (cache(_json_text), cache(lambda name: _json_text(camel(name))))
"""JSON texts of field names, indexed by whether they are camel-cased."""


def _page(text: str) -> str:
    return f"<!doctype html><title>Snapshot</title><pre>{html.escape(text)}</pre>"
