"""The day of a reconciliation: today or earlier, and not before the last run of the scope.

Today is the day in RECON_TIME_ZONE, for the command line, schedules and the Prefect form alike. A
day before the scope's last run makes a restatement: it needs a reason, and is a scope of its own,
so that decisions and signatures there do not apply to the runs it restates.
"""

from datetime import UTC, date, datetime, time
from typing import NamedTuple
from zoneinfo import ZoneInfo

import psycopg

from connectors.errors import DayRefused, DecisionRefused
from connectors.postgres.runs.listings import clock
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    find_run,
    latest_run,
    scope_hash,
)
from connectors.postgres.runs.signatures import approved_runs
from schemas.life import RESTATED

MOST_REASON = 300
"""The most characters of a reason, so that reports show it uncut (`spelling.neutral`)."""


class Names(NamedTuple):
    """How the caller sets the day of a run, and the reason for a restatement."""

    as_of: str
    restate: str
    because: str
    """How a reason is given, with an example."""


OPTIONS = Names("--as-of", "--restate", '--restate "the March file came late"')
"""The names on the command line."""
PARAMETERS = Names(
    "parameter as_of", "parameter restate", "parameter restate, such as: the March file came late"
)
"""The names in a deployment."""


def today(zone: ZoneInfo) -> date:
    """Today by the clock of this machine, for what is only shown."""
    return day_at(datetime.now(UTC), zone)


def today_there(connection: psycopg.Connection, zone: ZoneInfo) -> date:
    """Today by the clock of the database, so that every machine reconciles the same day."""
    return day_at(clock(connection), zone)


def day_at(moment: datetime, zone: ZoneInfo) -> date:
    return moment.astimezone(zone).date()


def first_moment(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def refuse_day(
    connection: psycopg.Connection,
    scope: str,
    as_of: date,
    restate: str | None,
    zone: ZoneInfo,
    names: Names,
) -> str:
    """What a run of `scope` restates, for its first page; empty if it restates nothing.

    Raises DayRefused for a day in the future, for a day before the last run unless it is called a
    restatement, and for a restatement of nothing.
    """
    now = today_there(connection, zone)
    if as_of > now:
        raise DayRefused(
            f"{names.as_of.capitalize()} {as_of} is in the future: it is {now} in {zone.key}. A "
            f"report ends with a day that has come; leave {names.as_of} out for today."
        )
    last = latest_run(connection, scope)
    if restate is None:
        if last is not None and as_of == now < last.as_of:
            raise DayRefused(
                f"It is {now} in {zone.key} by the clock of the database, and reconciliation "
                f"{last.id} of this scope is as of {last.as_of} already. Put the clock or "
                f"RECON_TIME_ZONE right. To report {now} again nevertheless, say why: "
                f"{names.because}. It does not replace what was signed."
            )
        if last is not None and as_of < last.as_of:
            raise DayRefused(
                f"{names.as_of.capitalize()} {as_of} is before the last run of this scope: "
                f"reconciliation {last.id} is as of {last.as_of}. To report an earlier day again, "
                f"say why: {names.because}. It does not replace what was signed."
            )
        return ""
    reason = " ".join(restate.split())
    if not reason:
        raise DayRefused(f"{names.restate.capitalize()} needs a reason: {names.because}.")
    if len(reason) > MOST_REASON:
        raise DayRefused(
            f"{names.restate.capitalize()} has {len(reason)} characters, and the first page has "
            f"room for {MOST_REASON}. Shorten it: whoever approves the report accepts it by what "
            "is there. Nothing was reconciled."
        )
    if last is None or as_of >= last.as_of:
        known = "has no run yet" if last is None else f"was last reconciled as of {last.as_of}"
        raise DayRefused(
            f"There is nothing to restate: this scope {known}. Leave {names.restate} out, or "
            f"name a day before that with {names.as_of}."
        )
    same = latest_run(connection, scope, as_of)
    which = f" of reconciliation {same.id}" if same and same.as_of == as_of else ""
    signed = approved_runs(connection, scope_hash(scope), as_of)
    whose = ""
    if signed:
        day = "" if which and same and same.id == signed[-1].id else f" as of {signed[-1].as_of}"
        whose = f"; reconciliation {signed[-1].id}{day} stays signed"
    # The reason comes last, so that cutting the text keeps what is said of the report itself.
    return (
        f"This is a restatement as of {as_of}{which}, after reconciliation {last.id} as of "
        f"{last.as_of}. Its signature replaces no other{whose}. Reason: {reason}"
    )


def later_run(connection: psycopg.Connection, scope: str, as_of: date) -> int | None:
    """The run that already reports a later day, so that a late one adds nothing; else None."""
    last = latest_run(connection, scope)
    return last.id if last is not None and as_of < last.as_of else None


def run_meant(connection: psycopg.Connection, number: int | None) -> Reconciliation:
    """The run with this number, or the latest of all; raises DecisionRefused if that is unclear.

    A restatement's breaks have the same ids as those of the restated run, which may be meant
    instead.
    """
    run = find_run(connection, number)
    if number is None and RESTATED in run.scope:
        raise DecisionRefused(
            "Reconciliation {this}, the latest, restates an earlier day, and what is decided about "
            "it counts for no other run. Name the run that you mean: {run} {this}, or the run "
            "that it restates. Nothing was decided.",
            this=run.id,
        )
    return run
