"""The grammar field tables are written in: Kind, Field and Table.

Source: the service document, "Resources and their fields". A table is literal data; everything else
(pandera, SQL, JSON, CSV, reference page) is derived from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from schemas.endpoints import Endpoint


class Kind(StrEnum):
    """The types of the service document, one member per type it names."""

    INTEGER = "integer"
    INTEGER64 = "64-bit integer"
    DOUBLE = "double"
    STRING = "string"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    DATETIME_OFFSET = "datetime with offset"
    MAP = "map<string,string>"
    LIST = "list"
    RECORD = "record"
    INSTANT = "instant"
    """A moment in UTC; only our own tables have it, the document does not."""


NESTED = (Kind.MAP, Kind.LIST, Kind.RECORD)
"""Kinds whose values have values inside."""
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)
INTEGERS = (Kind.INTEGER, Kind.INTEGER64)
NUMBERS = (*INTEGERS, Kind.DOUBLE)


TENANT = "TenantsId"
"""The field that says whose a record is, in every record that has it."""


class Rule(StrEnum):
    """A validation the document states for a field; the value is the service's ErrorCode."""

    NOT_NULL = "NotNull"
    NOT_EMPTY = "NotEmpty"
    EMAIL = "Email"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one record, as the document's table row states it."""

    name: str
    kind: Kind
    required: bool = False
    of: str | None = None
    """What a LIST contains or a RECORD is: a table name, or "string"."""
    rules: tuple[Rule, ...] = ()
    """Validations beyond Required, in the document's order."""
    nullable_values: bool = False
    """A MAP whose values may be null."""
    amount: bool = False
    """Money: enters the control totals, under the currency of `Table.currency`."""
    version: bool = False
    """Orders two versions of one record: the older never replaces the newer."""
    business_date: bool = False
    """The day the record counts for; a reconciliation as of a day takes records up to that day."""
    secret: bool = False
    """Never shown: not in logs, reports, errors or artifacts."""
    output_only: bool = False
    """Set by the service; not part of a delivered extract."""
    note: str = ""

    @property
    def validations(self) -> tuple[Rule, ...]:
        """Every rule of the field once, in the order the service reports them."""
        return tuple(dict.fromkeys([*([Rule.NOT_NULL] if self.required else []), *self.rules]))

    @property
    def needs_value(self) -> bool:
        """Whether null is refused, so a delivered header must have the column."""
        return Rule.NOT_NULL in self.validations


@dataclass(frozen=True, slots=True)
class Reference:
    """A field whose value is the key of another record."""

    field: str
    table: str
    column: str = "Id"
    same_tenant: bool = False
    """Both records have a TenantsId, and the two must be equal."""


@dataclass(frozen=True)
class Table:
    """One record of the document: its fields, its identity and what it refers to."""

    name: str
    title: str
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    """Business key; empty if the document gives none, so that the whole content is the identity."""
    currency: str | None = None
    """The field that names the currency of the table's amounts."""
    references: tuple[Reference, ...] = ()
    extract: bool = True
    """Whether the record can be delivered as a CSV extract (embedded records cannot)."""
    endpoint: Endpoint | None = None
    """The operation that sends a record of one's own, if there is one."""
    holds_records: bool = False
    """Whether it may contain records of any kind, so that its text may contain a secret."""

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by the document's spelling."""
        return {field.name: field for field in self.fields}

    @cached_property
    def delivered(self) -> tuple[Field, ...]:
        """The fields an extract may carry."""
        return tuple(field for field in self.fields if not field.output_only)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.delivered)

    @property
    def amounts(self) -> tuple[str, ...]:
        """The fields that enter the control totals."""
        return tuple(field.name for field in self.fields if field.amount)

    @property
    def version(self) -> str | None:
        """The field that tells which of two versions of a record is newer."""
        return next((field.name for field in self.fields if field.version), None)

    @property
    def business_date(self) -> str | None:
        """The field with the day the record counts for; None if it has no such day."""
        return next((field.name for field in self.fields if field.business_date), None)

    @property
    def tenant(self) -> str | None:
        """The field that says whose record it is."""
        return TENANT if TENANT in self.by_name else None

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The fields whose values are never shown."""
        return tuple(field.name for field in self.fields if field.secret)

    @property
    def unquotable(self) -> bool:
        """Whether no value of a row in error is shown: a lost cell moves secrets anywhere."""
        return self.holds_records or bool(self.secrets)

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that tell two records apart: the business key, or all fields."""
        return self.key or self.columns

    @property
    def has_plain_key(self) -> bool:
        """Whether the key consists of integers that every record has."""
        key = [self.by_name[name] for name in self.key]
        return bool(key) and all(of.kind in INTEGERS and of.required for of in key)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: a field is named twice")
        referring = [reference.field for reference in self.references]
        currency = [self.currency] if self.currency else []
        unknown = {*self.key, *referring, *currency} - set(names)
        if unknown:
            raise ValueError(f"{self.name}: {sorted(unknown)} are not fields of this table")


_NESTED = (Kind.STRING, Kind.MAP, Kind.LIST, Kind.RECORD)
"""Kinds a field of a nested record may have: the document has no others, and nothing reads them."""


def named(*tables: Table) -> dict[str, Table]:
    """Tables by name; raises ValueError if a nested record has a field of a kind nothing reads."""
    found = {table.name: table for table in tables}
    for inside in {field.of for table in tables for field in table} & found.keys():
        for field in found[str(inside)]:
            if field.kind not in _NESTED:
                raise ValueError(
                    f"{inside}.{field.name} is of kind {field.kind}, but the record is inside "
                    f"others, where fields are of kind {', '.join(_NESTED)}: mend schemas/tables.py"
                )
    return found
