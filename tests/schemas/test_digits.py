"""The readers of bytes against the strict ones: never a value the strict one would not give."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.digits import Cells, read_decimals, read_integers, read_moments
from schemas.field import Kind
from schemas.reading import Moment, Number, read_integer, read_moment, read_number
from tests.examples import examples

HOSTILE = st.text(alphabet="0123456789+-.eE :TZtz/xinfa\t\0٣", max_size=26)
NUMBERS = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.from_regex(r"\A-?[0-9]{0,10}\.?[0-9]{0,8}\Z"),
)
TIMES = st.builds(
    "{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}{}".format,
    st.sampled_from([0, 1, 2, 1899, 1900, 1970, 2000, 2023, 2024, 9998, 9999]),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from("Tt "),
    st.integers(0, 25),
    st.integers(0, 61),
    st.integers(0, 61),
    st.sampled_from(["", "Z", "z", "+02:00", "-05:30", "+0200", "+14:00", "+14:15", "+01:07"]),
)
GOOD_TIMES = st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "+01:45")
CELLS = st.lists(st.one_of(HOSTILE, NUMBERS, TIMES, GOOD_TIMES), min_size=1, max_size=20)


def column(cells: Sequence[str], before: str = "", behind: str = ",,,,,,,,") -> Cells:
    """These cells, as they lie in a file, with nothing but a comma between them."""
    texts = [cell.encode() for cell in cells]
    text = before.encode() + b",".join(texts) + behind.encode()
    stop = len(before) + np.cumsum([len(one) + 1 for one in texts]) - 1
    start = stop - np.array([len(one) for one in texts])
    return Cells(np.frombuffer(text, np.uint8), start, stop)


@settings(max_examples=examples(500), deadline=None)
@given(cells=CELLS)
@example(cells=["9007199254740993", "12345678", "123456789", "1234567890123456", "٣", "00012"])
def test_integers(cells: list[str]) -> None:
    values, known = read_integers(column(cells))
    for cell, value, sure in zip(cells, values.tolist(), known.tolist(), strict=True):
        assert not sure or read_integer(Kind.INTEGER64, cell) == value, cell


@settings(max_examples=examples(500), deadline=None)
@given(cells=CELLS)
@example(cells=["5.", ".5", "-.5", "-", "1.2.3", "-0.00", "1.-3", "0.1234567", "99999999.999999"])
def test_decimals(cells: list[str]) -> None:
    found = read_decimals(column(cells))
    for cell, micro, scale, sure in zip(cells, *(one.tolist() for one in found), strict=True):
        if sure:
            value = read_number(cell)
            assert isinstance(value, Number), cell
            assert value.exact == Decimal(micro).scaleb(-6), cell
            assert -Decimal(cell).as_tuple().exponent == scale, cell  # type: ignore[operator]


@settings(max_examples=examples(500), deadline=None)
@given(cells=CELLS)
@example(cells=["2024-02-29T23:59:59Z", "2023-02-29T00:00:00Z", "2026-01-15T10:30:0 +01:00"])
@example(cells=["2026-01-15T10:30:00Z02:00", "2026-01-15T10:30:00+02:00", "2026-01-15T10:30:00Z"])
def test_moments(cells: list[str]) -> None:
    found = read_moments(column(cells))
    for cell, wall, offset, sure in zip(cells, *(one.tolist() for one in found), strict=True):
        if sure:
            moment = read_moment(cell, offset_required=True)
            assert isinstance(moment, Moment), cell
            assert (np.datetime64(wall, "us").item(), offset) == (moment.wall, moment.offset), cell


@pytest.mark.parametrize("before", ["", ",", "9,", "1234567,", "12345678,"])
@pytest.mark.parametrize("behind", ["", "\n", "3\n", ",3.5\n", "0000000\n"])
def test_what_is_written_most_is_known(before: str, behind: str) -> None:
    """Wherever in the text it lies, and whatever lies beside it."""
    integers = ["7", "12345678", "123456789", "1234567890123456"]
    assert read_integers(column(integers, before, behind)).known.all()
    decimals = ["7", "-7", "12.50", "-1234567.89", "99999999.999999", "0.0"]
    assert read_decimals(column(decimals, before, behind)).known.all()
    moments = ["2026-01-15T10:30:00Z", "2026-01-15T10:30:00+02:00", "2026-01-15T10:30:00-09:30"]
    assert read_moments(column(moments, before, behind)).known.all()
