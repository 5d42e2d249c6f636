"""The compiled readers against the strict ones: never a value the strict one would not give."""

from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from flows.steps.fast import cells
from flows.steps.fast.cells import Bytes
from schemas.cells import reading
from schemas.cells.reading import Moment, Number
from schemas.compiled import compiled
from schemas.field import Kind
from tests.examples import examples

HOSTILE = st.text(alphabet="0123456789+-.eE :TZtz/xinfa\t\0٣", max_size=26)
NUMBERS = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.from_regex(r"\A-?[0-9]{0,10}\.?[0-9]{0,8}\Z"),
    st.from_regex(r"\A-?[0-9]{1,9}\.[0-9]{0,7}0{0,40}[0-9]?\Z"),
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
CELL = st.one_of(HOSTILE, NUMBERS, TIMES, GOOD_TIMES)
Told = NDArray[np.int64]
Said = TypeVar("Said", bound=tuple[int, ...])


@compiled
def _integer(text: Bytes, start: int, stop: int, told: Told) -> None:
    told[0], told[1], told[2] = cells.read_integer(text, start, stop)


@compiled
def _decimal(text: Bytes, start: int, stop: int, told: Told) -> None:
    told[0], told[1], told[2], told[3] = cells.read_decimal(text, start, stop)


@compiled
def _moment(text: Bytes, start: int, stop: int, told: Told) -> None:
    told[0], told[1], told[2], told[3] = cells.read_moment(text, start, stop)


def compiled_and_plain(
    loop: Callable[[Bytes, int, int, Told], None], plain: Callable[[Bytes, int, int], Said]
) -> Callable[[Bytes, int, int], Said]:
    """A reader as machine code, of which each answer is that of its own source."""

    def read(text: Bytes, start: int, stop: int) -> Said:
        told = np.empty(4, np.int64)
        loop(text, start, stop, told)
        said = plain(text, start, stop)
        assert [*said] == told[: len(said)].tolist()
        return said

    return read


read_integer = compiled_and_plain(_integer, cells.read_integer)
read_decimal = compiled_and_plain(_decimal, cells.read_decimal)
read_moment = compiled_and_plain(_moment, cells.read_moment)


def placed(cell: str, before: str = "", behind: str = ",0") -> tuple[Bytes, int, int]:
    """A cell as it lies in a file: the text, and where in it the cell begins and ends."""
    text = np.frombuffer(f"{before}{cell}{behind}".encode(), np.uint8)
    start = len(before.encode())
    return text, start, start + len(cell.encode())


@settings(max_examples=examples(4_000, 50), deadline=None)
@given(cell=CELL)
@example(cell="9007199254740993")
@example(cell="1234567890123456")
@example(cell="12345678901234567")
@example(cell="٣")
@example(cell="00012")
def test_integers(cell: str) -> None:
    text, start, stop = placed(cell)
    end, value, known = read_integer(text, start, stop)
    if known and end == stop:
        assert reading.read_integer(Kind.INTEGER64, cell) == value


@pytest.mark.long
@settings(max_examples=examples(4_000, 50), deadline=None)
@given(cell=CELL)
@example(cell="5.")
@example(cell="-.5")
@example(cell="-")
@example(cell="1.2.3")
@example(cell="-0.00")
@example(cell="1.-3")
@example(cell="0.1234567")
@example(cell="99999999.999999")
@example(cell="99999999.999999000000000000")
@example(cell="0.1234560000000000000000000000000000000000")
@example(cell="0.000000000000000001")
def test_decimals(cell: str) -> None:
    text, start, stop = placed(cell)
    end, micro, scale, known = read_decimal(text, start, stop)
    if known and end == stop:
        value = reading.read_number(cell)
        assert isinstance(value, Number)
        assert value.exact == Decimal(int(micro)).scaleb(-6)
        assert -Decimal(cell).as_tuple().exponent == scale  # type: ignore[operator]


@settings(max_examples=examples(4_000, 50), deadline=None)
@given(cell=CELL)
@example(cell="2024-02-29T23:59:59Z")
@example(cell="2023-02-29T00:00:00Z")
@example(cell="2026-01-15T10:30:0 +01:00")
@example(cell="2026-01-15T10:30:00Z02:00")
@example(cell="20 6-01-15T10:30:00+02:00")
@example(cell="2026-01-15T10:30:00+0 :15")
def test_moments(cell: str) -> None:
    text, start, stop = placed(cell)
    end, wall, offset, known = read_moment(text, start, stop)
    if known and end == stop:
        moment = reading.read_moment(cell, offset_required=True)
        assert isinstance(moment, Moment)
        assert (np.datetime64(wall, "us").item(), offset) == (moment.wall, moment.offset)


@pytest.mark.long
def test_every_day_is_the_calendars() -> None:
    days = np.arange("0002-01-01", "9999-01-01", dtype="M8[D]")
    for day in [*days[::97], *days[:800], *days[-800:]]:
        _, wall, _, known = read_moment(*placed(f"{day}T00:00:00Z"))
        assert known
        assert np.datetime64(wall, "us") == day


@pytest.mark.parametrize("before", ["", ",", "9,", "1234567,"])
@pytest.mark.parametrize("behind", ["", "\n", "\r\n", ",3.5\n"])
def test_what_is_written_most_is_known(before: str, behind: str) -> None:
    """Wherever in the text it lies, and whatever lies beside it."""
    for integer in ["7", "12345678", "123456789", "1234567890123456"]:
        text, start, stop = placed(integer, before, behind)
        assert read_integer(text, start, stop) == (stop, int(integer), True)
    # A database writes the digits of an amount that its column has room for.
    scaled = [f"-12.5{'0' * 17}", f"99999999.999999{'0' * 32}"]
    for decimal in ["7", "-7", "12.50", "-1234567.89", "99999999.999999", "0.0", *scaled]:
        text, start, stop = placed(decimal, before, behind)
        end, micro, _, known = read_decimal(text, start, stop)
        assert (end, micro, known) == (stop, int(Decimal(decimal).scaleb(6)), True)
    for moment in [
        "2026-01-15T10:30:00Z",
        "2026-01-15T10:30:00+02:00",
        "2026-01-15T10:30:00-09:30",
    ]:
        text, start, stop = placed(moment, before, behind)
        end, *_, known = read_moment(text, start, stop)
        assert known
        assert end == stop
