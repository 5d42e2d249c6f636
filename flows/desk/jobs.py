"""The only place where pages order work, in the visitor's name, and have it started.

The database refuses visitors who may not order. Another process does the work: one that is started
here if the desk's account may do it, or else a worker with an account of its own.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from connectors.errors import AccountRefused, ReconError
from connectors.postgres.jobs import find_job, may_do_jobs, order_again, order_job
from connectors.process import start_detached
from flows.desk.forms import refuse_nameless
from flows.desk.visit import Visit
from flows.stages.jobs.arguments import check_arguments
from flows.stages.workspace import Workspace
from schemas.accounts import takes_role
from schemas.jobs import MAY_ORDER, ORDERING, JobKind, JobState

log = logging.getLogger("recon.desk")


def order(visit: Visit, kind: JobKind, **arguments: Any) -> int:
    """Order work; returns the number of the job, whose page is `/jobs/NUMBER`.

    Raises JobRefused for invalid arguments, and AccountRefused.
    """
    refuse_unless_operator(visit)
    asked = check_arguments(kind, arguments)
    with visit.place.database.connect() as connection:
        as_json = asked.model_dump(mode="json", exclude_defaults=True)
        number = order_job(connection, kind, as_json, visit.by)
    _start(visit, number)
    return number


def start_again(visit: Visit, number: int) -> None:
    """Start a job again that stopped or could not run, or one that nobody has taken yet.

    In the latter case the person who ordered it stays responsible, and only one process does it.
    """
    with visit.place.database.connect() as connection:
        waits = find_job(connection, number).state is JobState.ORDERED
        refuse_unless_operator(visit, named=not waits)
        if not waits:
            order_again(connection, number, visit.by)
    _start(visit, number)


def refuse_unless_operator(visit: Visit, *, named: bool = True) -> None:
    """Refuse early, before anything is read or done, what the database would refuse in the end."""
    if not visit.may(*MAY_ORDER):
        raise AccountRefused(f"{takes_role(ORDERING, MAY_ORDER)} Nothing was ordered.")
    if named:
        refuse_nameless(visit)


def _start(visit: Visit, number: int) -> None:
    """Start the job; if that fails, it waits until a worker takes it."""
    try:
        visit.desk.start(visit.desk.workspace, number)
    except (ReconError, OSError) as error:
        log.warning("Job %s is ordered and not started: %s", number, error)


def start_here(
    workspace: Workspace, number: int, environment: Mapping[str, str] = os.environ
) -> None:
    """Start a process on this machine that outlives the desk, if the desk's account may load."""
    with workspace.database.connect() as connection:
        if not may_do_jobs(connection):
            return
    settings = workspace.settings
    given = {**environment, "RECON_HOME": str(settings.home)}
    if settings.database_url:
        given["RECON_DATABASE_URL"] = settings.database_url
    start_detached([sys.executable, "-m", "flows", "job", str(number)], given)
