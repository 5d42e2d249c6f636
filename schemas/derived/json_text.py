"""A whole record as text: canonical JSON and its hash, header templates, records inside a cell.

Canonical JSON is the content of a record. The same values give the same bytes here and in the SQL
views, so two records are equal exactly when their hashes are.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache

from schemas.cells.reading import Moment, Number, Unread
from schemas.derived.nested import (
    Tree,
    cell_text,
    display_name,
    json_name,
    json_object,
    json_text,
    read_tree,
    spelled_members,
)
from schemas.field import NESTED, Field, Kind, Table
from schemas.tables import DOCUMENTED, EXTRACTS, INSERT_BATCH_DATA


def canonical_json(table: Table, record: Mapping[str, object]) -> str:
    """The record as JSON in the table's field order, without blanks; nulls are left out.

    Values: int, str, bool, `Number` or Decimal or float, `Moment` or (datetime, offset minutes),
    and canonical JSON text for nested fields. Raises ValueError or TypeError, naming the field, for
    anything else, because a record's values were checked before.
    """
    unknown = sorted(record.keys() - table.by_name.keys())
    if unknown:
        raise ValueError(f"{table.name} has no fields {unknown}; map them before writing")
    return json_object(
        (field.name, _member(table, field, record[field.name]))
        for field in table.fields
        if record.get(field.name) is not None
    )


def content_hash(canonical: str) -> str:
    """The SHA-256 of a canonical JSON text, in lower-case hexadecimal."""
    return hashlib.sha256(canonical.encode()).hexdigest()


def number_text(value: float | Decimal) -> str:
    """The decimal that a number stands for, without an exponent or redundant zeros.

    Exact: a float is written by its shortest round-trip text. Raises ValueError for NaN and
    infinities, which JSON cannot hold.
    """
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not exact.is_finite():
        raise ValueError(f"{value} is not a finite number; it must be refused before")
    if exact == 0:
        return "0"
    text = format(exact, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def datetime_text(wall: datetime, offset: int | None) -> str:
    """ISO 8601 with the shortest fraction: `2026-01-02T03:04:05.25+02:00`, offset in minutes.

    An aware `wall` is an instant and is shown at the offset. Raises ValueError for an instant
    without one.
    """
    if wall.tzinfo is not None:
        if offset is None:
            raise ValueError(f"instant {wall} needs the offset it is to be shown at")
        wall = wall.astimezone(timezone(timedelta(minutes=offset))).replace(tzinfo=None)
    text = wall.isoformat()
    if wall.microsecond:
        text = text.rstrip("0")
    if offset is None:
        return text
    hours, minutes = divmod(abs(offset), 60)
    return f"{text}{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


def csv_template(table: Table) -> str:
    """The header line of an extract of this record."""
    return ",".join(table.columns) + "\n"


def read_json_record(table: Table, text: str) -> dict[str, str | None] | Unread:
    """The cells of a record given as a JSON or JSV object, one per column, as text.

    Numbers keep the text they were written with, booleans are `True` and `False`, nested values are
    JSON again; null and absent are None. Names match in any case. A text that is not such a record
    gives `Unread` with the code InnerRecord, whose `value` says why without showing any value.
    """
    try:
        return record_cells(table, read_tree(text))
    except ValueError as problem:
        return Unread("InnerRecord", {"value": str(problem)})


def record_cells(table: Table, tree: Tree) -> dict[str, str | None]:
    """The cells of a parsed record, one per column; raises ValueError for any other value."""
    if not isinstance(tree, dict):
        raise ValueError(f"{json_name(tree)} where a {table.name} record is expected")
    members = spelled_members(table, tree, table.delivered)
    given = {name: _cell(table.by_name[name], member) for name, member in members.items()}
    return {column: given.get(column) for column in table.columns}


@lru_cache(maxsize=1000)
def recognise(names: tuple[str, ...]) -> Table | None:
    """The one record that has all these fields and whose required fields are all among them.

    Of several, the one with the most required fields wins; None if that is not a single one. A
    record inside another is never insert-batch data itself. Kinds of our own are only considered if
    no documented record fits.
    """
    given = {name.lower() for name in names}
    fitting = [
        table
        for table in EXTRACTS.values()
        if table is not INSERT_BATCH_DATA
        and given <= {column.lower() for column in table.columns}
        and _required(table) <= given
    ]
    fitting = [table for table in fitting if table.name in DOCUMENTED] or fitting
    most = max((len(_required(table)) for table in fitting), default=0)
    best = [table for table in fitting if len(_required(table)) == most]
    return best[0] if len(best) == 1 else None


def _required(table: Table) -> set[str]:
    return {field.name.lower() for field in table.delivered if field.needs_value}


def _member(table: Table, field: Field, value: object) -> str:
    match field.kind, value:
        case Kind.BOOLEAN, bool():
            return "true" if value else "false"
        case ((Kind.INTEGER | Kind.INTEGER64), int()) if not isinstance(value, bool):
            return str(value)
        case Kind.DOUBLE, Number():
            return number_text(value.exact)
        case Kind.DOUBLE, float() | int() | Decimal() if not isinstance(value, bool):
            return number_text(value)
        case ((Kind.DATETIME | Kind.DATETIME_OFFSET), Moment()):
            return json_text(datetime_text(value.wall, value.offset))
        case ((Kind.DATETIME | Kind.DATETIME_OFFSET), (datetime() as wall, int() | None as offset)):
            return json_text(datetime_text(wall, offset))
        case Kind.STRING, str():
            return json_text(value)
        case kind, str() if kind in NESTED:
            return value
    raise TypeError(f"{table.name}.{field.name}: {type(value).__name__} is no {field.kind}")


def _cell(field: Field, tree: Tree) -> str | None:
    match tree:
        case None:
            return None
        case bool():
            return str(tree)
        case str():
            return str(tree)
    if field.kind not in NESTED:
        raise ValueError(f"member {display_name(field.name)} is {json_name(tree)}, not one value")
    return cell_text(json_text(tree))
