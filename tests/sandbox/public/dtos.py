"""The request and answer classes of the Python client, derived from the operations and tables.

Exactly what the client's own generator writes: dataclasses that say by `IReturn` what comes back
and by `IGet`, `IPost` or `IPut` how they are sent.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Optional

from dataclasses_json import LetterCase, Undefined, dataclass_json
from servicestack import (  # type: ignore[import-untyped]
    IGet,
    IPost,
    IPut,
    IReturn,
    ResponseStatus,
    snakecase,
)

from schemas.field import Field, Kind, Table
from schemas.operations import OPERATIONS, Operation
from schemas.tables import TABLES

VERBS = {"GET": IGet, "POST": IPost, "PUT": IPut}
TYPES: dict[Kind, Any] = {
    Kind.INTEGER: int,
    Kind.INTEGER64: int,
    Kind.DOUBLE: float,
    Kind.STRING: str,
    Kind.BOOLEAN: bool,
    Kind.DATETIME: datetime,
    Kind.DATETIME_OFFSET: datetime,
    Kind.MAP: dict[str, str],
}


class Names(NamedTuple):
    """How members are called in Python, and in the JSON that is sent."""

    member: Callable[[str], str]
    letter_case: Any
    """One of LetterCase, whose members are functions; None: as they are."""


CAMEL = Names(snakecase, LetterCase.CAMEL)
"""Members such as tenants_id, tenantsId in JSON: what a current host's generator writes."""
AS_DECLARED = Names(str, None)
"""Members such as TenantsId, in JSON, too: the only names a PascalCase answer is read by."""


class Requests:
    """A class for every operation, as attributes: `Requests(CAMEL).EditPayment(id=12)`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._records: dict[str, type] = {}
        for operation in OPERATIONS:
            setattr(self, operation.name, self._request(operation))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no operation {name}")

    def member(self, field: str) -> str:
        return self._names.member(field)

    def given(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record as arguments of a request."""
        return {self.member(name): value for name, value in record.items()}

    def _request(self, operation: Operation) -> type:
        record = self._record(TABLES[operation.response])
        if operation.response_name:
            members = {operation.response.replace("_", " ").title().replace(" ", ""): record}
            record = self._made(operation.response_name, (), {**members, **_STATUS})
        answer: Any = list[record] if operation.returns_list else record  # type: ignore[valid-type]
        verbs = (VERBS[operation.method],)
        fields = self._members(operation.table.delivered)
        return self._made(operation.name, (IReturn[answer], *verbs), fields)

    def _record(self, table: Table) -> type:
        if table.name not in self._records:
            fields = {**self._members(table.fields), **_STATUS}
            self._records[table.name] = self._made(table.title.replace(" ", ""), (), fields)
        return self._records[table.name]

    def _members(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        return {field.name: self._type(field) for field in fields}

    def _type(self, field: Field) -> Any:
        match field.kind:
            case Kind.LIST if field.of in TABLES:
                return list[self._record(TABLES[field.of])]  # type: ignore[misc]
            case Kind.LIST:
                return list[str]
            case Kind.RECORD if field.of == "response_status":
                return ResponseStatus
            case Kind.RECORD:
                return self._record(TABLES[str(field.of)])
        return TYPES[field.kind]

    def _made(self, name: str, bases: tuple[Any, ...], members: dict[str, Any]) -> type:
        body: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
        for member, kind in members.items():
            body["__annotations__"][self.member(member)] = Optional[kind]  # noqa: UP045 -- the client knows no X | None.
            body[self.member(member)] = None
        made = types.new_class(name, bases, {}, lambda namespace: namespace.update(body))
        coded = dataclass_json(letter_case=self._names.letter_case, undefined=Undefined.EXCLUDE)
        return coded(dataclass(made))


_STATUS = {"ResponseStatus": ResponseStatus}
