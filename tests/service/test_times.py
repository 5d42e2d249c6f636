"""Times and doubles as the service writes them, against what was sent."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.service.echo import same_double
from connectors.service.encoding import sent_moment
from connectors.service.times import EPOCH, moment_of, same_datetime, same_datetime_offset
from schemas.cells.reading import Unread, read_moment
from schemas.field import Kind
from tests.examples import examples

NEW_YORK, UTC, HAVANA = ZoneInfo("America/New_York"), ZoneInfo("UTC"), ZoneInfo("America/Havana")

DATETIMES = [
    # sent, echoed, the same; the server is in New York
    ("2026-01-02T03:04:05+02:00", "2026-01-01T20:04:05-05:00", True),
    ("2026-01-02T03:04:05+02:00", "2026-01-01T20:04:05.0000000-05:00", True),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z", True),
    ("2026-01-02T03:04:05+02:00", "2026-01-01T20:04:05", True),
    ("2026-01-02T03:04:05+02:00", "/Date(1767315845000)/", True),
    ("2026-01-02T03:04:05+02:00", "/Date(1767315845000-0500)/", True),
    ("2026-01-02T03:04:05+02:00", "/Date(1767315845001)/", False),
    ("2026-01-02T03:04:05.123456+02:00", "/Date(1767315845123-0500)/", True),
    ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05.1234560Z", True),
    ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05.1234561Z", False),
    ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05.123Z", False),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05", False),
    ("2026-01-02T03:04:05+02:00", "2026-01-02", False),
    ("2026-01-02T05:00:00+00:00", "2026-01-02", True),
    ("2026-01-02T00:00:00+00:00", "2026-01-01T19:00:00-05:00", True),
    ("2026-01-02T00:00:00+00:00", "2026-01-02", False),
    ("2026-01-02T00:00:00", "2026-01-02", True),
    ("2026-01-02T00:00:00", "2026-01-02T00:00:00", True),
    ("2026-01-02T00:00:00", "2026-01-03", False),
    ("2026-01-02T00:00:00", "/Date(1767330000000-0000)/", True),
    ("2026-01-02T00:00:00", "/Date(1767312000000-0000)/", False),
    ("0001-01-01T00:00:00", "/Date(-62135596800000)/", True),
    ("0001-01-01T00:00:00", "0001-01-01", True),
    ("1969-12-31T19:00:00.000500-05:00", "/Date(0)/", True),
    ("1969-12-31T18:59:59.999500-05:00", "/Date(-1)/", True),
    ("1969-12-31T18:59:59.999500-05:00", "/Date(0)/", True),
    ("1969-12-31T18:59:59.998500-05:00", "/Date(-1)/", True),
    ("1969-12-31T18:59:59.998500-05:00", "/Date(-2)/", True),
    ("1969-12-31T18:59:59.998500-05:00", "/Date(0)/", False),
    ("2026-01-02T03:04:05", "2026-01-02T03:04:05-05:00", True),
    ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", False),
    ("2026-01-02T03:04:05+02:00", "2026-01-01 20:04:05", False),
    ("2026-01-02T03:04:05+02:00", "2026-13-01T20:04:05Z", False),
    ("2026-01-02T03:04:05+02:00", "", False),
    ("2026-01-02T03:04:05+02:00", None, False),
    ("2026-01-02T03:04:05+02:00", 1767315845000, False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), DATETIMES)
def test_datetime(sent: str, echoed: object, same: bool) -> None:
    assert same_datetime(sent, echoed, NEW_YORK) is same


def test_a_day_without_midnight_and_one_with_two() -> None:
    """In Havana clocks go from 00:00 to 01:00 in spring, and from 01:00 back to 00:00 in autumn."""
    assert same_datetime("2026-03-08T00:00:00", "2026-03-08", HAVANA)
    assert same_datetime("2026-11-01T04:00:00+00:00", "2026-11-01", HAVANA)
    assert same_datetime("2026-11-01T05:00:00+00:00", "2026-11-01", HAVANA)
    assert not same_datetime("2026-11-01T06:00:00+00:00", "2026-11-01", HAVANA)


OFFSETS = [
    # sent, echoed, the same
    ("2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05+02:00", True),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05.0000000+02:00", True),
    ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z", True),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00", False),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05", False),
    ("2026-01-02T03:04:05+02:00", "/Date(1767323045000+0200)/", True),
    ("2026-01-02T03:04:05+00:00", "/Date(1767323045000)/", True),
    ("2026-01-02T03:04:05+02:00", "/Date(1767323045000)/", False),
    ("2026-01-02T03:04:05+02:00", "/Date(1767315845000+0200)/", False),
    ("2026-01-02T03:04:05.1239-03:30", "/Date(1767323045123-0330)/", True),
    ("2026-01-02T03:04:05.1239-03:30", "/Date(1767323045124-0330)/", False),
    ("2026-01-02T00:00:00+00:00", "2026-01-02", False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), OFFSETS)
def test_datetime_with_offset(sent: str, echoed: object, same: bool) -> None:
    assert same_datetime_offset(sent, echoed) is same


@pytest.mark.parametrize(
    ("canonical", "sent"),
    [
        ("2026-01-02T00:00:00", "2026-01-02"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05-05:00"),
        ("2026-07-02T03:04:05.25", "2026-07-02T03:04:05.25-04:00"),
        ("2026-01-02T00:00:00+00:00", "2026-01-02T00:00:00+00:00"),
    ],
)
def test_a_datetime_is_never_sent_naive(canonical: str, sent: str) -> None:
    assert sent_moment(canonical, NEW_YORK)[1] == sent


NO_TIMES = [
    "2026-01-06T05:43:05+99:99",
    "2026-01-02T17:05:05+14:01",
    "2026-01-02T04:04:05+02:60",
    "2026-01-01T22:04:05-02:60",
    "/Date(1767315845000+9999)/",
    "/Date(1767315845000+0260)/",
    "/Date(1767315845000-1401)/",
]


@pytest.mark.parametrize("echoed", NO_TIMES)
def test_an_offset_that_no_clock_has(echoed: str) -> None:
    """Each is the instant that was sent, if its offset were one."""
    assert not same_datetime("2026-01-02T03:04:05+02:00", echoed, NEW_YORK)
    assert moment_of(Kind.DATETIME, echoed, NEW_YORK) is None


@pytest.mark.parametrize(
    "told",
    [
        "0001-01-01T00:00:00+02:00",
        "9999-12-31T23:00:00-02:00",
        "/Date(-62135596800000+0200)/",
        "/Date(253402297200000-0200)/",
    ],
)
def test_a_wall_clock_whose_instant_is_outside_of_time(told: str) -> None:
    assert moment_of(Kind.DATETIME_OFFSET, told, NEW_YORK) is None


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(
    wall=st.datetimes() | st.sampled_from([datetime.min, datetime.max.replace(microsecond=0)]),  # noqa: DTZ901
    sign=st.sampled_from("+-"),
    hours=st.integers(0, 99),
    minutes=st.integers(0, 99),
)
def test_no_offset_is_read_that_a_delivery_may_not_have(
    wall: datetime, sign: str, hours: int, minutes: int
) -> None:
    text = f"{wall.isoformat()}{sign}{hours:02}:{minutes:02}"
    read = read_moment(text, offset_required=True)
    moment = moment_of(Kind.DATETIME_OFFSET, text, NEW_YORK)
    assert moment == (None if isinstance(read, Unread) else read)
    stamp = f"/Date({(wall - EPOCH) // timedelta(milliseconds=1)}{sign}{hours:02}{minutes:02})/"
    stamped = moment_of(Kind.DATETIME_OFFSET, stamp, NEW_YORK)
    assert f"{sign}{hours:02}{minutes:02}" == "-0000" or (stamped is None) == (moment is None)


DOUBLES = [
    # sent, echoed, the same
    ("10.5", "10.5", True),
    ("10.5", "10.50", True),
    ("10", 10, True),
    ("0.30000000000000004", "0.3", True),
    ("0.30000000000000004", "0.30000000000000004", True),
    ("0.1", "0.10000000000000001", True),
    ("10000000000000000", "1E+16", True),
    ("0.00001", "1E-05", True),
    ("123456789012345680", "1.23456789012346E+17", True),
    ("0", "-0", True),
    ("0.3", "0.30000000000000004", False),
    ("10.5", "10.51", False),
    ("10.5", "10,5", False),
    ("10.5", " 10.5", False),
    ("10.5", "1_0.5", False),
    ("10.5", "NaN", False),
    ("10.5", "Infinity", False),
    ("1", True, False),
    ("1", None, False),
    ("1", [1], False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), DOUBLES)
def test_double(sent: str, echoed: object, same: bool) -> None:
    assert same_double(sent, echoed) is same
