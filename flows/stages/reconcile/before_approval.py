"""What prevents a report from being approved by anybody, and what to do about it."""

from dataclasses import replace

import polars as pl
import psycopg

from connectors.currencies import read_currencies
from connectors.postgres.runs.reconciliations import Reconciliation, latest_run
from flows.report.reconciled.verdicts import word_of
from flows.report.spelling import neutral
from flows.stages.reconcile.breaks import taken_back, what_is_open
from flows.stages.reconcile.decision_rules import NAMED
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.severity import severities
from flows.steps.rules.rules import Rules
from schemas.counting import agree, first_of, quantity
from schemas.jobs import MAY_ORDER
from schemas.life import RECONCILED, RESTATED

_WHO = f"an {' or '.join(MAY_ORDER)}"


def what_waits(
    connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> str | None:
    """What prevents a report's approval by anybody, for a page that links to details; else None.

    `breaks` are those of `breaks_now`.
    """
    left = breaks.filter(is_open()).height
    if left:
        return (
            f"{quantity(left, 'break')} {agree(left, 'is', 'are')} open. Resolve or accept each; "
            f"then {_WHO} reconciles the scope again."
        )
    if run.verdict not in RECONCILED:
        return (
            f"Nobody approves a report that says “{word_of(run.verdict)}”. If its breaks were "
            f"accepted since, have {_WHO} reconcile the scope again; otherwise its first page says "
            "what is missing."
        )
    back = taken_back(connection, run, breaks).height
    if back:
        return (
            f"{quantity(back, 'break')} {agree(back, 'is', 'are')} accepted here, and "
            f"{agree(back, 'was', 'were')} reopened since. Nobody approves a report by an "
            f"acceptance that was taken back: {_WHO} reconciles the scope again, and that one is "
            "signed."
        )
    return None


def waits_in_full(
    workspace: Workspace, connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> str | None:
    """The same with the gravest breaks by name, and the commands to continue with."""
    if what_waits(connection, run, breaks) is None:
        return None
    left = breaks.filter(is_open()).height
    if not left and run.verdict in RECONCILED:
        return _withdrawn_message(workspace, connection, run, breaks)
    rules = rules_of(workspace, connection, run.rules_hash)
    again = _again(run, rules)
    if left:
        names = read_currencies(workspace.settings.currencies)
        summary = what_is_open(breaks, severities(breaks, rules or Rules(), run.as_of), names)
        return (
            f"Open breaks of reconciliation {run.id}: {left} ({word_of(run.verdict)}), {summary}. "
            f"See them: recon breaks list --run {run.id} --state open. Resolve them, or accept "
            f"them: recon breaks accept --run {run.id} --state open --reason REASON "
            f"--until YYYY-MM-DD. Then reconcile again: {again}"
        )
    return (
        f"The report of reconciliation {run.id} says “{word_of(run.verdict)}”, and nobody "
        "approves that. Where its breaks are accepted since, reconcile again for a report that "
        f"says so; otherwise its cover says what is missing: {again}"
    )


def _withdrawn_message(
    workspace: Workspace, connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> str:
    """Which acceptances in a report were taken back since, and how to continue."""
    back = taken_back(connection, run, breaks)
    last = latest_run(connection, run.scope)
    assert last is not None, "a later run that they were reopened on"
    reopened = [
        f"{neutral(what)}, reopened on reconciliation {on} by {neutral(by, 100)} "
        f"({neutral(reason, 100)})"
        for what, on, by, reason in back.select("what", "on", "by", "reason").iter_rows()
    ]
    return (
        f"The report of reconciliation {run.id} shows {quantity(back.height, 'break')} as accepted "
        f"that {agree(back.height, 'was', 'were')} reopened since: "
        f"{first_of(reopened, NAMED, by='; ')}. Nobody "
        "approves a report by an acceptance that was taken back. Resolve or accept what is open "
        f"(recon breaks list --run {last.id} --state open), reconcile again, and have that report "
        f"signed: {_again(last, rules_of(workspace, connection, last.rules_hash))}"
    )


def _again(run: Reconciliation, rules: Rules | None) -> str:
    """The command that reconciles the scope of a run again, as of its day and by its rules."""
    text, restated, _ = run.scope.partition(RESTATED)
    scope = Scope.read(text)
    return " ".join(
        [
            "recon reconcile",
            *(scope.options if scope else [f"(its scope is {text})"]),
            f"--as-of {run.as_of}",
            *(["--restate REASON"] if restated else []),
            *(["--rules FILE"] if rules is None or replace(rules, records=()) != Rules() else []),
        ]
    )
