"""Binds a request to the values of an operation's record: body < path < query < form."""

from collections.abc import Mapping

from connectors.sandbox.bodies import (
    BadBody,
    Cells,
    Encoding,
    body_text,
    encoding_of,
    read_csv,
    read_json,
    read_jsv,
)
from connectors.sandbox.failures import (
    Failure,
    FieldFailure,
    invalid_value,
    unbound,
    undeserialized,
)
from connectors.sandbox.messages import ServedRequest, fields_of
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.routes import Route
from connectors.sandbox.values import UNREAD, Reader, Record, Tree, UnreadValue, Value
from schemas.field import Table


class Binder:
    """Binds requests as one host does."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._reader = Reader(options)
        self._json_reader = Reader(options, as_written=options.traits.system_json)

    def one(
        self, request: ServedRequest, route: Route, table: Table, name: str
    ) -> Record | Failure:
        """The record of a single request of the named operation."""
        encoding = encoding_of(request, route)
        values: dict[str, Value | None] = {}
        try:
            records = self._records(table, encoding, request)
            form = fields_of(body_text(request)) if encoding is Encoding.FORM else {}
        except (BadBody, RecursionError):  # RecursionError: nested far deeper than is ever meant.
            return undeserialized(name, encoding.value)
        if records:
            values.update(records[0])
        for texts in (route.parts or {}, request.query, form):
            if texts and (failure := self._overlay(table, name, values, texts)):
                return failure
        return values

    def many(
        self, request: ServedRequest, route: Route, table: Table, name: str
    ) -> list[Record] | Failure:
        """The records of a batch; only the body counts."""
        encoding = encoding_of(request, route)
        try:
            return self._records(table, encoding, request, many=True)
        except (BadBody, RecursionError):
            return undeserialized(name, encoding.value)

    def _records(
        self, table: Table, encoding: Encoding, request: ServedRequest, *, many: bool = False
    ) -> list[Record]:
        match encoding:
            case Encoding.CSV:
                trimmed = self._options.traits.trimmed_headers
                rows = read_csv(body_text(request), trimmed=trimmed)
                return [read_cells(self._reader, table, row) for row in rows]
            case Encoding.JSON | Encoding.JSV:
                return self._trees(table, encoding, body_text(request), many=many)
            case _:
                return []

    def _trees(self, table: Table, encoding: Encoding, text: str, *, many: bool) -> list[Record]:
        if not text.strip():
            return []
        strict = self._options.traits.system_json and encoding is Encoding.JSON
        tree = read_json(text, strict=strict) if encoding is Encoding.JSON else read_jsv(text)
        if not isinstance(tree, list if many else dict):
            raise BadBody
        trees = tree if isinstance(tree, list) else [tree]
        reader = self._json_reader if encoding is Encoding.JSON else self._reader
        return [read_members(reader, table, member, strict=strict) for member in trees]

    def _overlay(
        self, table: Table, name: str, values: dict[str, Value | None], texts: Mapping[str, str]
    ) -> Failure | None:
        errors: list[FieldFailure] = []
        given = {part.lower(): text for part, text in texts.items()}
        for field in table.delivered:
            text = given.get(field.name.lower())
            if not text:
                continue
            value = self._reader.text(field, text)
            if isinstance(value, UnreadValue):
                errors.append(invalid_value(field.name, text))
            else:
                values[field.name] = value
        return unbound(name, tuple(errors)) if errors else None


def read_cells(reader: Reader, table: Table, row: Cells) -> Record:
    """The record of one CSV row; raises BadBody for a cell that does not fit its field's kind."""
    found: dict[str, Value | None] = {}
    for field in table.delivered:
        text = row.get(field.name.lower())
        if text is None:
            continue
        value = reader.text(field, text)
        if value is UNREAD:
            raise BadBody
        assert not isinstance(value, UnreadValue)
        found[field.name] = value
    return found


def read_members(reader: Reader, table: Table, tree: Tree, *, strict: bool) -> Record:
    """The record of a JSON or JSV object; if strict, raises BadBody for an unreadable value."""
    if not isinstance(tree, dict):
        return {}
    given = {name.lower(): member for name, member in tree.items()}
    found: dict[str, Value | None] = {}
    for field in table.delivered:
        lowered = field.name.lower()
        if lowered not in given:
            continue
        value = reader.tree(field, given[lowered])
        if not isinstance(value, UnreadValue):
            found[field.name] = value
        elif strict:
            raise BadBody
    return found
