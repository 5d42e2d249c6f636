"""The vectorised readers against the strict ones: never a value the strict one would not give."""

import json
import math

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.steps.validate.check import check
from schemas.cells.columns import type_cells, why_unread
from schemas.cells.reading import Moment, Number, Unread, read
from schemas.derived.nested import read_nested
from schemas.field import Field, Kind, Table
from schemas.kinds import EXACT, OFFSET
from tests.examples import examples

SCALARS = [
    Kind.INTEGER,
    Kind.INTEGER64,
    Kind.DOUBLE,
    Kind.BOOLEAN,
    Kind.DATETIME,
    Kind.DATETIME_OFFSET,
]
HOSTILE = st.text(alphabet="0123456789+-.eE :TZtz,_/xinfa\t٣", max_size=24)
NUMBERS = st.one_of(
    st.floats(allow_nan=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.from_regex(r"\A-?[0-9]{1,10}\.[0-9]{1,7}0{0,40}\Z"),
)
TIMES = st.builds(
    "{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}{}{}".format,
    st.integers(0, 9999),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from("T t"),
    st.integers(0, 25),
    st.integers(0, 61),
    st.integers(0, 61),
    st.sampled_from(["", ".5", ".1234567", ".0000000"]),
    st.sampled_from(["", "Z", "z", "+02:00", "-05:30", "+0200", "+14:00", "+14:15", "-00:00"]),
)
CELLS = st.one_of(HOSTILE, NUMBERS, TIMES, st.sampled_from(["True", "false", "1", "yes", ""]))


def one_field(kind: Kind) -> Table:
    return Table("one", "one", (Field("x", kind),))


@pytest.mark.long
@pytest.mark.parametrize("kind", SCALARS)
@settings(max_examples=examples(300), deadline=None)
@given(cells=st.lists(CELLS, min_size=1, max_size=20))
@example(cells=["2026-01-15T10:30:60Z", "+026-01-15T10:30:00Z", "2026-01-15T10:30: 0Z"])
@example(cells=["9007199254740993", "0.1", "-0", "1e400", "nan", "1_0", " 4", "007", "+3"])
@example(cells=["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z"])
def test_what_is_read_fast_is_what_is_read_strictly(kind: Kind, cells: list[str]) -> None:
    table = one_field(kind)
    typed = type_cells(pl.DataFrame({"x": cells}, schema={"x": pl.String}), table)
    for text, row in zip(cells, typed.iter_rows(named=True), strict=True):
        if row["x"] is None:
            continue
        value = read(table.fields[0], text, read_nested)
        assert not isinstance(value, Unread), (kind, text, row)
        if isinstance(value, Number):
            assert row["x"] == value.value
            assert pl.Series([row["x" + EXACT]]).cast(pl.Decimal(38, 18))[0] == value.exact
        elif isinstance(value, Moment):
            wanted = value.wall if kind is Kind.DATETIME else value.instant
            assert (row["x"], row["x" + OFFSET]) == (wanted, value.offset)
        else:
            assert row["x"] == value


DAYS = ("2026-01-15", "2026-02-30", "0000-01-01", "0001-01-01", "9999-12-31", "2026-1-5")
CLOCKS = ("", "T10:30", " 10:30:00", "T24:00:00", "T10:59:60", "T10:30:00.1234567", "T10:30.5")
ZONES = ("", "Z", "+02", "-0530", "+14:01", "-00:60", "z")
ODD_MOMENTS = [day + clock + zone for day in DAYS for clock in CLOCKS for zone in ZONES]


@pytest.mark.long
@pytest.mark.parametrize("kind", [*SCALARS, Kind.INSTANT, Kind.STRING, Kind.MAP])
@settings(max_examples=examples(300), deadline=None)
@given(cells=st.lists(CELLS.filter(bool), min_size=1, max_size=20))
@example(cells=[*ODD_MOMENTS, *(f"\t{one} " for one in ODD_MOMENTS)])
@example(cells=["2147483648", "-2147483648", "9" * 19, "9" * 20, "0" * 40, "+", "-+1", "1\n"])
@example(
    cells=[
        "FAL\N{LATIN SMALL LETTER LONG S}E",
        " TRUE",
        "İnf",
        "-iNfinity",
        ".",
        "1e123456",
        "٣",
        "+.5e+5",
    ]
)
def test_a_reason_told_fast_is_the_strict_one(kind: Kind, cells: list[str]) -> None:
    field = Field("x", kind)
    for text, told in zip(cells, why_unread(kind, pl.Series(cells)).rows(), strict=True):
        if told[0] is not None:
            value = read(field, text, read_nested)
            assert isinstance(value, Unread), (kind, text, told)
            assert told == (value.code, value.facts.get("detail")), (kind, text)


@pytest.mark.long
@pytest.mark.parametrize("kind", SCALARS)
@settings(max_examples=examples(200), deadline=None)
@given(cells=st.lists(CELLS.filter(bool), min_size=1, max_size=20))
def test_every_cell_has_a_value_or_a_reason(kind: Kind, cells: list[str]) -> None:
    table = one_field(kind)
    checked = check(table, pl.DataFrame({"x": cells}, schema={"x": pl.String}))
    for row, value in enumerate(checked.typed["x"].to_list()):
        assert (value is None) == (row in checked.errors.rows), (kind, cells[row], value)
        if isinstance(value, float):
            assert math.isfinite(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("abc", "Integer"),
        ("1.5", "Integer"),
        ("", None),
        (" 12 ", None),
        ("+12", None),
        ("1_000", "Integer"),
        ("١٢", "Integer"),
        ("2147483647", None),
        ("2147483648", "IntegerRange"),
        ("-2147483649", "IntegerRange"),
        ("9" * 400, "IntegerRange"),
        ("0" * 400 + "7", None),
    ],
)
def test_integers(text: str, code: str | None) -> None:
    assert reason(Kind.INTEGER, text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("12.50", None),
        ("1e3", None),
        ("1.7976931348623157e308", None),
        ("5e-324", None),
        ("1e400", "NotFinite"),
        ("-Infinity", "NotFinite"),
        ("NaN", "NotFinite"),
        ("€5", "Number"),
        ("(5.00)", "Number"),
        ("1,5", "Number"),
        ("0.30000000000000001", "Precision"),
        ("9007199254740993", "Precision"),
        ("9007199254740992", None),
        ("1e-400", "Precision"),
        ("1e-1001", "NotFinite"),
    ],
)
def test_doubles(text: str, code: str | None) -> None:
    assert reason(Kind.DOUBLE, text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-01-15T10:30:00+02:00", None),
        ("2026-01-15T10:30:00.0000000+02:00", None),
        ("2026-01-15 10:30:00Z", None),
        ("2026-01-15T10:30:00", "OffsetMissing"),
        ("2026-01-15", "OffsetMissing"),
        ("2026-01-15T10:30:00.1234567Z", "Precision"),
        ("2026-01-15T24:00:00Z", "DateTime"),
        ("2026-06-30T23:59:60Z", "DateTime"),
        ("2026-01-15T10:30:00+25:00", "DateTime"),
        ("01/02/2026", "DateTime"),
        ("20260115T103000Z", "DateTime"),
        ("0001-01-01T00:00:00+14:00", "DateTime"),
    ],
)
def test_times_with_offset(text: str, code: str | None) -> None:
    assert reason(Kind.DATETIME_OFFSET, text) == code


def reason(kind: Kind, text: str) -> str | None:
    checked = check(one_field(kind), pl.DataFrame({"x": [text]}))
    _, told = checked.errors.error_data(pl.Series([2]))
    return json.loads(told[0])[0]["ErrorCode"] if checked.errors else None
