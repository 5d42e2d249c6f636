"""Jobs: what was ordered, its progress and outcome, and buttons to order more."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from connectors.errors import JobRefused, JobUnknown
from connectors.postgres.jobs import Job, find_job, list_jobs, may_do_jobs
from flows.desk.forms import LARGEST, read_whole
from flows.desk.jobs import order, start_again
from flows.desk.seen import shows_text
from flows.desk.visit import Visit
from flows.report.text import without_messages
from schemas.guards.commands import command_of
from schemas.jobs import JobKind, JobState

ON_A_PAGE, FEW = 50, 10
BUTTONS: Mapping[JobKind, tuple[str, ...]] = {
    JobKind.RERUN: ("batch",),
    JobKind.CORRECT: ("batch",),
    JobKind.PUSH: ("batch",),
    JobKind.RECONCILE: ("run",),
}
"""The work of each button, and the arguments it names; other work has a page of its own."""


def show(visit: Visit) -> Response:
    """The jobs that the visitor may see, the latest first."""
    before = visit.asked.get("before", "")
    with visit.place.database.connect() as connection:
        found = list_jobs(connection, ON_A_PAGE + 1, read_whole(before))
    jobs = found[:ON_A_PAGE]
    return visit.page(
        "jobs.html.jinja",
        jobs=[(one, about_job(one)) for one in jobs],
        before=before,
        more=jobs[-1].id if len(found) > ON_A_PAGE else None,
    )


def ask(visit: Visit) -> Response:
    """Order the work of a button."""
    kind = visit.typed("kind")
    if kind not in BUTTONS:
        raise JobRefused("This work has a page of its own. Nothing was ordered.")
    kind = JobKind(kind)
    named = {name: visit.typed(name) for name in BUTTONS[kind] if visit.typed(name)}
    return visit.go(f"/jobs/{order(visit, kind, **named)}")


def show_one(visit: Visit) -> Response:
    """One job; its page reloads itself while the job is under way."""
    with visit.place.database.connect() as connection:
        job = find_job(connection, _number(visit))
        # If the desk does no jobs itself, starting one here would have no effect.
        waits = job.state is JobState.ORDERED and may_do_jobs(connection)
    settings = visit.desk.settings
    outcome = job.said or ""
    link = f"{settings.prefect_ui}/runs/flow-run/{job.flow_run}" if settings.prefect_ui else ""
    return visit.page(
        "job.html.jinja",
        job=job,
        about=about_job(job),
        outcome=outcome if shows_text(visit) else without_messages(outcome),
        command=command_of(job.kind),
        waits=waits,
        flow_run=link if job.flow_run else "",
    )


def start(visit: Visit) -> Response:
    number = _number(visit)
    start_again(visit, number)
    return visit.go(f"/jobs/{number}")


def _number(visit: Visit) -> int:
    number = int(visit.path["number"])
    if number > LARGEST:
        raise JobUnknown(f"There is no job {number} that you may see.")
    return number


TITLES: Mapping[JobKind, str] = {
    JobKind.IMPORT: "Import uploaded files",
    JobKind.CORRECT: "Import rows with errors again as they are",
    JobKind.RERUN: "Go on where it stopped",
    JobKind.RELEASE: "Release, and go on with the clean rows",
    JobKind.DISCARD: "Discard",
    JobKind.UNDO: "Undo",
    JobKind.RESOLVE: "Settle rows at the service",
    JobKind.PUSH: "Send unsent rows",
    JobKind.RECONCILE: "Reconcile",
}
CORRECTED = "Import corrected rows"
"""The title of a correction with files; one without takes the rows as delivered."""
NOT_LISTED = ("upload", "held")
"""Arguments that mean nothing to people: a token, and the number of an event."""


def about_job(job: Job) -> list[tuple[str, Any]]:
    """What a job is about, as names and values; of rows and uploads only their number."""
    corrected = job.kind is JobKind.CORRECT and "upload" in job.arguments
    about = [("Work", CORRECTED if corrected else TITLES[job.kind])]
    for name, value in job.arguments.items():
        if name in NOT_LISTED:
            continue
        about.append((name.replace("_", " ").capitalize(), _spelled(value)))
    return about


def _spelled(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value)) if len(value) < FEW else f"{len(value)} of them"
    return "yes" if value is True else value
