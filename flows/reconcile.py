"""Reconcile on a schedule: breaks carried forward, the report written, its totals as artifacts."""

from datetime import date
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed, Failed
from pydantic import BaseModel, ConfigDict

from connectors.errors import SettingsError
from connectors.settings import read_settings
from flows.pull_listings import read_compared
from flows.report.reconciled.markdown import breaks_table, reconciliation_markdown
from flows.report.reconciled.verdicts import word_of
from flows.stages.jobs.arguments import Number, Tenant
from flows.stages.pull import wanted
from flows.stages.reconcile.as_of import PARAMETERS, later_run, today_there
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Reconciled
from flows.stages.reconcile.run import reconcile as reconcile_scope
from flows.stages.reconcile.scope import Asked, Scope, as_kept
from flows.tasks.artifacts import publish_markdown, publish_table
from flows.tasks.attempts import FROM_LEDGER
from flows.tasks.blocks import run_settings
from flows.tasks.delivery import BarePlace
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import HOOKS, SKIPPED
from flows.tasks.missed_runs import overtaken
from flows.tasks.run_names import called, day_of
from schemas.life import RECONCILED

NO_BREAKS = [{"Code": "none"}]


ANY_DAY = "reconcile/any-day with as_of and restate reports that day."


class ReconciliationEnd(BaseModel):
    """Where a run's report is, small enough to be kept as JSON."""

    model_config = ConfigDict(frozen=True)

    number: int
    scope: str
    verdict: str
    open_breaks: int
    report_hash: str
    folder: str
    because: str = ""
    """What stands in the way of a better verdict, and what to do about it."""


def _name(as_of: date | None) -> str:
    try:
        return f"reconcile as of {day_of(as_of, read_settings().time_zone)}"
    except SettingsError:
        return "reconcile"  # The run itself reports what is wrong with the setting.


@flow(name="reconcile", flow_run_name=called(lambda given: _name(given["as_of"])), **HOOKS)
def reconcile(
    as_of: date | None = None,
    rules: BarePlace | None = None,
    batches: list[Number] = [],  # noqa: B006 -- Prefect shows it in a form.
    feeds: list[str] = [],  # noqa: B006
    tenants: list[Tenant] = [],  # noqa: B006
    restate: str | None = None,
    pull: bool | None = None,
) -> RunState[Any]:
    """Compare what was delivered with the database and the service; explain every difference.

    Args:
        as_of: Last day that the report covers; if empty, the day the run was scheduled for, in
            RECON_TIME_ZONE of the worker.
        rules: Path of the rule file as the worker sees it; if empty, the default rules.
        batches: Only these batches; if empty, all that were not undone or discarded.
        feeds: Only these feeds.
        tenants: Only the records of these tenants.
        restate: Why a day before the last run of the scope is reconciled again.
        pull: First read the service's listings that are compared. If empty, they are read if a
            service is set and the report is about the day of the run. If a listing cannot be read,
            the run ends Incomplete.
    """
    if (skipped := overtaken(ANY_DAY)) is not None:
        return skipped
    zone = run_settings().time_zone
    day = day_of(as_of, zone)
    scope = Scope(tuple(batches), tuple(feeds), tuple(tenants))
    of_own_day = False
    if as_of is None:
        with open_workspace().database.connect() as connection:
            later = later_run(connection, as_kept(connection, scope).text, day)
            of_own_day = day == today_there(connection, zone)
        if later is not None:
            why = f"Nothing to do: reconciliation {later} is as of a later day than {day}."
            return Completed(name=SKIPPED, message=f"{why} {ANY_DAY}")
    unread: dict[str, str] = {}
    # Today's listing says nothing about a past day.
    if pull or (pull is None and of_own_day and wanted(open_workspace(), scope)):
        unread = read_compared(batches, feeds, tenants)
    done = reconcile_task(day, rules, batches, feeds, tenants, restate, unread)
    return end_state(done)


@task(name="reconcile", task_run_name="reconcile as of {as_of}", **FROM_LEDGER)
def reconcile_task(
    as_of: date,
    rules: str | None,
    batches: list[int],
    feeds: list[str],
    tenants: list[int],
    restate: str | None = None,
    unread: dict[str, str] | None = None,
) -> ReconciliationEnd:
    """Reconcile a scope and publish its artifacts."""
    asked = Asked(
        scope=Scope(tuple(batches), tuple(feeds), tuple(tenants)),
        as_of=as_of,
        rules=read_rules(Path(rules) if rules else None),
        restate=restate,
        unread=unread or {},
        names=PARAMETERS,
    )
    done = reconcile_scope(open_workspace(), asked)
    publish(done)
    get_run_logger().info("%s", done.sentence)
    return ReconciliationEnd(
        number=done.run.id,
        scope=done.run.scope,
        verdict=done.run.verdict,
        open_breaks=done.open_breaks,
        report_hash=done.run.report_hash,
        folder=str(done.written.folder),
        because="; ".join(done.report.cover.because),
    )


def publish(done: Reconciled) -> None:
    """Publish artifacts under fixed keys, so that the UI shows a report's versions in sequence."""
    number = done.run.id
    about = (
        f"Reconciliation {number}: {word_of(done.run.verdict)}. All of it: {done.written.folder}."
    )
    page = reconciliation_markdown(done.report)
    publish_markdown(page, key="reconciliation-report", about=about, run=number)
    show = f"{about} A row is shown by: `recon row BATCH FILE --line LINE`."
    publish_table(
        breaks_table(done.report) or NO_BREAKS,
        key="breaks",
        about=show,
        lines=len(done.report.breaks),
        run=number,
    )


def end_state(done: ReconciliationEnd) -> RunState[Any]:
    verdict = word_of(done.verdict)
    sentence = f"Reconciliation {done.number} of {done.scope}: {verdict}. Report: {done.folder}."
    if done.because and done.verdict not in RECONCILED:
        sentence += f" {done.because.rstrip('.')}."
    if done.open_breaks:
        sentence += f" Next: recon breaks list --run {done.number}."
    return end_of(done.verdict, sentence, done.model_dump(mode="json"))


def end_of(verdict: str, sentence: str, data: dict[str, Any] | None = None) -> RunState[Any]:
    """Completed, Breaks or Incomplete; operators filter by these names."""
    if verdict in RECONCILED:
        return Completed(name="Completed", message=sentence, data=data)
    if verdict == "NOT_RECONCILED":
        return Completed(name="Breaks", message=sentence, data=data)
    # Returned and not raised: a retry would miss the same source.
    return Failed(name="Incomplete", message=sentence)
