"""ErrorData that is written by column is what `json` writes of each row by itself."""

import json

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.steps.validate import rows as rows_module
from flows.steps.validate.check import check
from flows.steps.validate.rows import StagedRows
from schemas.cells.reading import SHOWN_CHARACTERS, UNFIT, Unread, read
from schemas.derived.nested import read_nested
from schemas.field import Field, Kind, Rule, Table
from schemas.made_keys import MadeKey
from schemas.reasons import NOT_SHOWN, REASONS
from schemas.row_rules import row_rules
from tests.examples import examples

TENANT = 7
FIELDS = (
    Field("TenantsId", Kind.INTEGER, required=True),
    Field("Amount", Kind.DOUBLE, required=True),
    Field("At", Kind.DATETIME_OFFSET),
    Field("Name", Kind.STRING, required=True, rules=(Rule.NOT_EMPTY, Rule.EMAIL)),
    Field("Of", Kind.MAP),
)
TABLES = {
    "plain": Table("one", "One", FIELDS, key=("TenantsId",)),
    "with a secret": Table("two", "Two", (*FIELDS, Field("Key", Kind.STRING, secret=True))),
}
WITHOUT_NUL = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
"""A record with a NUL is broken, and has no cells."""
CELLS = st.one_of(
    st.none(),
    st.text(WITHOUT_NUL, max_size=6),
    st.text('"\\\n\t\x01\x1f\x7fé€…x', max_size=6),
    st.sampled_from(["7", "8", "99999999999", "0.10000000000000000001", "2026-01-01", "{a:1,a:2}"]),
    st.integers(SHOWN_CHARACTERS - 1, SHOWN_CHARACTERS + 1).map(lambda size: "é" * size),
)
Row = tuple[str | None, ...]
ROWS = st.lists(st.tuples(*[CELLS] * len(FIELDS)), min_size=1, max_size=8)


def slowly(table: Table, row: Row, passed: dict[str, bool], line: int) -> str | None:
    """The reasons of one row, one after the other; `passed`: what its rules say of it."""
    shapes = []
    for field, text in zip(FIELDS, row, strict=True):
        shown = "" if text is None else NOT_SHOWN if table.unquotable else text
        if len(shown) > SHOWN_CHARACTERS:
            shown = shown[:SHOWN_CHARACTERS] + "…"
        value = read(field, text, read_nested) if text else None
        if isinstance(value, Unread):
            reasons = [(value.code, dict(value.facts))]
        else:
            reasons = [
                (rule.code, {})
                for number, rule in enumerate(row_rules(table))
                if rule.field == field.name and not passed[str(number)]
            ]
            if field.name == "TenantsId" and value not in (None, TENANT):
                reasons.append(("TenantNotBound", {"limit": str(TENANT)}))
        for code, facts in reasons:
            detail = facts.pop("detail", None)
            if table.unquotable and "kept" in facts:
                facts["kept"] = NOT_SHOWN
            told = REASONS[code].message(field=field.name, value=shown, of="", **facts)
            if detail and not table.unquotable:
                told += f" {detail}"
            meta = {"stage": "check", "column": field.name}
            meta |= {} if text is None else {"value": shown}
            meta["line"] = str(line)
            shape = {"ErrorCode": code, "FieldName": field.name, "Message": told, "Meta": meta}
            shapes.append(shape)
    return json.dumps(shapes, ensure_ascii=False) if shapes else None


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=examples(300), deadline=None)
@given(rows=ROWS)
@example(rows=[("x", 'y"', "2026-02-30T10:00:00Z", "", "{"), ("8", "1", "", "a@b.cc", "")])
@example(rows=[("7", "1", "", "a@b.cc", "")])
def test_reasons_by_column_are_those_of_each_row(name: str, rows: list[Row]) -> None:
    table = TABLES[name]
    names = [field.name for field in FIELDS]
    cells = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
    if name != "plain":
        cells = cells.with_columns(pl.lit(None, pl.String).alias("Key"))
    checked = check(table, cells, tenant=TENANT)
    rules = (rule.passes.alias(str(number)) for number, rule in enumerate(row_rules(table)))
    passed = checked.typed.select(rules).rows(named=True)
    lines = pl.Series(range(2, 2 + len(rows)))
    told = dict(zip(*checked.errors.error_data(lines), strict=True))
    for number, row in enumerate(rows):
        assert told.get(number) == slowly(table, row, passed[number], number + 2)


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 100])
def test_reasons_that_are_made_some_at_a_time_are_all_of_them(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """No piece has more of them, but for a row that has more by itself; none is left out."""
    monkeypatch.setattr(rows_module, "AT_ONCE", at_once)
    bad, good = ("x", "y", "no time", "", "{"), ("7", "1", "", "a@b.cc", "")
    given = [bad, good, good, ("x", "y", "", "a@b.cc", ""), *[good] * 5, bad, bad]
    schema = dict.fromkeys([field.name for field in FIELDS], pl.String)
    errors = check(TABLES["plain"], pl.DataFrame(given, schema, orient="row")).errors
    lines = pl.Series("first_line", range(2, 2 + len(given)))
    frame = lines.to_frame().with_columns(pl.lit(None, pl.String).alias("error_data"))
    pieces = [*StagedRows(frame, errors).pieces()]
    for piece in pieces:
        reasons = [len(json.loads(told)) for told in piece["error_data"].drop_nulls()]
        assert piece.height == 1 or max(piece.height, sum(reasons)) <= at_once
    made = dict(zip(*errors.error_data(lines), strict=True))
    assert pl.concat(pieces)["error_data"].to_list() == [*map(made.get, range(len(given)))]


@pytest.mark.parametrize("size", [1, SHOWN_CHARACTERS, SHOWN_CHARACTERS + 1, 1000])
@pytest.mark.parametrize(("kind", "column"), [("Number", "Amount"), ("Text", "Name")])
def test_a_long_text_hides_nothing_of_what_is_said_of_it(size: int, kind: str, column: str) -> None:
    text, said = "é" * size, f" (it is {'1 CR or ' * 40}1)"
    row = ["7", "1", None, "a@b.cc", None]
    row[[field.name for field in FIELDS].index(column)] = text + UNFIT + said
    schema = dict.fromkeys([field.name for field in FIELDS], pl.String)
    errors = check(TABLES["plain"], pl.DataFrame([row], schema, orient="row")).errors
    (error,) = json.loads(errors.error_data(pl.Series([2]))[1][0])
    assert error["ErrorCode"] == kind
    shown = text if size <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
    assert f"{shown}{said}" in error["Message"]
    assert error["Meta"]["value"] == shown + said
    assert errors.found[0].first_value == shown + said


def test_of_a_number_without_a_part_of_its_key_the_part_is_told() -> None:
    """No file has the number, so nobody could deliver it."""
    fields = (
        Field("Id", Kind.INTEGER64, required=True),
        Field("DebtsId", Kind.INTEGER, required=True),
        Field("Text", Kind.STRING),
        Field("Ref", Kind.STRING),
    )
    table = Table("entry", "Entry", fields, key=("Id",))
    rows = [
        ("5", "1", "a", "b"),
        (None, "1", "a", None),
        (None, "1", None, None),
        (None, None, None, "b"),
        (None, "x", "a", None),
        (None, "1", "a" + UNFIT, "b"),
    ]
    cells = pl.DataFrame(rows, dict.fromkeys(table.columns, pl.String), orient="row")
    checked = check(table, cells)
    keys = {"Id": MadeKey(("DebtsId", "Text", "Ref"), "x")}
    of_keys = checked.errors.of_keys(table, keys, checked.typed)
    found = dict(zip(*of_keys.error_data(pl.Series(range(2, 2 + len(rows)))), strict=True))
    told = {
        number: [(one["FieldName"], one["ErrorCode"]) for one in json.loads(text)]
        for number, text in found.items()
    }
    assert told == {
        1: [("Ref", "KeyPart")],
        2: [("Text", "KeyPart"), ("Ref", "KeyPart")],
        3: [("DebtsId", "NotNull")],
        4: [("DebtsId", "Integer")],
        5: [("Text", "Text")],
    }
    assert "'Ref' must not be empty: 'Id' is made of it." in found[1]
