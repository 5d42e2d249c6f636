"""A request's body before typing: trees of JSON and JSV, cells of CSV, form fields."""

import json
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeAlias

from connectors.sandbox.cells import Cell, read_rows
from connectors.sandbox.messages import ServedRequest
from connectors.sandbox.routes import Door, Route
from connectors.sandbox.values import Tree, jsv_tree
from schemas.derived.jsv import Plain

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of a compressed body after decompression."""

Cells: TypeAlias = Mapping[str, Cell]
"""One CSV row by lower-case column name."""


class Encoding(Enum):
    """The form in which a body is read."""

    JSON = "application/json"
    JSV = "application/jsv"
    CSV = "text/csv"
    FORM = "application/x-www-form-urlencoded"
    NONE = ""
    """No body, or one that the service ignores."""


class BadBody(Exception):
    """The body cannot be read at all."""


def encoding_of(request: ServedRequest, route: Route) -> Encoding:
    """How to read the body; an unknown Content-Type or a body without length counts as none."""
    # Only Content-Length tells the framework that there is a body.
    if request.verb == "GET" or request.headers.get("content-length", "0").strip("0") == "":
        return Encoding.NONE
    if request.content_type == Encoding.FORM.value:
        return Encoding.FORM
    if route.door in (Door.REPLY, Door.API) and route.suffix:
        return Encoding(route.suffix.value.partition(";")[0])
    try:
        return Encoding(request.content_type)
    except ValueError:
        return Encoding.NONE


def body_text(request: ServedRequest) -> str:
    """The text of the body; raises BadBody if it cannot be decompressed."""
    match request.headers.get("content-encoding", "").lower():
        case "gzip":
            content = _decompressed(request.body, 16 + zlib.MAX_WBITS)
        case "deflate":
            content = _decompressed(request.body, zlib.MAX_WBITS)
        case _:
            content = request.body
    return content.decode("utf-8-sig", errors="replace")


def read_json(text: str, *, strict: bool) -> Tree:
    """Read a JSON object or array; unless strict, up to the fault of a broken object.

    Raises BadBody for any other text and, if strict, for any fault.
    """
    text = text.strip()
    try:
        tree: Tree = (_STRICT if strict else _DECODER).decode(text)
    except (ValueError, RecursionError):
        if strict or not text.startswith("{"):
            raise BadBody from None
        return dict(_members_before_fault(text))
    return tree


def read_jsv(text: str) -> Tree:
    """The JSV value; an ill-formed object is an empty one. Raises BadBody for anything else."""
    text = text.strip()
    try:
        return jsv_tree(text)
    except ValueError:
        if text.startswith("{"):
            return {}
        raise BadBody from None


def read_csv(text: str, *, trimmed: bool) -> list[Cells]:
    """Read the data rows; raises BadBody for a row with more cells than the header.

    Blanks around header names are part of the names unless trimmed.
    """
    rows = read_rows(text)
    if not rows:
        return []
    names = [(name or "").strip() if trimmed else name or "" for name in rows[0]]
    columns = [name.lower() for name in names]
    if any(len(row) > len(columns) for row in rows[1:]):
        raise BadBody
    return [dict(zip(columns, row, strict=False)) for row in rows[1:]]


def _decompressed(content: bytes, window_bits: int) -> bytes:
    try:
        inflater = zlib.decompressobj(window_bits)
        found = inflater.decompress(content, MOST_BYTES)
    except zlib.error:
        raise BadBody from None
    if inflater.unconsumed_tail:
        raise BadBody
    return found


def _members_before_fault(text: str) -> Iterator[tuple[str, Tree]]:
    position = 1
    while True:
        try:
            name, position = _DECODER.raw_decode(text, _after_blanks(text, position))
            position = _after_blanks(text, position)
            if not isinstance(name, str) or text[position : position + 1] != ":":
                return
            value, position = _DECODER.raw_decode(text, _after_blanks(text, position + 1))
        except (json.JSONDecodeError, RecursionError):
            return
        yield str(name), value
        position = _after_blanks(text, position)
        if text[position : position + 1] != ",":
            return
        position += 1


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _no_constant(name: str) -> Tree:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_int=Plain, parse_float=Plain, parse_constant=Plain, strict=False)
_STRICT = json.JSONDecoder(parse_int=Plain, parse_float=Plain, parse_constant=_no_constant)
