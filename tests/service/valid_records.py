"""Any valid record of a table, for hypothesis, and which values the service tells apart."""
# ruff: noqa: DTZ001 -- wall clocks; their offsets stand beside them.

import json
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from hypothesis import strategies as st

from schemas.cells.reading import Number
from schemas.derived.nested import json_text
from schemas.field import Field, Kind, Rule, Table
from schemas.operations import Operation
from schemas.tables import TABLES

_MARKS = st.sampled_from(list(",;:\"{}[]\r\n\t \\/'=+-@é€\U0001f600\ufeff\u2028a1"))
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
    st.text(_MARKS, max_size=12),
    st.sampled_from(["", " ", "{", "}", "[a", '"', '""', "{}", "null", "True", "0010", "1e5"]),
)
_BITS = {Kind.INTEGER: 32, Kind.INTEGER64: 64}
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**12), 10**12).map(lambda cents: cents / 100),
    st.sampled_from([0.0, 0.1, 0.3, 1e15, 1e16, 123456789012345680.0, 5e-324, 1e-5, 1e300]),
)
_FILES = st.lists(
    st.dictionaries(
        st.sampled_from(["Name", "FileType", "FileSize", "Extension", "UploadUrl"]),
        TEXTS,
        max_size=3,
    ),
    max_size=3,
)


def moments(*, offset: bool) -> st.SearchStrategy[tuple[datetime, int | None]]:
    """Wall clock and offset; far enough from the ends of time for every zone."""
    walls = st.one_of(
        st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
        st.datetimes(datetime(1969, 6, 1), datetime(2030, 1, 1)),
        st.dates(datetime(1900, 1, 1).date(), datetime(2099, 1, 1).date()).map(
            lambda day: datetime(day.year, day.month, day.day)
        ),
    )
    offsets = st.integers(-14 * 60, 14 * 60) | st.sampled_from([0, 120, -300, 345])
    return st.tuples(walls, offsets if offset else st.none() | offsets)


def values(field: Field) -> st.SearchStrategy[Any]:
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            most = 2 ** (_BITS[field.kind] - 1)
            return st.integers(-most, most - 1) | st.integers(0, 20)
        case Kind.DOUBLE:
            return DOUBLES.map(lambda value: Number(value, Decimal(repr(value))))
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            return moments(offset=field.kind is Kind.DATETIME_OFFSET)
        case Kind.LIST:
            if field.of == "string":
                return st.lists(TEXTS, max_size=3).map(lambda texts: json_text([*texts]))
            return _FILES.map(
                lambda files: json.dumps(files, ensure_ascii=False, separators=(",", ":"))
            )
    return TEXTS


def _valid(field: Field, value: Any) -> bool:
    return not (Rule.NOT_EMPTY in field.rules and not str(value).strip())


def records(table: Table) -> st.SearchStrategy[dict[str, Any]]:
    """Everything the table's rules let pass; e-mail addresses and Ids are the caller's affair."""
    strategies = {
        field.name: values(field).filter(partial(_valid, field))
        if field.needs_value
        else st.none() | values(field)
        for field in table.delivered
        if Rule.EMAIL not in field.rules
    }
    return st.fixed_dictionaries(strategies)


def comparable_fields(operation: Operation) -> list[Field]:
    """The fields that the answer shows again."""
    shown = {field.name.lower() for field in TABLES[operation.response]}
    if operation.response_name:
        shown = {"comments", "campaignactionfiles"}
    return [field for field in operation.table.delivered if field.name.lower() in shown]


def number_duplicates(field: Field, one: Any, other: Any) -> bool:
    """Whether the service's own way of writing has two texts for these two values."""
    if one in (None, "", "[]") or other in (None, "", "[]"):
        return (one in (None, "", "[]")) != (other in (None, "", "[]"))
    match field.kind:
        case Kind.DOUBLE:
            return not _spellings(one.value) & _spellings(other.value)
        case Kind.DATETIME_OFFSET:
            return bool(one[1] != other[1] or abs(one[0] - other[0]) > timedelta(milliseconds=1))
        case Kind.DATETIME:
            # More than any zone is away from another, and from the clocks of towns.
            return bool(abs(one[0] - other[0]) > timedelta(hours=30))
        case Kind.LIST:
            return bool(_bare(one) != _bare(other))
    return bool(one != other)


def _spellings(value: float) -> set[float]:
    return {value, float(f"{value:.15g}")}


def _bare(text: str) -> str:
    """A list without empty members, which are nothing to the service."""
    return json.dumps(
        [
            {name: member for name, member in element.items() if member}
            if isinstance(element, dict)
            else element
            for element in json.loads(text)
        ],
        sort_keys=True,
    )
