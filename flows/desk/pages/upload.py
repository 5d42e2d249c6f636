"""Upload: files from somebody's own machine, taken in as a delivery or as a correction."""

from typing import Any

from starlette.responses import Response

from connectors.errors import DeliveryError, ReconError
from connectors.files.incoming.uploads import Upload
from connectors.postgres.batches.ledger import Batch
from flows.desk.forms import status_of
from flows.desk.jobs import order
from flows.desk.seen import named_batch, shows_text
from flows.desk.visit import Visit
from flows.stages.jobs.arguments import profile_names
from schemas.counting import quantity
from schemas.jobs import MAY_ORDER, JobKind
from schemas.tables import EXTRACTS


def send(visit: Visit) -> Response:
    """Take the files that were sent, and order their import."""
    terms = {name: visit.typed(name) for name in ("tenant", "profile", "record")}
    given: dict[str, Any] = {name: value for name, value in terms.items() if value}
    return _ordered(visit, None, JobKind.IMPORT, push=bool(visit.typed("push")), **given)


def show_correction(visit: Visit) -> Response:
    return show(visit, named_batch(visit))


def send_correction(visit: Visit) -> Response:
    change = bool(visit.typed("change_records"))
    return _ordered(visit, named_batch(visit), JobKind.CORRECT, change_records=change)


def _ordered(visit: Visit, batch: Batch | None, kind: JobKind, **arguments: Any) -> Response:
    """The page of the job, or the form again; a refusal leaves nothing behind."""
    upload = visit.upload
    about = {"batch": batch.id} if batch else {}
    try:
        if upload is None:
            raise DeliveryError("No file was chosen. Choose one or several.")
        if isinstance(upload, ReconError):
            raise upload
        upload.keep()
        number = order(visit, kind, upload=upload.token, **about, **arguments)
    except ReconError as error:
        if isinstance(upload, Upload):
            upload.drop()
        return show(visit.refusing(f"{error} Choose the files again.", status_of(error)), batch)
    return visit.go(f"/jobs/{number}")


def show(visit: Visit, batch: Batch | None = None) -> Response:
    """The form for a delivery, or for the corrected rows of a batch."""
    return visit.page(
        "upload.html.jinja",
        batch=batch,
        operators=MAY_ORDER,
        with_text=shows_text(visit),
        profiles=profile_names(visit.place.settings),
        records=sorted(EXTRACTS),
        tenants=visit.person.tenants if visit.person else (),
        limit=_size(visit.place.settings.limits.file_bytes),
        serviced=visit.place.settings.service.url is not None,
    )


def _size(number: int) -> str:
    """A number of bytes in the largest unit of which it is at least one."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= unit:
            return f"{number / unit:.4g} {name}"
    return quantity(number, "byte")
