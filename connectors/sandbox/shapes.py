"""The sandbox's own SQL tables, one per record in schema `sandbox`, from the field tables."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import cast

import sqlalchemy as sa

from connectors.sandbox.moments import Time, TimeKind
from connectors.sandbox.values import Entries, Record, Tree, Value
from schemas.derived.nested import json_text
from schemas.derived.sql import SQL_TYPES, sql_columns
from schemas.field import NESTED, TIMES, Field, Kind, Table
from schemas.kinds import OFFSET
from schemas.operations import OPERATIONS
from schemas.tables import TABLES

SCHEMA = "sandbox"
POSITION = "position"
"""Order of arrival, in which listings are returned."""
TIME_KIND = "_kind"
"""Suffix of the column with a datetime's `TimeKind`."""

NUMBERED = frozenset(one.response for one in OPERATIONS if one.request != one.response)
"""The records that get their Id from the service."""

METADATA = sa.MetaData(schema=SCHEMA)


@cache
def stored_names(field: Field) -> tuple[str, ...]:
    """The columns of a field, in the order of `stored_texts`."""
    names = tuple(sql_columns(field))
    return (*names, field.name + TIME_KIND) if field.kind is Kind.DATETIME else names


def stored_texts(field: Field, value: Value | None) -> tuple[str | None, ...]:
    """The texts of a field's columns; PostgreSQL reads them by the columns' types."""
    if isinstance(value, Time):
        # A DateTime keeps its wall clock, a DateTimeOffset its instant.
        if field.kind is Kind.DATETIME_OFFSET:
            return f"{value.instant.isoformat()}+00", str(value.offset)
        return value.wall.isoformat(), str(value.offset), str(int(value.kind))
    if isinstance(value, str):
        return (kept_text(value),)
    if value is None:
        return (None,) * len(stored_names(field))
    if field.kind in NESTED:
        assert isinstance(value, list | dict)
        return (json_text(cast("Tree", value)),)
    return (repr(value) if isinstance(value, float) else str(value),)


def kept_text(text: str) -> str:
    """The text as PostgreSQL can hold it: the replacement character stands for NUL."""
    return text.replace("\0", "\ufffd")


def read_record(table: Table, row: Mapping[str, object]) -> Record:
    """The record of a stored row; secrets of an account are left out."""
    return {
        field.name: _read(field, row)
        for field in table.fields
        if field.name in row and not (field.secret and table.name == "user_account")
    }


def key_of(table: Table) -> tuple[str, ...]:
    """The fields by which a PUT finds the record it replaces; empty if every call adds one."""
    keyed = any(operation.keyed and operation.request == table.name for operation in OPERATIONS)
    return table.key if keyed else ()


def _read(field: Field, row: Mapping[str, object]) -> Value | None:
    value = row[field.name]
    match value:
        case None:
            return None
        case Decimal():
            return float(value)
        case str() if field.kind in NESTED:
            nested: Value = json.loads(value)
            return (
                Entries(nested) if isinstance(nested, dict) and field.kind is Kind.MAP else nested
            )
        case bool() | int() | str():
            return value
    assert field.kind in TIMES
    return _read_time(field, row)


def _read_time(field: Field, row: Mapping[str, object]) -> Time:
    wall, offset = row[field.name], row[field.name + OFFSET]
    assert isinstance(wall, datetime)
    assert isinstance(offset, int)
    if field.kind is Kind.DATETIME:
        kind = row[field.name + TIME_KIND]
        assert isinstance(kind, int)
        return Time(wall, offset, TimeKind(kind))
    instant = wall.astimezone(UTC).replace(tzinfo=None)
    return Time(instant + timedelta(minutes=offset), offset, TimeKind.OFFSET)


def _table(table: Table) -> sa.Table:
    columns: list[sa.Column[object]] = [
        sa.Column(POSITION, SQL_TYPES[Kind.INTEGER64], sa.Identity(always=True), nullable=False)
    ]
    for field in table.delivered:
        numbered = table.name in NUMBERED and field.name == "Id"
        for name, kind in sql_columns(field).items():
            identity = [sa.Identity(always=False)] if numbered else []
            columns.append(sa.Column(name, kind, *identity, nullable=not numbered))
        if field.kind is Kind.DATETIME:
            columns.append(sa.Column(field.name + TIME_KIND, SQL_TYPES[Kind.INTEGER]))
    made = sa.Table(table.name, METADATA, *columns, comment=table.title)
    if key_of(table):
        sa.Index(
            f"{table.name}_key",
            *(made.c[name] for name in key_of(table)),
            unique=True,
            postgresql_nulls_not_distinct=True,
        )
    return made


# A registration request is not stored: its password goes, hashed, into the account.
RECORDS = {
    name: TABLES[name]
    for operation in OPERATIONS
    for name in (operation.request, operation.response)
    if name != "client_registration"
}
SQL_TABLES = {name: _table(table) for name, table in RECORDS.items()}
