"""The files of a report, each proven to be the one that was written before it is sent."""

import hashlib
import mimetypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

import psycopg
from starlette.responses import Response, StreamingResponse

from connectors.errors import SignatureRefused
from connectors.postgres.batches.batch_reports import FILES, folder_of, noted_reports
from connectors.postgres.runs.signatures import look_at
from flows.desk.forms import saved_as
from flows.desk.seen import batch_of, run_of, shows_text
from flows.desk.visit import Visit
from flows.stages.reconcile.corrections import FOLDER
from flows.stages.reconcile.report_files import READ_BY_PEOPLE, listed_files
from schemas.guards.trail_rules import report_hash
from schemas.life import Look

INSIDE = (
    "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""What a report's page may do: only show itself, with an origin of its own and no requests."""
IN_BROWSER = (".html",)
"""Files that are opened in the browser; all others are saved."""
BLOCK_BYTES = 1 << 18
"""How much of a file is read and sent at once."""


def give(visit: Visit) -> Response:
    """A file of a run's report; an altered one is refused."""
    name = str(visit.path["name"])
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
    folder = visit.place.settings.reports / run.folder
    listed = listed_files(folder, run)
    if name not in listed or not is_given(visit, name):
        return _no_file(visit, f"run {run.id}")
    if report_hash(listed) != run.report_hash:
        raise _altered(f"{name} of run {run.id}")
    answer = proven_file(folder, name, listed[name], f"run {run.id}")
    if name in READ_BY_PEOPLE:
        with visit.place.database.connect() as connection:
            look_at(connection, run.id, Look.REPORT)
    return answer


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
    return proven_file(folder, name, there[name], f"batch {batch.id}")


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


def proven_file(folder: Path, name: str, sha256: str, of: str) -> Response:
    """A file of the report of a run or a batch; raises SignatureRefused if the hash is another.

    What is sent is read from the file that was hashed, whatever has its name by then.
    """
    what = f"{name} of {of}"
    try:
        file = (folder / name).open("rb")
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SignatureRefused(
            f"{what} cannot be read: {error.strerror}. While a report is written again its files "
            "are away for a moment, so try once more. If that does not help, bring the folder back "
            "from a backup."
        ) from error
    if digest != sha256:
        file.close()
        raise _altered(what)
    kind, _ = mimetypes.guess_type(name)
    return sent_file(
        file,
        f"{of}-{name}".replace("/", "-").replace(" ", "-"),
        kind or "application/octet-stream",
        shown="inline" if name.endswith(IN_BROWSER) else "attachment",
        headers={"Content-Security-Policy": INSIDE},
    )


def sent_file(
    file: IO[bytes],
    name: str,
    media_type: str,
    *,
    shown: str = "attachment",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """The whole content of an open file, which is closed in the end; it may have no name on disk.

    `shown` is how the browser is to show it: `inline` or `attachment`.
    """
    size = str(os.fstat(file.fileno()).st_size)
    return StreamingResponse(
        _blocks(file),
        media_type=media_type,
        headers={"Content-Length": size, **saved_as(name, shown), **headers},
    )


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            yield block


def _altered(what: str) -> SignatureRefused:
    return SignatureRefused(
        f"{what} is not what was written, so it is not shown. Find out who changed it, and bring "
        "the folder back from a backup."
    )
