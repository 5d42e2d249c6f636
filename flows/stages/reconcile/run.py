"""Reconcile: gather the sources of a scope, reconcile them, carry breaks forward, write the report.

The run holds its scope from reading the previous run until it is saved. Its files are written
before that, so that everything the ledger names exists; a run that dies leaves a folder without a
run, and the next one starts again.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import psycopg

from connectors.currencies import read_currencies
from connectors.errors import ReconciliationUnknown, ScopeHeldElsewhere
from connectors.memory import give_arrays_back
from connectors.postgres.accounts import who
from connectors.postgres.resume import resumed, when_let
from connectors.postgres.runs.breaks import decisions_since, unresolved
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    RunFacts,
    find_run,
    hold_scope,
    latest_run,
    next_number,
    scope_hash,
)
from connectors.postgres.runs.save_run import save_run
from connectors.postgres.runs.signatures import approved_runs
from connectors.postgres.trail import last_event
from connectors.process import user_name
from connectors.recovery import reach
from flows.report.reconciled.text import render_text
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.acceptance_rules import accept_by_rules
from flows.stages.reconcile.altered_run import refuse_altered
from flows.stages.reconcile.as_of import refuse_day
from flows.stages.reconcile.breaks import breaks_left
from flows.stages.reconcile.corrections import corrections
from flows.stages.reconcile.cover import gather_facts
from flows.stages.reconcile.gone import LookedAt, known_of
from flows.stages.reconcile.kept_signatures import folder_of
from flows.stages.reconcile.mail import mail_reports
from flows.stages.reconcile.put_aside import keeper, kept_parts
from flows.stages.reconcile.saved_report import run_as_json, where_text
from flows.stages.reconcile.scope import Asked, as_kept
from flows.stages.reconcile.sign import signed_sources
from flows.stages.reconcile.sources import Gathered, gather_sources
from flows.stages.reconcile.write import Written, write_reconciliation
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.breaks.aside import Gone
from flows.steps.breaks.carry_forward import carry_forward, explained
from flows.steps.breaks.causes import Causes, moments
from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.lifecycle import nothing_before
from flows.steps.breaks.saved import facts_of, parts, saved_parts
from flows.steps.frames.light import light
from flows.steps.frames.parts import PartedRows
from flows.steps.reconcile.conclusion import conclude
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.reconcile.report import ReconciliationReport, RunLine
from flows.steps.reconcile.self_test import self_test
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.own_kinds import with_own_kinds
from schemas.life import OPEN
from schemas.tables import CURRENCY_RATE

log = logging.getLogger("recon.reconcile")


@dataclass(frozen=True, slots=True)
class Reconciled:
    run: Reconciliation
    report: ReconciliationReport
    written: Written
    not_mailed: bool = False
    """Whether a subscriber still waits for it; a warning said why."""

    @property
    def exit_code(self) -> int:
        """0: reconciled, accepted breaks included; 1: anything else."""
        return 0 if self.report.reconciles else 1

    @property
    def open_breaks(self) -> int:
        """Breaks that require action."""
        return len(self.report.breaks.where("state", *OPEN))

    @property
    def sentence(self) -> str:
        """The run in one sentence, with what an incomplete one lacks."""
        because = "; ".join(self.report.cover.because)
        verdict = word_of(self.run.verdict)
        return f"Reconciliation {self.run.id} of {self.run.scope}: {verdict}. {because}"

    def text(self) -> str:
        """The report for a terminal, and where its files are."""
        return f"{render_text(self.report)}\n{where_text(self.run, self.written.folder)}"

    def as_json(self) -> dict[str, Any]:
        return run_as_json(self.run, self.written.folder)


def reconcile(workspace: Workspace, asked: Asked) -> Reconciled:
    """Reconcile a scope, and compare what was signed before with what is there now."""
    give_arrays_back()
    written: dict[int, _Unsaved] = {}

    def run() -> Reconciled:
        saved = _saved(workspace, written)
        if saved is None:
            return _reconcile(workspace, asked, written)
        _follow_alone(workspace, saved.run)
        return saved

    done = resumed(workspace.database, run)
    return replace(done, not_mailed=mail_reports(workspace, done.run.id))


def finish(workspace: Workspace, run: Reconciliation) -> bool:
    """Do what follows the saving of a run, in case its process was gone before that.

    It can be repeated: nothing is done twice. Returns whether it could not be mailed to somebody.
    """
    resumed(workspace.database, lambda: _follow_alone(workspace, run))
    return mail_reports(workspace, run.id)


def _follow_alone(workspace: Workspace, run: Reconciliation) -> None:
    """Follow up once the scope is free; a later run that holds it accepts by rules itself."""

    def follow() -> None:
        with workspace.database.connect() as connection, hold_scope(connection, run.scope):
            _follow(workspace, connection, run)

    try:
        when_let(follow, time.monotonic() + workspace.database.wait_seconds)
    except ScopeHeldElsewhere:
        log.warning(
            "Reconciliation %s is saved, but no breaks were accepted by rules, because another "
            "run or a decision holds its scope. The next run of the scope does it",
            run.id,
        )


def _follow(workspace: Workspace, connection: psycopg.Connection, run: Reconciliation) -> None:
    """Do what follows the saving of a run, while its scope is held."""
    latest = latest_run(connection, run.scope)
    if latest is not None and latest.id == run.id:
        accept_by_rules(connection, run)
    witness_trail(workspace, connection)


_Unsaved = tuple[ReconciliationReport, Written]
"""Report and files of a run that may have been saved or not."""


def _saved(workspace: Workspace, written: Mapping[int, _Unsaved]) -> Reconciled | None:
    """The run that lost its connection while being saved, if it was saved."""
    if not written:
        return None
    with workspace.database.connect() as connection:
        for number, (report, files) in written.items():
            with suppress(ReconciliationUnknown):
                return Reconciled(find_run(connection, number), report, files)
    return None


@contextmanager
def _held(connection: psycopg.Connection, named: Asked) -> Iterator[Asked]:
    """What is asked for, with scope and rules in their kept form; holds the scope meanwhile."""
    rules = with_own_kinds(named.rules)
    kept = replace(named, scope=as_kept(connection, named.scope), rules=rules)
    with hold_scope(connection, kept.scope_text):
        yield kept


def _reconcile(workspace: Workspace, named: Asked, unsaved: dict[int, _Unsaved]) -> Reconciled:
    with workspace.database.connect() as connection, _held(connection, named) as asked:
        zone = workspace.settings.time_zone
        restates = refuse_day(
            connection, asked.scope.text, asked.as_of, asked.restate, zone, asked.names
        )
        last = latest_run(connection, asked.scope_text)
        refuse_altered(connection, asked.scope_text, last)
        run = _Run(workspace, connection, asked, restates, last)
        workspace.progress("reconcile", 0, 3)
        gathered = run.gather()
        cut = cut_off(gathered.sources, asked.as_of)
        reach("gathered")
        workspace.progress("reconcile", 1, 3)
        compared = run.compare(gathered, cut)
        carried = run.carry_forward(compared)
        number = run.next_number()
        signed_through = last_event(connection)
        report = run.conclude(number, compared, carried)
        workspace.progress("reconcile", 2, 3)
        written = run.write(number, report, compared, carried)
        unsaved[number] = report, written
        reach("reconciliation-written")
        saved = run.save(number, report, written, carried, signed_through)
        reach("reconciled")
        _follow(workspace, connection, saved)
        workspace.progress("reconcile", 3, 3)
    log.info("Reconciliation %s of %s: %s", saved.id, saved.scope, word_of(saved.verdict))
    return Reconciled(saved, report, written)


@dataclass(frozen=True, slots=True)
class _Compared:
    gathered: Gathered
    cut: Cut
    """The sources as of the day of the run, and what is dated after it."""
    result: JoinResult
    """The result without its breaks."""
    breaks: PartedRows


@dataclass(frozen=True, slots=True)
class _Carried:
    """The breaks of a run and the earlier ones, with their states and causes."""

    breaks: PartedRows
    causes: Causes
    decided_through: int
    """The last decision that they take into account."""


@dataclass(frozen=True, slots=True)
class _Run:
    workspace: Workspace
    connection: psycopg.Connection
    asked: Asked
    restates: str
    previous: Reconciliation | None

    def gather(self) -> Gathered:
        """Read the sources, and the signed runs whose periods a late record may belong to."""
        scope, as_of = self.asked.scope, self.asked.as_of
        signed = signed_sources(self.workspace, self.connection, scope.text, as_of)
        approved = approved_runs(self.connection, scope_hash(scope.text), as_of)
        days = tuple((run.id, run.as_of) for run in approved)
        return gather_sources(self.workspace, self.connection, scope, signed, days)

    def compare(self, gathered: Gathered, cut: Cut) -> _Compared:
        """Compare the sources; breaks are in a file from then on."""
        rules, day, service = self.asked.rules, self.asked.as_of, gathered.service
        result = reconcile_sources(cut.kept, rules, day, service=service, cut=cut, keep=keeper())
        breaks = kept_parts(parts(result.breaks))
        return _Compared(gathered, cut, replace(result, breaks=no_breaks()), breaks)

    def carry_forward(self, compared: _Compared) -> _Carried:
        """Give breaks their states by the previous run and by decisions; find causes."""
        through = self.previous.decided_through if self.previous else 0
        decisions = decisions_since(self.connection, scope_hash(self.asked.scope_text), through)
        states = carry_forward(
            compared.breaks,
            self._left,
            decisions,
            self._gone(compared),
            sources=compared.cut.kept,
            rules=self.asked.rules,
            as_of=self.asked.as_of,
            tolerated=compared.result.tolerated,
        )
        sources = compared.gathered.sources
        rates = sources.database.get(CURRENCY_RATE.name)
        breaks, causes = explained(
            kept_parts(states),
            rates,
            lambda breaks: moments(breaks, sources.extract),
            read_currencies(self.workspace.settings.currencies),
        )
        return _Carried(kept_parts(breaks), causes, max((through, *decisions["id"])))

    def next_number(self) -> int:
        """A number without a folder; dead runs, and runs a restore lost, leave folders behind."""
        number = next_number(self.connection)
        while (self.workspace.settings.reports / folder_of(number)).exists():
            number = next_number(self.connection)
        return number

    def conclude(self, number: int, compared: _Compared, carried: _Carried) -> ReconciliationReport:
        """Make the report: totals, breaks, verdict, and the facts of its cover."""
        asked = self.asked
        facts = gather_facts(
            self.workspace,
            self.connection,
            asked,
            compared.gathered,
            compared.cut,
            compared.result,
            self.previous,
            RunLine(number, who(self.connection, asked.by or user_name())),
            restates=self.restates,
        )
        return conclude(
            sources=compared.cut.kept,
            result=compared.result,
            carried=carried.breaks,
            causes=carried.causes,
            self_test=self_test(asked.rules),
            rules=asked.rules,
            as_of=asked.as_of,
            service=compared.gathered.service,
            facts=facts,
        )

    def write(
        self, number: int, report: ReconciliationReport, compared: _Compared, carried: _Carried
    ) -> Written:
        """Write the report, the records and the rows to correct into the folder of the run."""
        kept = replace(compared.gathered, sources=compared.cut.kept)
        corrected = corrections(self.workspace, self.connection, carried.breaks, kept)
        return write_reconciliation(
            self.workspace, folder_of(number), number, report, corrected, kept, self.previous
        )

    def save(
        self,
        number: int,
        report: ReconciliationReport,
        written: Written,
        carried: _Carried,
        signed_through: int,
    ) -> Reconciliation:
        """Save the run with its breaks; from then on it exists."""
        asked = self.asked
        run = RunFacts(
            id=number,
            scope=asked.scope_text,
            as_of=asked.as_of,
            rules_hash=rules_hash(asked.rules),
            verdict=report.cover.verdict,
            report_hash=written.report_hash,
            chain_hash=written.chain_hash,
            previous_id=self.previous.id if self.previous else None,
            decided_through=carried.decided_through,
            folder=folder_of(number),
            rules_text=rules_text(asked.rules),
            version=report.cover.version,
        )
        return save_run(
            self.connection,
            run,
            saved_parts(carried.breaks, facts_of(carried.breaks)),
            signed_through=signed_through,
            manifest_hash=written.manifest_hash,
            restates=self.restates,
            by=asked.by,
        )

    def _left(self, ids: pl.Series) -> pl.DataFrame:
        """Breaks as earlier runs left them."""
        return breaks_left(self.connection, self.asked.scope_text, self.previous, ids)

    def _gone(self, compared: _Compared) -> Gone:
        """Breaks that were not found again, and what ledger and sources know about them."""
        if self.previous is None:
            return Gone(nothing_before())
        before, now = unresolved(self.connection, self.previous.id), compared.breaks.select("id")
        missing = before.filter(~before.is_in(now["id"].implode())).to_frame()
        gone = light(pl.concat(self._left(part.to_series()) for part in parts(missing)))
        looked = LookedAt(
            self.workspace,
            self.connection,
            compared.gathered,
            compared.cut,
            self.asked.rules,
            self.asked.as_of,
            self.previous,
        )
        return known_of(gone, looked)
