"""The key of a record as breaks name it: what was decided about one is never of another."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.steps.breaks.frame import break_ids, without_number
from flows.steps.breaks.make import key_text
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.sources import record_schema
from schemas.field import TIMES, Field, Kind, Table
from schemas.key_texts import key_values
from schemas.kinds import OFFSET, identity_columns
from schemas.own_tables import KINDS
from schemas.tables import ACTION_DOCUMENT
from tests.reconcile.records import database, extract, matched, told

SIGNS = "/\\#:e0a\n-+."
"""Texts of these few are often nearly alike."""
VALUES: dict[Kind, st.SearchStrategy[object]] = {
    Kind.INTEGER: st.integers(-2, 2),
    Kind.INTEGER64: st.integers(-2, 2),
    Kind.DOUBLE: st.sampled_from([-1.0, 0.0, -0.0, 0.1, 1.0, 1e22, 1.5e-300]),
    Kind.STRING: st.text(SIGNS, max_size=6),
    Kind.BOOLEAN: st.booleans(),
}
_MOMENTS = [
    datetime(2026, 1, 2) + timedelta(minutes=minutes, microseconds=parts)  # noqa: DTZ001
    for minutes in (0, 60, 90)
    for parts in (0, 1, 100_000)
]
TEXTS = Table("note", "Note", (Field("Book", Kind.STRING, required=True),
                               Field("Ref", Kind.STRING, required=True)),
              key=("Book", "Ref"))  # fmt: skip


def kinds(*of: Kind, keyed: bool = True) -> Table:
    fields = tuple(Field(f"F{number}", kind, required=keyed) for number, kind in enumerate(of))
    return Table("own", "Own", fields, key=tuple(one.name for one in fields) if keyed else ())


def _values(field: Field) -> Iterator[tuple[str, st.SearchStrategy[object]]]:
    none = [] if field.required else [st.none()]
    if field.kind not in TIMES:
        yield field.name, st.one_of(VALUES[field.kind], *none)
        return
    instant = field.kind is Kind.DATETIME_OFFSET
    yield (
        field.name,
        st.sampled_from([one.replace(tzinfo=UTC if instant else None) for one in _MOMENTS]),
    )
    yield field.name + OFFSET, st.sampled_from([0, 60, -60, 90] if instant else [None, 0, 60, -90])


@pytest.mark.long
@given(st.data())
def test_no_two_records_have_one_text(data: st.DataObject) -> None:
    of = data.draw(st.lists(st.sampled_from([*KINDS.values()]), min_size=1, max_size=3))
    table = kinds(*of, keyed=data.draw(st.booleans()))
    row = st.fixed_dictionaries(dict(pair for field in table for pair in _values(field)))
    rows = data.draw(st.lists(row, min_size=2, max_size=6))
    schema = {name: record_schema(table)[name] for name in identity_columns(table)}
    frame = pl.DataFrame(rows, schema=schema).unique()
    texts = frame.select(key_text(table)).to_series()
    assert texts.n_unique() == frame.height, frame.with_columns(texts.alias("text"))
    # Nor is one what is behind another, or where a row was delivered.
    assert texts.equals(pl.DataFrame({"key": texts}).select(without_number(pl.col("key")))["key"])
    assert not texts.str.contains(r"(?s)^[0-9]*:.*:[0-9]*$").any()


BEHIND = st.builds(
    "".join,
    st.tuples(
        st.one_of(
            st.just(""),
            st.builds(
                "#{}:{}:{}".format,
                st.integers(1, 2),
                st.one_of(st.just("b.csv#2"), st.text(SIGNS + "1", min_size=1, max_size=6)),
                st.integers(1, 2),
            ),
        ),
        st.sampled_from(["", "#2"]),
    ),
)
"""What `numbered` puts behind a key: where a row was delivered, in a file of any name, a number."""


@given(st.data())
def test_a_text_names_the_values_it_was_made_of(data: st.DataObject) -> None:
    of = data.draw(st.lists(st.sampled_from([Kind.STRING, Kind.INTEGER]), min_size=1, max_size=4))
    table = kinds(*of)
    row = data.draw(st.fixed_dictionaries(dict(pair for field in table for pair in _values(field))))
    schema = {name: record_schema(table)[name] for name in identity_columns(table)}
    text = pl.DataFrame([row], schema=schema).select(key_text(table)).item()
    assert key_values(table, text) == row, text
    # Whatever is behind it, in a file of any name: so no two of them are one text.
    behind = data.draw(BEHIND)
    assert key_values(table, text + behind) == row, text + behind
    assert pl.select(without_number(pl.lit(text + behind))).item() == text


@pytest.mark.parametrize(
    "url", ["https://x/a#1:b", "https://x/a#1", "#1:b:2", r"a#\1", r"a#\\1", "a#1#2:b", "##1"]
)
@pytest.mark.parametrize("behind", ["", "#2", "#6:pay.csv:12", "#6:pay.csv#2:12#3"])
def test_a_text_with_a_number_sign_names_its_own_record(url: str, behind: str) -> None:
    values = {"TenantsId": 5, "ActionsId": 3, "DocumentUrl": url}
    (key,) = line_key(ACTION_DOCUMENT, extract(ACTION_DOCUMENT, values))
    assert key_values(ACTION_DOCUMENT, key + behind) == values


def test_a_place_in_one_of_two_files_of_a_name_is_read_to_its_end() -> None:
    rows = extract(TEXTS, {"Book": "x", "Ref": None}).with_columns(pl.lit("b.csv#2").alias("file"))
    keys = line_key(TEXTS, rows)
    assert keys.to_list() == [r"1:b.csv#\2:1"]
    assert (
        pl.DataFrame({"key": keys + "#2"}).select(without_number(pl.col("key")))["key"].equals(keys)
    )


ALIKE = [
    pytest.param([{"Book": "x/y", "Ref": "z"}, {"Book": "x", "Ref": "y/z"}], id="where one ends"),
    pytest.param([{"Book": "x\\", "Ref": "/z"}, {"Book": "x", "Ref": "\\/z"}], id="as if escaped"),
    pytest.param([{"Book": "x", "Ref": "z"}, {"Book": "x", "Ref": "z#2"}], id="as if numbered"),
    pytest.param([{"Book": "", "Ref": "z"}, {"Book": "\\e", "Ref": "z"}], id="as if empty"),
]


@pytest.mark.parametrize("rows", ALIKE)
def test_records_that_read_alike_and_are_missing_in_turn_are_two_breaks(
    rows: list[dict[str, object]],
) -> None:
    ids = [
        break_ids(matched(TEXTS, extract(TEXTS, *rows), database(TEXTS, there)).breaks)
        for there in rows
    ]
    assert all(one.len() == 1 for one in ids)
    assert ids[0][0] != ids[1][0]


@pytest.mark.parametrize("kind", TIMES)
def test_one_moment_at_two_offsets_is_missing_as_it_was_written(kind: Kind) -> None:
    table = kinds(kind)
    moments = [datetime(2026, 1, 2, hour) for hour in (3, 4)]  # noqa: DTZ001
    if kind is Kind.DATETIME_OFFSET:
        moments = [datetime(2026, 1, 2, 3, tzinfo=UTC)] * 2
    rows = [
        {"F0": moment, "F0_offset": offset} for moment, offset in zip(moments, (0, 60), strict=True)
    ]
    found = [
        told(matched(table, extract(table, *rows), database(table, there)))[0][1] for there in rows
    ]
    bare = "" if kind is Kind.DATETIME_OFFSET else "+00:00"
    assert found == ["2026-01-02T04:00:00+01:00", f"2026-01-02T03:00:00{bare}"]


def test_a_row_that_lacks_its_key_is_not_a_record_with_such_a_text() -> None:
    table = Table("note", "Note", (Field("Ref", Kind.STRING),), key=("Ref",))
    rows = [{"Ref": None}, {"Ref": "1:a.csv:1"}]
    keys = line_key(table, extract(table, *rows))
    assert keys.to_list() == ["1:a.csv:1", "1:a.csv:1\\"]


@pytest.mark.parametrize(
    ("table", "values", "text"),
    [
        pytest.param(
            ACTION_DOCUMENT,
            {"TenantsId": 7, "ActionsId": 1, "DocumentUrl": "https://d/1.pdf"},
            "7/1/https://d/1.pdf",
            id="one text",
        ),
        pytest.param(TEXTS, {"Book": "Über: #a", "Ref": "-1.5"}, "Über: #a/-1.5", id="texts"),
        pytest.param(
            kinds(Kind.DOUBLE, Kind.BOOLEAN), {"F0": 12.0, "F1": True}, "12/true", id="a number"
        ),
        pytest.param(
            kinds(Kind.DATETIME),
            {"F0": datetime(2026, 1, 2), "F0_offset": None},  # noqa: DTZ001
            "2026-01-02",
            id="a day",
        ),
    ],
)
def test_keys_that_nothing_is_like_read_as_they_are(
    table: Table, values: dict[str, object], text: str
) -> None:
    assert line_key(table, extract(table, values)).to_list() == [text]


def test_of_texts_before_another_it_shows_where_they_end() -> None:
    keys = line_key(TEXTS, extract(TEXTS, {"Book": "a/b\\", "Ref": "c/d"}, {"Book": "", "Ref": ""}))
    assert keys.to_list() == [r"a\/b\\/c/d", r"\e/\e"]
