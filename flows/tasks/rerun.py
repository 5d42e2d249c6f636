"""The tasks of a rerun: find the batch or open one of its failed rows; compare row states."""

from collections.abc import Mapping

import psycopg
from prefect import get_run_logger, task
from prefect.client.schemas.objects import FlowRun

from connectors.files.disk.scratch import scratch_folder
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.trail import events_of_run
from flows.report.markdown import cell
from flows.report.spelling import digits
from flows.stages.finish import build_report
from flows.stages.receiving.kept import prove_batch
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rewind import REWOUND, rewind
from flows.stages.rows.rejects import waiting_correction, write_rejects
from flows.stages.sequence import refuse_if_taken_back
from flows.steps.batch_report import STATES
from flows.tasks.attempts import FROM_LEDGER, this_run
from flows.tasks.batch import REMEMBERED, BatchStatus, opened_now, received_from
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import attempts_at

Counts = Mapping[str, Mapping[str, int]]
"""Record kind -> state -> rows."""
NO_CHANGE = {"Batch": "none", "Record": "", "State": "", "Before": "", "After": "", "Change": ""}


@task(name="receive correction", task_run_name="receive correction", **REMEMBERED)
def receive_correction(batch_id: int, corrected_file: str | None) -> BatchStatus:
    """Open a batch of another one's failed rows, corrected or as they were delivered.

    It is read, bound and validated on the terms of the batch it corrects.
    """
    workspace = open_workspace()
    if corrected_file is not None:
        return received_from(workspace, [corrected_file], StatedTerms(corrects=batch_id))
    with scratch_folder(workspace.settings.scratch) as folder:
        # The rows are taken in from this folder, and need the secrets they were delivered with.
        written = write_rejects(workspace, batch_id, folder, with_secrets=True)
        if not written:
            # A batch that an earlier run opened and did not finish may have them.
            waiting = waiting_correction(workspace, batch_id)
            if waiting is not None:
                get_run_logger().info("Batch %s has these rows already, and goes on", waiting)
                return open_batch.fn(waiting)
            get_run_logger().info("Batch %s has no rows with errors", batch_id)
            return open_batch.fn(batch_id)
        return received_from(workspace, [str(folder)], StatedTerms(corrects=batch_id))


@task(name="open batch", task_run_name="open batch {batch_id}", **FROM_LEDGER)
def open_batch(batch_id: int, *, from_the_start: bool = False) -> BatchStatus:
    """Find a batch to continue; from the start, its rows are forgotten if nothing is applied.

    A run forgets them only once, and continues from there when it is retried. A run that waited for
    a decision continues with the batch as decided.

    Raises BatchUnknown, BatchStateError for a batch that cannot continue, and EvidenceBroken if a
    kept file of it is not what was delivered.
    """
    workspace = open_workspace()
    run = this_run()
    with workspace.database.connect() as connection:
        if run is None or run.run_count not in attempts_at(connection, batch_id, run):
            refuse_if_taken_back(connection, batch_id)
            prove_batch(workspace, connection, batch_id)
            if from_the_start and not _has_rewound(connection, batch_id, run):
                with hold_batch(connection, batch_id) as lease:
                    rewind(workspace, lease, str(run.id) if run else None)
    return opened_now(workspace, batch_id)


def _has_rewound(connection: psycopg.Connection, batch_id: int, run: FlowRun | None) -> bool:
    rewound = events_of_run(connection, REWOUND, str(run.id)) if run else []
    return any(batch == batch_id for batch, _ in rewound)


@task(name="count rows", task_run_name="count rows of batch {batch_id}", **REMEMBERED)
def count_rows(batch_id: int) -> Counts:
    """Rows by record kind and state before a rerun; a Retry compares with the same counts."""
    workspace = open_workspace()
    with workspace.database.connect() as connection:
        report = build_report(workspace, connection, batch_id)
    return {
        chain.record: {state: totals.rows for state, totals in chain.states.items()}
        for chain in report.chains
    }


def changes_table(
    before: Mapping[int, Counts], after: Mapping[int, Counts]
) -> list[dict[str, str]]:
    """One line per batch, record kind and state that has or had rows."""
    lines = []
    for batch in sorted({*before, *after}):
        old, new = before.get(batch, {}), after.get(batch, {})
        for record in sorted({*old, *new}):
            was, now = old.get(record, {}), new.get(record, {})
            for state in sorted({*was, *now}, key=_place):
                rows_before, rows_after = was.get(state, 0), now.get(state, 0)
                line = {
                    "Batch": str(batch),
                    "Record": cell(record),
                    "State": cell(state),
                    "Before": digits(rows_before),
                    "After": digits(rows_after),
                    "Change": digits(rows_after - rows_before, signed=True),
                }
                lines.append(line)
    return lines or [NO_CHANGE]


def _place(state: str) -> tuple[int, str]:
    return (STATES.index(state) if state in STATES else len(STATES), state)
