"""Texts of values: whatever a column holds has one, and what is the same has the same."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.steps.match.value_texts import texts
from tests.compare.tables import compared, counts, parquet_file, values

MOST = 2**63 - 1
US, MS, NS, TZ = (
    pl.Datetime("us"),
    pl.Datetime("ms"),
    pl.Datetime("ns"),
    pl.Datetime("us", "Europe/Berlin"),
)
DAY, DAY_OF_US = pl.Date(), 86_400_000_000

FAR: list[tuple[pl.DataType, int, str]] = [
    # a type, a number of its units since 1970, its text
    (US, 0, "1970-01-01T00:00:00"),
    (US, 95_000_000 * DAY_OF_US - 1, "+262071-03-01T23:59:59.999999"),
    (US, 95_000_000 * DAY_OF_US, "+262071-03-02T00:00:00"),
    (US, MOST, "+294247-01-10T04:00:54.775807"),
    (US, -MOST, "-290308-12-21T19:59:05.224193"),
    (TZ, MOST, "+294247-01-10T04:00:54.775807+00:00"),
    (MS, MOST, "+292278994-08-17T07:12:55.807"),
    (NS, MOST, "2262-04-11T23:47:16.854775807"),
    (DAY, 94_999_999, "+262071-03-01"),
    (DAY, 95_000_000, "+262071-03-02"),
    (DAY, -94_999_999, "-258132-11-02"),
    (DAY, -95_000_000, "-258132-11-01"),
    (DAY, 2**31 - 1, "+5881580-07-11"),
]


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "ticks", "text"), FAR)
def test_a_time_has_a_text_however_far_it_is(
    tmp_path: Path, dtype: pl.DataType, ticks: int, text: str
) -> None:
    """Also as a key, and in a list; the days of the calendar go on without a gap."""
    whole = pl.Int32() if dtype == DAY else pl.Int64()
    side = pl.Series([ticks, None, 1], dtype=whole).cast(dtype)
    assert texts(side).to_list()[:2] == [text, None]
    inner = text.removesuffix("T00:00:00")
    assert texts(side.head(1).implode()).to_list() == [f'["{inner}"]']
    other = side.to_frame("id").with_columns(v=pl.col("id").shift(1), w=pl.concat_list("id"))
    left = tmp_path / "l.parquet"
    other.write_parquet(left)
    right = parquet_file(tmp_path / "r.parquet", {"id": [text], "v": [""], "w": [f'["{inner}"]']})
    assert compared(left, left, folder=tmp_path / "out").pairs == 2
    assert values(compared(left, right))[0] == ("v", None, "", None)
    assert counts(compared(right, left))["MISMATCH"] == 1


CET = timezone(timedelta(hours=1))
MOMENT = datetime(2026, 1, 2, 3, tzinfo=UTC)
SAME: list[tuple[Any, Any, Any, Any, str]] = [
    # a value and its type, the same one of another type, its text
    ([Decimal("10.50")], pl.List(pl.Decimal(9, 2)), [10.5], pl.List(pl.Float64), "[10.5]"),
    ([1, 2], pl.List(pl.Int8), [1.0, 2.0], pl.List(pl.Float64), "[1,2]"),
    ([-0.0], pl.List(pl.Float64), [0], pl.Array(pl.Int8, 1), "[0]"),
    ([1e22], pl.List(pl.Float64), [10**22], pl.List(pl.Int128), f"[1{'0' * 22}]"),
    ([MOMENT], pl.List(pl.Datetime("us", "UTC")), [MOMENT.astimezone(CET)],
     pl.List(pl.Datetime("ns", "Europe/Berlin")), '["2026-01-02T03:00:00+00:00"]'),
    ([date(2026, 1, 2)], pl.List(pl.Date), [datetime(2026, 1, 2)],  # noqa: DTZ001
     pl.List(pl.Datetime("ms")), '["2026-01-02"]'),
    ({"a": 1, "b": "x"}, pl.Struct({"a": pl.Int8, "b": pl.String}), {"b": "x", "a": 1.0},
     pl.Struct({"b": pl.String, "a": pl.Float32}), '{"a":1,"b":"x"}'),
    ([{"b": [None], "a": None}], pl.List(pl.Struct({"b": pl.List(pl.Int8), "a": pl.Null})),
     [{"a": None, "b": [None]}], pl.List(pl.Struct({"a": pl.Int8, "b": pl.List(pl.Null)})),
     '[{"a":null,"b":[null]}]'),
    ([], pl.List(pl.Int8), [], pl.List(pl.String), "[]"),
    ([[], None, [1]], pl.List(pl.List(pl.Int8)), [[], None, [1]], pl.List(pl.List(pl.Int64)),
     "[[],null,[1]]"),
    ({}, pl.Struct({}), {}, pl.Struct({}), "{}"),
    ([b"\xff\x00"], pl.List(pl.Binary), "[\"\\\\xff00\"]", pl.String(), r'["\\xff00"]'),
    (b"\xff\x00", pl.Binary(), r"\xff00", pl.String(), r"\xff00"),
    ({'é"': "\t"}, pl.Struct({'é"': pl.String}), {'é"': "\t"}, pl.Struct({'é"': pl.Categorical}),
     r'{"é\"":"\t"}'),
    ({"a": 1, "*": 2, "^a$": 3}, pl.Struct({"a": pl.Int8, "*": pl.Int8, "^a$": pl.Int8}),
     '{"*":2,"^a$":3,"a":1}', pl.String(), '{"*":2,"^a$":3,"a":1}'),
    ([True, None], pl.List(pl.Boolean), "[true,null]", pl.String(), "[true,null]"),
    (time(3, 4, 5, 500_000), pl.Time(), "03:04:05.5", pl.String(), "03:04:05.5"),
    (time(3, 4), pl.Time(), "03:04:00", pl.String(), "03:04:00"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "one_type", "other", "other_type", "text"), SAME)
def test_values_of_the_same_parts_have_the_same_text(
    one: Any, one_type: Any, other: Any, other_type: Any, text: str
) -> None:
    for value, dtype in ((one, one_type), (other, other_type)):
        side = pl.Series([None, value, None, value], dtype=dtype)
        assert texts(side).to_list() == [None, text, None, text]
        assert texts(side.clear()).to_list() == []


APART: list[tuple[Any, Any, Any, Any]] = [
    (["1"], pl.List(pl.String), [1], pl.List(pl.Int8)),
    ([MOMENT], pl.List(pl.Datetime("us", "UTC")), [MOMENT.replace(tzinfo=None)],
     pl.List(pl.Datetime("us"))),
    ([None], pl.List(pl.String), ["null"], pl.List(pl.String)),
    ([["a"], ["b"]], pl.List(pl.List(pl.String)), [["a", "b"]], pl.List(pl.List(pl.String))),
    ({"a": 1}, pl.Struct({"a": pl.Int8}), {"a": 1, "b": None},
     pl.Struct({"a": pl.Int8, "b": pl.Int8})),
    (b"a", pl.Binary(), "61", pl.String()),
    (time(3, 4, 5, 1), pl.Time(), time(3, 4, 5), pl.Time()),
    ([time(3, 4, 5, 1)], pl.List(pl.Time), [time(3, 4, 5)], pl.List(pl.Time)),
]  # fmt: skip


@pytest.mark.parametrize(("one", "one_type", "other", "other_type"), APART)
def test_values_of_other_parts_have_other_texts(
    one: Any, one_type: Any, other: Any, other_type: Any
) -> None:
    sides = (pl.Series([one], dtype=one_type), pl.Series([other], dtype=other_type))
    left, right = (texts(side)[0] for side in sides)
    assert left != right
