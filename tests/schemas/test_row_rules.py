"""The rules of a record: the row verdict, its pandera schema and a slow reader say the same."""

import json
import math
import os
import re
import subprocess
import sys
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandera.config import config_context

from flows.steps.validate.check import check
from schemas.derived.pandera_schemas import (
    SchemaBroken,
    columns_schema,
    rules_schema,
    validate,
)
from schemas.field import Field, Kind, Rule, Table
from schemas.frame_types import frame_schema
from schemas.kinds import OFFSET, SCALE
from schemas.row_rules import EMAIL, NOT_FINITE, row_rules
from schemas.tables import CLIENT_REGISTRATION, EXTRACTS, PAYMENT
from tests.examples import examples

RULES = {*(rule.value for rule in Rule), NOT_FINITE}
TEXTS = st.one_of(
    st.sampled_from([None, "", " ", "\t", "a@b.co", "a@b", "a@b.c@d.e", "Ann", "5", "1e400", "x"]),
    st.text(alphabet="a@.;, \t", max_size=6),
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pl.String: TEXTS,
    pl.Float64: st.sampled_from([None, 0.0, -1.5, math.nan, math.inf, -math.inf]),
}
BAD = """
import os

import polars as pl
from schemas.derived.pandera_schemas import SchemaBroken, validate
from schemas.frame_types import frame_schema
from schemas.tables import PAYMENT

frame = pl.DataFrame({name: [None] for name in frame_schema(PAYMENT)}, frame_schema(PAYMENT))
for one in frame, frame.drop("Id"):
    try:
        validate(PAYMENT, one, pl.Series([1]))
    except SchemaBroken as error:
        print(error.broken[0].field)
print(",".join(name for name in os.environ if name.startswith("PANDERA_")))
"""


def slowly(rule: Rule | str, value: Any) -> bool:
    """Whether a value passes a rule, by no expression of polars."""
    match rule:
        case Rule.NOT_NULL:
            return value is not None
        case Rule.NOT_EMPTY:
            return value is not None and value.strip() != ""
        case Rule.EMAIL:
            return value is None or re.search(EMAIL, value) is not None
    return value is None or math.isfinite(value)


def lines(frame: pl.DataFrame) -> pl.Series:
    return pl.Series(range(2, frame.height + 2))


def broken(table: Table, frame: pl.DataFrame) -> set[tuple[str, str, int, int]]:
    try:
        validate(table, frame, lines(frame))
    except SchemaBroken as error:
        return set(error.broken)
    return set()


@st.composite
def frames(draw: st.DrawFn, table: Table) -> pl.DataFrame:
    """A typed frame of a record with good and bad values anywhere."""
    height = draw(st.integers(1, 4))
    columns = {}
    for name, dtype in frame_schema(table).items():
        value = VALUES.get(dtype, st.sampled_from([None, 1]))
        cells = draw(st.lists(value, min_size=height, max_size=height))
        physical = pl.Series(name, cells, dtype if dtype in VALUES else pl.Int64)
        columns[name] = physical.cast(dtype)
    return pl.DataFrame(columns)


@pytest.mark.parametrize("table", EXTRACTS.values(), ids=EXTRACTS)
@settings(max_examples=examples(100, 6), deadline=None)
@given(data=st.data())
def test_a_schema_says_what_is_broken_where(table: Table, data: st.DataObject) -> None:
    frame = data.draw(frames(table))
    expected = set()
    for field in table.delivered:
        finite = [NOT_FINITE] if field.kind is Kind.DOUBLE else []
        for rule in (*field.validations, *finite):
            values = enumerate(frame[field.name].to_list())
            rows = [row for row, value in values if not slowly(rule, value)]
            if rows:
                expected.add((field.name, str(rule), len(rows), rows[0] + 2))
    assert broken(table, frame) == expected


@pytest.mark.parametrize("table", EXTRACTS.values(), ids=EXTRACTS)
@settings(max_examples=examples(100, 6), deadline=None)
@given(data=st.data())
def test_a_row_verdict_is_what_the_schema_says(table: Table, data: st.DataObject) -> None:
    height = data.draw(st.integers(1, 4))
    texts = st.lists(TEXTS, min_size=height, max_size=height)
    cells = pl.DataFrame(
        {name: data.draw(texts) for name in table.columns}, dict.fromkeys(table.columns, pl.String)
    )
    checked = check(table, cells)
    told = dict(zip(*checked.errors.error_data(pl.Series(range(height))), strict=True))
    for row in range(height):
        errors = {(one["FieldName"], one["ErrorCode"]) for one in json.loads(told.get(row, "[]"))}
        asked = {(one[0], one[1]) for one in broken(table, checked.typed[row])}
        # A cell that could not be read has no value, and is not told to be missing as well.
        values, given = checked.typed.row(row, named=True), cells.row(row, named=True)
        unread = {name for name, text in given.items() if text and values[name] is None}
        assert {one for one in errors if one[0] not in unread} == {
            one for one in asked if one[0] not in unread
        }
        assert unread <= {field for field, _ in errors}


def test_every_rule_of_the_tables_is_asked() -> None:
    asked = {rule.code for table in EXTRACTS.values() for rule in row_rules(table)}
    assert asked == RULES


def typed(table: Table, *, millionths: bool = False) -> pl.DataFrame:
    columns = columns_schema(table, millionths=millionths).columns
    return pl.DataFrame(
        [
            pl.Series(name, ["a@b.co" if column.dtype.type == pl.String else 1]).cast(
                column.dtype.type
            )
            for name, column in columns.items()
        ]
    )


@pytest.mark.parametrize(
    ("table", "millionths"),
    [
        pytest.param(table, millionths, id=f"{name}-{millionths}")
        for name, table in EXTRACTS.items()
        for millionths in (False, True)
        # Without a double both are one schema.
        if not millionths or any(field.kind is Kind.DOUBLE for field in table)
    ],
)
def test_a_column_that_is_not_of_its_type_is_named(table: Table, millionths: bool) -> None:
    frame = typed(table, millionths=millionths)
    validate(table, frame, lines(frame), millionths=millionths)
    for name, dtype in frame.schema.items():
        other = pl.lit("1") if dtype != pl.String else pl.lit(1, pl.Int64)
        changed = frame.with_columns(other.alias(name))
        with pytest.raises(SchemaBroken) as error:
            validate(table, changed, lines(frame), millionths=millionths)
        assert error.value.broken[0].field == name
        assert "dtype" in error.value.broken[0].rule


def test_a_wrong_column_is_named_when_a_rule_is_broken_too() -> None:
    frame = typed(PAYMENT).with_columns(PaidAmount=pl.lit("1"), DebtsId=pl.lit(None, pl.Int64))
    with pytest.raises(SchemaBroken, match=r"PaidAmount: dtype.*String") as error:
        validate(PAYMENT, frame, lines(frame))
    assert [one.field for one in error.value.broken] == ["PaidAmount"]


def test_columns_too_many_and_too_few_are_named() -> None:
    frame = typed(PAYMENT)
    for other in (frame.drop("Id"), frame.with_columns(other=1)):
        with pytest.raises(SchemaBroken) as error:
            validate(PAYMENT, other, lines(frame))
        assert error.value.broken[0].rule.startswith("column_in_")
    # A frame of one way to hold doubles is none of the other.
    with pytest.raises(SchemaBroken, match=SCALE):
        validate(PAYMENT, frame, lines(frame), millionths=True)


def test_no_value_of_a_row_is_in_what_is_raised() -> None:
    frame = typed(CLIENT_REGISTRATION).with_columns(Password=pl.lit("s3cret"), EMail=pl.lit("s3x"))
    with pytest.raises(SchemaBroken) as error:
        validate(CLIENT_REGISTRATION, frame, lines(frame))
    assert "s3" not in f"{error.value}{error.value.__cause__}"
    assert error.value.broken == [("EMail", "Email", 1, 2)]


def test_a_record_without_a_rule_has_a_schema() -> None:
    table = Table("one", "one", (Field("x", Kind.DATETIME),))
    frame = pl.DataFrame({"x": [None], "x" + OFFSET: [None]}, frame_schema(table))
    validate(table, frame, lines(frame))


@pytest.mark.parametrize(
    "setting",
    [
        {"validation_enabled": False},
        {"validation_depth": "SCHEMA_ONLY"},
        {"validation_depth": "DATA_ONLY"},
    ],
    ids=str,
)
def test_no_setting_of_pandera_switches_it_off(setting: dict[str, Any]) -> None:
    bad = typed(PAYMENT).with_columns(Id=pl.lit(None, pl.Int64))
    with config_context(**setting):
        assert broken(PAYMENT, bad) == {("Id", "NotNull", 1, 2)}
        assert broken(PAYMENT, bad.drop("Id"))


ENVIRONMENTS = {
    "everything": {
        "PANDERA_VALIDATION_ENABLED": "False",
        "PANDERA_VALIDATION_DEPTH": "no depth at all",
        "PANDERA_USE_NARWHALS_BACKEND": "True",
    },
    "off": {"PANDERA_VALIDATION_ENABLED": "False"},
    "schema": {"PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY"},
    "data": {"PANDERA_VALIDATION_DEPTH": "DATA_ONLY"},
}


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_no_variable_of_pandera_switches_it_off(environment: dict[str, str]) -> None:
    found = subprocess.run(
        [sys.executable, "-c", BAD],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # The environment of whoever imports us stays what it is.
    assert found.stdout.split() == ["Id", "payment", ",".join(environment)]


def test_the_schema_is_one_of_pandera() -> None:
    for one in columns_schema, rules_schema:
        assert isinstance(one(PAYMENT), pa.DataFrameSchema)
        assert one(PAYMENT) is one(PAYMENT)
