"""Work ordered at the desk: `recon job` does one job, `recon jobs` lists or does them."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from connectors.errors import DatabaseUnusable, JobHeldElsewhere, ReconError, SchemaReplaced
from flows.commands.console import (
    COUNT,
    LISTED,
    MOST,
    SECONDS,
    older_message,
    out,
    print_json,
    say_next_look,
    workspace,
)
from flows.commands.deliver import Json
from flows.commands.streams import tell
from schemas.jobs import COULD_NOT_RUN

if TYPE_CHECKING:
    from connectors.postgres.jobs import Job
    from flows.stages.workspace import Workspace


def job_command(
    number: Annotated[
        int, Parameter(help="Number of the job, as `recon jobs` lists it.", validator=LISTED)
    ],
) -> int:
    """Do a job that was ordered at the desk, in the name of the person who ordered it.

    Only one process does a job at a time. If it was killed, run the command again: nothing is
    done twice.

    Example: `recon job 12`

    Exit code: that of the command that does the same; 3: another process does the job, or it has
    ended.
    """
    from flows.stages.jobs.work import do_job

    with workspace("job", say_held=False) as place:
        # The person typing this, or owning this machine, is not the one who ordered the job.
        done = do_job(place.as_login(None), number)
    out().print(done.message)
    return done.exit_code


def jobs_command(
    *,
    watch: Annotated[
        bool, Parameter(help="Do every job that is ordered, and wait for more.")
    ] = False,
    once: Annotated[
        bool, Parameter(help="With --watch: do what is ordered now, then exit.")
    ] = False,
    every: Annotated[
        float, Parameter(help="With --watch: seconds between two looks.", validator=SECONDS)
    ] = 2.0,
    most: Annotated[int, Parameter(name=MOST, help="How many jobs to list.", validator=COUNT)] = 20,
    json: Json = False,
) -> int:
    """List jobs that were ordered at the desk, or do those that nobody has taken yet.

    A desk whose database account may not load rows only orders jobs; this command does them, with a
    database account of its own.

    With --watch and --json, each look that did something prints one line of JSON.

    Example: `recon jobs --watch`

    Exit code with --once: the highest exit code of the jobs that were done.
    """
    from connectors.postgres.jobs import find_job, list_jobs

    with workspace("jobs --watch" if watch else "jobs", say_held=False) as place:
        # The person starting this did not order the jobs, and their login would end before it.
        worker = place.as_login(None)
        while watch:
            done: list[tuple[int, int]] = []
            try:
                done = do_ordered(worker, quiet=json)
            except DatabaseUnusable as trouble:
                if once or isinstance(trouble, SchemaReplaced):
                    raise
                say_next_look(trouble, every)
            if json and (done or once):
                with worker.database.connect() as connection:
                    jobs = [find_job(connection, number) for number, _ in done]
                print_json({"jobs": [_as_json(one) for one in jobs]}, of_many=not once)
            if once:
                return max((code for _, code in done), default=0)
            time.sleep(every)
        with place.database.connect() as connection:
            found = list_jobs(connection, most + 1)
    jobs, older = found[:most], len(found) > most
    if json:
        print_json({"jobs": [_as_json(one) for one in jobs], "older": older})
        return 0
    for one in jobs:
        about = f" batch {one.arguments['batch']}" if "batch" in one.arguments else ""
        out().print(
            f"{one.id:>6}  {one.asked_at:%Y-%m-%d %H:%M:%S}  {_state(one):<8}  {one.kind}{about}, "
            f"ordered by {one.asked_by}"
        )
    if older:
        out().print(older_message(most))
    if not jobs:
        out().print("No job was ordered yet; order one at the desk (`recon desk`).")
    return 0


def do_ordered(place: "Workspace", *, quiet: bool) -> list[tuple[int, int]]:
    """Do every job that nobody has taken; an error in one does not stop the others.

    Returns the number and exit code of each, and prints them unless `quiet`. Raises
    DatabaseUnusable; a job that lost the database has stopped, and can be started again.
    """
    from connectors.postgres.jobs import ordered_jobs
    from flows.commands.fault import tell_of_fault
    from flows.stages.jobs.work import do_job

    ended = []
    with place.database.connect() as connection:
        numbers = ordered_jobs(connection)
    for number in numbers:
        try:
            done = do_job(place, number)
        except JobHeldElsewhere:
            continue
        except DatabaseUnusable:
            raise  # The database is lost for the other jobs too.
        except ReconError as error:
            tell(f"job {number}: {error}")
            ended.append((number, error.exit_code))
            continue
        except Exception as error:  # noqa: BLE001 -- told, as for any other command.
            tell_of_fault(error, f"job {number}")
            ended.append((number, COULD_NOT_RUN))
            continue
        ended.append((number, done.exit_code))
        if not quiet:
            out().print(f"job {number}: exit code {done.exit_code}. {done.message}")
            sys.stdout.flush()
    return ended


def _state(job: "Job") -> str:
    return "stopped" if job.has_stopped else job.state


def _as_json(job: "Job") -> dict[str, Any]:
    return {
        "job": job.id,
        "kind": job.kind,
        "arguments": job.arguments,
        "asked_by": job.asked_by,
        "asked_at": job.asked_at.isoformat(),
        "state": _state(job),
        "exit_code": job.exit_code,
        "said": job.said,
        "batches": job.batches,
        "reconciliation": job.reconciliation_id,
    }
