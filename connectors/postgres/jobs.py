"""Jobs: what was asked for at the desk, its state, and the one process that does it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from connectors.errors import JobHeldElsewhere, JobRefused, JobUnknown
from connectors.postgres.accounts import BATCH_SEEN, who
from connectors.postgres.command_rights import may_run
from connectors.postgres.heartbeat import holder_text, renewed, take
from connectors.postgres.query import one_value
from connectors.postgres.trail import read_detail
from schemas.derived.sql_names import SCHEMA
from schemas.guards.commands import command_of
from schemas.guards.leases import Held
from schemas.jobs import COULD_NOT_RUN, JobKind, JobState


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the job table, and whether a process is doing it now."""

    id: int
    kind: JobKind
    arguments: Mapping[str, Any]
    asked_by: str
    person: str | None
    """The account that asked; None if nobody was logged in."""
    asked_at: datetime
    state: JobState
    flow_run: str | None
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    said: str | None
    batches: tuple[int, ...]
    """The batches it worked on, as far as the acting user may see them."""
    reconciliation_id: int | None
    lives: bool

    @property
    def has_stopped(self) -> bool:
        """Whether its process disappeared before the job ended."""
        return self.state is JobState.RUNNING and not self.lives

    @property
    def may_start_again(self) -> bool:
        """Whether it stopped before its end, or ended because it could not run."""
        return self.has_stopped or (self.exit_code or 0) >= COULD_NOT_RUN

    @property
    def is_under_way(self) -> bool:
        """Whether its state may still change by itself."""
        return self.state is not JobState.ENDED and not self.has_stopped


_SELECT = f"""SELECT j.id, j.kind, j.arguments, j.asked_by, j.person, j.asked_at, j.state,
    j.flow_run, j.started_at, j.ended_at, j.exit_code, j.said, j.reconciliation_id,
    ARRAY(SELECT b.id FROM batch b WHERE b.id = ANY (string_to_array(j.batches, ' ')::int[])
        AND {BATCH_SEEN} ORDER BY b.id) AS batches,
    j.state = '{JobState.RUNNING}' AND {SCHEMA}.job_lives(j.id) AS lives FROM job j"""


def order_job(
    connection: psycopg.Connection, kind: JobKind, arguments: Mapping[str, Any], by: str | None
) -> int:
    """Ask for work; gives the number of the job. `by` counts only if nobody is logged in."""
    values = [kind, json.dumps(arguments, sort_keys=True), who(connection, by)]
    return int(one_value(connection.execute(f"SELECT {SCHEMA}.order_job(%s, %s, %s)", values)))


def order_again(connection: psycopg.Connection, number: int, by: str | None) -> None:
    connection.execute(f"SELECT {SCHEMA}.order_again(%s, %s)", [number, who(connection, by)])


def find_job(connection: psycopg.Connection, number: int) -> Job:
    """The job of this number; raises JobUnknown if there is none that the acting user may see."""
    found = _jobs(connection, f"WHERE j.id = %s AND {SCHEMA}.sees_job(j.person)", [number])
    if not found:
        raise JobUnknown(f"There is no job {number} that you may see. `recon jobs` lists them.")
    return found[0]


def list_jobs(connection: psycopg.Connection, most: int, before: int | None = None) -> list[Job]:
    """Jobs that the acting user may see, latest first."""
    return _jobs(
        connection,
        f"WHERE {SCHEMA}.sees_job(j.person) AND (%s::int IS NULL OR j.id < %s) "
        "ORDER BY j.id DESC LIMIT %s",
        [before, before, most],
    )


def jobs_of_batch(connection: psycopg.Connection, batch_id: int, most: int) -> list[Job]:
    """Jobs about a batch that the acting user may see, latest first."""
    return _jobs(
        connection,
        f"WHERE {SCHEMA}.sees_job(j.person) AND (%s::text = ANY (string_to_array(j.batches, ' ')) "
        "OR j.arguments::json ->> 'batch' = %s::text) ORDER BY j.id DESC LIMIT %s",
        [str(batch_id), str(batch_id), most],
    )


def ordered_jobs(connection: psycopg.Connection) -> list[int]:
    """Jobs that nobody has taken and that this account may do, oldest first."""
    jobs = _jobs(connection, "WHERE j.state = %s ORDER BY j.id", [JobState.ORDERED])
    may = {kind: may_run(connection, command_of(kind)) for kind in {job.kind for job in jobs}}
    return [job.id for job in jobs if may[job.kind]]


def awaited_uploads(connection: psycopg.Connection) -> set[str]:
    """Upload tokens of jobs that have not ended, whose uploads are still to be read."""
    rows = connection.execute(
        "SELECT arguments::json ->> 'upload' FROM job WHERE state <> %s", [JobState.ENDED]
    )
    return {token for (token,) in rows if token}


def may_do_jobs(connection: psycopg.Connection) -> bool:
    """Whether the account of this connection may do jobs."""
    asked = f"SELECT has_function_privilege('{SCHEMA}.take_job(integer, text)', 'EXECUTE')"
    return bool(one_value(connection.execute(asked)))


@contextmanager
def hold_job(
    connection: psycopg.Connection, number: int, flow_run: str | None = None
) -> Iterator[Job]:
    """Do a job exclusively; raises JobHeldElsewhere if another process does it or it has ended.

    Raises JobRefused if the person who ordered it has lost the right to; the job has ended then.
    The job comes free with its connection, so one whose process was killed can be started again.
    """
    find_job(connection, number)
    taken = take(connection, Held.JOB, number)
    if taken is None:
        raise JobHeldElsewhere(
            f"Job {number} is being done: {holder_text(connection, Held.JOB, number)}Nothing was "
            "done here."
        )
    with renewed(connection, taken):
        before = find_job(connection, number).state
        asked = connection.execute(f"SELECT {SCHEMA}.take_job(%s, %s)", [number, flow_run])
        if not one_value(asked):
            if before is not JobState.ENDED:
                raise JobRefused(find_job(connection, number).said or "")
            raise JobHeldElsewhere(
                f"Job {number} has ended already, and is not done twice. Order it again at the "
                "desk if it is needed once more."
            )
        yield find_job(connection, number)


def end_job(
    connection: psycopg.Connection,
    number: int,
    exit_code: int,
    message: str,
    batches: Iterable[int] = (),
    reconciliation: int | None = None,
) -> None:
    """Record the outcome of a job that this account has taken."""
    named = " ".join(map(str, batches))
    connection.execute(
        f"SELECT {SCHEMA}.end_job(%s, %s, %s, %s, %s)",
        [number, exit_code, message.replace("\x00", "\\x00"), named, reconciliation],
    )


def ordered_by(connection: psycopg.Connection, number: int) -> str:
    """Who ordered a job last, and so answers for what it does."""
    return str(one_value(connection.execute(f"SELECT {SCHEMA}.job_ordered_by(%s)", [number])))


def done_for(connection: psycopg.Connection, job: Job, what: str) -> int | None:
    """The event of a name that a job left before its process was gone; None if there is none."""
    found = connection.execute(
        "SELECT e.id, e.detail FROM event e WHERE e.what = %s "
        "AND e.id > (SELECT j.event_id FROM job j WHERE j.id = %s) ORDER BY e.id",
        [what, job.id],
    )
    return next(
        (int(event) for event, detail in found if read_detail(detail).get("job") == job.id), None
    )


def _jobs(connection: psycopg.Connection, which: str, values: list[Any]) -> list[Job]:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(f"{_SELECT} {which}", values).fetchall()
    return [
        Job(
            **row
            | {
                "kind": JobKind(row["kind"]),
                "state": JobState(row["state"]),
                "arguments": read_detail(row["arguments"]),
                "batches": tuple(row["batches"]),
            }
        )
        for row in rows
    ]
