"""The stages of a batch as Prefect tasks, in the order a row lives through them.

A task takes and returns a manifest: numbers and paths, never rows. What it did is in the ledger,
so a task that runs again, in a retry or in another run, goes on where the ledger ends. That is why
only the first one is remembered by Prefect: a retry must go on with the batch it opened, even when
the inbox has been emptied since.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from logging import Logger, LoggerAdapter
from pathlib import Path
from typing import Any

import psycopg
from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State as RunState
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext
from prefect.tasks import Task
from pydantic import BaseModel, ConfigDict

from connectors import ledger
from connectors.database import open_database
from connectors.errors import ConservationError, DatabaseUnusable, ReconError
from connectors.extracts.profile import DEFAULT, load_profile
from connectors.ledger import Lease, State, hold_batch
from connectors.settings import read_settings
from flows.report.batch import BatchReport
from flows.report.markdown import rejects_table, summary_markdown
from flows.stages.apply import apply
from flows.stages.check import check, staged_tables
from flows.stages.finish import DOES_NOT_TIE, build_report, finish
from flows.stages.receive import receive
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from schemas.views import apply_stage

RETRY_SECONDS = [5, 30]
"""Waits before the second and the third attempt, when the database could not be used."""
SECONDS_BETWEEN_LINES = 15
"""How often a long stage says on its run page how far it is."""
MESSAGES_SHOWN = 20
NO_REJECTS = [{"Reason": "none", "Rows": "0"}]
"""A table without a line has no columns either; the UI takes those from the first line."""

Log = Logger | LoggerAdapter[Any]


class Manifest(BaseModel):
    """Where a batch is after a stage, small enough to be kept as JSON."""

    model_config = ConfigDict(frozen=True)

    batch_id: int
    state: State
    rows: Mapping[str, int] = {}
    """End state, or verdict of the stage -> rows."""
    errors: int = 0
    """Rows that carry HasError."""
    refused: int = 0
    """Files that could not be read."""
    held_because: str | None = None
    known: str | None = None
    """Which batch took the same delivery before; None: it is new."""
    folder: str | None = None
    """Where the report files are."""


def _is_worth_another_attempt(_task: Task[..., Any], _run: TaskRun, state: RunState[Any]) -> bool:
    return isinstance(state.data, DatabaseUnusable)


ATTEMPTS: dict[str, Any] = {
    "retries": len(RETRY_SECONDS),
    "retry_delay_seconds": RETRY_SECONDS,
    "retry_condition_fn": _is_worth_another_attempt,
    "result_serializer": "json",
}
"""Only a database that cannot be used is tried again; anything else would fail alike."""
FROM_LEDGER: dict[str, Any] = {"persist_result": False, "cache_policy": NO_CACHE, **ATTEMPTS}
"""The ledger, not Prefect, knows how far such a stage is."""


def _once_in_a_run(context: TaskRunContext, _parameters: dict[str, Any]) -> str | None:
    run = context.task_run.flow_run_id
    return f"recon/receive/{run}" if run else None


@task(
    name="receive files",
    task_run_name="receive files",
    persist_result=True,
    cache_key_fn=_once_in_a_run,
    **ATTEMPTS,
)
def receive_files(
    paths: Sequence[str],
    *,
    profile: str | None = None,
    record: str | None = None,
    tenant: int | None = None,
    max_errors: int | None = None,
    max_error_rate: float | None = None,
    corrects: int | None = None,
) -> Manifest:
    """Archive the delivered files and open a batch, or find the one that took them before."""
    terms: dict[str, Any] = {
        "tenant": tenant,
        "budget_errors": max_errors,
        "budget_rate": max_error_rate,
    }
    feed = load_profile(Path(profile)) if profile else DEFAULT
    feed = replace(feed, **{name: value for name, value in terms.items() if value is not None})
    log = get_run_logger()
    workspace = _workspace(log)
    received = receive(workspace, paths, feed, record=record, corrects=corrects)
    for message in received.messages[:MESSAGES_SHOWN]:
        log.info("%s", message)
    more = len(received.messages) - MESSAGES_SHOWN
    if more > 0:
        log.info("and %s files more like these", more)
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, received.batch_id)
        refused = _refused(connection, batch.id)
    log.info("Batch %s: files received, %s refused", batch.id, refused)
    known = None if received.new else received.messages[0]
    return Manifest(batch_id=batch.id, state=batch.state, refused=refused, known=known)


@task(name="stage rows", task_run_name="stage rows of batch {batch.batch_id}", **FROM_LEDGER)
def stage_rows(batch: Manifest) -> Manifest:
    """Keep every row verbatim with its position and verdict; nothing can be lost after this."""
    with _held(batch) as (workspace, lease):
        stage(workspace, lease)
        return _told(lease, batch, _receipts(lease, "stage"))


@task(name="check rows", task_run_name="check rows of batch {batch.batch_id}", **FROM_LEDGER)
def check_rows(batch: Manifest) -> Manifest:
    """Settle repeated keys and references; over its error budget the batch is held."""
    with _held(batch) as (workspace, lease):
        check(workspace, lease)
        return _told(lease, batch, {})


@task(name="apply rows", task_run_name="apply rows of batch {batch.batch_id}", **FROM_LEDGER)
def apply_rows(batch: Manifest) -> Manifest:
    """Bring the clean rows into the database, each once; a held batch is left alone."""
    with _held(batch) as (workspace, lease):
        apply(workspace, lease)
        applied = [apply_stage(table) for table in staged_tables(lease)]
        return _told(lease, batch, _receipts(lease, *applied))


@task(name="report batch", task_run_name="report batch {batch.batch_id}", **FROM_LEDGER)
def report_batch(batch: Manifest) -> Manifest:
    """Recount everything, end the batch, write the report files and the artifacts.

    Raises ConservationError when the figures do not tie, after the report was written.
    """
    with _held(batch) as (workspace, lease):
        folder = workspace.settings.reports / f"batch-{lease.batch_id}"
        try:
            report = _finished(workspace, lease)
        except ConservationError:
            _publish(lease, build_report(workspace, lease), folder)
            raise
        _publish(lease, report, folder)
        ended = _told(lease, batch, _end_states(report))
        return ended.model_copy(update={"errors": report.errors, "folder": str(folder)})


def _finished(workspace: Workspace, lease: Lease) -> BatchReport:
    """The report of the batch; one that has ended is recounted, and its files stay as signed."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state not in ledger.ENDED:
        return finish(workspace, lease)
    report = build_report(workspace, lease)
    if report.verdict == DOES_NOT_TIE:
        raise ConservationError(
            f"Batch {batch.id} tied when it ended and does not tie any more: rows or receipts "
            "were changed outside of it. The artifact import-summary shows which stage differs."
        )
    return report


def _publish(lease: Lease, report: BatchReport, folder: Path) -> None:
    """Fixed keys, so that the UI shows the versions of one report after each other."""
    state = ledger.find_batch(lease.connection, lease.batch_id).state.replace("_", " ")
    about = f"Batch {lease.batch_id}, {state}. All of it is in {folder}"
    create_markdown_artifact(summary_markdown(report), key="import-summary", description=about)
    rejects = rejects_table(report) or NO_REJECTS
    create_table_artifact(rejects, key="rejects", description=about)


def _workspace(log: Log) -> Workspace:
    settings = read_settings()
    return Workspace(settings, open_database(settings), _Lines(log))


@contextmanager
def _held(batch: Manifest) -> Iterator[tuple[Workspace, Lease]]:
    """The workspace, and the batch held for this stage; raises BatchHeldElsewhere.

    A batch that has ended is only read, with a lease that can write nothing.
    """
    workspace = _workspace(get_run_logger())
    with workspace.database.connect() as connection:
        ended = batch.state in ledger.ENDED
        read_only = nullcontext(Lease(connection, batch.batch_id, epoch=-1))
        try:
            with read_only if ended else hold_batch(connection, batch.batch_id) as lease:
                yield workspace, lease
        except psycopg.Error as error:
            # The text of the server may quote a row, secrets included, and Prefect keeps texts.
            raise _without_rows(batch, error, lost=connection.closed) from None


def _without_rows(batch: Manifest, error: psycopg.Error, *, lost: bool) -> ReconError:
    if lost and isinstance(error, psycopg.OperationalError):
        return DatabaseUnusable(
            f"The connection to the database was lost in the middle of batch {batch.batch_id}. "
            "What was committed is kept; the batch goes on from there when it is run again."
        )
    said = error.diag.message_primary or type(error).__name__
    return ReconError(
        f"The database refused a statement of batch {batch.batch_id}: {said} "
        f"(SQLSTATE {error.sqlstate}). Nothing of its chunk was written; the server's log has the "
        f"rest. Run the batch again with recon rerun {batch.batch_id} when it is mended."
    )


class _Lines:
    """Progress as log lines, few enough to be read."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if done == total or time.monotonic() - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = time.monotonic()
        self.log.info("%s: %s of %s", stage, f"{done:,}", f"{total:,}" if total else "unknown")


def _told(lease: Lease, batch: Manifest, rows: Mapping[str, int]) -> Manifest:
    """The manifest after a stage, told on its run page as well."""
    now = ledger.find_batch(lease.connection, lease.batch_id)
    counted = ", ".join(f"{count} {state}" for state, count in rows.items())
    told = f"Batch {now.id} is {now.state.replace('_', ' ')}"
    get_run_logger().info("%s", ": ".join(filter(None, (told, now.held_because, counted))))
    changes = {
        "state": now.state,
        "rows": dict(rows),
        "refused": _refused(lease.connection, now.id),
        "held_because": now.held_because,
    }
    return batch.model_copy(update=changes)


def _receipts(lease: Lease, *stages: str) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for stage_name in stages:
        for receipt in ledger.list_receipts(lease.connection, lease.batch_id, stage_name):
            counts.update(receipt.counts)
    return counts


def _end_states(report: BatchReport) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for chain in report.chains:
        counts.update({state: totals.rows for state, totals in chain.states.items()})
    return dict(sorted(counts.items()))


def _refused(connection: psycopg.Connection, batch_id: int) -> int:
    return sum(one.refused is not None for one in ledger.list_extracts(connection, batch_id))
