"""Undo: what taking a batch back out of the database would change, and the reason for it."""

from starlette.responses import Response

from connectors.errors import BatchStateError, StatementRefused
from connectors.postgres.accounts import is_shown_part
from connectors.postgres.batches.ledger import TAKEN_BACK, Batch
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.push.sends import left_at_service
from flows.desk.forms import reason_of, taken
from flows.desk.jobs import order
from flows.desk.seen import batch_of, named_batch
from flows.desk.visit import Visit
from flows.report.text import left_text
from flows.stages.undo import nothing_to_undo, why_not_undone
from flows.steps.batch_report import Chain
from schemas.derived.views import WRITTEN
from schemas.jobs import MAY_ORDER, JobKind


def send(visit: Visit) -> Response:
    """Order an undo of the batch; a refusal keeps what was typed."""
    batch = named_batch(visit)
    return taken(visit, lambda: f"/jobs/{_ordered(visit, batch)}", show)


def _ordered(visit: Visit, batch: Batch) -> int:
    if visit.typed("seen") != str(batch.lease_epoch):
        raise BatchStateError(
            f"Batch {batch.id} was worked on since that page was loaded. Look at what undoing "
            "it changes now, and decide again. Nothing was ordered."
        )
    return order(
        visit,
        JobKind.UNDO,
        batch=batch.id,
        reason=reason_of(visit),
        over_changes=bool(visit.typed("over_changes")),
    )


def show(visit: Visit) -> Response:
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        (line,) = list_overview(connection, 1, only=batch.id)
        report = visit.desk.kept.batch_report(visit.place, connection, batch, line)
        left = left_at_service(connection, batch.id)
    return visit.page(
        "undo.html.jinja",
        batch=batch,
        operators=MAY_ORDER,
        over=nothing_to_undo(batch) if batch.state in TAKEN_BACK else "",
        kept=left_text(left) if left else "",
        changes=[
            (title, *rows)
            for title, rows in (_written(one) for one in (report.chains if report else ()))
            if any(rows)
        ],
        looked=visit.asked.get("look") == "1",
        why_not=_why_not(visit, batch) if visit.asked.get("look") == "1" else "",
    )


def _written(chain: Chain) -> tuple[str, list[int]]:
    """How many rows of a record kind the batch has written, by end state."""
    return chain.title, [chain.states[name].rows if name in chain.states else 0 for name in WRITTEN]


def _why_not(visit: Visit, batch: Batch) -> str:
    """Why an undo would be refused; this looks at all rows of the batch, so only on request."""
    note = "The job checks again, and changes nothing if it must not."
    with visit.place.database.connect() as connection:
        if is_shown_part(connection):
            return f"What prevents it may be in batches that you do not see. {note}"
    try:
        return why_not_undone(visit.place, batch.id)
    except StatementRefused:
        return f"The database account of this desk may not look at staged rows. {note}"
