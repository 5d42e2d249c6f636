"""Reconcile: gather the sources of a scope, reconcile them, carry breaks forward, write the report.

The run holds its scope from reading the run before it until it is saved. Its files are written
before it is saved, so what the ledger names is there; a run that dies leaves a folder without a
run, and the next one starts anew.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any

import polars as pl
import psycopg

from connectors.errors import ReconciliationUnknown, ScopeHeldElsewhere
from connectors.memory import give_arrays_back
from connectors.postgres.breaks import decisions_since, unresolved
from connectors.postgres.reconciliations import (
    Reconciliation,
    find_run,
    hold_scope,
    latest_run,
    next_number,
    scope_hash,
)
from connectors.postgres.resume import resumed, when_let
from connectors.postgres.save_run import save_run
from connectors.postgres.signatures import approved_runs
from connectors.postgres.trail import last_event
from connectors.process import user_name
from connectors.recovery import reach
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.acceptance_rules import accept_by_rules
from flows.stages.reconcile.as_of import OPTIONS, Names, refuse_day, scope_as_of
from flows.stages.reconcile.breaks import breaks_left
from flows.stages.reconcile.corrections import corrections
from flows.stages.reconcile.cover import gather_facts
from flows.stages.reconcile.gone import doubted, newest_batches
from flows.stages.reconcile.kept_signatures import folder_of, is_taken
from flows.stages.reconcile.mail import mail_reports
from flows.stages.reconcile.put_aside import keeper, kept_parts
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.scope import Scope, as_kept
from flows.stages.reconcile.shown import run_as_json, where_told
from flows.stages.reconcile.sign import signed_sources
from flows.stages.reconcile.sources import Gathered, gather_sources
from flows.stages.reconcile.why_gone import changed_sides, taken_back
from flows.stages.reconcile.write import Written, render_text, write_reconciliation
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.breaks.aside import Gone, other_terms
from flows.steps.breaks.carry_forward import carry_forward, explained
from flows.steps.breaks.causes import moments
from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.lifecycle import nothing_before
from flows.steps.breaks.saved import facts_of, parts, saved_parts
from flows.steps.frames.light import light
from flows.steps.frames.parts import PartedRows
from flows.steps.reconcile.conclusion import conclude
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.reconcile.report import ReconciliationReport, RunLine
from flows.steps.reconcile.self_test import self_test
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.rules import Rules
from schemas.life import OPEN
from schemas.tables import CURRENCY_RATE

log = logging.getLogger("recon.reconcile")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be reconciled, on which day and by which rules."""

    scope: Scope
    as_of: date
    rules: Rules
    by: str | None = None
    restate: str | None = None
    """Why a day before the last run of the scope is reconciled again."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Record kinds whose listings were to be pulled for this run and could not be, and why."""
    names: Names = OPTIONS
    """What refusals call the day and the reason."""

    @property
    def scope_text(self) -> str:
        """The scope as the ledger names it: a restatement is a scope of its own.

        So nothing that is decided or signed there stands for the runs it restates.
        """
        return scope_as_of(self.scope.text, self.as_of, self.restate)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A reconciliation that was saved."""

    run: Reconciliation
    report: ReconciliationReport
    written: Written

    @property
    def exit_code(self) -> int:
        """0: reconciled, accepted breaks included; 1: anything else."""
        return 0 if self.report.reconciles else 1

    @property
    def open_breaks(self) -> int:
        """Breaks that ask for action."""
        return len(self.report.breaks.where("state", *OPEN))

    @property
    def sentence(self) -> str:
        """The run in one sentence, and what an incomplete one lacks."""
        because = "; ".join(self.report.cover.because)
        verdict = word_of(self.run.verdict)
        return f"Reconciliation {self.run.id} of {self.run.scope}: {verdict}. {because}"

    def text(self) -> str:
        """The report for a terminal, and where all of it is."""
        return f"{render_text(self.report)}\n{where_told(self.run, self.written.folder)}"

    def as_json(self) -> dict[str, Any]:
        """The run for scripts."""
        return run_as_json(self.run, self.written.folder)


def reconcile(workspace: Workspace, asked: Asked) -> Reconciled:
    """Reconcile a scope; what was signed before is held against what is there now."""
    give_arrays_back()
    written: dict[int, _Unsaved] = {}

    def run() -> Reconciled:
        saved = _saved(workspace, written)
        if saved is None:
            return _reconcile(workspace, asked, written)
        _follow_alone(workspace, saved.run)
        return saved

    done = resumed(workspace.database, run)
    mail_reports(workspace, done.run.id)
    return done


def finish(workspace: Workspace, run: Reconciliation) -> None:
    """Do what follows a run that was saved, where its process may have been gone before that.

    As often as wanted: what was done is not done twice.
    """
    resumed(workspace.database, lambda: _follow_alone(workspace, run))
    mail_reports(workspace, run.id)


def _follow_alone(workspace: Workspace, run: Reconciliation) -> None:
    """Do it once nobody else has the scope; another run that has it accepts by the rules itself."""

    def follow() -> None:
        with workspace.database.connect() as connection, hold_scope(connection, run.scope):
            _follow(workspace, connection, run)

    try:
        when_let(follow, time.monotonic() + workspace.database.wait_seconds)
    except ScopeHeldElsewhere:
        log.warning(
            "Reconciliation %s is saved, and its breaks were not accepted by rules: its scope is "
            "held by another run, or a decision. The next run of the scope does it",
            run.id,
        )


def _follow(workspace: Workspace, connection: psycopg.Connection, run: Reconciliation) -> None:
    """What follows a run that was saved, while its scope is held."""
    latest = latest_run(connection, run.scope)
    if latest is not None and latest.id == run.id:
        accept_by_rules(connection, run)
    witness_trail(workspace, connection)


_Unsaved = tuple[ReconciliationReport, Written]
"""Of a run whose files are written: it may have been saved, or not."""


def _saved(workspace: Workspace, written: Mapping[int, _Unsaved]) -> Reconciled | None:
    """The run that lost its connection while it was saved, if it was."""
    if not written:
        return None
    with workspace.database.connect() as connection:
        for number, (report, files) in written.items():
            with suppress(ReconciliationUnknown):
                return Reconciled(find_run(connection, number), report, files)
    return None


@contextmanager
def _held(connection: psycopg.Connection, named: Asked) -> Iterator[Asked]:
    """What is asked for, with its scope as it is kept, which is held meanwhile."""
    kept = replace(named, scope=as_kept(connection, named.scope))
    with hold_scope(connection, kept.scope_text):
        yield kept


def _reconcile(workspace: Workspace, named: Asked, unsaved: dict[int, _Unsaved]) -> Reconciled:
    with workspace.database.connect() as connection, _held(connection, named) as asked:
        scope = asked.scope_text
        zone = workspace.settings.time_zone
        restates = refuse_day(
            connection, asked.scope.text, asked.as_of, asked.restate, zone, asked.names
        )
        workspace.progress("reconcile", 0, 3)
        gathered = gather_sources(
            workspace,
            connection,
            asked.scope,
            signed_sources(workspace, connection, asked.scope.text, asked.as_of),
            _approved(connection, asked),
        )
        cut = cut_off(gathered.sources, asked.as_of)
        reach("gathered")
        workspace.progress("reconcile", 1, 3)
        judgement = reconcile_sources(
            cut.kept, asked.rules, asked.as_of, service=gathered.service, cut=cut, keep=keeper()
        )
        found = kept_parts(parts(judgement.breaks))
        judgement = replace(judgement, breaks=no_breaks())  # They wait in a file from here on.
        previous = latest_run(connection, scope)
        lives, decided_through = _carried(
            workspace, connection, scope, previous, gathered, cut, found, judgement.tolerated, asked
        )
        sources = gathered.sources
        told, causes = explained(
            kept_parts(lives),
            sources.database.get(CURRENCY_RATE.name),
            lambda breaks: moments(breaks, sources.extract),
        )
        carried = kept_parts(told)
        kept = replace(gathered, sources=cut.kept)
        corrected = corrections(workspace, connection, carried, kept)
        number = next_number(connection)
        while is_taken(workspace, number):
            # Of a run that died; or the database was restored, and the report may be signed.
            number = next_number(connection)
        signed_through = last_event(connection)
        report = conclude(
            sources=cut.kept,
            judgement=judgement,
            carried=carried,
            causes=causes,
            self_test=self_test(asked.rules),
            rules=asked.rules,
            as_of=asked.as_of,
            service=gathered.service,
            facts=gather_facts(
                workspace,
                connection,
                asked.scope,
                asked.rules,
                gathered,
                judgement,
                previous,
                RunLine(number, asked.by or user_name()),
                cut=cut,
                restates=restates,
                until=asked.as_of,
                unread=asked.unread,
            ),
        )
        workspace.progress("reconcile", 2, 3)
        folder = folder_of(number)
        written = write_reconciliation(workspace, folder, number, report, corrected, kept, previous)
        unsaved[number] = report, written
        reach("reconciliation-written")
        run = save_run(
            connection,
            number=number,
            scope=scope,
            as_of=asked.as_of,
            rules_hash=rules_hash(asked.rules),
            verdict=report.cover.verdict,
            report_hash=written.report_hash,
            chain_hash=written.chain_hash,
            previous=previous,
            decided_through=decided_through,
            folder=folder,
            breaks=saved_parts(carried, facts_of(carried)),
            signed_through=signed_through,
            by=asked.by,
            reason=restates,
            rules_text=rules_text(asked.rules),
            version=report.cover.version,
            manifest_hash=written.manifest_hash,
        )
        reach("reconciled")
        _follow(workspace, connection, run)
        workspace.progress("reconcile", 3, 3)
    log.info("Reconciliation %s of %s: %s", run.id, scope, word_of(run.verdict))
    return Reconciled(run, report, written)


def _carried(
    workspace: Workspace,
    connection: psycopg.Connection,
    scope: str,
    previous: Reconciliation | None,
    gathered: Gathered,
    cut: Cut,
    found: PartedRows,
    tolerated: pl.DataFrame,
    asked: Asked,
) -> tuple[Iterator[pl.DataFrame], int]:
    """The breaks with their lives, severities and ages, and the last decision that was heard."""
    through = previous.decided_through if previous else 0
    left = partial(breaks_left, connection, scope, previous)
    decisions = decisions_since(connection, scope_hash(scope), through)
    gone = nothing_before()
    if previous:
        before, now = unresolved(connection, previous.id), found.select("id")["id"]
        missing = before.filter(~before.is_in(now.implode())).to_frame()
        gone = light(pl.concat(left(some.to_series()) for some in parts(missing)))
    carried = carry_forward(
        found,
        left,
        decisions,
        _known_of(gone, workspace, connection, previous, gathered, cut, asked),
        sources=cut.kept,
        rules=asked.rules,
        as_of=asked.as_of,
        tolerated=tolerated,
    )
    return carried, max((through, *decisions["id"]))


def _known_of(
    gone: pl.DataFrame,
    workspace: Workspace,
    connection: psycopg.Connection,
    previous: Reconciliation | None,
    gathered: Gathered,
    cut: Cut,
    asked: Asked,
) -> Gone:
    """What the ledger and the sources know of breaks that were not found again."""
    if gone.is_empty():
        return Gone(gone)
    newest = newest_batches(gathered.sources.extract, gone["record"])
    return Gone(
        gone,
        newest,
        gathered.batches,
        _found_then(workspace, connection, gathered, gone, asked),
        apart=cut.keys(gone["record"]),
        doubted=doubted(gathered, gone),
        sides=changed_sides(connection, gathered, gone, newest, previous, asked.rules, asked.as_of),
        taken_back=taken_back(connection, gathered, gone),
    )


def _approved(connection: psycopg.Connection, asked: Asked) -> tuple[tuple[int, date], ...]:
    """The signed runs whose periods a late record may belong to."""
    runs = approved_runs(connection, scope_hash(asked.scope.text), asked.as_of)
    return tuple((run.id, run.as_of) for run in runs)


def _found_then(
    workspace: Workspace,
    connection: psycopg.Connection,
    gathered: Gathered,
    gone: pl.DataFrame,
    asked: Asked,
) -> dict[str, list[str]]:
    """Ids of the breaks there would be by the rules, and as of the day, of the runs before."""
    found = {}
    for of, day in other_terms(gone, rules_hash(asked.rules), asked.as_of):
        rules = rules_of(workspace, connection, of)
        if rules is not None:
            cut = cut_off(gathered.sources, day)
            then = reconcile_sources(
                cut.kept, rules, day, service=gathered.service, cut=cut, keep=keeper()
            )
            found[of] = then.breaks["id"].to_list()
    return found
