"""Whose business day it is: one setting decides what today is, for every place that asks."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.errors import DayRefused, SettingsError
from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import BatchSummary
from connectors.settings import read_settings
from flows.report.board import board_table
from flows.stages.reconcile.as_of import day_at, first_moment, today
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules

# At any moment it is another day in one of the two than in UTC.
EAST, WEST = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Etc/GMT+12")
DAY = date(2026, 1, 31)


def placed(workspace: Workspace, zone: ZoneInfo) -> Workspace:
    return replace(workspace, settings=replace(workspace.settings, time_zone=zone))


def run(workspace: Workspace, day: date) -> Reconciled:
    return reconcile(workspace, Asked(Scope(), day, Rules()))


@pytest.mark.parametrize(
    ("text", "key"),
    [(None, "UTC"), ("", "UTC"), ("Europe/Berlin", "Europe/Berlin"), ("Etc/GMT+12", "Etc/GMT+12")],
)
def test_the_setting_is_a_name_of_a_zone(text: str | None, key: str, tmp_path: Path) -> None:
    given = {"RECON_HOME": str(tmp_path)} | ({} if text is None else {"RECON_TIME_ZONE": text})
    assert read_settings(given).time_zone.key == key


@pytest.mark.parametrize("name", ["RECON_TIME_ZONE", "RECON_SERVICE_ZONE"])
@pytest.mark.parametrize(
    "text",
    [
        "Berlin",
        "+01:00",
        "UTC+1",
        "Europe",
        "../etc/passwd",
        "/etc/localtime",
        "localtime",
        "Factory",
        " ",
    ],
)
def test_what_is_no_zone_is_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name}=.* is no time zone such as Europe/Berlin"):
        read_settings({name: text})


@pytest.mark.parametrize(
    ("moment", "zone", "day"),
    [
        ("2026-01-31T23:30:00+00:00", "UTC", "2026-01-31"),
        ("2026-01-31T23:30:00+00:00", "Europe/Berlin", "2026-02-01"),
        ("2026-02-01T04:59:59+00:00", "America/New_York", "2026-01-31"),
        ("2026-02-01T05:00:00+00:00", "America/New_York", "2026-02-01"),
        # Summer time ends in the night before: midnight is an hour earlier in UTC.
        ("2026-10-24T22:00:00+00:00", "Europe/Berlin", "2026-10-25"),
        ("2026-10-25T22:59:59+00:00", "Europe/Berlin", "2026-10-25"),
    ],
)
def test_a_day_begins_and_ends_where_the_zone_says(moment: str, zone: str, day: str) -> None:
    found = day_at(datetime.fromisoformat(moment), ZoneInfo(zone))
    assert found.isoformat() == day
    begins = first_moment(found, ZoneInfo(zone))
    assert begins <= datetime.fromisoformat(moment)
    assert first_moment(found + timedelta(1), ZoneInfo(zone)) > datetime.fromisoformat(moment)


@pytest.mark.long
def test_tomorrow_in_utc_is_today_further_east_and_a_day_to_come_is_named_with_its_zone(
    workspace: Workspace,
) -> None:
    assert today(EAST) - today(WEST) in (timedelta(1), timedelta(2))
    with pytest.raises(DayRefused, match=f"it is {today(WEST)} in Etc/GMT.12. A report"):
        run(placed(workspace, WEST), today(WEST) + timedelta(1))
    assert run(placed(workspace, EAST), today(EAST)).run.as_of == today(EAST)


def test_the_command_asks_the_setting(recon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECON_TIME_ZONE", EAST.key)
    before = today(EAST)
    told = recon("reconcile", "--json")
    assert told.returncode in (0, 1), told.stderr
    assert any(f'"as_of": "{day}"' in told.stdout for day in (before, today(EAST)))
    monkeypatch.setenv("RECON_TIME_ZONE", "Mars/Olympus")
    refused = recon("reconcile")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "RECON_TIME_ZONE='Mars/Olympus' is no time zone" in refused.stderr


@pytest.mark.long
def test_a_report_names_the_zone_and_is_the_same_each_time(workspace: Workspace) -> None:
    first = run(placed(workspace, EAST), DAY)
    again = run(placed(workspace, EAST), DAY)
    elsewhere = run(workspace, DAY)
    assert "Pacific/Kiritimati" in first.text()
    for name in ("report.html", "report.txt"):
        text = (first.written.folder / name).read_text(encoding="utf-8")
        assert "Pacific/Kiritimati" in text, name
    assert first.report.cover.zone == again.report.cover.zone == EAST.key
    assert elsewhere.report.cover.zone == "UTC"


def test_the_board_tells_times_of_the_zone() -> None:
    opened = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    line = BatchSummary(1, "feed", State.COMPLETE, opened, 1, 0, 1, 0, {}, None)
    shown = [board_table([line], zone)[0]["Opened"] for zone in (ZoneInfo("UTC"), EAST, WEST)]
    assert shown == ["2026-01-31 23:30", "2026-02-01 13:30", "2026-01-31 11:30"]


def test_a_run_that_nobody_gave_a_day_speaks_of_that_of_the_zone() -> None:
    from flows.tasks.run_names import day_of

    assert day_of(None, EAST) == today(EAST)
    assert day_of(None, WEST) == today(WEST)
    assert day_of(DAY, WEST) == DAY
