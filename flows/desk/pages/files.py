"""The files of a report, each proven to be the one that was written before it is given away."""

import mimetypes
from http import HTTPStatus

from starlette.responses import FileResponse, Response

from connectors.errors import SignatureRefused
from connectors.postgres.looks import look_at
from flows.desk.review import REPORTS
from flows.desk.runs import run_of
from flows.desk.visit import Visit
from flows.stages.reconcile.report_files import listed_files, sha256_of
from schemas.guards.trail_rules import report_hash
from schemas.life import Look

INSIDE = (
    "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""What a report's page may do: show itself. It has an origin of its own, and nobody to ask."""
SHOWN = (".html",)
"""Opened in the browser; everything else is saved."""


def give(visit: Visit) -> Response:
    """One file of a run's report; one that was altered is not given."""
    name = str(visit.path["name"])
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
    folder = visit.place.settings.reports / run.folder
    listed = listed_files(folder, run)
    if name not in listed:
        return visit.page(
            "refused.html.jinja", HTTPStatus.NOT_FOUND, title="Nothing here",
            said=f"The report of run {run.id} has no file of this name.",
        )  # fmt: skip
    if report_hash(listed) != run.report_hash or sha256_of(folder / name) != listed[name]:
        raise SignatureRefused(
            f"{name} of run {run.id} is not what was written, so it is not shown. Find out who "
            "changed it, and bring the folder back from a backup."
        )
    if name in REPORTS:
        with visit.place.database.connect() as connection:
            look_at(connection, run.id, Look.REPORT)
    kind, _ = mimetypes.guess_type(name)
    shown = name.endswith(SHOWN)
    return FileResponse(
        folder / name,
        media_type=kind or "application/octet-stream",
        filename=f"run-{run.id}-{name.replace('/', '-')}",
        content_disposition_type="inline" if shown else "attachment",
        headers={"Content-Security-Policy": INSIDE},
    )
