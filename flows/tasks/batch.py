"""The stages of a batch as Prefect tasks, in the order a row lives through them.

A task takes and returns the status of the batch: numbers and paths, never rows. Its work is in the
ledger, so a task that runs again, in a retry or in another run, continues where the ledger ends. So
Prefect remembers only the first task: a retry must continue with the batch it opened, even if the
inbox has been emptied since.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

import psycopg
from prefect import get_run_logger, task
from prefect.context import TaskRunContext
from pydantic import BaseModel, ConfigDict, Field

from connectors.errors import STOPS_PUSH, ConservationError, ReconError
from connectors.postgres.batches import ledger
from connectors.postgres.batches.batch_reports import folder_of
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import State
from connectors.postgres.trail import time_of
from connectors.printable import printable
from flows.report.decision import decision_markdown
from flows.report.markdown import escape, rejects_table
from flows.report.next_step import commands, left_of
from flows.report.text import state_word
from flows.stages.apply import apply
from flows.stages.check import check, held_event, release
from flows.stages.finish import DOES_NOT_TIE, build_report, finish, write_owed
from flows.stages.push import not_sent, not_sent_text, push
from flows.stages.receive import receive
from flows.stages.receiving.kept import prove_batch
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rows.rejects import first_rejects
from flows.stages.undo import discard
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from flows.tasks.artifacts import SUMMARY, publish_summary, publish_table
from flows.tasks.attempts import ATTEMPTS, FROM_LEDGER, begun_again, this_run
from flows.tasks.delivery import Delivery
from flows.tasks.holding import held, open_workspace
from flows.tasks.hooks import note_run
from flows.tasks.partitions import stage_delivery
from schemas.counting import agree, quantity
from schemas.derived.views import apply_stage

MESSAGES_SHOWN = 20
NO_REJECTS = [{"Reason": "none", "Rows": "0"}]


class Hold(BaseModel):
    """What the person deciding about a held batch is shown, and what the decision is bound to."""

    event: int
    """The event that says the batch is held."""
    sign: str
    """A name of this event that is unique even across restored databases."""
    description: str


class BatchStatus(BaseModel):
    """The status of a batch after a stage, small enough to be kept as JSON."""

    model_config = ConfigDict(frozen=True)

    batch_id: int
    state: State
    rows: Mapping[str, int] = {}
    """End state, or verdict of the stage -> rows."""
    errors: int = 0
    """Rows that have HasError."""
    refused: int = 0
    """Files that could not be read."""
    refused_first: str | None = None
    """The first of these files, with the code of its reason."""
    held_because: str | None = None
    known: str | None = None
    """The message about the batch that took the same delivery before; None if it is new."""
    verdict: str | None = None
    """The report's verdict, which includes what was corrected or settled after the batch ended."""
    service: bool = False
    """Whether its rows are to be pushed to a service."""
    folder: str | None = None
    """The folder of the report files."""
    stopped: str | None = None
    """Why not everything could be sent to the service; None if everything could."""
    busy: bool = False
    """Whether the obstacle was another run that sends the same records."""
    others_go: bool = False
    """Whether the service took other rows meanwhile, so that other batches may be sent to it."""
    taken: bool = False
    """Whether another run took the batch once it was applied, and sends and reports the rest."""
    not_sent: Sequence[str] = []
    """Why rows stay in the database although the batch goes to a service."""
    next: str = ""
    """The commands that settle what is left; empty if nothing is, or if the batch has not ended."""
    proven: bool = Field(default=False, exclude=True, repr=False)
    """Whether this process has just hashed all staged rows; never set in a kept status."""


Manifest = BatchStatus
"""The name under which earlier versions kept their statuses, which a Retry may still read."""


def _once_in_a_run(context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    run = context.task_run.flow_run_id
    asked = json.dumps(parameters, sort_keys=True, default=str).encode()
    name = context.task.name.replace(" ", "-")
    return f"recon/{name}/{run}/{hashlib.sha256(asked).hexdigest()[:16]}" if run else None


REMEMBERED: dict[str, Any] = {"persist_result": True, "cache_key_fn": _once_in_a_run, **ATTEMPTS}
"""For tasks whose first result a retry of the run continues with."""


@task(name="receive files", task_run_name="receive files", **REMEMBERED)
def receive_files(delivery: Delivery) -> BatchStatus:
    """Archive the delivered files and open a batch, or find the one that took them before.

    The run stops if the files differ by now from those that an inbox took.
    """
    return received_from(
        open_workspace(), delivery.paths, delivery.terms, files_hash=delivery.files_hash or None
    )


def received_from(
    workspace: Workspace, paths: Sequence[str], terms: StatedTerms, files_hash: str | None = None
) -> BatchStatus:
    """Receive a delivery for this run; messages about its files go to the run's page."""
    log = get_run_logger()
    received = receive(workspace, paths, terms, files_hash)
    for message in received.messages[:MESSAGES_SHOWN]:
        log.info("%s", message)
    more = len(received.messages) - MESSAGES_SHOWN
    if more > 0:
        log.info("and %s more like %s", quantity(more, "file"), agree(more, "this", "these"))
    known = None if received.new else received.messages[0]
    opened = opened_now(workspace, received.batch_id)
    log.info("Batch %s: files received, %s refused", opened.batch_id, opened.refused)
    return opened.model_copy(update={"known": known})


def opened_now(workspace: Workspace, batch_id: int) -> BatchStatus:
    """The present status of a batch, noting that this run works on it."""
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
        if (run := this_run()) is not None:
            note_run(connection, batch.id, run)
        return BatchStatus(
            batch_id=batch.id,
            state=batch.state,
            held_because=batch.held_because,
            service=batch.service is not None,
            **_refused(connection, batch.id),
        )


@task(name="stage rows", task_run_name="stage rows of batch {batch.batch_id}", **FROM_LEDGER)
def stage_rows(batch: BatchStatus) -> BatchStatus:
    """Keep every row verbatim with its position and verdict; nothing can be lost after this.

    A retried run continues only if the files are what was delivered.
    """
    with held(batch.batch_id, batch.state) as (workspace, lease):
        now = ledger.find_batch(lease.connection, lease.batch_id).state
        if begun_again() and now not in (*ledger.ENDED, State.HELD):
            prove_batch(workspace, lease.connection, lease.batch_id)
        proven = stage_delivery(workspace, lease)
        status = _logged(lease, batch, _receipts(lease, "stage"))
        return status.model_copy(update={"proven": proven})


@task(name="check rows", task_run_name="check rows of batch {batch.batch_id}", **FROM_LEDGER)
def check_rows(batch: BatchStatus) -> BatchStatus:
    """Settle repeated keys and references; a batch over its error budget is held."""
    with held(batch.batch_id, batch.state) as (workspace, lease):
        check(workspace, lease)
        return _logged(lease, batch, {})


@task(name="describe hold", task_run_name="say why batch {batch.batch_id} is held", **FROM_LEDGER)
def describe_hold(batch: BatchStatus) -> Hold:
    """What is wrong with a held batch, as the form for its decision shows it."""
    with held(batch.batch_id, batch.state) as (workspace, lease):
        report = build_report(workspace, lease.connection, lease.batch_id)
        event = held_event(lease.connection, lease.batch_id)
        at = time_of(lease.connection, event).astimezone(UTC)
        return Hold(
            event=event,
            sign=f"{event}-{at:%Y%m%d%H%M%S%f}",
            description=decision_markdown(batch.batch_id, report, first_rejects(lease)),
        )


@task(name="settle hold", task_run_name="{decision} batch {batch.batch_id}", **FROM_LEDGER)
def settle_hold(
    batch: BatchStatus,
    decision: Literal["release", "discard"],
    *,
    by: str,
    reason: str,
    seen: int | None = None,
) -> BatchStatus:
    """Carry out the decision about a held batch; who and why goes to the audit trail.

    `seen` is the event of the hold that the person deciding was shown.
    """
    with held(batch.batch_id, batch.state) as (workspace, lease):
        now = ledger.find_batch(lease.connection, lease.batch_id).state is State.HELD
        if now:
            if decision == "release":
                release(workspace, lease, by=by, reason=reason, held=seen)
            else:
                discard(workspace, lease, by=by, reason=reason, held=seen)
            get_run_logger().info("%s decided: %s, because %s", by, decision, reason)
        status = _logged(lease, batch, batch.rows)
        return status.model_copy(update={"proven": now and decision == "release"})


@task(name="apply rows", task_run_name="apply rows of batch {batch.batch_id}", **FROM_LEDGER)
def apply_rows(batch: BatchStatus) -> BatchStatus:
    """Apply the clean rows, each once; a held batch is left alone."""
    with held(batch.batch_id, batch.state) as (workspace, lease):
        apply(workspace, lease, proven=batch.proven)
        applied = [
            apply_stage(table) for table in ledger.staged_tables(lease.connection, lease.batch_id)
        ]
        return _logged(lease, batch, _receipts(lease, *applied))


@task(name="push rows", task_run_name="push rows of batch {batch.batch_id}", **FROM_LEDGER)
def push_rows(batch: BatchStatus) -> BatchStatus:
    """Send unsent rows to the service; if it is down, say so and how to continue."""
    with held(batch.batch_id, batch.state) as (workspace, lease):
        stop = push_reported(lambda: push(workspace, lease))
        return _logged(lease, batch.model_copy(update={"stopped": stop and str(stop)}), batch.rows)


def push_reported(send: Callable[[], None]) -> ReconError | None:
    """Push, and return what stopped it, logged as one line without a traceback."""
    try:
        send()
    except STOPS_PUSH as stop:
        get_run_logger().error("%s", stop)
        return stop
    return None


@task(name="report batch", task_run_name="report batch {batch.batch_id}", **FROM_LEDGER)
def report_batch(batch: BatchStatus) -> BatchStatus:
    """Recount everything, end the batch, and write the report files and the artifacts.

    Raises ConservationError if the figures do not tie, after the report was written.
    """
    with held(batch.batch_id, batch.state) as (workspace, lease):
        folder = folder_of(workspace.settings.reports, lease.batch_id)
        try:
            report = _finished(workspace, lease)
        except ConservationError:
            _publish(lease, build_report(workspace, lease.connection, lease.batch_id), folder)
            raise
        _publish(lease, report, folder, batch.stopped)
        ended = _logged(lease, batch, _end_states(report))
        figures = {"errors": report.errors, "verdict": report.verdict, "folder": str(folder)}
        own = ledger.find_batch(lease.connection, lease.batch_id)
        figures["next"] = commands(own.id, left_of(report), corrects=own.corrects)
        kept = not_sent(own, report)
        return ended.model_copy(update=figures | {"not_sent": [*map(not_sent_text, kept)]})


def _finished(workspace: Workspace, lease: Lease) -> BatchReport:
    """The report of the batch; if it has ended, it is recounted and its files stay as signed."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    if batch.state not in ledger.ENDED:
        return finish(workspace, lease)
    write_owed(workspace, lease.connection, batch.id)
    report = build_report(workspace, lease.connection, lease.batch_id)
    if report.verdict == DOES_NOT_TIE:
        raise ConservationError(
            f"Batch {batch.id} tied when it ended and no longer ties: rows or receipts "
            f"were changed outside of it. The artifact {SUMMARY} shows which stage differs."
        )
    return report


def _publish(lease: Lease, report: BatchReport, folder: Path, stopped: str | None = None) -> None:
    """Publish under fixed keys, so that the UI shows the versions of a report in sequence."""
    state = state_word(ledger.find_batch(lease.connection, lease.batch_id).state)
    gone = f"Its report is not kept; `recon rerun {lease.batch_id}` writes it again"
    place = f"Its whole report is in {folder}" if folder.exists() else gone
    about = f"Batch {lease.batch_id}, {state}. {place}."
    if stopped:
        about = f"{about} {escape(stopped).rstrip('.')}."
    publish_summary(report, lease.batch_id, about)
    rejects = rejects_table(report) or NO_REJECTS
    show = f"{about} `recon row {lease.batch_id} FILE --line LINE` shows a row."
    publish_table(
        rejects, key="rejects", about=show, lines=len(report.reasons), batches=[lease.batch_id]
    )


def _logged(lease: Lease, batch: BatchStatus, rows: Mapping[str, int]) -> BatchStatus:
    """The status after a stage, which is also logged on the run's page."""
    now = ledger.find_batch(lease.connection, lease.batch_id)
    counted = ", ".join(f"{count} {state}" for state, count in rows.items())
    sentence = f"Batch {now.id} is {state_word(now.state)}"
    get_run_logger().info("%s", ": ".join(filter(None, (sentence, now.held_because, counted))))
    changes = {
        "state": now.state,
        "rows": dict(rows),
        **_refused(lease.connection, now.id),
        "held_because": now.held_because,
        # A held batch waits for a person, so the proof is old by the time it continues.
        "proven": batch.proven and now.state is not State.HELD,
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


def _refused(connection: psycopg.Connection, batch_id: int) -> dict[str, Any]:
    files = [one for one in ledger.list_extracts(connection, batch_id) if one.refused is not None]
    first = f"{printable(files[0].name)} ({files[0].refused})" if files else None
    return {"refused": len(files), "refused_first": first}
