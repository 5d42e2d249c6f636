"""Times in and out, in both styles, and the server's zone."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.sandbox.moments import (
    classic_time,
    csv_time,
    iso_time,
    read_datetime,
    read_datetime_offset,
    round_trip_time,
)
from tests.sandbox.conftest import running
from tests.sandbox.records import PAYMENT, RATE

NEW_YORK, UTC = ZoneInfo("America/New_York"), ZoneInfo("UTC")

TRAP = [
    # sent to a host in New York, CSV that comes back
    ("2026-01-02T03:04:05+02:00", "2026-01-01T20:04:05-05:00"),
    ("2026-01-02T03:04:05Z", "2026-01-01T22:04:05-05:00"),
    ("2026-01-02T00:00:00Z", "2026-01-01T19:00:00-05:00"),
    ("2026-01-02T05:00:00Z", "2026-01-02"),
    ("2026-01-02", "2026-01-02"),
    ("20260102", "2026-01-02"),
    ("02/01/2026", "2026-02-01"),
    ("2026-01-02T03:04:05", "2026-01-02T03:04:05-05:00"),
    ("2026-01-02T03:04:05.5", "2026-01-02T03:04:05.5000000-05:00"),
    ("2026-07-02T04:00:00Z", "2026-07-02"),
    ("/Date(1767323045000)/", "2026-01-02T03:04:05Z"),
    ("/Date(1767323045678)/", "2026-01-02T03:04:05.678Z"),
    ("/Date(1767323045000+0200)/", "2026-01-01T22:04:05-05:00"),
    ("0001-01-01", "0001-01-01"),
]


@pytest.mark.parametrize(("sent", "expected"), TRAP)
def test_a_datetime_is_kept_in_the_servers_zone(sent: str, expected: str) -> None:
    time = read_datetime(sent, NEW_YORK)
    assert time is not None
    assert csv_time(time) == expected


OFFSETS = [
    # sent, CSV, classic JSON, ISO JSON
    (
        "2026-01-02T03:04:05+02:00",
        "2026-01-02T03:04:05.0000000+02:00",
        r"\/Date(1767323045000+0200)\/",
        "2026-01-02T03:04:05+02:00",
    ),
    (
        "2026-01-02T03:04:05.1234567-03:30",
        "2026-01-02T03:04:05.1234567-03:30",
        r"\/Date(1767323045123-0330)\/",
        "2026-01-02T03:04:05.1234567-03:30",
    ),
    (
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.0000000+00:00",
        r"\/Date(1767323045000)\/",
        "2026-01-02T03:04:05+00:00",
    ),
    (
        "2026-01-02",
        "2026-01-02T00:00:00.0000000+00:00",
        r"\/Date(1767312000000)\/",
        "2026-01-02T00:00:00+00:00",
    ),
    (
        "/Date(1767323045000+0200)/",
        "2026-01-02T03:04:05.0000000+02:00",
        r"\/Date(1767323045000+0200)\/",
        "2026-01-02T03:04:05+02:00",
    ),
]


@pytest.mark.parametrize(("sent", "csv", "classic", "iso"), OFFSETS)
def test_a_datetime_offset_keeps_its_offset(sent: str, csv: str, classic: str, iso: str) -> None:
    time = read_datetime_offset(sent)
    assert time is not None
    assert (csv_time(time), classic_time(time), iso_time(time)) == (csv, classic, iso)


KINDS = [
    # as a host made it, CSV, classic JSON, ISO JSON, "o"
    (
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05Z",
        r"\/Date(1767323045000)\/",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.0000000Z",
    ),
    (
        "2026-01-02T03:04:05.25",
        "2026-01-02T03:04:05.2500000-05:00",
        r"\/Date(1767341045250-0000)\/",
        "2026-01-02T03:04:05.25",
        "2026-01-02T03:04:05.2500000",
    ),
    (
        "2026-01-02T03:04:05-05:00",
        "2026-01-02T03:04:05-05:00",
        r"\/Date(1767341045000-0500)\/",
        "2026-01-02T03:04:05-05:00",
        "2026-01-02T03:04:05.0000000-05:00",
    ),
]


@pytest.mark.parametrize(("made", "csv", "classic", "iso", "round_trip"), KINDS)
def test_a_datetime_as_a_host_made_it(
    made: str, csv: str, classic: str, iso: str, round_trip: str
) -> None:
    time = read_datetime(made, NEW_YORK, as_written=True)
    assert time is not None
    assert (csv_time(time), classic_time(time)) == (csv, classic)
    assert (iso_time(time), round_trip_time(time)) == (iso, round_trip)


ZONES = [
    # sent to a host in New York, classic JSON: unspecified, local or UTC
    ("2026-01-02T03:04:05", r"\/Date(1767341045000-0000)\/"),
    ("2026-01-02T03:04:05.678", r"\/Date(1767341045678-0000)\/"),
    ("2026-01-02T03:04:05.5", r"\/Date(1767341045500-0500)\/"),
    ("2026-01-02", r"\/Date(1767330000000-0500)\/"),
    ("20260102", r"\/Date(1767330000000-0000)\/"),
    ("2026-01-02T03:04:05Z", r"\/Date(1767323045000-0500)\/"),
    ("/Date(1767323045000)/", r"\/Date(1767323045000)\/"),
]


@pytest.mark.parametrize(("sent", "expected"), ZONES)
def test_what_is_known_of_a_datetimes_zone(sent: str, expected: str) -> None:
    time = read_datetime(sent, NEW_YORK)
    assert time is not None
    assert classic_time(time) == expected


def test_the_first_moment_is_the_same_in_every_zone() -> None:
    for zone in (NEW_YORK, UTC, ZoneInfo("Europe/Berlin")):
        time = read_datetime("0001-01-01T00:00:00", zone)
        assert time is not None
        assert classic_time(time) == r"\/Date(-62135596800000-0000)\/"


NO_TIMES = ["", "junk", "2026-02-30", "2026-13-01", "2026-01-02T25:00:00Z", "2026-01-02T03"]
NO_TIMES += ["2026-01-02T03:04:05+14:01", "2026-01-02T03:04:05+02:60", "0000-01-01", "1", "12/2026"]


@pytest.mark.parametrize("text", NO_TIMES)
def test_no_times(text: str) -> None:
    assert read_datetime(text, UTC) is None
    assert read_datetime_offset(text) is None


def test_times_before_the_first_day_are_none() -> None:
    assert read_datetime_offset("0001-01-01T00:00:00+01:00") is None
    assert read_datetime("0001-01-01T00:00:00+01:00", UTC) is None


STYLES: list[tuple[str, str, str, dict[str, Any]]] = [
    # style, path, field, what comes back: CSV and JSON
    (
        "pascal-5",
        "/payments/12",
        "PaymentDate",
        {"csv": "2026-01-02T03:04:05.0000000+02:00", "json": "/Date(1767323045000+0200)/"},
    ),
    (
        "camel-core",
        "/payments/12",
        "PaymentDate",
        {"csv": "2026-01-02T03:04:05.0000000+02:00", "json": "2026-01-02T03:04:05+02:00"},
    ),
    (
        "pascal-5",
        "/currency_rates/3",
        "EffectiveDate",
        {"csv": "2026-01-01T20:04:05-05:00", "json": "/Date(1767315845000-0500)/"},
    ),
    (
        "camel-core",
        "/currency_rates/3",
        "EffectiveDate",
        {"csv": "2026-01-01T20:04:05-05:00", "json": "2026-01-01T20:04:05-05:00"},
    ),
]


@pytest.mark.parametrize("style", ["pascal-5", "camel-core"])
def test_over_the_wire(database_url: str, style: str) -> None:
    with running(database_url, style=style, zone="America/New_York") as host:
        for _, path, field, expected in (row for row in STYLES if row[0] == style):
            record = {**(PAYMENT if "payments" in path else RATE)}
            record[field] = "2026-01-02T03:04:05+02:00"
            in_json = host.caller.as_client("PUT", path, record)
            name = field if style == "pascal-5" else field[0].lower() + field[1:]
            assert in_json.json()[name] == expected["json"]
            in_csv = host.caller.as_client("PUT", path, record, "text/csv")
            header, row, _ = in_csv.body.split("\r\n")
            cells = dict(zip(header.split(","), row.split(","), strict=True))
            assert cells[field] == expected["csv"], "the header is the same in both styles"


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("America/New_York", "9999-12-31T23:59:59", "/Date(253402300799999-0000)/"),
        ("Asia/Tokyo", "0001-01-01T05:00:00", "/Date(-62135596800000-0000)/"),
    ],
)
def test_a_time_at_an_end_of_time_is_answered(
    database_url: str, zone: str, text: str, expected: str
) -> None:
    with running(database_url, zone=zone) as host:
        answer = host.caller.as_client("PUT", "/currency_rates/3", {**RATE, "EffectiveDate": text})
        assert (answer.status, answer.json()["EffectiveDate"]) == (200, expected)
