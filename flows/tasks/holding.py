"""The workspace that a task works with, and the batch that it holds meanwhile."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from logging import Logger, LoggerAdapter
from typing import Any

from prefect import get_run_logger

from connectors.files.disk.atomic import keep_private
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import EndedBatch, Lease, hold_batch
from connectors.postgres.batches.ledger import State
from connectors.postgres.database import open_database
from flows.stages.workspace import Workspace
from flows.tasks.blocks import run_credentials, run_settings
from flows.tasks.error_lines import keep_to_one_line

SECONDS_BETWEEN_LINES = 15
"""How often a long stage logs its progress on its run page."""

_job: ContextVar[int | None] = ContextVar("job", default=None)
"""The job that this run works for."""

Log = Logger | LoggerAdapter[Any]

# Prefect forwards what this logger lets through (`extra_loggers`), by default only warnings.
logging.getLogger("recon").setLevel(logging.INFO)
keep_to_one_line()


def open_workspace() -> Workspace:
    """The workspace from blocks or the environment; progress goes to the run page."""
    keep_private()  # Prefect writes the run's results and logs.
    settings = run_settings()
    credentials = run_credentials() if settings.service.url else None
    place = Workspace(settings, open_database(settings), _Lines(get_run_logger()), credentials)
    job = _job.get()
    return place if job is None else place.for_job(job)


@contextmanager
def working_for(job: int) -> Iterator[None]:
    """Let everything in this block, including subflows and tasks, work for a job."""
    token = _job.set(job)
    try:
        yield
    finally:
        _job.reset(token)


@contextmanager
def held(batch_id: int, state: State) -> Iterator[tuple[Workspace, Lease]]:
    """The workspace, and the batch held for this stage; raises BatchHeldElsewhere.

    A batch that has ended is only read.
    """
    workspace = open_workspace()
    with workspace.database.connect() as connection:
        ended = nullcontext(EndedBatch(connection, batch_id))
        with ended if state in ledger.ENDED else hold_batch(connection, batch_id) as lease:
            yield workspace, lease


class _Lines:
    """Progress as log lines, few enough to be readable."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if done == total or time.monotonic() - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = time.monotonic()
        self.log.info("%s: %s of %s", stage, f"{done:,}", f"{total:,}" if total else "unknown")
