"""Keys of more than one row, found part by part as they are found in one."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.validate.check import check
from flows.steps.validate.repeats import (
    CONFLICT,
    CONTENT,
    FIRST,
    LAST,
    MOMENT,
    PLACE,
    VERSION,
    repeated_keys,
)
from flows.steps.validate.rows import Positions, identities
from schemas.tables import PAYMENT_PLAN_DETAIL

ROWS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=12)
"""Key and content, in the order of the places."""
FOUND = ("key", FIRST, LAST, CONFLICT)


def frame(rows: list[tuple[int, tuple[int, int]]]) -> pl.DataFrame:
    told = [(place, key, content) for place, (key, content) in rows]
    return pl.DataFrame(told, schema={PLACE: int, "key": int, CONTENT: int}, orient="row")


def by_hand(rows: list[tuple[int, int]]) -> list[tuple[int, int, int, bool]]:
    found = []
    for key in sorted({key for key, _ in rows}):
        places = [place for place, (one, _) in enumerate(rows) if one == key]
        contents = {rows[place][1] for place in places}
        if len(places) > 1:
            found.append((key, places[0], places[-1], len(contents) > 1))
    return found


@settings(derandomize=True, deadline=None)
@given(ROWS, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_parts_find_what_one_finds(rows: list[tuple[int, int]], part: list[int]) -> None:
    """Whatever part a row is in, and whatever order the parts come in."""
    numbered = [*enumerate(rows)]
    parts = [frame([one for one in numbered if part[one[0]] == number]) for number in (2, 0, 1)]
    found = repeated_keys(parts, ["key"]).select(FOUND).sort("key").rows()
    assert found == by_hand(rows)


CLOCKS = st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 2, None]))
"""What a row says of the time, and its offset."""


@settings(derandomize=True, deadline=None)
@given(ROWS, st.lists(CLOCKS, min_size=12, max_size=12), st.integers(0, 12))
def test_the_last_one_is_the_newest(
    rows: list[tuple[int, int]], clocks: list[tuple[int, int | None]], cut: int
) -> None:
    """By the moments if all have one, else by the clocks; and of equally new ones the last."""
    versions = {VERSION: pl.Series([clock for clock, _ in clocks[: len(rows)]], dtype=pl.Int64)}
    moments = [None if offset is None else clock - offset for clock, offset in clocks]
    versions[MOMENT] = pl.Series(moments[: len(rows)], dtype=pl.Int64)
    told = frame([*enumerate(rows)]).with_columns(**versions)
    found = repeated_keys([told[cut:], told[:cut]], ["key"]).select("key", LAST)
    expected = {}
    for key, *_ in by_hand(rows):
        places = [place for place, (one, _) in enumerate(rows) if one == key]
        known = all(moments[place] is not None for place in places)
        expected[key] = max((moments[at] if known else clocks[at][0], at) for at in places)[1]
    assert dict(found.iter_rows()) == expected


def test_some_of_the_records_of_a_chunk_keep_what_is_said_of_each() -> None:
    """Of five records the second and the last are broken; the first is left out."""
    positions = Positions(
        pl.DataFrame({"record_number": [1, 2, 3, 4, 5]}),
        pl.Series([None, "Ragged", None, None, "Ragged"]),
        pl.Series([None, "lines 2 to 3", None, None, None]),
    )
    some = positions.only(pl.Series([False, True, True, False, True]))
    assert some.frame["record_number"].to_list() == [2, 3, 5]
    assert some.faults.to_list() == ["Ragged", None, "Ragged"]
    assert some.details is not None
    assert some.details.to_list() == ["lines 2 to 3", None, None]


def test_a_zero_below_zero_is_the_record_of_any_other_zero() -> None:
    table, zeros = PAYMENT_PLAN_DETAIL, ["0.00", "-0.00", "0", "-0e5"]
    amounts = [*zeros, "1.00", "-1.00", None]
    cells = pl.DataFrame(
        [("7", amount) for amount in amounts],
        {"PaymentPlansId": pl.String, "PlannedAmount": pl.String},
        orient="row",
    )
    absent = [of.name for of in table.delivered if of.name not in cells.columns]
    cells = cells.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
    typed = check(table, cells).typed
    found = identities(table, typed, 1, pl.Series(range(len(amounts)))).to_list()
    assert len({*found[: len(zeros)]}) == 1
    assert len({*found}) == 4
