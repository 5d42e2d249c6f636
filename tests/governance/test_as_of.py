"""--as-of from end to end: a cut-off, a restatement that says so, and no day to come."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.errors import DayRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import latest_run
from flows.commands.reconcile import reconcile_command
from flows.report.reconciled.first_page import changed
from flows.report.reconciled.markdown import reconciliation_markdown
from flows.report.spelling import digits
from flows.stages.reconcile import as_of
from flows.stages.reconcile.as_of import PARAMETERS, later_run, today
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.life import Choice
from tests.stages.payments import line, write

JANUARY, FEBRUARY = date(2026, 1, 31), date(2026, 2, 28)
RULES = Rules(references=())


def deliver(workspace: Workspace, path: Path, *numbers: tuple[int, str]) -> None:
    lines = [
        line(number).replace("2026-01-01T10:00:00+01:00", moment) for number, moment in numbers
    ]
    import_delivery(workspace, [write(path, *lines)], DEFAULT)


def run(workspace: Workspace, as_of: date, restate: str | None = None) -> Reconciled:
    return reconcile(workspace, Asked(Scope(), as_of, RULES, restate=restate))


def sign(workspace: Workspace, done: Reconciled) -> None:
    prepare(workspace, done.run.id, by="Ann", comment="")
    approve(workspace, done.run.id, by="Bo", comment="")


def told(done: Reconciled) -> list[tuple[str, str, str]]:
    return [(one.code, one.key, one.state) for one in done.report.breaks]


@pytest.fixture
def two_months(workspace: Workspace, tmp_path: Path) -> Workspace:
    deliver(
        workspace,
        tmp_path / "payments.csv",
        (1, "2026-01-10T00:00:00+00:00"),
        (2, "2026-02-10T00:00:00+00:00"),
    )
    return workspace


@pytest.mark.long
def test_a_day_ends_what_the_report_is_about(two_months: Workspace, rows: Any) -> None:
    first = run(two_months, JANUARY)
    assert first.report.cover.verdict == "RECONCILED"
    assert [(one.side, one.rows, one.first) for one in first.report.cover.after] == [
        ("E", 1, date(2026, 2, 10)),
        ("D", 1, date(2026, 2, 10)),
    ]
    (proof,) = [one for one in first.report.proofs if one.field == "PaidAmount"]
    assert (proof.lines[0].rows, proof.lines[-1].rows) == (1, 1)
    assert sum(one.rows for one in first.report.statuses) == 1
    text = first.text()
    assert "After the cut-off" in text
    # The record of February is gone from the database: January does not know of it.
    rows('DELETE FROM payment WHERE "Id" = 2 RETURNING 1')
    again = run(two_months, JANUARY)
    assert (again.report.cover.verdict, told(again)) == ("RECONCILED", [])
    later = run(two_months, FEBRUARY)
    assert told(later) == [("MISSING_IN_TARGET", "2/7", "NEW")]


@pytest.mark.long
def test_a_day_before_all_there_is_reconciles_nothing(two_months: Workspace) -> None:
    """As of a year that was mistyped, no report is to be signed."""
    done = run(two_months, date(1026, 1, 31))
    assert (done.report.cover.verdict, done.exit_code) == ("INCOMPLETE", 1)
    assert done.report.cover.because == (
        "no record is dated by 1026-01-31, and the first on 2026-01-10: nothing was compared",
    )


@pytest.mark.long
def test_a_day_that_nobody_stated_is_a_matter_of_the_clock(two_months: Workspace) -> None:
    """Between the two zones are 25 hours: in one of them it is always a later day."""
    ahead, behind = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Pago_Pago")
    days = []
    for zone in (ahead, behind):
        settings = replace(two_months.settings, time_zone=zone)
        days.append(today(zone))
        asked = Asked(Scope(), days[-1], RULES)
        if zone is ahead:
            reconcile(replace(two_months, settings=settings), asked)
            continue
        with pytest.raises(DayRefused) as refused:
            reconcile(replace(two_months, settings=settings), asked)
    assert str(refused.value).startswith(
        f"It is {days[1]} in Pacific/Pago_Pago by the clock of the database, and reconciliation 1 "
        f"of this scope is as of {days[0]} already. Put the clock or RECON_TIME_ZONE right."
    )


@pytest.mark.parametrize("days", [-2, 2])
def test_today_is_that_of_the_database_whatever_the_clock_here_says(
    two_months: Workspace, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    class Off(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    day = datetime.now(UTC).date()
    monkeypatch.setattr(as_of, "datetime", Off)
    settings = two_months.settings
    monkeypatch.setenv("RECON_HOME", str(settings.home))
    monkeypatch.setenv("RECON_DATABASE_URL", two_months.database.url)
    assert reconcile_command() in (0, 1)
    with two_months.database.connect() as connection:
        assert latest_run(connection, "everything").as_of == day
    with pytest.raises(DayRefused, match="in the future"):
        run(two_months, day + timedelta(days=1))
    assert run(two_months, day).run.as_of == day


def test_a_refusal_names_what_whoever_asked_can_set(two_months: Workspace) -> None:
    """A run of a deployment has parameters and no options."""
    run(two_months, FEBRUARY)
    tomorrow = today(two_months.settings.time_zone) + timedelta(1)
    refused = [
        (tomorrow, None, "as_of"),
        (JANUARY, None, "restate"),
        (JANUARY, " ", "restate"),
        (FEBRUARY, "why", "restate"),
    ]
    for day, restate, parameter in refused:
        asked = Asked(Scope(), day, RULES, restate=restate)
        with pytest.raises(DayRefused) as by_option:
            reconcile(two_months, asked)
        with pytest.raises(DayRefused) as by_parameter:
            reconcile(two_months, replace(asked, names=PARAMETERS))
        assert f"--{parameter.replace('_', '-')}" in str(by_option.value)
        assert f"arameter {parameter}" in str(by_parameter.value)
        assert "--" not in str(by_parameter.value)


@pytest.mark.long
def test_an_earlier_day_is_a_restatement(two_months: Workspace, rows: Any) -> None:
    january = run(two_months, JANUARY)
    sign(two_months, january)
    rows('DELETE FROM payment WHERE "Id" = 2 RETURNING 1')
    february = run(two_months, FEBRUARY)
    with pytest.raises(DayRefused, match=r"before the last run .* reconciliation 2 .*--restate"):
        run(two_months, JANUARY)
    with pytest.raises(DayRefused, match="needs a reason"):
        run(two_months, JANUARY, " ")
    for day in (FEBRUARY, FEBRUARY + timedelta(1)):
        with pytest.raises(DayRefused, match="nothing to restate"):
            run(two_months, day, "why")
    long = "the bank asked " * 20
    with pytest.raises(DayRefused, match=r"has 306 characters, .* room for 300\. Shorten it"):
        run(two_months, JANUARY, f"{long}for it")
    again = run(two_months, JANUARY, f"{long} \n")
    assert again.report.cover.verdict == "RECONCILED"
    page = (again.written.folder / "report.html").read_text()
    statement = (
        "This is a restatement as of 2026-01-31 of reconciliation 1, after reconciliation 2 as of "
        "2026-02-28. Its signature replaces no other; reconciliation 1 stays signed. Reason: "
        f"{long.strip()}"
    )
    assert statement in page
    assert "none: this is the first that restates this day" in page
    assert statement in " ".join(again.text().split())
    assert statement in reconciliation_markdown(again.report)
    ((detail,),) = rows("SELECT max(detail) FROM event WHERE what = 'reconciled' AND id = "
                        "(SELECT max(event_id) FROM reconciliation)")  # fmt: skip
    assert json.loads(detail)["restates"].startswith("This is a restatement as of 2026-01-31")
    prepare(two_months, again.run.id, by="Ann", comment="")
    approve(two_months, again.run.id, by="Bo", comment="", accept_restated=JANUARY)
    # What is open stays open, and what was signed stays what is signed.
    later = run(two_months, FEBRUARY)
    assert later.run.previous_id == february.run.id
    assert told(later) == [("MISSING_IN_TARGET", "2/7", "OPEN")]
    assert later.report.sign_off is not None
    assert later.report.sign_off.report_hash == january.run.report_hash
    # A restatement is continued by the next one of its day.
    assert run(two_months, JANUARY, "once more").run.previous_id == again.run.id
    # A day that no run told of restates none of them; what was signed before it is of another day.
    between = run(two_months, JANUARY + timedelta(9), "asked for")
    assert (
        f"This is a restatement as of 2026-02-09, after reconciliation {later.run.id} as of "
        "2026-02-28. Its signature replaces no other; reconciliation 1 as of 2026-01-31 stays "
        "signed. Reason: asked for"
    ) in " ".join(between.text().split())


@pytest.mark.long
def test_what_comes_for_a_signed_month_is_late(two_months: Workspace, tmp_path: Path) -> None:
    sign(two_months, run(two_months, JANUARY))
    deliver(two_months, tmp_path / "late.csv", (3, "2026-01-31T23:59:00-05:00"))
    deliver(two_months, tmp_path / "more.csv", (4, "2026-02-01T00:00:00+00:00"))
    for day in (JANUARY, FEBRUARY):
        done = run(two_months, day)
        assert [one[:2] for one in told(done)] == [("LATE_ARRIVAL", "3/7")]
        (late,) = done.report.breaks
        assert "in reconciliation 1 as of 2026-01-31" in (late.expected or "")
        assert late.basis == "gross"
        # Page one does not say that nothing changed since that run was signed.
        (line,) = [row.cells for row in changed(done.report).rows if "came after" in str(row)]
        assert line[1:] == ("0", f"1: {digits(late.amount or 0)} currency {late.currency}")


@pytest.mark.long
def test_no_day_to_come(two_months: Workspace, recon: Any) -> None:
    tomorrow = today(ZoneInfo("UTC")) + timedelta(1)
    with pytest.raises(DayRefused, match=r"in the future: it is .* in UTC"):
        run(two_months, tomorrow)
    refused = recon("reconcile", "--as-of", str(tomorrow))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "in the future" in refused.stderr
    assert recon("reconcile").returncode in (0, 1)
    back = recon("reconcile", "--as-of", "2026-01-31")
    assert (back.returncode, back.stdout) == (2, "")
    assert "--restate" in back.stderr
    with two_months.database.connect() as connection:
        assert later_run(connection, "everything", JANUARY) == 1
        assert later_run(connection, "everything", tomorrow) is None
    asked = ("reconcile", "--as-of", "2026-01-31", "--restate", "asked for", "--json")
    assert json.loads(recon(*asked).stdout)["scope"] == "everything; restated as of 2026-01-31"


@pytest.mark.long
def test_a_break_whose_record_is_dated_later_now_is_not_resolved(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    january = "2026-01-10T00:00:00+00:00"
    deliver(workspace, tmp_path / "a.csv", (1, january), (2, january))
    rows('UPDATE payment SET "PaidAmount" = 99 WHERE "Id" = 1 RETURNING 1')
    assert [one[0] for one in told(run(workspace, JANUARY))] == ["AMOUNT"]
    deliver(workspace, tmp_path / "b.csv", (1, "2026-02-10T00:00:00+00:00"))
    rows('UPDATE payment SET "PaidAmount" = 99 WHERE "Id" = 1 RETURNING 1')
    later = run(workspace, JANUARY)
    assert told(later) == [("AMOUNT", "1/7", "NOT_LOOKED_AT")]
    agreed = Decision(Choice.ACCEPT, "agreed", "ann", until=FEBRUARY)
    decide_breaks(
        workspace, later.run.id, Chosen(ids=[one.id for one in later.report.breaks]), agreed
    )
    accepted = run(workspace, JANUARY)
    assert accepted.run.verdict == "RECONCILED_WITH_ACCEPTED"
    why = "1 accepted break of runs before was not looked at: dated after the day of this run"
    assert accepted.report.cover.because == (why,)


def test_page_one_names_the_years_whose_holidays_are_not_known(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Business days are counted there as if nobody had a holiday."""
    deliver(workspace, tmp_path / "payments.csv", (1, "2012-12-30T00:00:00+00:00"))
    rows("DELETE FROM payment RETURNING 1")
    for calendar, years in (("XHKG", "2012 to 2013"), ("DE", None), (None, None)):
        rules = replace(RULES, calendar=calendar)
        done = reconcile(workspace, Asked(Scope(), JANUARY, rules))
        for name in ("report.html", "report.txt", "totals.json"):
            text = (done.written.folder / name).read_text(encoding="utf-8")
            note = f"Calendar {calendar}: not all of its holidays are known in {years}"
            assert (note in " ".join(text.split())) == (years is not None), (name, calendar)
