"""A run: whether it can be signed, its money, what changed since the last signed one."""

from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.postgres.accounts import visible_batches
from connectors.postgres.runs.reconciliations import latest_run, maker_of
from connectors.postgres.runs.signatures import approval_of, signatures_of
from flows.desk.filters import BreakSearch
from flows.desk.seen import run_of
from flows.desk.visit import Visit
from flows.steps.reconcile.changes import method_rows
from flows.steps.reconcile.signed import CODE, LATE
from schemas.life import BreakState

INPUTS = 200
"""The most files that a page lists; the report has all."""


def show(visit: Visit) -> Response:
    place, kept = visit.place, visit.desk.kept
    with place.database.connect() as connection:
        run = run_of(visit, connection)
        last = latest_run(connection, run.scope)
        signatures = signatures_of(connection, run.id)
        by, person = maker_of(connection, run)
        review = kept.review(place, connection, run)
        changes = kept.changes(place, connection, run)
        inputs = review.facts.inputs[:INPUTS]
        batches = visible_batches(connection, {one["batch_id"] for one in inputs} - {None})
    return visit.page(
        "run.html.jinja",
        run=run,
        last=last,
        signatures=signatures,
        approval=approval_of(signatures),
        maker=by if person is None else person,
        given_as=by if person and by != person else None,
        review=review,
        inputs=inputs,
        batches=batches,
        states=list(BreakState),
        since=[(code, review.codes[code]) for code in (CODE, LATE) if code in review.codes],
        changes=changes,
        method=method_rows(changes, run.rules_hash),
        none_asked=BreakSearch({}),
        names=read_currencies(place.settings.currencies),
    )
