"""The files of a report, each proven to be the one that was written before it is sent."""

import mimetypes
from collections.abc import Mapping
from pathlib import Path

import psycopg
from starlette.responses import FileResponse, Response

from connectors.errors import SignatureRefused
from connectors.postgres.batches.batch_reports import FILES, folder_of, noted_reports
from connectors.postgres.runs.signatures import look_at
from flows.desk.seen import batch_of, run_of, shows_text
from flows.desk.visit import Visit
from flows.stages.reconcile.corrections import FOLDER
from flows.stages.reconcile.report_files import READ_BY_PEOPLE, listed_files, sha256_of
from schemas.guards.trail_rules import report_hash
from schemas.life import Look

INSIDE = (
    "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""What a report's page may do: only show itself, with an origin of its own and no requests."""
IN_BROWSER = (".html",)
"""Files that are opened in the browser; all others are saved."""


def give(visit: Visit) -> Response:
    """A file of a run's report; an altered one is refused."""
    name = str(visit.path["name"])
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
    folder = visit.place.settings.reports / run.folder
    listed = listed_files(folder, run)
    if name not in listed or not is_given(visit, name):
        return _no_file(visit, f"run {run.id}")
    if report_hash(listed) != run.report_hash or sha256_of(folder / name) != listed[name]:
        raise _altered(f"{name} of run {run.id}")
    if name in READ_BY_PEOPLE:
        with visit.place.database.connect() as connection:
            look_at(connection, run.id, Look.REPORT)
    return _file(folder, name, f"run-{run.id}")


def is_given(visit: Visit, name: str) -> bool:
    """Whether the visitor may have a file of a run's report; corrections contain delivered text."""
    return shows_text(visit) or not name.startswith(f"{FOLDER}/")


def give_of_batch(visit: Visit) -> Response:
    """A file of a batch's report; an altered one is refused."""
    name = str(visit.path["name"])
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        there = report_files(visit, connection, batch.id)
    if name not in there:
        return _no_file(visit, f"batch {batch.id}")
    folder = folder_of(visit.place.settings.reports, batch.id)
    if not (folder / name).is_file() or sha256_of(folder / name) != there[name]:
        raise _altered(f"{name} of batch {batch.id}")
    return _file(folder, name, folder.name)


def report_files(visit: Visit, connection: psycopg.Connection, batch_id: int) -> Mapping[str, str]:
    """The files of a batch's report -> hash; empty if the visitor may not see delivered text.

    A report shows rows with errors as delivered, whatever their tenant.
    """
    noted = noted_reports(connection, [batch_id]) if shows_text(visit) else []
    if not noted or noted[0].removed:
        return {}
    return {name: noted[0].hashes[name] for name in FILES if name in noted[0].hashes}


def _no_file(visit: Visit, of: str) -> Response:
    return visit.nothing_here(f"The report of {of} has no file of this name to show you.")


def _altered(what: str) -> SignatureRefused:
    return SignatureRefused(
        f"{what} is not what was written, so it is not shown. Find out who changed it, and bring "
        "the folder back from a backup."
    )


def _file(folder: Path, name: str, of: str) -> Response:
    kind, _ = mimetypes.guess_type(name)
    return FileResponse(
        folder / name,
        media_type=kind or "application/octet-stream",
        filename=f"{of}-{name.replace('/', '-')}",
        content_disposition_type="inline" if name.endswith(IN_BROWSER) else "attachment",
        headers={"Content-Security-Policy": INSIDE},
    )
