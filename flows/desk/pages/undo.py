"""Undo: what taking a batch back out of the database would change, and why it is to be done."""

from http import HTTPStatus

from starlette.responses import Response

from connectors.errors import (
    BatchStateError,
    ReconError,
    StatementRefused,
)
from connectors.postgres.ledger import Batch, State
from connectors.postgres.overview import list_overview
from flows.desk.batches import batch_of
from flows.desk.forms import reason_of, status_of
from flows.desk.jobs import order
from flows.desk.visit import Visit
from flows.stages.undo import why_not_undone
from flows.steps.batch_report import Chain
from schemas.derived.views import WRITTEN
from schemas.jobs import JobKind


def show(visit: Visit) -> Response:
    """What would change; or, sent, the job that does it."""
    if visit.request.method == "GET":
        return _page(visit)
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
    try:
        if visit.typed("seen") != str(batch.lease_epoch):
            raise BatchStateError(
                f"Batch {batch.id} was worked on since that page was loaded. Look at what undoing "
                "it changes now, and decide again. Nothing was ordered."
            )
        number = order(
            visit,
            JobKind.UNDO,
            batch=batch.id,
            reason=reason_of(visit),
            over_changes=bool(visit.typed("over_changes")),
        )
    except ReconError as error:
        return _page(visit, said=str(error), status=status_of(error))
    return visit.go(f"/jobs/{number}")


def _page(visit: Visit, *, said: str = "", status: HTTPStatus = HTTPStatus.OK) -> Response:
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        (line,) = list_overview(connection, 1, only=batch.id)
        report = visit.desk.kept.batch_report(visit.place, connection, batch, line)
    return visit.page(
        "undo.html.jinja",
        status,
        said=said,
        batch=batch,
        line=line,
        over=batch.state in (State.UNDONE, State.DISCARDED),
        changes=[
            (title, *rows)
            for title, rows in (_written(one) for one in (report.chains if report else ()))
            if any(rows)
        ],
        looked=visit.asked.get("look") == "1",
        why_not=_why_not(visit, batch) if visit.asked.get("look") == "1" else "",
    )


def _written(chain: Chain) -> tuple[str, list[int]]:
    """Of a record kind, how many rows its end states say that the batch has written."""
    return chain.title, [chain.states[name].rows if name in chain.states else 0 for name in WRITTEN]


def _why_not(visit: Visit, batch: Batch) -> str:
    """Looks through all rows of the batch, so only when it is asked for."""
    try:
        return why_not_undone(visit.place, batch.id)
    except StatementRefused:
        return (
            "The database account of this desk may not look at staged rows. The job itself looks, "
            "and changes nothing where it must not."
        )
